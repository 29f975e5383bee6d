"""Which addresses do not leave the machine."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether what is said to the address `host` does not leave the machine. A name is no address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
