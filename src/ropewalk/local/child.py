"""A process that ends when its supervisor does, and whose lines go to the console.

What a reader could get wrong
    A child has a session of its own: Ctrl-C in a terminal reaches the supervisor alone, which ends its children in order.
    On Linux the kernel sends SIGTERM to a child whose supervisor is gone, however that went. Elsewhere a child outlives a
    supervisor that was killed.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ropewalk.local.console import Console, Lines

_PR_SET_PDEATHSIG: Final = 1
_READ_BYTES: Final = 1 << 16


class Child:
    """Made by `start`; its output is read, and its end noticed, while `run` runs."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, console: Console) -> None:
        self.name = name
        self.pid = process.pid
        self.first_line: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """What it said on standard output first; cancelled if it ended without a word."""
        self.last_line = ""
        """What it said on standard error last."""
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The exit code; the number of a signal, made negative, if one ended it."""
        self._process = process
        self._console = console

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], environment: Mapping[str, str], console: Console
    ) -> "Child":
        """Raises `OSError` where there is no such program."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent(),
        )
        return cls(name, process, console)

    async def run(self) -> None:
        """Until it has ended and everything it said is shown."""
        out, err = self._process.stdout, self._process.stderr
        assert out is not None, "a pipe was asked for"
        assert err is not None, "a pipe was asked for"
        await asyncio.gather(self._read(out, self._on_output), self._read(err, self._on_error))
        code = await self._process.wait()
        self.first_line.cancel()
        self.ended.set_result(code)

    def signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def _read(self, stream: asyncio.StreamReader, on_line: Callable[[bytes], None]) -> None:
        lines = Lines()
        while True:
            data = await stream.read(_READ_BYTES)
            for line in lines.feed(data):
                on_line(line)
            if not data:
                return

    def _on_output(self, line: bytes) -> None:
        if not self.first_line.done():
            self.first_line.set_result(line.decode(errors="replace"))
        else:
            self._console.show(self.name, line)

    def _on_error(self, line: bytes) -> None:
        self.last_line = line.decode(errors="replace")
        self._console.show(self.name, line)


def how_it_ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _end_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)  # loaded before the fork, where little is allowed
    parent = os.getpid()

    def ask_the_kernel() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it went between the fork and the call
            os._exit(1)

    return ask_the_kernel
