"""Ports of this machine that nobody listens on."""

import socket
from contextlib import ExitStack


def free_ports(host: str, count: int) -> list[int]:
    """All are held until the last is found, so that none is given twice."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(_bound(host, 0)) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def is_free(host: str, port: int) -> bool:
    try:
        _bound(host, port).close()
    except OSError:
        return False
    return True


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        # As a listener would: what a closed connection left behind is in nobody's way.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
