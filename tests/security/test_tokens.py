"""The cluster's own tokens: whom they name, until when they count, and what ends them earlier."""

import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import (
    TOKEN_CLOCK_SKEW_MS,
    TOKEN_KEY_SETTLES_MS,
    TOKEN_KEY_SIGNS_MS,
    TOKEN_LIFETIME_MS_MAX,
)
from ropewalk.security.bearer import parse_token
from ropewalk.security.scram import Mechanism, ScramCredential
from ropewalk.security.tokens import (
    TokenEnded,
    TokenKey,
    Verified,
    access_key_of,
    issue,
    keys_of,
    secret_of,
    signing_key,
    verify,
)
from tests.security.signing import by_hand, segment

CLUSTER = "the-cluster"
NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
CREDENTIAL = ScramCredential(4096, b"salt", b"stored", b"server")
HELD = {Mechanism.SHA_256: CREDENTIAL}
USERS: Mapping[str, Mapping[Mechanism, ScramCredential]] = {"alice": HELD, "bob": HELD}
KEY = bytes(range(32))
KEYS = keys_of([("k1", KEY, NOW_MS)])


def token_of(user: str = "alice", *, key: TokenKey = KEYS[0], now_ms: int = NOW_MS, **more: Any) -> str:
    said = {"cluster_id": CLUSTER, "credentials": HELD, "lifetime_ms": HOUR_MS, **more}
    return issue(key, user=user, now_ms=now_ms, **said).token


def checked(
    token: str,
    *,
    now_ms: int = NOW_MS,
    keys: tuple[TokenKey, ...] = tuple(KEYS),
    cluster_id: str = CLUSTER,
    users: Mapping[str, Mapping[Mechanism, ScramCredential]] = USERS,
) -> Verified:
    return verify(
        parse_token(token),
        cluster_id=cluster_id,
        keys={key.key_id: key for key in keys},
        credentials_of=lambda name: users.get(name, {}),
        now_ms=now_ms,
    )


def test_a_token_names_its_user_and_its_end() -> None:
    found = checked(token_of())
    assert (found.user, found.ends_at_ms) == ("alice", NOW_MS + HOUR_MS)
    header = parse_token(token_of()).header
    assert (header.alg, header.kid, header.typ) == ("HS256", "k1", "JWT")
    said = parse_token(token_of()).claims
    assert (said["iss"], said["sub"]) == ("ropewalk:the-cluster", "alice")


def test_a_session_token_is_no_bearer_token_and_has_a_secret_that_is_not_in_it() -> None:
    said: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "credentials": HELD,
        "lifetime_ms": HOUR_MS,
        "user": "alice",
    }
    issued = issue(KEYS[0], now_ms=NOW_MS, is_session=True, **said)
    keys = {key.key_id: key for key in KEYS}
    more: dict[str, Any] = {"cluster_id": CLUSTER, "keys": keys, "credentials_of": lambda _: HELD}
    session = parse_token(issued.token)
    assert verify(session, now_ms=NOW_MS, is_session=True, **more).user == "alice"
    with pytest.raises(AuthenticationFailed, match="not made as this cluster"):
        checked(issued.token)
    with pytest.raises(AuthenticationFailed, match="not made as this cluster"):
        verify(parse_token(token_of()), now_ms=NOW_MS, is_session=True, **more)
    with pytest.raises(TokenEnded):
        verify(session, now_ms=NOW_MS + HOUR_MS, is_session=True, **more)
    with pytest.raises(AuthenticationFailed, match="changed or removed") as told:
        verify(session, now_ms=NOW_MS + HOUR_MS, is_session=True, **{**more, "credentials_of": lambda _: {}})
    assert not isinstance(told.value, TokenEnded), "nobody learns of it what was right"
    (other_key,) = keys_of([("k1", KEY[::-1], NOW_MS)])
    others = {secret_of(other_key, issued.token), secret_of(KEYS[0], issued.token + "x"), ""}
    assert issued.secret == secret_of(KEYS[0], issued.token) not in others
    assert issued.access_key == access_key_of(issued.token)
    assert issued.secret not in repr(issued)


def test_it_counts_until_its_end_and_not_a_moment_longer() -> None:
    token = token_of()
    assert checked(token, now_ms=NOW_MS + HOUR_MS - 1).user == "alice"
    with pytest.raises(AuthenticationFailed, match="it ended 0 s ago"):
        checked(token, now_ms=NOW_MS + HOUR_MS)


@pytest.mark.parametrize(
    "held",
    [
        pytest.param({}, id="removed"),
        pytest.param({Mechanism.SHA_256: structs.replace(CREDENTIAL, salt=b"other")}, id="another password"),
        pytest.param({Mechanism.SHA_512: CREDENTIAL}, id="another mechanism"),
        pytest.param({**HELD, Mechanism.SHA_512: CREDENTIAL}, id="one more mechanism"),
    ],
)
def test_it_ends_with_what_its_user_logs_in_with(held: dict[Mechanism, ScramCredential]) -> None:
    found = checked(token_of())
    keys = {"k1": KEYS[0]}
    assert found.still_counts(keys, HELD)
    assert not found.still_counts(keys, held)
    with pytest.raises(AuthenticationFailed, match="changed or removed"):
        checked(token_of(), users={"alice": held})


def test_users_with_the_same_credential_are_not_taken_for_each_other() -> None:
    header, payload, _ = token_of("bob").split(".")
    assert parse_token(token_of("bob")).claims["mark"] != parse_token(token_of()).claims["mark"]
    with pytest.raises(AuthenticationFailed, match="signature"):
        checked(".".join((header, payload, token_of().split(".")[2])))


