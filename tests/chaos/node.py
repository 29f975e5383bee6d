"""One node as a process of its own, to be stopped in unkind ways."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ropewalk.runtime.loop_watch import STALLS_FILE, Stall, read_stalls

READY_WITHIN_S = 60.0
STOPPED_WITHIN_S = 30.0
ANSWERED_WITHIN_S = 10.0


HELD_MS_MAX = 250.0
"""How long one turn of a node's event loop may take of its own doing."""


class Program(NamedTuple):
    """What a node is run by."""

    command: tuple[str, ...] = (str(Path(sys.executable).parent / "ropewalk"),)
    environment: Mapping[str, str] = MappingProxyType({})
    settings: tuple[str, ...] = ()
    """Those that this version is given beside the cluster's."""


class NodeProcess:
    """Started again and again on the same data and the same address, so that clients find it as they left it."""

    def __init__(
        self,
        data: Path,
        scratch: Path,
        settings: tuple[str, ...] = (),
        *,
        address: str = "127.0.0.1:0",
        options: tuple[str, ...] = (),
        place: tuple[str, ...] = (),
    ) -> None:
        """`place` is a command that runs another one where the node is to be."""
        self.address = address
        self.http: str | None = None
        """Known when it is ready, and chosen anew with every start."""
        self.sqs: str | None = None
        """Likewise; None where the node has no such door."""
        self.data = data
        self.program = Program()
        """Of the next start."""
        self.start_times_s: list[float] = []
        self._settings = settings
        self._options = options
        self._place = place
        self._ready_file = scratch / "ready.json"
        self._output = scratch / "node.log"
        self._stalls_file = scratch / "stalls"
        self._stalls_seen = 0
        self._stalls: list[Stall] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def settings(self) -> tuple[str, ...]:
        """Of the next start."""
        return (*self._settings, *self.program.settings)

    def start(self) -> None:
        """Returns when the node is ready; the first start chooses the port."""
        self.begin()
        self.wait_until_ready()

    def begin(self) -> None:
        """Start, and do not wait."""
        self._ready_file.unlink(missing_ok=True)
        command = [*self._place, *self.program.command, "up", "--data", str(self.data), *self._options]
        command += ["--kafka", self.address, "--ready-file", str(self._ready_file)]
        for setting in self.settings:
            command += ["--set", setting]
        self._stalls += self._new_stalls()
        self._began = time.monotonic()
        environment = {**os.environ, **self.program.environment, STALLS_FILE: str(self._stalls_file)}
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, start_new_session=True
            )

    def wait_until_ready(self) -> None:
        ready = self._wait_until_ready(self._began + READY_WITHIN_S)
        self.address = ready["kafka"][0]
        self.http = next(iter(ready.get("http", ())), None)
        self.sqs = next(iter(ready.get("sqs", ())), None)
        self.start_times_s.append(time.monotonic() - self._began)
        self._new_stalls()  # a node that starts keeps nobody waiting

    def held_loops(self) -> list[str]:
        """When it held its event loop for long, other than for want of a processor or because of the disk."""
        self._stalls += self._new_stalls()
        return [
            f"the loop was held for {stall.own_ms:.0f} ms by {' < '.join(stall.where) or 'somebody'}"
            for stall in self._stalls
            if stall.own_ms > HELD_MS_MAX and not stall.is_disk
        ]

    def _new_stalls(self) -> list[Stall]:
        stalls = read_stalls(self._stalls_file)[self._stalls_seen :]
        self._stalls_seen += len(stalls)
        return stalls

    def kill(self) -> None:
        """End every process of the node at once. Returns when none can write any more."""
        assert self._process is not None, "the node was started"
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=STOPPED_WITHIN_S)

    def freeze(self) -> None:
        """Stop every thread where it is. Returns when none is inside the kernel any more."""
        assert self._process is not None, "the node was started"
        os.killpg(self._process.pid, signal.SIGSTOP)
        deadline = time.monotonic() + STOPPED_WITHIN_S
        while not all(state == "T" for state in self._thread_states()):
            if time.monotonic() > deadline:
                raise RuntimeError("the node could not be frozen")
            time.sleep(0.001)

    def thaw(self) -> None:
        assert self._process is not None, "the node was started"
        os.killpg(self._process.pid, signal.SIGCONT)

    def stop(self) -> int:
        """Ask the node to stop. Returns its exit code, or that of a node that had ended before."""
        assert self._process is not None, "the node was started"
        self._process.terminate()
        try:
            return self._process.wait(timeout=STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def wait_until_ended(self, *, within_s: float) -> int | None:
        """The exit code of a node that ends by itself; None, and it is killed, if it does not."""
        assert self._process is not None, "the node was started"
        try:
            return self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of one of its HTTP pages."""
        try:
            with urllib.request.urlopen(f"{self.http}{path}", timeout=ANSWERED_WITHIN_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_until_page_says(self, path: str, words: str) -> int:
        """Until the page has these words; answers with the status it has then."""
        deadline = time.monotonic() + READY_WITHIN_S
        while True:
            status, text = self.page(path)
            if words in text:
                return status
            if time.monotonic() > deadline:
                raise RuntimeError(f"{path} never said {words!r} but {text!r}\n{self.last_words()}")
            time.sleep(0.05)

    def _wait_until_ready(self, deadline: float) -> dict[str, list[str]]:
        assert self._process is not None, "the node was started"
        while True:
            if self._process.poll() is not None:
                raise RuntimeError(f"the node ended with {self._process.returncode}: {self.last_words()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the node was not ready in {READY_WITHIN_S} s: {self.last_words()}")
            try:
                ready: dict[str, list[str]] = json.loads(self._ready_file.read_text())
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.01)
                continue
            return ready

    def last_words(self) -> str:
        """The end of what the node wrote to its output, and whether it still runs: some have the last word unasked."""
        process = self._process
        code = None if process is None else process.poll()
        fate = "not started" if process is None else "runs" if code is None else f"ended with {code}"
        words = self._output.read_text(errors="replace")[-2_000:] if self._output.exists() else ""
        return f"({fate}) {words}"

    def _thread_states(self) -> list[str]:
        assert self._process is not None, "the node was started"
        tasks = Path(f"/proc/{self._process.pid}/task")
        return [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
