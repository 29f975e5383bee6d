"""Users' credentials: what KIP-554 lets be set and removed, and what comes of a request that is partly wrong."""

import pytest

from ropewalk.base.errors import (
    DuplicateUser,
    NotInForce,
    PolicyViolation,
    RopewalkError,
    UnacceptableCredential,
    UnknownUser,
    UnsupportedMechanism,
)
from ropewalk.base.levels import USERS_LEVEL
from ropewalk.controller import users
from ropewalk.controller.users import Outcome, Removal, Upsertion, decide_alter_users
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import LevelChanged
from ropewalk.security.scram import Mechanism, credential_of, salted

KEY = bytes(range(32))
SALT = b"sixteen bytes or"
SHA_256, SHA_512 = Mechanism
SALTED = {SHA_256: b"p" * 32, SHA_512: b"q" * 64}


def setting(user: str, mechanism: Mechanism = SHA_256, *, iterations: int = 4096) -> Upsertion:
    return Upsertion(user, mechanism, iterations, SALT, SALTED[mechanism])


def image_with(*changes: Removal | Upsertion, level: int = USERS_LEVEL) -> Image:
    image = Image()
    image.apply(LevelChanged(level))
    alter(image, *changes)
    return image


def alter(image: Image, *changes: Removal | Upsertion) -> Outcome:
    outcome = decide_alter_users(image, changes, decoy_key=KEY)
    image.apply_all(outcome.records)
    return outcome


def refused(outcome: Outcome) -> dict[str, type[RopewalkError] | None]:
    return {user: None if error is None else type(error) for user, error in outcome.refusals.items()}


def test_what_is_kept_is_made_from_the_salted_password_and_proves_it() -> None:
    mechanism = SHA_256
    password = salted(mechanism, b"pencil", SALT, 4096)
    image = image_with(Upsertion("alice", mechanism, 4096, SALT, password))
    held = image.users.of("alice")
    assert held == {mechanism: credential_of(mechanism, password, SALT, 4096)}
    assert password not in (held[mechanism].stored_key, held[mechanism].server_key)


def test_credentials_are_set_replaced_and_removed_by_mechanism() -> None:
    image = image_with(setting("alice"), setting("bob", SHA_512))
    assert refused(alter(image, setting("alice", SHA_512))) == {"alice": None}
    assert list(image.users.of("alice")) == [SHA_256, SHA_512]
    alter(image, setting("alice", iterations=16_384))
    assert image.users.of("alice")[SHA_256].iterations == 16_384
    assert refused(alter(image, Removal("alice", SHA_256), Removal("bob", SHA_512))) == {
        "alice": None,
        "bob": None,
    }
    assert list(image.users) == ["alice"], "whoever has no credential left is gone"
    assert list(image.users.of("alice")) == [SHA_512]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param(setting(""), UnacceptableCredential, id="no name"),
        pytest.param(setting("*"), UnacceptableCredential, id="everybody"),
        pytest.param(setting("ANONYMOUS"), UnacceptableCredential, id="whoever says no name"),
        pytest.param(setting("ropewalk"), UnacceptableCredential, id="the nodes"),
        pytest.param(setting("a\nb"), UnacceptableCredential, id="a control character"),
        pytest.param(setting("a\x7fb"), UnacceptableCredential, id="another"),
        pytest.param(setting("x" * 256), UnacceptableCredential, id="256 bytes"),
        pytest.param(setting("é" * 128), UnacceptableCredential, id="256 bytes in 128 characters"),
        pytest.param(setting("x" * 255), None, id="255 bytes"),
        pytest.param(setting("Zoë, of =accounts="), None, id="what is no control character"),
        pytest.param(setting("u", iterations=4095), UnacceptableCredential, id="too few iterations"),
        pytest.param(setting("u", iterations=16_385), UnacceptableCredential, id="too many iterations"),
        pytest.param(setting("u", iterations=16_384), None, id="as many as may be"),
        pytest.param(Upsertion("u", 1, 4096, SALT[:15], b"p" * 32), UnacceptableCredential, id="little salt"),
        pytest.param(Upsertion("u", 1, 4096, b"s" * 65, b"p" * 32), UnacceptableCredential, id="much salt"),
        pytest.param(Upsertion("u", 1, 4096, SALT, b"p" * 64), UnacceptableCredential, id="of SHA-512"),
        pytest.param(Upsertion("u", 2, 4096, SALT, b"p" * 32), UnacceptableCredential, id="of SHA-256"),
        pytest.param(Upsertion("u", 0, 4096, SALT, b"p" * 32), UnsupportedMechanism, id="mechanism 0"),
        pytest.param(Upsertion("u", 3, 4096, SALT, b"p" * 32), UnsupportedMechanism, id="mechanism 3"),
        pytest.param(Removal("alice", 3), UnsupportedMechanism, id="removed by mechanism 3"),
        pytest.param(Removal("nobody", 1), UnknownUser, id="removed and not there"),
        pytest.param(Removal("alice", 2), UnknownUser, id="removed by a mechanism that it has not"),
    ],
)
def test_bounds(change: Removal | Upsertion, error: type[RopewalkError] | None) -> None:
    outcome = alter(image_with(setting("alice")), change)
    assert refused(outcome) == {change.user: error}
    assert bool(outcome.records) is (error is None)


