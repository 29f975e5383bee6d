"""A process that writes numbers without end, as a test sees it: what was acknowledged, and what was refused."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from tests.compat.crew import tell_of_change, wait_until
from tests.compat.java_tools import class_path_of, java_command

_PAUSE_MS: Final = 5
"""Between two records: enough of them for a mistake to show, on a machine that runs a whole cluster beside."""
_PATIENCE_S: Final = 60


class SteadyWriter:
    """Writes from the start until `finish`."""

    def __init__(self, kind: str, bootstrap: str, topic: str, partition_count: int, log: Path) -> None:
        self.kind = kind
        self.topic = topic
        self.acknowledged: dict[int, int] = {}
        """Offset by number."""
        self.refused: list[str] = []
        arguments = (bootstrap, topic, str(partition_count), str(_PAUSE_MS))
        if kind == "java":
            command = java_command(class_path_of("SteadyWriter"), "SteadyWriter", *arguments)
        else:
            command = [sys.executable, "-m", "tests.compat.steady_writers", kind, *arguments]
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __repr__(self) -> str:
        return f"<{self.kind}: {len(self.acknowledged)} acknowledged, {len(self.refused)} refused>"

    def wait_for(self, count: int) -> None:
        """Until so many more are acknowledged."""
        wanted = len(self.acknowledged) + count
        wait_until(
            lambda: len(self.acknowledged) >= wanted or self._process.poll() is not None,
            f"{self!r} writes {count} more",
            within_s=_PATIENCE_S,
        )
        assert self._process.poll() is None, self._log.read_text()[-2_000:]

    def finish(self) -> None:
        """Send no more, and wait for what was sent."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(_PATIENCE_S) == 0, self._log.read_text()[-2_000:]
        self._listener.join(_PATIENCE_S)

    def kill(self) -> None:
        """Whatever it is at."""
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, number, rest = line.split(maxsplit=2)
            if word == "acknowledged":
                self.acknowledged[int(number)] = int(rest)
            else:
                self.refused.append(line)
            tell_of_change()
