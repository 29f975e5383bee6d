"""Secrets of access keys that follow from a credential key: HKDF's, each key's own, and files that hold no key."""

from base64 import b64encode, urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ropewalk.base.errors import InvalidSetting
from ropewalk.security.derived_keys import (
    ACCESS_KEY_RANDOM_BYTES,
    credential_key,
    new_access_key,
    parse_credential_keys,
    secret_of,
)

KEYS = (bytes(range(32)), bytes(range(1, 41)))
LINES = [b64encode(key).decode() for key in KEYS]


def test_a_secret_is_what_hkdf_makes_of_the_credential_key_and_the_id() -> None:
    access_key = new_access_key(bytes(ACCESS_KEY_RANDOM_BYTES))
    derived = HKDF(SHA256(), 30, b"ropewalk access keys", access_key.encode()).derive(KEYS[0])
    assert secret_of(credential_key(KEYS[0]), access_key) == urlsafe_b64encode(derived).decode()
    assert (access_key, len(access_key)) == ("AKRWAAAAAAAAAAAAAAAA", 20)


def test_every_access_key_and_every_credential_key_has_secrets_of_its_own() -> None:
    access_keys = [new_access_key(bytes([each]) * ACCESS_KEY_RANDOM_BYTES) for each in range(10)]
    secrets = {secret_of(credential_key(key), access_key) for key in KEYS for access_key in access_keys}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {40}


def test_a_file_has_keys_in_lines_and_says_more_to_people() -> None:
    text = f"# of this year\n{LINES[0]}\n\n  {LINES[1]}  \n"
    assert parse_credential_keys(text, "f") == (credential_key(KEYS[0]), credential_key(KEYS[1]))
    assert LINES[0] not in repr(parse_credential_keys(text, "f"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no key"),
        ("# nothing yet\n", "has no key"),
        (f"{LINES[0]}\nno base64!\n", "line 2: it is no Base64"),
        (b64encode(bytes(31)).decode(), "a key of 31 bytes, at least 32"),
    ],
)
def test_a_file_that_holds_no_key_is_refused_without_quoting_it(text: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as told:
        parse_credential_keys(text, "the file")
    assert "no base64!" not in str(told.value)
