"""Bytes to requests, with limits on what a client may send.

Behaviour worth knowing
    A body is read and thrown away, up to a limit: nothing that is served takes one.
    HTTP/1.1 demands a Host; a request without one is refused, as the standard wants it.
    An offer to change the protocol is declined by answering in the one we speak, and closing.
    After a refusal nothing more can be made of the connection's bytes: answer and close.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote

import httptools

from ropewalk.base.limits import HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX, HTTP_URL_BYTES_MAX
from ropewalk.http1.message import Request

_QUERY_FIELDS_MAX: Final = 32
_PIECE_BYTES: Final = HTTP_HEAD_BYTES_MAX // 4


class Refused(Exception):
    """The bytes are no request that we take; `status` says why in HTTP's terms."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class RequestParser:
    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._ready: list[Request] = []
        self._begin()

    @property
    def is_within_request(self) -> bool:
        """Whether a request has begun and not ended."""
        return self._within

    def feed(self, data: bytes) -> list[Request]:
        """The requests that end in `data`. Raises `Refused`; those that came before it are kept for `take`."""
        try:
            for start in range(0, len(data), _PIECE_BYTES):
                self._within = True
                self._feed(data[start : start + _PIECE_BYTES])
        except httptools.HttpParserUpgrade:
            self._begin()
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, Refused):
                raise error.__context__ from None
            raise
        except httptools.HttpParserError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"this is not HTTP/1.1: {error}") from None
        return self.take()

    def _feed(self, piece: bytes) -> None:
        """The parser tells of a header when it has all of it: one without an end has to be noticed by its pieces."""
        self._parser.feed_data(piece)
        if self._within and not self._has_head:
            self._unended_bytes += len(piece)
            if self._unended_bytes > HTTP_HEAD_BYTES_MAX + _PIECE_BYTES:
                raise _head_too_large()

    def take(self) -> list[Request]:
        ready, self._ready = self._ready, []
        return ready

    # What the parser calls

    def on_message_begin(self) -> None:
        self._begin()
        self._within = True

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._url_bytes += len(url)
        self._check_head()

    def on_header(self, name: bytes, value: bytes | None) -> None:
        self._head_bytes += len(name) + len(value or b"")
        self._has_host |= name.lower() == b"host"
        self._check_head()

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > HTTP_BODY_BYTES_MAX:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {HTTP_BODY_BYTES_MAX} bytes")

    def on_message_complete(self) -> None:
        self._ready.append(self._request())
        self._begin()

    def _begin(self) -> None:
        self._within = False
        self._url = b""
        self._url_bytes = 0
        self._head_bytes = 0
        self._body_bytes = 0
        self._unended_bytes = 0
        self._has_head = False
        self._has_host = False

    def _check_head(self) -> None:
        if self._url_bytes > HTTP_URL_BYTES_MAX:
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, f"an address may have {HTTP_URL_BYTES_MAX} bytes")
        if self._url_bytes + self._head_bytes > HTTP_HEAD_BYTES_MAX:
            raise _head_too_large()

    def _request(self) -> Request:
        if self._parser.get_http_version() == "1.1" and not self._has_host:
            raise Refused(HTTPStatus.BAD_REQUEST, "a request of HTTP/1.1 names its host")
        try:
            url = httptools.parse_url(self._url)
            path = unquote((url.path or b"/").decode("ascii"), errors="strict")
            query = dict(
                parse_qsl(
                    (url.query or b"").decode("ascii"),
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=_QUERY_FIELDS_MAX,
                )
            )
        except (httptools.HttpParserInvalidURLError, ValueError):
            raise Refused(HTTPStatus.BAD_REQUEST, f"{self._url[:80]!r} is no address") from None
        keeps_alive = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        return Request(self._parser.get_method().decode("ascii"), path, query, keeps_alive)


def _head_too_large() -> Refused:
    return Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a head may have {HTTP_HEAD_BYTES_MAX} bytes")
