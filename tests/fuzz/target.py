"""The node that is fuzzed: a process of its own, and the eyes on it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

READY_WITHIN_S: Final = 30.0
STOPPED_WITHIN_S: Final = 30.0
ALARMS_KEPT: Final = 5
ALARM_LINES: Final = 30

_ALARMS: Final = re.compile(
    r"""Traceback|Exception in|"reason": "\w+ failed: |"level": "(error|critical)"|never (retrieved|awaited)"""
)
"""A handler that failed, or anything else that a node says only when something is broken."""


class Target:
    def __init__(self, scratch: Path, *, in_memory: bool, settings: tuple[str, ...]) -> None:
        self.memory_bytes_max = 0
        self.descriptors_max = 0
        self.cpu_s = 0.0
        self.alarms: list[str] = []
        self.refusals = 0
        self.address = ("127.0.0.1", 0)
        self.http_address = ("127.0.0.1", 0)
        self.sqs_address = ("127.0.0.1", 0)
        self._arguments = ["--memory"] if in_memory else ["--data", str(scratch / "data")]
        for setting in settings:
            self._arguments += ["--set", setting]
        self._ready_file = scratch / "ready.json"
        self._log_path = scratch / "node.log"
        self._log_position = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def log_path(self) -> Path:
        return self._log_path

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> float:
        """Answers how long it took, in seconds."""
        self._ready_file.unlink(missing_ok=True)
        program = str(Path(sys.executable).with_name("ropewalk"))
        command = [
            program,
            "up",
            "--kafka",
            f"127.0.0.1:{self.address[1]}",
            "--http",
            "127.0.0.1:0",
            "--sqs",
            "127.0.0.1:0",
            *self._arguments,
        ]
        command += ["--ready-file", str(self._ready_file)]
        began = time.monotonic()
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        while not self._ready_file.exists():
            if not self.is_alive or time.monotonic() - began > READY_WITHIN_S:
                self.kill()
                raise RuntimeError(f"the node did not become ready:\n{self._log_path.read_text()[-2000:]}")
            time.sleep(0.01)
        doors = json.loads(self._ready_file.read_text())
        host, _, port = doors["kafka"][0].rpartition(":")
        self.address = (host, int(port))
        self.http_address = (host, int(doors["http"][0].rpartition(":")[2]))
        self.sqs_address = (host, int(doors["sqs"][0].rpartition(":")[2]))
        return time.monotonic() - began

    def stop(self) -> tuple[int, float]:
        """The exit code, and how long it took; a node that does not stop is killed."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -signal.SIGKILL
        return code, time.monotonic() - began

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOPPED_WITHIN_S)

    def look(self) -> None:
        """Sample its memory and descriptors, and read what it has logged since the last look."""
        if self.is_alive:
            assert self._process is not None
            self.memory_bytes_max = max(self.memory_bytes_max, self._status_bytes("VmHWM"))
            ticks = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            self.cpu_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            descriptors = len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))
            self.descriptors_max = max(self.descriptors_max, descriptors)
        with self._log_path.open("rb") as log:
            log.seek(self._log_position)
            text = log.read()
        whole = text.rfind(b"\n") + 1
        self._log_position += whole
        lines = text[:whole].decode(errors="replace").splitlines()
        for number, line in enumerate(lines):
            self.refusals += "connection closed" in line
            if _ALARMS.search(line) and len(self.alarms) < ALARMS_KEPT:
                self.alarms.append("\n    ".join(lines[number : number + ALARM_LINES]))

    def last_words(self) -> str:
        """Of a node that ended by itself."""
        assert self._process is not None
        lines = self._log_path.read_text(errors="replace").splitlines()
        said = [line for line in lines if _ALARMS.search(line)] or lines
        return "\n".join([f"exit code {self._process.returncode}", *said[-ALARM_LINES:]])

    @property
    def memory_bytes(self) -> int:
        return self._status_bytes("VmRSS")

    def _status_bytes(self, name: str) -> int:
        assert self._process is not None
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            field, _, value = line.partition(":")
            if field == name:
                return int(value.split()[0]) * 1024
        return 0  # a process that has just ended
