"""Files that come with the package, under names that have a hash of their content in them.

What a reader could get wrong
    A file that changes has another address, so what a browser has may be used for a year without asking.
    They are read and compressed once, by `load`, which takes tens of milliseconds: off the event loop.
"""

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct

from ropewalk.http1.compression import compress, takes_gzip
from ropewalk.http1.message import Answer, Request
from ropewalk.http1.parser import Refused

FOREVER: Final = "public, max-age=31536000, immutable"
_HASH_CHARACTERS: Final = 12
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


class _File(Struct, frozen=True):
    plain: bytes
    gzip: bytes
    content_type: str


class StaticFiles:
    def __init__(self, prefix: str, files: Mapping[str, bytes]) -> None:
        """`prefix` is the address they are below; `files` are by name, which ends in one of the suffixes that are known."""
        self._prefix = prefix
        self._addresses: dict[str, str] = {}
        self._files: dict[str, _File] = {}
        for name, content in files.items():
            stem, _, suffix = name.rpartition(".")
            hashed = f"{stem}.{sha256(content).hexdigest()[:_HASH_CHARACTERS]}.{suffix}"
            self._addresses[name] = prefix + hashed
            self._files[hashed] = _File(content, compress(content), _TYPES[suffix])

    @classmethod
    def load(cls, prefix: str, *folders: Traversable) -> "StaticFiles":
        """All that lies in the folders."""
        files = [each for folder in folders for each in folder.iterdir() if each.is_file()]
        return cls(prefix, {each.name: each.read_bytes() for each in files})

    def address(self, name: str) -> str:
        """Where the file is, for a page that names it."""
        return self._addresses[name]

    def answer(self, request: Request) -> Answer:
        """Raises `Refused` where there is no such file."""
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "files are read with GET")
        file = self._files.get(request.path.removeprefix(self._prefix))
        if file is None:
            raise Refused(
                HTTPStatus.NOT_FOUND, "there is no such file; a page that names it is of another version"
            )
        vary = ("vary", "accept-encoding")
        if takes_gzip(request):
            headers = (vary, ("content-encoding", "gzip"))
            return Answer(HTTPStatus.OK, (file.gzip,), file.content_type, headers, FOREVER)
        return Answer(HTTPStatus.OK, (file.plain,), file.content_type, (vary,), FOREVER)
