"""Tokens of an authority: which are believed, and bad ones of every kind."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.jwk import ECKey, RSAKey
from msgspec import structs

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import BEARER_GROUPS_MAX, BEARER_TOKEN_BYTES_MAX, JWKS_KEYS_MAX
from ropewalk.security.bearer import Claimed, parse_key_set, parse_token, verify
from ropewalk.security.oauthbearer import parse_oauthbearer
from tests.security.signing import (
    EC,
    EC_384,
    EC_521,
    ED,
    EXPECTED,
    ISSUER,
    OTHER_RSA,
    RSA,
    AnyKey,
    by_hand,
    claims,
    jwks,
    presented,
    segment,
    sign,
    with_the_public_key,
)

NOW_MS = 1_800_000_000_000
KEY_SET = parse_key_set(jwks())


def believed(token: str, now_ms: int = NOW_MS, keys: bytes | None = None, **expected: Any) -> Claimed:
    key_set = KEY_SET if keys is None else parse_key_set(keys)
    said, _ = verify(parse_token(token), key_set, structs.replace(EXPECTED, **expected), now_ms)
    return said


def test_a_good_token_names_its_user_its_groups_and_its_end() -> None:
    said = believed(sign(claims(NOW_MS, groups=["admins", "/eu/ops", "admins"])))
    assert said == Claimed("alice", ("admins", "/eu/ops"), NOW_MS + 300_000)


@pytest.mark.parametrize(
    ("key", "alg"),
    [
        *[(RSA, alg) for alg in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")],
        (EC, "ES256"),
        (EC_384, "ES384"),
        (EC_521, "ES512"),
        (ED, "EdDSA"),
        (ED, "Ed25519"),
    ],
)
def test_every_algorithm_that_goes_with_a_key(key: AnyKey, alg: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        token = sign(claims(NOW_MS), key, alg)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert believed(token).subject == "alice"


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        pytest.param(claims(NOW_MS, aud=["other", "ropewalk"]), "alice", id="one of several audiences"),
        pytest.param(claims(NOW_MS, aud="somebody"), "alice", id="another audience that is expected"),
        pytest.param(claims(NOW_MS, exp=NOW_MS / 1000 + 0.5), "alice", id="half a second left"),
        pytest.param(claims(NOW_MS, iat=NOW_MS // 1000 + 30), "alice", id="issued by a clock that is fast"),
        pytest.param(claims(NOW_MS, nbf=NOW_MS // 1000 + 30), "alice", id="begins by a clock that is fast"),
        pytest.param(claims(NOW_MS, scope="read write"), "alice", id="scopes as a text"),
        pytest.param(claims(NOW_MS, scope=["read", "write"]), "alice", id="scopes as a list"),
        pytest.param(claims(NOW_MS, groups="ops"), "alice", id="one group"),
        pytest.param(claims(NOW_MS, "jürgen@example.com"), "jürgen@example.com", id="beyond ASCII"),
        pytest.param(claims(NOW_MS, nonce={"deep": [1, 2, {}]}), "alice", id="claims nobody asked for"),
    ],
)
def test_what_a_token_may_say(said: dict[str, Any], subject: str) -> None:
    assert believed(sign(said)).subject == subject


def test_claims_by_other_names() -> None:
    said = claims(NOW_MS, None, client_id="svc", roles=["ops"])
    found = believed(sign(said), subject_claim="client_id", groups_claim="roles")
    assert (found.subject, found.groups) == ("svc", ("ops",))


NONE = by_hand(b'{"alg":"none","kid":"rsa"}', json.dumps(claims(NOW_MS)).encode(), b"x")
GOOD = sign(claims(NOW_MS))
DEEP = b'{"alg":"RS256","kid":"rsa","x":' + b"[" * 5000 + b"]" * 5000 + b"}"

BAD: dict[str, tuple[str, str]] = {
    "expired": (sign(claims(NOW_MS, exp=NOW_MS // 1000)), "the token ended 0 s ago"),
    "long expired": (sign(claims(NOW_MS, exp=NOW_MS // 1000 - 60)), "the token ended 60 s ago"),
    "no end": (sign(claims(NOW_MS, exp=None)), "no claim exp that is a time"),
    "an end that is text": (sign(claims(NOW_MS, exp="soon")), "no claim exp that is a time"),
    "an end that is true": (sign(claims(NOW_MS, exp=True)), "no claim exp that is a time"),
    "an end beyond all time": (sign(claims(NOW_MS, exp=10**30)), "no claim exp that is a time"),
    "an endless end": (sign(json.dumps({**claims(NOW_MS), "exp": "@"}).replace('"@"', "1e999").encode()), ""),
    "never issued": (sign(claims(NOW_MS, iat=None)), "no claim iat that is a time"),
    "issued ahead": (sign(claims(NOW_MS, iat=NOW_MS // 1000 + 31)), "issued 31 s ahead"),
    "not yet": (sign(claims(NOW_MS, nbf=NOW_MS // 1000 + 31)), "begins 31 s from now"),
    "foreign key": (sign(claims(NOW_MS), OTHER_RSA), "signature of the token is not right"),
    "foreign issuer": (sign(claims(NOW_MS, iss="https://evil.example")), f"is not {ISSUER}"),
    "issuer that begins alike": (sign(claims(NOW_MS, iss=ISSUER + "/")), f"is not {ISSUER}"),
    "no issuer": (sign(claims(NOW_MS, iss=None)), f"is not {ISSUER}"),
    "several issuers": (sign(claims(NOW_MS, iss=[ISSUER])), f"is not {ISSUER}"),
    "foreign audience": (sign(claims(NOW_MS, aud="another")), "another audience than somebody or ropewalk"),
    "no audience": (sign(claims(NOW_MS, aud=None)), "another audience"),
    "empty audience": (sign(claims(NOW_MS, aud=[])), "another audience"),
    "audience of numbers": (sign(claims(NOW_MS, aud=[1])), "neither a text nor a list"),
    "audience of keys": (sign(claims(NOW_MS, aud={"ropewalk": 1})), "neither a text nor a list"),
    "nobody": (sign(claims(NOW_MS, None)), "no claim sub that is a text"),
    "a number": (sign(claims(NOW_MS, sub=7)), "no claim sub that is a text"),
    "everybody": (sign(claims(NOW_MS, "*")), "no name that a user may have"),
    "the nameless": (sign(claims(NOW_MS, "ANONYMOUS")), "no name that a user may have"),
    "a node": (sign(claims(NOW_MS, "ropewalk")), "no name that a user may have"),
    "no name at all": (sign(claims(NOW_MS, "")), "no name that a user may have"),
    "a name with a line": (sign(claims(NOW_MS, "a\nb")), "no name that a user may have"),
    "half a character": (sign(claims(NOW_MS, "a\ud800")), ""),
    "a name too long": (sign(claims(NOW_MS, "ä" * 128)), "no name that a user may have"),
    "groups of numbers": (sign(claims(NOW_MS, groups=[1])), "groups is neither"),
    "groups by name": (sign(claims(NOW_MS, groups={"ops": True})), "groups is neither"),
    "a group with a line": (sign(claims(NOW_MS, groups=["a\nb"])), "no group may have"),
    "an empty group": (sign(claims(NOW_MS, groups=[""])), "no group may have"),
    "too many groups": (
        sign(claims(NOW_MS, groups=[f"g{number}" for number in range(BEARER_GROUPS_MAX + 1)])),
        f"names {BEARER_GROUPS_MAX + 1} groups",
    ),
    "scope of numbers": (sign(claims(NOW_MS, scope=7)), "scope is neither"),
    "nobody signed": (NONE, "algorithm that does not go with its key"),
    "nobody signed, in capitals": (
        by_hand(b'{"alg":"NONE","kid":"rsa"}', json.dumps(claims(NOW_MS)).encode(), b"x"),
        "algorithm that does not go with its key",
    ),
    "signed with the public key": (
        with_the_public_key(claims(NOW_MS)),
        "algorithm that does not go with its key",
    ),
    "the algorithm of another key": (
        by_hand(b'{"alg":"ES256","kid":"rsa"}', json.dumps(claims(NOW_MS)).encode(), b"x" * 64),
        "algorithm that does not go with its key",
    ),
    "unknown key": (sign(claims(NOW_MS), RSA, kid="another"), "a key that the issuer does not show"),
    "unnamed key": (sign(claims(NOW_MS), RSA, kid=None), "a key that the issuer does not show"),
    "a key of its own": (
        sign(claims(NOW_MS), OTHER_RSA, jwk=OTHER_RSA.as_dict(private=False)),
        "signature of the token is not right",
    ),
    "a place for its key": (
        sign(claims(NOW_MS), OTHER_RSA, jku="https://evil.example/jwks"),
        "signature of the token is not right",
    ),
    "something to understand": (
        by_hand(b'{"alg":"RS256","kid":"rsa","crit":["x"],"x":1}', b"{}", b"x"),
        "must be understood",
    ),
    "nothing to understand": (
        by_hand(b'{"alg":"RS256","kid":"rsa","crit":null}', b"{}", b"x"),
        "must be understood",
    ),
    "for another use": (sign(claims(NOW_MS), typ="dpop+jwt"), "no access token"),
    "altered": (GOOD[:-8] + segment(b"123456"), "signature of the token is not right"),
    "another's claims": (
        ".".join(
            (GOOD.split(".")[0], segment(json.dumps(claims(NOW_MS, "eve")).encode()), GOOD.split(".")[2])
        ),
        "signature of the token is not right",
    ),
    "huge": ("a." + "b" * BEARER_TOKEN_BYTES_MAX + ".c", f"at most {BEARER_TOKEN_BYTES_MAX} are read"),
    "empty": ("", "not a signed token"),
    "two parts": ("a.b", "not a signed token"),
    "encrypted": ("a.b.c.d.e", "not a signed token"),
    "no signature": (GOOD.rpartition(".")[0] + ".", "not a signed token"),
    "padded": (GOOD + "=", "not a signed token"),
    "other letters": ("é.b.c", "not a signed token"),
    "no base64": ("a.b.c", "not what a signed token has"),
    "no JSON": (by_hand(b"header", b"{}", b"x"), "not what a signed token has"),
    "no object": (by_hand(b'{"alg":"RS256"}', b"[]", b"x"), "not what a signed token has"),
    "no algorithm": (by_hand(b'{"kid":"rsa"}', b"{}", b"x"), "not what a signed token has"),
    "algorithm of a number": (by_hand(b'{"alg":1}', b"{}", b"x"), "not what a signed token has"),
    "no UTF-8": (by_hand(b'{"alg":"RS256"}', b'{"sub":"\xff"}', b"x"), "not what a signed token has"),
    "deep header": (by_hand(DEEP, b"{}", b"x"), "not what a signed token has"),
    "deep claims": (by_hand(b'{"alg":"RS256"}', b"[" * 5000, b"x"), "not what a signed token has"),
}


@pytest.mark.parametrize(("token", "reason"), BAD.values(), ids=BAD)
def test_bad_tokens_are_refused_and_the_log_is_told_why(token: str, reason: str) -> None:
    with pytest.raises(AuthenticationFailed) as told:
        believed(token)
    assert reason in str(told.value)
    assert str(told.value).startswith("OAUTHBEARER: ")
    for secret in ("evil.example", "another.example", token[-20:] or "@@"):
        assert secret not in str(told.value), "a stranger writes nothing into the log"


def test_the_only_key_needs_no_name() -> None:
    assert believed(sign(claims(NOW_MS), RSA, kid=None), keys=jwks(RSA)).subject == "alice"


def test_two_keys_of_one_name_are_told_apart_by_what_they_prove() -> None:
    shown = jwks(OTHER_RSA, RSA)
    assert believed(sign(claims(NOW_MS)), keys=shown).subject == "alice"
    assert believed(sign(claims(NOW_MS), OTHER_RSA), keys=shown).subject == "alice"


def test_a_key_that_names_its_algorithm_proves_nothing_by_another() -> None:
    with pytest.raises(AuthenticationFailed, match="does not go with its key"):
        believed(sign(claims(NOW_MS)), keys=jwks(RSA, alg="RS512"))
    assert believed(sign(claims(NOW_MS), alg="RS512"), keys=jwks(RSA, alg="RS512")).subject == "alice"


def small() -> RSAKey:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RSAKey.generate_key(1024, {"kid": "small"})


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        pytest.param(b"", "truncated", id="nothing"),
        pytest.param(b"<html>", "malformed", id="a page"),
        pytest.param(b'{"keys": {}}', "Expected `array`", id="no list"),
        pytest.param(b"[" * 5000, "Expected|deep", id="deep"),
        pytest.param(b'{"keys": []}', "no key that can be used", id="no keys"),
        pytest.param(jwks(RSA, use="enc"), "not for signatures", id="for another use"),
        pytest.param(jwks(RSA, key_ops=["sign"]), "not for signatures", id="for another operation"),
        pytest.param(jwks(RSA, alg="RS1"), "no algorithm", id="an algorithm nobody believes"),
        pytest.param(jwks(RSA, alg="HS256"), "no algorithm", id="an algorithm of secrets"),
        pytest.param(jwks(RSA, n="AQAB"), "key 1", id="hardly any bits"),
        pytest.param(jwks(small()), "it has 1024 bits", id="too few bits"),
        pytest.param(jwks(RSA, n=7), "cannot be read", id="numbers"),
        pytest.param(jwks(EC, x="AQAB"), "not on the curve", id="no point of its curve"),
        pytest.param(jwks(ECKey.generate_key("secp256k1")), "no algorithm", id="a curve for other things"),
        pytest.param(b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', "its type is 'oct'", id="a secret"),
        pytest.param(b'{"keys": [{"kid": 7}]}', "a kid that is no text", id="a number for a name"),
        pytest.param(b'{"keys": [%s]}' % b",".join([b"{}"] * (JWKS_KEYS_MAX + 1)), "65 keys", id="too many"),
    ],
)
def test_a_set_without_a_key_that_can_be_used_is_refused(shown: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_key_set(shown)


def test_a_key_that_cannot_be_used_leaves_the_others_in_peace() -> None:
    keys = parse_key_set(jwks(small(), RSA))
    assert set(keys.by_id) == {"rsa"}
    assert "1024 bits" in keys.ignored[0]


def test_what_is_secret_in_a_key_is_not_kept() -> None:
    shown = json.dumps({"keys": [RSA.as_dict(private=True)]}).encode()
    (key,) = parse_key_set(shown).of("rsa")
    assert not key.key.is_private


# The message that a token comes in


@pytest.mark.parametrize(
    ("message", "token", "acting_as"),
    [
        (b"n,,\x01auth=Bearer abc.def\x01\x01", "abc.def", None),
        (b"n,a=,\x01auth=Bearer abc\x01\x01", "abc", None),
        (b"n,a=al=2Cice=3D,\x01auth=Bearer abc\x01\x01", "abc", "al,ice="),
        (b"n,,\x01auth=bEARER   abc\x01\x01", "abc", None),
        (b"n,,\x01host=x\x01port=9092\x01auth=Bearer abc\x01traceId=7 8\x01\x01", "abc", None),
    ],
)
def test_messages_that_hold_a_token(message: bytes, token: str, acting_as: str | None) -> None:
    found = parse_oauthbearer(message)
    assert (found.token, found.acting_as) == (token, acting_as)
    assert token not in repr(found)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer abc\x01auth=Bearer def\x01\x01",
        b"n,,\x01a1=x\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01x\x01\x01",
        b"n,a=x=2c,\x01auth=Bearer abc\x01\x01",
        b"n,a=\xff,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        presented("x" * 20_000),
    ],
)
def test_messages_that_hold_none(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        parse_oauthbearer(message)


PIECES = st.sampled_from(
    [
        b"n,",
        b"n,,",
        b"a=",
        b",",
        b"\x01",
        b"auth=",
        b"Bearer ",
        b"host=x\x01",
        b"=2C",
        b"\xff",
        b"\x00",
        b"alice",
        b"abc.def.ghi",
    ]
)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=12).map(b"".join) | st.binary(max_size=60))
def test_whatever_is_sent_is_a_token_or_refused(message: bytes) -> None:
    try:
        found = parse_oauthbearer(message)
    except AuthenticationFailed:
        return
    assert found.token
    assert b"Bearer " in message.title()


SEGMENTS = st.one_of(
    st.binary(max_size=40).map(segment),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["alg", "kid", "typ", "crit", "iss", "aud", "exp", "iat", "sub", "nbf", "groups"]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=8,
    ).map(lambda value: segment(json.dumps(value).encode())),
    st.sampled_from([segment(b'{"alg":"RS256","kid":"rsa"}'), segment(b'{"alg":"none"}'), "", "=", "é"]),
)


@settings(max_examples=400)
@given(st.lists(SEGMENTS, min_size=1, max_size=4).map(".".join))
def test_whatever_is_presented_is_refused_in_the_same_way(text: str) -> None:
    with pytest.raises(AuthenticationFailed):
        believed(text)


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(["iss", "aud", "exp", "iat", "nbf", "sub", "groups", "scope"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
            max_leaves=6,
        ),
        max_size=4,
    )
)
def test_whatever_an_authority_signs_is_believed_as_it_says_or_refused(changed: dict[str, Any]) -> None:
    said = {**claims(NOW_MS), **changed}
    try:
        found = believed(sign(said, EC, "ES256"))
    except AuthenticationFailed:
        return
    assert (found.subject, said["iss"]) == (said["sub"], ISSUER)
    assert found.ends_at_ms > NOW_MS
