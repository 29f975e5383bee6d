"""Where brokers are: `HOST:PORT`, several of them separated by commas."""

from typing import Final

from msgspec import Struct

PORT_DEFAULT: Final = 9092


class Address(Struct, frozen=True, gc=False):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """As in `bootstrap.servers`; raises `ValueError` with a sentence that names the offending part.

    >>> [str(address) for address in parse_addresses("a:1, b, [::1]:9093")]
    ['a:1', 'b:9092', '[::1]:9093']
    """
    parts = [part.strip() for part in text.split(",")]
    addresses = tuple(_parse_address(part) for part in parts if part)
    if not addresses:
        raise ValueError("no broker address given; expected HOST:PORT[,HOST:PORT…]")
    return addresses


def _parse_address(text: str) -> Address:
    if text.startswith("["):
        host, closing, rest = text[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not a broker address; expected [IPv6]:PORT")
        port = rest[1:]
    elif text.count(":") > 1:
        raise ValueError(f"{text!r} is not a broker address; write an IPv6 address as [{text}]:PORT")
    else:
        host, _, port = text.partition(":")
    if not host:
        raise ValueError(f"{text!r} is not a broker address; the host is missing")
    if not port:
        return Address(host, PORT_DEFAULT)
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} is not a broker address; {port!r} is not a port")
    return Address(host, int(port))
