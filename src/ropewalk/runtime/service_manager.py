"""Tell systemd how the process is doing (sd_notify): a datagram to the socket that it names in the environment.

Without that name, as in a shell, nothing is told. A manager that does not listen is no reason to end.
"""

import os
import socket
from contextlib import suppress


class ServiceManager:
    def __init__(self, address: str | None) -> None:
        """`address` is the value of NOTIFY_SOCKET: a path, or a name in the abstract namespace after `@`."""
        self._address = None if not address else f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def of_this_process(cls) -> "ServiceManager":
        return cls(os.environ.get("NOTIFY_SOCKET"))

    def on_status(self, text: str) -> None:
        self._tell(f"STATUS={text}")

    def on_ready(self, text: str) -> None:
        self._tell(f"READY=1\nSTATUS={text}")

    def on_stopping(self) -> None:
        self._tell("STOPPING=1\nSTATUS=stopping: others take over what they can, the rest is made durable")

    def _tell(self, message: str) -> None:
        if self._address is None:
            return
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
        ):
            sender.connect(self._address)
            sender.send(message.encode())
