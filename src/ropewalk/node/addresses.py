"""Addresses as settings have them: HOST:PORT."""

from typing import Final

from ropewalk.base.errors import InvalidSetting

NONE: Final = "none"
"""In the place of an address: the node has no such door."""


def parse_address(text: str, origin: str) -> tuple[str, int]:
    """HOST:PORT, also [IPv6]:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise InvalidSetting(f"{origin}: {text!r} is not HOST:PORT")
    return host.strip("[]") or "0.0.0.0", int(port)
