"""The MD5s by which SDKs check what they sent and received."""

from collections.abc import Iterable
from hashlib import md5
from struct import Struct as Layout
from typing import Final

_length: Final = Layout(">I").pack
_TEXT: Final = b"\x01"
_BINARY: Final = b"\x02"


def of_bytes(content: bytes) -> str:
    return md5(content, usedforsecurity=False).hexdigest()


def of_attributes(attributes: Iterable[tuple[str, str, str | bytes]]) -> str:
    """Of names, types and values. In the order of the names: each part behind its length, a value also behind a byte that says of what sort it is."""
    parts: list[bytes] = []
    for name, data_type, value in sorted(attributes):
        for text in (name, data_type):
            encoded = text.encode()
            parts += (_length(len(encoded)), encoded)
        encoded = value if isinstance(value, bytes) else value.encode()
        parts += (_BINARY if isinstance(value, bytes) else _TEXT, _length(len(encoded)), encoded)
    return of_bytes(b"".join(parts))
