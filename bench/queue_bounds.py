"""What the core of one partition of a queue costs at its bounds: memory, and CPU for each message; no disk, no network.

    bench/queue-bounds [--share 1.0]

Prints a line for each case: megabytes that the process has grown by, microseconds for each message, and the size of a snapshot.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ropewalk.queues import QueuePartition
from ropewalk.queues.answers import Received
from ropewalk.queues.commands import Delete, Handle, Message, Receive
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import QueueState

NOW_MS = 1_700_000_000_000
READ_COUNT = 1_000
HIDDEN_MS = 30_000


class Bench:
    """A core with a log of messages that need not be there: each is made when it is read."""

    def __init__(self, settings: QueueSettings, count: int, message: Callable[[int], Message]) -> None:
        self.core = QueuePartition(settings, QueueState(), committed_end=count, now_ms=NOW_MS)
        self._count, self._message = count, message
        self._token = 0

    def read_all(self) -> None:
        end = 0
        while end < self._count:
            messages = tuple(self._message(offset) for offset in range(end, end + READ_COUNT))
            end += READ_COUNT
            self.core.on_read(messages, end, NOW_MS)

    def receive(self, count: int) -> Received:
        self._token += 1
        core = self.core
        step = core.decide(self._token, Receive(count, HIDDEN_MS), NOW_MS)
        while not (answers := (*step.prompts, *step.replies)):
            start = core.next_read()
            assert start is not None, "there is something to read"
            messages = tuple(self._message(offset) for offset in range(start, start + READ_COUNT))
            step = core.on_read(messages, start + READ_COUNT, NOW_MS)
        core.take_delta(NOW_MS)
        answer = answers[0].answer
        assert isinstance(answer, Received)
        return answer

    def delete(self, answer: Received) -> None:
        self._token += 1
        handles = tuple(Handle(given.offset, answer.attempt) for given in answer.messages)
        self.core.decide(self._token, Delete(handles), NOW_MS)
        self.core.take_delta(NOW_MS)

    def rounds(self, count: int) -> float:
        """Microseconds for each message that is received and deleted, in tens."""
        began_ns = time.process_time_ns()
        for _ in range(count):
            self.delete(self.receive(10))
        return (time.process_time_ns() - began_ns) / 1_000 / count / 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--share", type=float, default=1.0, help="of each case's messages (default %(default)s)"
    )
    share = parser.parse_args().share
    for name, case in CASES.items():
        gc.collect()
        before_mb = _resident_mb()
        began_ns = time.process_time_ns()
        for line in case(share):
            print(f"{name}: {line}, {_resident_mb() - before_mb:.0f} MB, ", end="")
        print(f"{(time.process_time_ns() - began_ns) / 1e9:.1f} s in all", flush=True)


def _in_flight(share: float) -> Iterator[str]:
    count = _thousands(120_000 * share)
    bench = Bench(QueueSettings(), count, _plain)
    began_ns = time.process_time_ns()
    answers = [bench.receive(10) for _ in range(count // 10)]
    each_us = (time.process_time_ns() - began_ns) / 1_000 / count
    size = sum(map(len, bench.core.take_snapshot(NOW_MS)))
    began_ns = time.process_time_ns()
    for answer in answers[: len(answers) // 2]:
        bench.delete(answer)
    delete_us = (time.process_time_ns() - began_ns) / 1_000 / (count // 2)
    yield f"{count} received {each_us:.1f} µs each, half of them deleted {delete_us:.1f} µs each, snapshot {size} bytes"


def _delayed(share: float) -> Iterator[str]:
    count = _thousands(1_000_000 * share)
    bench = Bench(
        QueueSettings(), count, lambda offset: Message(offset, NOW_MS, "", 60_000 + offset % 800_000)
    )
    began_ns = time.process_time_ns()
    bench.read_all()
    read_us = (time.process_time_ns() - began_ns) / 1_000 / count
    yield f"{bench.core.figures().delayed_count} delayed, {read_us:.1f} µs each"


def _holes(share: float) -> Iterator[str]:
    count = _thousands(1_000_000 * share)
    bench = Bench(QueueSettings(in_flight_max=count), count, _plain)
    for _ in range(count // 1_000):
        answer = bench.receive(1_000)
        bench.delete(Received(answer.attempt, answer.messages[::2]))
    began_ns = time.process_time_ns()
    size = sum(map(len, bench.core.take_snapshot(NOW_MS)))
    ms = (time.process_time_ns() - began_ns) / 1e6
    yield f"{bench.core.figures().hole_count} holes between as many in flight, snapshot {size} bytes in {ms:.0f} ms"


def _backlog(share: float) -> Iterator[str]:
    for count in (_thousands(1_000 * max(share, 1)), _thousands(1_000_000 * share)):
        bench = Bench(QueueSettings(), count, _plain)
        if count > 100_000:
            bench.read_all()
        yield f"{bench.rounds(90):.1f} µs each with {count} messages"


def _groups(share: float) -> Iterator[str]:
    for groups in (10, 10_000):
        count = _thousands(100_000 * share)
        settings = QueueSettings(is_fifo=True)
        bench = Bench(settings, count, lambda offset: Message(offset, NOW_MS, f"g{offset % groups}"))  # noqa: B023
        bench.read_all()
        yield f"{bench.rounds(500):.1f} µs each with {groups} groups of {count} messages"


def _fair(share: float) -> Iterator[str]:
    count = _thousands(119_000 * share)
    bench = Bench(
        QueueSettings(is_fair=True), count, lambda offset: Message(offset, NOW_MS, f"g{offset % 7 or offset}")
    )
    bench.read_all()
    held = [bench.receive(10) for _ in range(60)]
    yield f"{bench.rounds(500):.1f} µs each with {count} messages of one large group and many small ones"
    for answer in held:
        bench.delete(answer)


def _plain(offset: int) -> Message:
    return Message(offset, NOW_MS)


CASES: dict[str, Callable[[float], Iterator[str]]] = {
    "in flight": _in_flight,
    "delayed": _delayed,
    "holes": _holes,
    "backlog": _backlog,
    "FIFO groups": _groups,
    "fair": _fair,
}


def _thousands(count: float) -> int:
    return max(int(count) // READ_COUNT, 1) * READ_COUNT


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    main()
