"""A pipeline as processes: a driver (Python and Java), executors, Python workers; to be killed one by one or stopped at a certain place.

What a reader could get wrong
    The driver's Java and Python are one process group; workers are children of daemons that have groups of their own. A driver that is
    killed leaves its workers behind, as it does on a real cluster: they notice when they next want to talk to it.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Final, NamedTuple

from ropewalk.spark.checkpoints import parse_offsets
from ropewalk.spark.fail_points import HALT_IN
from ropewalk.spark.pipelines.causes import cause_of
from ropewalk.spark.ranges import from_json
from tests.spark.quick_java import quick_java

WITHIN_S: Final = 180.0
ENDED_WITHIN_S: Final = 600.0
"""For a whole run that carries what is left, on a machine that has other things to do."""
LOOK_S: Final = 0.02
_WORKER: Final = "pyspark.daemon\0pyspark.worker"
_LOOP: Final = "spark_loop.py"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


class JobEnded(Exception):
    """Nobody killed it."""


class Process(NamedTuple):
    """Numbers are given anew; with the moment of its start it is this one or none."""

    pid: int
    parent: int
    started: str
    command: str


class Job:
    """Started again and again. All that is left of it is gone when the context ends."""

    def __init__(self, scratch: Path, checkpoint: Path, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment or {}
        self.checkpoint = Checkpoint(checkpoint)
        self.halts = Halts(scratch / "halts")
        self._output = scratch / "job.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._left: set[Process] = set()
        self._output_begins = 0

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running:
            self.kill_driver()
        self.bury()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str]) -> None:
        assert not self.is_running, "one at a time"
        environment = {
            **os.environ,
            **self._environment,
            HALT_IN: str(self.halts.directory),
            "JAVA_TOOL_OPTIONS": quick_java(),
        }
        self._output_begins = self._output.stat().st_size if self._output.exists() else 0
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, start_new_session=True
            )

    def wait_until_ended(self) -> int:
        assert self._process is not None, "it was started"
        try:
            return self._process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"it does not end in {ENDED_WITHIN_S} s\n{self.output()[-3_000:]}") from None

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Raises `JobEnded` if the job has nothing more to do with it."""
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            if not self.is_running:
                raise JobEnded(self.last_words())
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not in {WITHIN_S} s\n{self.last_words()}")
            time.sleep(LOOK_S)

    def wait_for_batches(self, count: int = 1) -> None:
        """Until so many more are done, as far as Spark knows."""
        before = self.checkpoint.last_done
        self.wait_until(
            lambda: self.checkpoint.last_done >= before + count, f"{count} batches after {before}"
        )

    def kill_driver(self) -> None:
        """Python and Java at once. What it had started is left to itself, and to `bury`."""
        assert self._process is not None, "it was started"
        tree = self._tree()
        self._left |= set(tree)
        # A daemon of workers that hears of the end tells its workers; on a machine that goes away nobody does.
        daemons = [each for each in tree if _WORKER in each.command and not _is_worker(each, tree)]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, SIGKILL)
        for each in daemons:
            _kill(each)
        self._process.wait(WITHIN_S)

    def kill_worker(self, random: Random, pid: int | None = None) -> bool:
        """This one, or any that runs tasks, if there is one."""
        tree = self._tree()
        workers = [each for each in tree if _is_worker(each, tree) and pid in (None, each.pid)]
        return bool(workers) and _kill(random.choice(workers))

    def kill_executor(self, random: Random) -> bool:
        """The whole of it, where executors are processes of their own."""
        executors = [each for each in self._tree() if _EXECUTOR in each.command]
        return bool(executors) and _kill(random.choice(executors))

    def bury(self) -> None:
        """Ends everything that killed drivers have left."""
        for each in self._left:
            _kill(each)
        self._left.clear()

    def output(self) -> str:
        """Everything that was said since the last start."""
        with self._output.open("rb") as output:
            output.seek(self._output_begins)
            return output.read().decode(errors="replace")

    def last_words(self) -> str:
        """Why it ended, if it said so."""
        output = self.output()
        told = [line for line in output.splitlines() if line.startswith("ropewalk: ")]
        return told[-1] if told else cause_of(output)

    def _tree(self) -> list[Process]:
        """Everything that descends from the driver, itself excluded."""
        assert self._process is not None, "it was started"
        everybody = list(_processes())
        wanted = {self._process.pid}
        found: list[Process] = []
        while children := [each for each in everybody if each.parent in wanted and each not in found]:
            found += children
            wanted |= {each.pid for each in children}
        return found


class Halts:
    """Places where the next process that comes along waits."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def arm(self, place: str) -> None:
        (self.directory / place).touch()

    def waiting(self, place: str) -> int | None:
        """Who stands there."""
        for file in self.directory.glob(f"{place}.*"):
            return int(file.suffix.removeprefix("."))
        return None

    def clear(self) -> int:
        """Lets everybody go on; how many there were who still live."""
        count = 0
        for file in list(self.directory.iterdir()):
            count += Path("/proc", file.suffix.removeprefix(".") or "nobody").exists()
            file.unlink(missing_ok=True)
        return count


class Checkpoint:
    """What Spark has written down, looked at from outside."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def last_begun(self) -> int:
        return _newest(self.directory / "offsets")

    @property
    def last_done(self) -> int:
        """-1 if there is none."""
        return _newest(self.directory / "commits")

    @property
    def query(self) -> str:
        return str(json.loads((self.directory / "metadata").read_text())["id"])

    def ends(self, batch: int) -> dict[int, int]:
        """Of each partition of the one topic that is read."""
        path = self.directory / "offsets" / str(batch)
        (offsets,) = parse_offsets(path.read_text(), str(path))
        return {each.partition: end for each, end in from_json(offsets).items()}


def _is_worker(process: Process, tree: Sequence[Process]) -> bool:
    """A child of a daemon of Spark's, or of the loop that stands for Spark."""
    if _LOOP in process.command:
        return True
    return _WORKER in process.command and any(
        each.pid == process.parent and _WORKER in each.command for each in tree
    )


def _newest(directory: Path) -> int:
    if not directory.is_dir():
        return -1
    return max((int(each.name) for each in directory.iterdir() if each.name.isdecimal()), default=-1)


def _processes() -> Iterator[Process]:
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
                command = (directory / "cmdline").read_bytes().decode(errors="replace")
                yield Process(int(directory.name), int(fields[1]), fields[19], command)


def _kill(process: Process) -> bool:
    """Whether it was there."""
    try:
        started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        if started == process.started:
            os.kill(process.pid, SIGKILL)
            return True
    except (FileNotFoundError, ProcessLookupError):
        pass
    return False
