"""Bytes to requests, with limits on what a client may send.

Behaviour worth knowing
    What two parties could read differently is refused: two lengths, a length beside chunks, codings beside chunks, two hosts, bare
    line feeds, folded headers. Where requests are read otherwise by a proxy in front, one client's bytes become another's request.
    HTTP/1.1 demands a Host; a request without one is refused, as the standard wants it.
    An offer to change the protocol is declined: the request is answered as it would be without the offer.
    Headers that come after a chunked body count towards the head's limit and are dropped.
    After a refusal nothing more can be made of the connection's bytes: answer and close.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote

import httptools

from ropewalk.base.limits import HTTP_CHUNK_OVERHEAD_FACTOR, HTTP_HEADERS_MAX
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.message import Request
from ropewalk.http1.whole_request import read_whole

_PIECE_BYTES: Final = 1 << 12
"""Given to the parser at a time, so that few requests are made of bytes before somebody asks for the next."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SINGLE: Final = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "authorization", "expect"}
)
"""Headers that have one value; two could be read either way."""


_PROXY: Final = "it is a PROXY header, which is taken from proxy.protocol.networks alone"
_BEGAN_BYTES: Final = 16
_FOREIGN: Final = (
    (b"\x16\x03", "it is the hello of TLS, where plain HTTP is spoken"),
    (b"PROXY ", _PROXY),
    (b"\r\n\r\n\x00\r\nQUIT", _PROXY),
)
"""What is sent in place of a request by those who mean another port, or another setting of this one."""


class Refused(Exception):
    """The bytes are no request that we take; `status` says why in HTTP's terms."""

    def __init__(self, status: HTTPStatus, reason: str, *, is_foreign: bool = False) -> None:
        """`is_foreign` where it is another protocol, spoken to the wrong port or by the wrong client."""
        super().__init__(reason)
        self.status = status
        self.is_foreign = is_foreign