def test_what_is_valid_is_done_whatever_is_refused_beside_it() -> None:
    image = image_with(setting("alice"))
    outcome = alter(image, Removal("nobody", 1), setting("bob", iterations=1), setting("carol"))
    assert refused(outcome) == {"nobody": UnknownUser, "bob": UnacceptableCredential, "carol": None}
    assert list(image.users) == ["alice", "carol"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((setting("alice"), setting("alice")), id="twice the same"),
        pytest.param((setting("alice"), setting("alice", SHA_512)), id="by two mechanisms"),
        pytest.param((Removal("alice", 1), setting("alice")), id="removed and set"),
    ],
)
def test_a_user_that_is_named_twice_keeps_what_it_had(changes: tuple[Removal | Upsertion, ...]) -> None:
    image = image_with(setting("alice", iterations=5_000))
    outcome = alter(image, *changes, setting("bob"))
    assert refused(outcome) == {"alice": DuplicateUser, "bob": None}
    assert image.users.of("alice")[SHA_256].iterations == 5_000


def test_there_are_no_users_before_their_level() -> None:
    outcome = alter(image_with(level=USERS_LEVEL - 1), setting("alice"))
    assert refused(outcome) == {"alice": NotInForce}
    assert outcome.records == []


def test_users_are_bounded_and_those_who_are_there_can_still_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS_MAX", 2)
    image = image_with(setting("alice"), setting("bob"))
    assert refused(alter(image, setting("carol"))) == {"carol": PolicyViolation}
    assert refused(alter(image, setting("alice", SHA_512))) == {"alice": None}
    assert refused(alter(image, Removal("bob", 1), setting("carol"), setting("dora"))) == {
        "bob": None,
        "carol": None,
        "dora": PolicyViolation,
    }


def test_one_request_changes_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS_CHANGED_MAX", 2)
    outcome = alter(image_with(), setting("a"), setting("b"), setting("c"))
    assert set(refused(outcome).values()) == {PolicyViolation}
    assert outcome.records == []


def test_the_key_of_decoys_comes_with_the_first_user_and_stays() -> None:
    image = image_with()
    assert alter(image, Removal("nobody", 1)).records == [], "nobody has come yet"
    alter(image, setting("alice"))
    assert image.users.decoy_key == KEY
    decide_alter_users(image, [setting("bob")], decoy_key=bytes(32))
    alter(image, Removal("alice", 1))
    assert image.users.decoy_key == KEY


def test_a_snapshot_has_the_users() -> None:
    image, again = image_with(setting("bob", SHA_512), setting("alice")), Image()
    again.replace(image.facts(), image.end_offset)
    assert list(again.facts()) == list(image.facts())
    assert again.users.of("bob") == image.users.of("bob")
    assert again.users.decoy_key == KEY


def test_most_credentials_say_what_decoys_look_like() -> None:
    image = image_with()
    assert image.users.usual_shape(SHA_256).iterations == 16_384, "ours, while there are none"
    alter(
        image, setting("a", iterations=5_000), setting("b", iterations=6_000), setting("c", iterations=5_000)
    )
    assert image.users.usual_shape(SHA_256).iterations == 5_000
    alter(image, Removal("a", 1), Removal("c", 1))
    assert image.users.usual_shape(SHA_256).iterations == 6_000
    assert image.users.usual_shape(SHA_512).iterations == 16_384


def test_no_text_of_a_credential_has_its_keys() -> None:
    outcome = alter(image_with(), setting("alice"))
    texts = [
        repr(each)
        for each in (outcome, setting("alice"), *outcome.records, image_with(setting("a")).users.of("a"))
    ]
    assert "alice" in texts[0]
    for text in texts:
        assert "pppp" not in text
        assert "stored" not in text
        assert repr(KEY)[2:20] not in text
