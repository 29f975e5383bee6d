"""The header by which a proxy says for whom it connects (PROXY protocol, versions 1 and 2): bytes in, the client's address out.

    PROXY TCP4 192.0.2.7 192.0.2.10 51234 9092\\r\\n      version 1, a line
    \\r\\n\\r\\n\\0\\r\\nQUIT\\n …                             version 2, in binary

Behaviour worth knowing
    A header that names no client (LOCAL, UNKNOWN, or a family other than IPv4 and IPv6) is the proxy's own word: its health checks.
    What a proxy adds in version 2 behind the addresses is passed over.
"""

import socket
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import PROXY_HEADER_BYTES_MAX

SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
LINE: Final = b"PROXY "

_LINE_BYTES_MAX: Final = 107
_FIXED_BYTES: Final = 16
_LOCAL, _PROXIED = 0x20, 0x21
_ADDRESSES: Final = {0x11: (socket.AF_INET, 4), 0x21: (socket.AF_INET6, 16)}
"""TCP over IPv4 and IPv6: the family, and the bytes of an address."""


class ProxyHeader(Struct, frozen=True):
    size_bytes: int
    client: tuple[str, int] | None
    """None where the proxy speaks for itself."""


def parse_header(data: bytes) -> ProxyHeader | None:
    """None until the whole of it has come. Raises `ProtocolError` for bytes that do not begin one."""
    if data.startswith(SIGNATURE):
        return _binary(data)
    if data.startswith(LINE):
        return _line(data)
    if SIGNATURE.startswith(data) or LINE.startswith(data):
        return None
    raise ProtocolError(f"no PROXY header: it begins with {data[:12].hex(' ')}")


def _line(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _LINE_BYTES_MAX)
    if end < 0:
        if len(data) >= _LINE_BYTES_MAX:
            raise ProtocolError(f"a PROXY header of more than {_LINE_BYTES_MAX} bytes")
        return None
    match data[:end].split(b" "):
        case [_, b"UNKNOWN", *_]:
            return ProxyHeader(end + 2, None)
        case [_, b"TCP4" | b"TCP6" as family, source, destination, source_port, destination_port]:
            version = 4 if family == b"TCP4" else 6
            _address(destination, version)
            _port(destination_port)
            return ProxyHeader(end + 2, (_address(source, version), _port(source_port)))
    raise ProtocolError("a PROXY header that does not name two addresses of TCP and their ports")


def _address(text: bytes, version: int) -> str:
    try:
        address = ip_address(text.decode("ascii"))
    except ValueError:
        raise ProtocolError("a PROXY header with an address that is none") from None
    if address.version != version or "%" in str(address):
        raise ProtocolError("a PROXY header with an address of another family than it says")
    return str(address)


def _port(text: bytes) -> int:
    if not text.isdigit() or len(text) > 5 or int(text) > 65535:
        raise ProtocolError("a PROXY header with a port that is none")
    return int(text)


def _binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _FIXED_BYTES:
        return None
    command, family = data[12], data[13]
    content_bytes = int.from_bytes(data[14:16], "big")
    size_bytes = _FIXED_BYTES + content_bytes
    if command not in (_LOCAL, _PROXIED):
        raise ProtocolError(f"a PROXY header with command {command:#04x}, 0x20 and 0x21 are known")
    if size_bytes > PROXY_HEADER_BYTES_MAX:
        raise ProtocolError(
            f"a PROXY header of {size_bytes} bytes, {PROXY_HEADER_BYTES_MAX} are read at most"
        )
    if len(data) < size_bytes:
        return None
    known = _ADDRESSES.get(family)
    if command == _LOCAL or known is None:
        return ProxyHeader(size_bytes, None)
    kind, address_bytes = known
    if content_bytes < 2 * address_bytes + 4:
        raise ProtocolError(f"a PROXY header of {size_bytes} bytes, which is too short for its addresses")
    ports_at = _FIXED_BYTES + 2 * address_bytes
    host = socket.inet_ntop(kind, data[_FIXED_BYTES : _FIXED_BYTES + address_bytes])
    return ProxyHeader(size_bytes, (host, int.from_bytes(data[ports_at : ports_at + 2], "big")))
