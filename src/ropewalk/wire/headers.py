"""The headers in front of every request and response.

A request header has the same fields in all versions, and the client id is never compact; flexible versions of an
API add a tagged section after it. A response header is the correlation id, with a tagged section in flexible
versions, except for ApiVersions: a client that does not know yet what the broker speaks must be able to read it.
"""

from collections.abc import Mapping
from struct import Struct as Layout
from struct import error as layout_error
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.api import API_VERSIONS_KEY, NEVER_FLEXIBLE
from ropewalk.wire.varint import STRING_BYTES_MAX, skip_header_tags

_FIXED: Final = Layout(">hhih")
_CORRELATION_ID: Final = Layout(">i")


class RequestHeader(Struct, frozen=True, gc=False):
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


class FlexibleApi(Protocol):
    """As much of an `Api` as a header depends on."""

    @property
    def key(self) -> int: ...

    def is_flexible(self, version: int) -> bool: ...


def decode_request_header(
    buffer: memoryview, position: int, end: int, flexible_since: Mapping[int, int]
) -> tuple[RequestHeader, int]:
    """The header and the position after it.

    `flexible_since` gives the first flexible version of each known API key. A key that is not in it is read
    without a tagged section, so that the caller can say which API was asked for.
    """
    try:
        api_key, version, correlation_id, length = _FIXED.unpack_from(buffer, position)
        position += _FIXED.size
        client_id = None
        if length >= 0:
            client_id = buffer[position : position + length].tobytes().decode()
            position += length
        elif length != -1:
            raise ProtocolError(f"the client id has a length of {length}")
        if version >= flexible_since.get(api_key, NEVER_FLEXIBLE):
            count = buffer[position]
            position += 1
            if count:
                position = skip_header_tags(buffer, position, count)
    except (layout_error, IndexError, UnicodeDecodeError) as problem:
        raise ProtocolError(f"the request header is malformed: {problem}") from problem
    if position > end:
        raise ProtocolError(f"the request header ends {position - end} bytes after its frame")
    return RequestHeader(api_key, version, correlation_id, client_id), position


def encode_request_header(
    api: FlexibleApi, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    tags = b"\0" if api.is_flexible(version) else b""
    if client_id is None:
        return _FIXED.pack(api.key, version, correlation_id, -1) + tags
    raw = client_id.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise ProtocolError(f"a client id of {len(raw)} bytes, the protocol carries {STRING_BYTES_MAX}")
    return _FIXED.pack(api.key, version, correlation_id, len(raw)) + raw + tags


def decode_response_header(
    api: FlexibleApi, version: int, buffer: memoryview, position: int, end: int
) -> tuple[int, int]:
    """The correlation id and the position after the header."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer, position)
        position += _CORRELATION_ID.size
        if _has_tags(api, version):
            count = buffer[position]
            position += 1
            if count:
                position = skip_header_tags(buffer, position, count)
    except (layout_error, IndexError) as problem:
        raise ProtocolError(f"the response header is malformed: {problem}") from problem
    if position > end:
        raise ProtocolError(f"the response header ends {position - end} bytes after its frame")
    return correlation_id, position


def peek_correlation_id(frame: memoryview) -> int:
    """The correlation id of a response, whose API the client finds by it."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 0)
    except layout_error as problem:
        raise ProtocolError(f"a response of {len(frame)} bytes has no correlation id") from problem
    assert isinstance(correlation_id, int)
    return correlation_id


def encode_response_header(api: FlexibleApi, version: int, correlation_id: int) -> bytes:
    return _CORRELATION_ID.pack(correlation_id) + (b"\0" if _has_tags(api, version) else b"")


def _has_tags(api: FlexibleApi, version: int) -> bool:
    return api.key != API_VERSIONS_KEY and api.is_flexible(version)
