"""The file of access keys: which there are, their secrets, whose they are, and who may administrate.

    [AKIAIOSFODNN7EXAMPLE]
    secret = "…"
    user = "alice"
    admin = true

    [AKRWJBSWY3DPEHPK3PXP]
    user = "bob"
    derived_from = "1f2e3d4c"

What a reader could get wrong
    A key that is `derived_from` a credential key has no secret in the file: that follows from its id (`security/derived_keys.py`).
    A key without `user` is its own: rules name it as `User:` and its id.
    Nobody but its owner may read or write the file: whoever knows a secret is who it says. A file that others may read is refused.
"""

import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import SQS_CREDENTIALS_BYTES_MAX
from ropewalk.security.derived_keys import CredentialKey, parse_credential_keys, secret_of
from ropewalk.security.names import refusal_of
from ropewalk.sqs.authentication import Key

SETTING: Final = "sqs.credentials"
DERIVING: Final = "sqs.credential.key.file"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Stamp(Struct, frozen=True):
    """What tells one state of the file from another."""

    inode: int
    size_bytes: int
    modified_ns: int


Stamps: TypeAlias = tuple[Stamp | None, ...]


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    secret: str = ""
    derived_from: str = ""
    user: str = ""
    admin: bool = False


def stamp_of(path: str) -> Stamp | None:
    """None where there is no such file, or it cannot be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def stamps_of(*paths: str) -> Stamps:
    """Of several files that count together."""
    return tuple(stamp_of(path) for path in paths)


def read_keys(path: str, credential_keys: str = "") -> Mapping[str, Key]:
    """Waits for the disk. Raises `InvalidSetting` for a file that is not as it must be."""
    content = _content(path, SETTING)
    known: tuple[CredentialKey, ...] = ()
    if credential_keys:
        said_by = f"{DERIVING} {credential_keys}"
        try:
            known = parse_credential_keys(_content(credential_keys, DERIVING).decode(), said_by)
        except UnicodeDecodeError:
            raise InvalidSetting(f"{said_by} is no text") from None
    return parse_keys(content, path, known)


def _content(path: str, setting: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(SQS_CREDENTIALS_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidSetting(f"{setting}: {path} cannot be read: {error.strerror or error}") from error
    if mode & _OTHERS:
        raise InvalidSetting(
            f"{setting}: others than its owner may use {path} (mode {stat.S_IMODE(mode):04o}); run chmod 600 {path}"
        )
    if len(content) > SQS_CREDENTIALS_BYTES_MAX:
        raise InvalidSetting(f"{setting}: {path} is larger than {SQS_CREDENTIALS_BYTES_MAX} bytes")
    return content


def parse_keys(content: bytes, path: str, credential_keys: Sequence[CredentialKey] = ()) -> Mapping[str, Key]:
    """Raises `InvalidSetting`. No message quotes a secret."""
    deriving = {each.name: each for each in credential_keys}
    try:
        table = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"{SETTING}: {path} is no TOML: {error}") from None
    keys: dict[str, Key] = {}
    for access_key, value in table.items():
        entry = {"secret": value} if isinstance(value, str) else value
        try:
            read = msgspec.convert(entry, _Entry)
        except msgspec.ValidationError as error:
            raise InvalidSetting(f"{SETTING}: {path}: {access_key}: {error}") from None
        secret = read.secret
        if read.derived_from and not secret:
            key = deriving.get(read.derived_from)
            if key is None:
                raise InvalidSetting(
                    f"{SETTING}: {path}: {access_key} is derived from {read.derived_from!r:.40}, which {DERIVING} does not have"
                )
            secret = secret_of(key, access_key)
        elif read.derived_from:
            raise InvalidSetting(f"{SETTING}: {path}: {access_key} is derived, and has a secret besides")
        if not secret or not access_key:
            raise InvalidSetting(f"{SETTING}: {path}: {access_key} has no secret")
        reason = refusal_of(read.user or access_key)
        if reason is not None:
            raise InvalidSetting(f"{SETTING}: {path}: {access_key}: {reason}")
        keys[access_key] = Key(secret, read.admin, read.user)
    if not keys:
        raise InvalidSetting(f"{SETTING}: {path} names no access key")
    return keys