class RequestParser:
    """Give it bytes with `feed`, then take requests with `next` until there is none, and so on."""

    __slots__ = (
        "_began",
        "_body",
        "_bounds",
        "_expects",
        "_fed_bytes",
        "_has_head",
        "_head_bytes",
        "_headers",
        "_objection",
        "_parser",
        "_piece",
        "_raw_headers",
        "_ready",
        "_refused",
        "_unparsed",
        "_url",
        "_within",
    )

    def __init__(self, bounds: HttpBounds) -> None:
        self._bounds = bounds
        self._parser = httptools.HttpRequestParser(self)
        self._unparsed = bytearray()
        self._piece = b""
        """What was fed when nothing else was there: perhaps one whole request."""
        self._ready: list[Request] = []
        """The next one last."""
        self._refused: Refused | None = None
        self._began = b""
        """The first bytes of a request that is not whole, with the blank lines before it."""
        self._objection: Refused | None = None
        """What was raised in a callback: the parser raises another error for it, whose context need not be this one."""
        self._begin()

    @property
    def is_within_request(self) -> bool:
        """Whether a request has begun and not ended."""
        return self._within or bool(self._unparsed) or bool(self._piece)

    @property
    def is_empty(self) -> bool:
        """Whether everything that was fed became requests, and these were taken."""
        return not (self._within or self._unparsed or self._piece or self._ready or self._refused is not None)

    @property
    def unhandled_bytes(self) -> int:
        """Of what was fed and not taken: nothing where all that came has been made requests of, and these were taken."""
        return len(self._unparsed) + len(self._piece) + len(self._ready) + (self._refused is not None)

    @property
    def held_bytes(self) -> int:
        """What the parser holds in memory, about."""
        return len(self._unparsed) + len(self._piece) + len(self._body) + self._head_bytes

    @property
    def body_bytes(self) -> int:
        """Of the body that is being received, so far."""
        return len(self._body)

    @property
    def wants_continue(self) -> bool:
        """Whether the client waits for permission to send a body, of which nothing has come."""
        return self._expects and not self._unparsed and not self._piece and not self._body and not self._ready

    def on_continued(self) -> None:
        self._expects = False

    def feed(self, data: bytes) -> None:
        if self._refused is not None:
            return
        if self._within or self._unparsed or self._piece or self._ready:
            self._unparsed += self._piece
            self._unparsed += data
            self._piece = b""
        else:
            self._piece = data

    def next(self) -> Request | None:
        """The next request, or None until more is fed. Raises `Refused` when all that came before has been taken."""
        if self._piece:
            piece, self._piece = self._piece, b""
            request = read_whole(piece, self._bounds)
            if request is not None:
                return request
            self._unparsed += piece
        while not self._ready and self._unparsed and self._refused is None:
            self._parse_piece()
        if self._ready:
            return self._ready.pop()
        if self._refused is not None:
            raise self._refused
        return None

    def _parse_piece(self) -> None:
        piece = bytes(self._unparsed[:_PIECE_BYTES])
        del self._unparsed[:_PIECE_BYTES]
        try:
            self._parse(piece)
        except Refused as refused:
            self._refused = refused
            self._unparsed.clear()
        self._ready.reverse()

    def _parse(self, piece: bytes) -> None:
        ready_count, offer_end = len(self._ready), None
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            offer_end = int(upgrade.args[0])
        except httptools.HttpParserCallbackError as error:
            if self._objection is None:
                raise
            raise self._objection from error
        except httptools.HttpParserError as error:
            began = self._began + piece
            foreign = next((said for first, said in _FOREIGN if _agree(first, began)), None)
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                f"this is not HTTP/1.1: {foreign or error}",
                is_foreign=foreign is not None,
            ) from None
        if offer_end is not None:
            self._parse(self._without_offer() + piece[offer_end:])
        elif self._within or len(self._ready) == ready_count:
            if len(self._began) < _BEGAN_BYTES:
                self._began += piece[:_BEGAN_BYTES]
            self._count(len(piece))

    def _count(self, count_bytes: int) -> None:
        """The parser tells of a header when it has all of it, and of chunks' sizes never: what has no end is noticed here."""
        self._fed_bytes += count_bytes
        bounds = self._bounds
        if not self._has_head and self._fed_bytes > bounds.head_bytes_max + _PIECE_BYTES:
            raise Refused(*_head_too_large(bounds))
        if self._fed_bytes > HTTP_CHUNK_OVERHEAD_FACTOR * bounds.body_bytes_max + 2 * bounds.head_bytes_max:
            raise Refused(*_body_too_large(bounds))

    def _without_offer(self) -> bytes:
        """The head of the request that offered to change the protocol, for a parser that has not heard of the offer.

        The parser takes what follows such a head for the other protocol, its body included.
        """
        method, url, version = self._parser.get_method(), self._url, self._parser.get_http_version()
        headers = [(name, value) for name, value in self._raw_headers if name.lower() != b"upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        self._begin()
        first = b"%b %b HTTP/%b" % (method, url, version.encode("ascii"))
        lines = [first, *(b"%b: %b" % header for header in headers), b"", b""]
        return b"\r\n".join(lines)

    # What the parser calls

    def on_message_begin(self) -> None:
        self._begin()
        self._within = True

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._head_bytes += len(url)
        if len(self._url) > self._bounds.url_bytes_max:
            reason = f"an address may have {self._bounds.url_bytes_max} bytes"
            raise self._object(HTTPStatus.REQUEST_URI_TOO_LONG, reason)

    def on_header(self, name: bytes, value: bytes | None) -> None:
        value = (value or b"").strip(b" \t")
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > self._bounds.head_bytes_max or len(self._raw_headers) >= HTTP_HEADERS_MAX:
            raise self._object(*_head_too_large(self._bounds))
        if self._has_head:
            return
        self._raw_headers.append((name, value))
        key, text = name.decode("ascii").lower(), value.decode("latin-1")
        before = self._headers.get(key)
        if before is None:
            self._headers[key] = text
        elif key in _SINGLE:
            raise self._object(HTTPStatus.BAD_REQUEST, f"a request has one {key}")
        else:
            self._headers[key] = f"{before},{text}"  # without a blank: so they are signed, where they are

    def on_headers_complete(self) -> None:
        self._has_head = True
        if self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT":
            return
        version, headers = self._parser.get_http_version(), self._headers
        if version not in ("1.0", "1.1"):
            raise self._object(
                HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, f"HTTP/{version} is not spoken here, 1.1 is"
            )
        if self._parser.get_method().decode("ascii") not in _METHODS:
            allowed = ", ".join(sorted(_METHODS))
            raise self._object(HTTPStatus.NOT_IMPLEMENTED, f"of all methods {allowed} are known here")
        if version == "1.1" and "host" not in headers:
            raise self._object(HTTPStatus.BAD_REQUEST, "a request of HTTP/1.1 names its host")
        coding = headers.get("transfer-encoding")
        if coding is not None and version == "1.0":
            raise self._object(HTTPStatus.BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding")
        if coding is not None and coding.lower() != "chunked":
            raise self._object(
                HTTPStatus.NOT_IMPLEMENTED, f"Transfer-Encoding {coding[:80]!r} is not known here"
            )
        if int(headers.get("content-length", "0")) > self._bounds.body_bytes_max:
            raise self._object(*_body_too_large(self._bounds))
        expected = headers.get("expect")
        if expected is not None and expected.lower() != "100-continue":
            raise self._object(HTTPStatus.EXPECTATION_FAILED, f"{expected[:80]!r} cannot be expected here")
        self._expects = expected is not None and version == "1.1"

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) > self._bounds.body_bytes_max:
            raise self._object(*_body_too_large(self._bounds))
        self._body += body

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        self._ready.append(self._request())
        self._began = b""
        self._begin()

    def _object(self, status: HTTPStatus, reason: str) -> Refused:
        self._objection = Refused(status, reason)
        return self._objection

    def _begin(self) -> None:
        self._within = False
        self._url = b""
        self._headers: dict[str, str] = {}
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._fed_bytes = 0
        self._body = bytearray()
        self._has_head = False
        self._expects = False

    def _request(self) -> Request:
        method = self._parser.get_method().decode("ascii")
        if self._url == b"/":  # most of what queues are asked
            return Request(
                method,
                "/",
                {},
                self._parser.should_keep_alive(),
                self._headers,
                bytes(self._body),
                "/",
                self._headers.get("host", ""),
                self._parser.get_http_version() == "1.0",
            )
        try:
            url = httptools.parse_url(self._url)
            path = unquote((url.path or b"/").decode("ascii"), errors="strict")
            if (
                b"#" in self._url
                or (url.schema and url.schema.lower() not in (b"http", b"https"))
                or (self._url == b"*" and method != "OPTIONS")
                or "\x00" in path
            ):
                raise ValueError
            query = (url.query or b"").decode("ascii")
            fields = parse_qsl(
                query, keep_blank_values=True, errors="strict", max_num_fields=self._bounds.query_fields_max
            )
        except (httptools.HttpParserInvalidURLError, ValueError):
            raise self._object(HTTPStatus.BAD_REQUEST, f"{self._url[:80]!r} is no address") from None
        host = self._headers.get("host", "")
        target = self._url.decode("ascii")
        if url.schema:
            host = (url.host or b"").decode("ascii") + (f":{url.port}" if url.port else "")
            target = (url.path or b"/").decode("ascii") + (f"?{query}" if query else "")
        return Request(
            method,
            path,
            dict(fields),
            self._parser.should_keep_alive(),
            self._headers,
            bytes(self._body),
            target,
            host,
            self._parser.get_http_version() == "1.0",
        )


def _head_too_large(bounds: HttpBounds) -> tuple[HTTPStatus, str]:
    reason = f"a head may have {bounds.head_bytes_max} bytes and {HTTP_HEADERS_MAX} headers"
    return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason


def _body_too_large(bounds: HttpBounds) -> tuple[HTTPStatus, str]:
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {bounds.body_bytes_max} bytes"


def _agree(one: bytes, other: bytes) -> bool:
    """As far as both go."""
    return one.startswith(other) or other.startswith(one)
