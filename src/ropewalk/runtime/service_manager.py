"""Tell systemd how the process is doing (sd_notify): a datagram to the socket that it names in the environment.

Without that name, as in a shell, nothing is told. A manager that does not listen, or not fast enough, is no reason to end or to wait.

With `WatchdogSec=` in its unit the manager wants to hear again and again that the process works, and starts another if it does not. While the
process stops, the same word asks for more time: a node that hands its partitions over and works is not to be killed for that.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

_STOP_EXTENSION_S: Final = 60
"""How much longer a stop may take from each word on."""


class ServiceManager:
    def __init__(self, address: str | None, *, watchdog_ms: float | None = None) -> None:
        """`address` is the value of NOTIFY_SOCKET: a path, or a name in the abstract namespace after `@`."""
        self._address = None if not address else f"\0{address[1:]}" if address.startswith("@") else address
        self._is_stopping = False
        self.beat_ms = None if watchdog_ms is None else watchdog_ms / 3
        """How often `on_alive` is to be called; None: nobody waits for it."""

    @classmethod
    def of_this_process(cls) -> "ServiceManager":
        environment = os.environ
        return cls(environment.get("NOTIFY_SOCKET"), watchdog_ms=_watchdog_ms(environment))

    def on_status(self, text: str) -> None:
        self._tell(f"STATUS={text}")

    def on_ready(self, text: str) -> None:
        self._tell(f"READY=1\nSTATUS={text}")

    def on_alive(self) -> None:
        more = f"\nEXTEND_TIMEOUT_USEC={_STOP_EXTENSION_S * 1_000_000}" if self._is_stopping else ""
        self._tell(f"WATCHDOG=1{more}")

    def on_stopping(self) -> None:
        self._is_stopping = True
        self._tell("STOPPING=1\nSTATUS=stopping: others take over what they can, the rest is made durable")

    def _tell(self, message: str) -> None:
        if self._address is None:
            return
        with (
            suppress(OSError),
            socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender,
        ):
            sender.connect(self._address)
            sender.send(message.encode())


def _watchdog_ms(environment: Mapping[str, str]) -> float | None:
    """None where there is no watchdog, or it is meant for another process."""
    text = environment.get("WATCHDOG_USEC", "")
    if not text.isdigit() or environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(text) / 1000 or None
