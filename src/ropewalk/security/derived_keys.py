"""Secrets of access keys that are kept nowhere: each follows from the id of its access key, and from a credential key that all nodes have.

A file of credential keys has one in each line, as Base64 of 32 bytes or more; lines that begin with `#` say something to people. The first makes what is
new. The others are there for as long as something is left that they made, so that one can follow another without a moment in which keys are refused.
"""

import binascii
import hmac
from base64 import b32encode, b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting

ACCESS_KEYS: Final = "AKRW"
"""How the ids begin of access keys whose secrets are derived."""
ACCESS_KEY_RANDOM_BYTES: Final = 10
KEY_BYTES_MIN: Final = 32
_SALT: Final = b"ropewalk access keys"
_NAME_BYTES: Final = 4
_SECRET_BYTES: Final = 30
"""As many as make 40 characters, as Amazon's have."""


class CredentialKey(Struct, frozen=True):
    name: str
    """By which an access key says that it comes from here; it tells nothing of the key itself."""
    key: bytes

    def __repr__(self) -> str:
        return f"<CredentialKey {self.name}>"


def credential_key(key: bytes) -> CredentialKey:
    return CredentialKey(hmac.digest(key, b"name", "sha256")[:_NAME_BYTES].hex(), key)


def parse_credential_keys(text: str, said_by: str) -> tuple[CredentialKey, ...]:
    """In their order. Raises `InvalidSetting`, which quotes no key."""
    keys: list[CredentialKey] = []
    for number, line in enumerate(text.splitlines(), start=1):
        encoded = line.strip()
        if not encoded or encoded.startswith("#"):
            continue
        try:
            key = b64decode(encoded, validate=True)
        except binascii.Error:
            raise InvalidSetting(f"{said_by}, line {number}: it is no Base64") from None
        if len(key) < KEY_BYTES_MIN:
            raise InvalidSetting(
                f"{said_by}, line {number}: a key of {len(key)} bytes, at least {KEY_BYTES_MIN} are needed"
            )
        keys.append(credential_key(key))
    if not keys:
        raise InvalidSetting(f"{said_by} has no key: put Base64 of {KEY_BYTES_MIN} random bytes there")
    return tuple(keys)


def new_access_key(random: bytes) -> str:
    assert len(random) == ACCESS_KEY_RANDOM_BYTES, "so many make an id without padding"
    return ACCESS_KEYS + b32encode(random).decode()


def secret_of(key: CredentialKey, access_key: str) -> str:
    """HKDF (RFC 5869) with SHA-256, for this access key and no other."""
    pseudo_random = hmac.digest(_SALT, key.key, sha256)
    expanded = hmac.digest(pseudo_random, access_key.encode() + b"\x01", sha256)
    return urlsafe_b64encode(expanded[:_SECRET_BYTES]).decode()
