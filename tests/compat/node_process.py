"""A node as its users start it: a process of its own, with a ready file, on a free port of the loopback."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WITHIN_S = 30
"""How long a node may take to start or to stop; it should be a fraction of a second."""


class NodeProcess:
    def __init__(self, directory: Path, *arguments: str, command: str = "up") -> None:
        """Runs `ropewalk up ARGUMENTS`, or another command that starts a node, in `directory` and returns when the node says that it is ready."""
        ready_file = directory / "ready.json"
        program = Path(sys.executable).with_name("ropewalk")
        says_where = any(argument.startswith("listeners=") for argument in arguments)
        where = () if says_where else ("--kafka", "127.0.0.1:0")
        line = [str(program), command, *where, "--ready-file", str(ready_file), *arguments]
        self.was_stopped = False
        self._log_path = directory / "log"
        with open(self._log_path, "wb") as log:
            self._process = subprocess.Popen(line, cwd=directory, stdout=log, stderr=subprocess.STDOUT)
        self.pid = self._process.pid
        deadline_s = time.monotonic() + WITHIN_S
        while not ready_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.stop(signal.SIGKILL)
                raise AssertionError(f"the node did not become ready:\n{self.log}")
            time.sleep(0.01)
        self._ready_file = ready_file
        ready = self.ready
        self.bootstrap: str = ready["kafka"][0]
        self.http: str = ready["http"][0]
        self.peer: str | None = ready.get("peer", [None])[0]
        """Where other nodes reach it; None where it is alone."""

    @property
    def ready(self) -> dict[str, list[Any]]:
        """What the ready file says by now; a supervisor writes it anew when it has started a node again."""
        document: dict[str, list[Any]] = json.loads(self._ready_file.read_text())
        return document

    @property
    def log(self) -> str:
        return self._log_path.read_text()

    @property
    def has_died(self) -> bool:
        return not self.was_stopped and self._process.poll() is not None

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, signal_number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal, waits for the end, and answers with the exit code."""
        self.was_stopped = True
        self._process.send_signal(signal_number)
        return self._process.wait(WITHIN_S)


StartNode = Callable[..., NodeProcess]
"""Given the arguments of `ropewalk up`."""