def signed_by_hand(said: dict[str, Any] | None = None, key: bytes = KEY, **header: Any) -> str:
    """With the key itself, whatever is said."""
    claims = parse_token(token_of()).claims
    head = {"alg": "HS256", "kid": "k1", "typ": "JWT", **header}
    parts = [segment(json.dumps(part).encode()) for part in (head, {**claims, **(said or {})})]
    signed = ".".join(parts)
    return f"{signed}.{segment(hmac.digest(key, signed.encode(), 'sha256'))}"


NOW_S = NOW_MS / 1000
BAD: dict[str, tuple[str, str]] = {
    "another key": (signed_by_hand(key=bytes(32)), "signature is not right"),
    "an unknown key": (signed_by_hand(kid="k2"), "its key is not known"),
    "no key": (signed_by_hand(kid=None), "its key is not known"),
    "another algorithm": (signed_by_hand(alg="HS512"), "not made as this cluster makes"),
    "no algorithm": (signed_by_hand(alg="none"), "not made as this cluster makes"),
    "another type": (signed_by_hand(typ="at+jwt"), "not made as this cluster makes"),
    "something to understand": (signed_by_hand(crit=["x"]), "not made as this cluster makes"),
    "another cluster": (signed_by_hand({"iss": "ropewalk:another"}), "another cluster has issued it"),
    "too long": (signed_by_hand({"exp": NOW_S + 8 * 86_400}), "lasts longer than tokens may"),
    "before its key": (signed_by_hand({"iat": NOW_S - 31}), "when its key did not sign"),
    "after its key": (signed_by_hand({"iat": NOW_S + 31 * 86_400}), "when its key did not sign"),
    "issued ahead": (signed_by_hand({"iat": NOW_S + 60}), "60 s ahead"),
    "no mark": (signed_by_hand({"mark": None}), "does not say what"),
    "another mark": (signed_by_hand({"mark": "x"}), "changed or removed"),
    "nobody": (signed_by_hand({"sub": ""}), "changed or removed"),
    "endless": (signed_by_hand({"exp": 1e300}), "lasts longer than tokens may"),
    "no signature": (by_hand(b'{"alg":"HS256","kid":"k1","typ":"JWT"}', b"{}", b"x"), "signature"),
}


@pytest.mark.parametrize(("token", "reason"), BAD.values(), ids=BAD)
def test_bad_tokens_are_refused(token: str, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason):
        checked(token)


def test_a_new_key_signs_when_the_others_have_heard_of_it_and_the_former_counts_until_its_tokens_have_ended() -> (
    None
):
    later_ms = NOW_MS + HOUR_MS
    former, new = keys_of([("k2", bytes(32), later_ms), ("k1", KEY, NOW_MS)])
    assert signing_key((former, new), later_ms) == former
    assert signing_key((former, new), later_ms + TOKEN_KEY_SETTLES_MS - 1) == former
    assert signing_key((former, new), later_ms + TOKEN_KEY_SETTLES_MS) == new
    last = token_of(key=former, now_ms=later_ms + TOKEN_KEY_SETTLES_MS - 1, lifetime_ms=TOKEN_LIFETIME_MS_MAX)
    ends_at_ms = later_ms + TOKEN_KEY_SETTLES_MS - 1 + TOKEN_LIFETIME_MS_MAX
    assert checked(last, keys=(former, new), now_ms=ends_at_ms - 1).user == "alice"
    assert former.counts_until_ms >= ends_at_ms


def test_a_stolen_key_is_worth_nothing_once_its_time_is_over() -> None:
    former, new = keys_of([("k1", KEY, NOW_MS), ("k2", bytes(32), NOW_MS + HOUR_MS)])
    now_ms = NOW_MS + 2 * HOUR_MS
    forged = token_of(key=former, now_ms=now_ms)
    with pytest.raises(AuthenticationFailed, match="when its key did not sign"):
        checked(forged, keys=(former, new), now_ms=now_ms)
    alone_ms = NOW_MS + TOKEN_KEY_SIGNS_MS + TOKEN_CLOCK_SKEW_MS
    with pytest.raises(AuthenticationFailed, match="when its key did not sign"):
        checked(token_of(now_ms=alone_ms), now_ms=alone_ms)
    assert signing_key(KEYS, alone_ms) is None


@given(
    st.lists(st.integers(0, 80 * 86_400_000), max_size=6, unique=True),
    st.integers(0, 120 * 86_400_000),
    st.integers(1, TOKEN_LIFETIME_MS_MAX),
    st.integers(0, TOKEN_LIFETIME_MS_MAX),
)
def test_whatever_is_issued_counts_until_it_ends_however_keys_follow_each_other(
    made: list[int], at_ms: int, lifetime_ms: int, later_ms: int
) -> None:
    """Also by the keys of a node that has since heard of all that were made."""
    known = [each for each in made if each <= at_ms]
    keys = keys_of([(str(each), KEY, each) for each in known])
    key = signing_key(keys, at_ms)
    if key is None:
        return
    token = token_of(key=key, now_ms=at_ms, lifetime_ms=lifetime_ms)
    now_ms = at_ms + later_ms
    heard = keys_of([(str(each), KEY, each) for each in made if each <= now_ms])
    if later_ms < lifetime_ms:
        assert checked(token, keys=tuple(heard), now_ms=now_ms).user == "alice"
        assert now_ms < next(each for each in heard if each.key_id == key.key_id).counts_until_ms
    else:
        with pytest.raises(AuthenticationFailed):
            checked(token, keys=tuple(heard), now_ms=now_ms)
