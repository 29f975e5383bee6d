"""A request that came in one piece and has nothing unusual about it, read without the machine that reads all others.

Most requests of programs are like that: POST of `/` in HTTP/1.1, with a length, each header once, and printable ASCII in all of them. What is
anything else, or cannot be told apart from it at a glance, is left to `parser.py`, which refuses what has to be refused.

What a reader could get wrong
    Nothing may be read here otherwise than there. A header that changes how the body or the connection is read is unusual.
    Lines of headers are the same in most requests of a client, so what short ones say is remembered.
"""

import re
from functools import lru_cache
from typing import Final

from ropewalk.base.limits import HTTP_HEADERS_MAX, HTTP_LINE_KEPT_BYTES_MAX, HTTP_LINES_KEPT_MAX
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.message import Request

_FIRST_LINE: Final = b"POST / HTTP/1.1\r\n"
_FIRST_BYTES: Final = len(_FIRST_LINE)
_END: Final = b"\r\n\r\n"
_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([!-~](?:[ -~]*[!-~])?)")
_LENGTH: Final = re.compile(r"[0-9]{1,9}")
_UNUSUAL: Final = frozenset({"transfer-encoding", "expect", "upgrade", "trailer", "te", "proxy-connection"})
_NO_QUERY: Final[dict[str, str]] = {}


def read_whole(data: bytes, bounds: HttpBounds) -> Request | None:
    """None where it is not whole, or not usual."""
    if not data.startswith(_FIRST_LINE):
        return None
    end = data.find(_END)
    if not _FIRST_BYTES <= end <= bounds.head_bytes_max:
        return None
    lines = data[_FIRST_BYTES:end].split(b"\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        header = _known_line(line) if len(line) <= HTTP_LINE_KEPT_BYTES_MAX else _read_line(line)
        if header is None:
            return None
        headers[header[0]] = header[1]
    length, host = headers.get("content-length"), headers.get("host")
    if (
        length is None
        or host is None
        or len(headers) != len(lines)
        or len(lines) > HTTP_HEADERS_MAX
        or int(length) != len(data) - end - 4
        or len(data) - end - 4 > bounds.body_bytes_max
    ):
        return None
    return Request("POST", "/", _NO_QUERY, True, headers, data[end + 4 :], "/", host, False)


def _read_line(line: bytes) -> tuple[str, str] | None:
    """Name in lower case and value; None where it is unusual."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    name, value = found[1].decode("ascii").lower(), found[2].decode("ascii")
    if name in _UNUSUAL or (name == "connection" and value.lower() != "keep-alive"):
        return None
    if name == "content-length" and _LENGTH.fullmatch(value) is None:
        return None
    return name, value


_known_line: Final = lru_cache(maxsize=HTTP_LINES_KEPT_MAX)(_read_line)
