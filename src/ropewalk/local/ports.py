"""Ports of this machine that nobody listens on.

They lie below those that the system gives to outgoing connections: a process that is started again must find its port free, and
while it was away any client's connection might have been given it.
"""

import errno
import random
import socket
from contextlib import ExitStack
from typing import Final

_FIRST: Final = 10_000
_END: Final = 32_768
"""Where Linux begins with the ports of outgoing connections, unless told otherwise."""
_TRIES: Final = 64


def free_ports(host: str, count: int) -> list[int]:
    """All are held until the last is found, so that none is given twice."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(_anywhere(host)) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def _anywhere(host: str) -> socket.socket:
    chosen = random.SystemRandom()
    for _ in range(_TRIES):
        try:
            return _bound(host, chosen.randrange(_FIRST, _END))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return _bound(host, 0)


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
