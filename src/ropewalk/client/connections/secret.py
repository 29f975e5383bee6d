"""A secret of a client, as it was given or as the name of the file that holds it: it can be used, and is never shown."""

import os
import stat
from hmac import compare_digest
from pathlib import Path
from typing import Final, Protocol

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CLIENT_SECRET_BYTES_MAX

_OTHERS: Final = 0o077
_HIDDEN: Final = "…"


class Secret(Protocol):
    def reveal(self) -> str:
        """For whom it is meant, and nobody else. Raises `InvalidSetting`."""


class GivenSecret:
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenSecret) and compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return _HIDDEN


class SecretFile:
    """Read each time, so that another secret can be put there while the client runs. The end of its line does not count."""

    __slots__ = ("_path", "_setting")

    def __init__(self, setting: str, path: str) -> None:
        self._setting = setting
        self._path = path

    @property
    def path(self) -> str:
        return self._path

    def reveal(self) -> str:
        text = read_private(self._setting, self._path).rstrip("\r\n")
        if not text:
            raise InvalidSetting(f"{self._setting}: {self._path} is empty")
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretFile) and self._path == other._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __repr__(self) -> str:
        return f"the secret in {self._path}"


def read_private(setting: str, path: str) -> str:
    """The text of a file that only its owner may use. Raises `InvalidSetting`, which names the setting and quotes nothing."""
    try:
        with Path(path).expanduser().open("rb") as file:
            refuse_others(setting, path, os.fstat(file.fileno()).st_mode)
            content = file.read(CLIENT_SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidSetting(f"{setting}: {path} cannot be read: {error.strerror or error}") from None
    if len(content) > CLIENT_SECRET_BYTES_MAX:
        raise InvalidSetting(f"{setting}: {path} is larger than {CLIENT_SECRET_BYTES_MAX} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidSetting(f"{setting}: {path} is not text in UTF-8") from None


def refuse_others(setting: str, path: str, mode: int) -> None:
    if mode & _OTHERS:
        raise InvalidSetting(
            f"{setting}: others than its owner may use {path} (mode {stat.S_IMODE(mode):04o}); run chmod 600 {path}"
        )
