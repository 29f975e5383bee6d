"""A port of the loopback that stays ours while nobody listens on it.

A node that is restarted must come back at the address its clients know. Between two lives of the node the port is
kept by a socket that is bound and never listens: others are not given it, clients are refused as by any dead
server, and the node may bind it too, since both allow the address to be used again (Linux looks only at who
listens).
"""

import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"


class ReservedPort:
    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((LOOPBACK, 0))
        self.address: Final = f"{LOOPBACK}:{self._socket.getsockname()[1]}"

    def release(self) -> None:
        self._socket.close()
