"""`bench/sqs`: the same load on queues of Ropewalk and of ElasticMQ, in turn, and the ratios.

    bench/sqs                       send, batch and receive with flush=group, then with flush=os
    bench/sqs send                  some of it
    bench/sqs --seconds 2 --repetitions 1    quickly, to see whether it runs
    bench/sqs backlog idle          figures of Ropewalk alone

Modes: send (SendMessage), batch (SendMessageBatch of ten), receive (ReceiveMessage of ten and DeleteMessageBatch), single (SendMessage
over one connection), fifo (as batch and receive, over 10,000 groups), backlog (receive with 1,000 and with 1,000,000 messages in the
queue), idle (1,000 long polls that nobody answers; 1,000 queues that nobody uses).

Messages of 1 KiB, 16 connections that stay open, one raw client in a process of its own (`bench/queue_load.py`). Requests are signed;
Ropewalk checks the signatures and has every message on disk before it answers, where flush=group is named; ElasticMQ checks none and
keeps its messages in memory.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import boto3

from bench import queue_load
from bench.brokers import CACHE, ROOT, Broker, Unavailable, start_elasticmq, start_ropewalk
from bench.processes import Meter, resident_mib
from bench.report import Row, Target, at_least, at_most, compare, markdown

MODES: Final = ("send", "batch", "receive", "single", "fifo", "backlog", "idle")
DEFAULT_MODES: Final = ("send", "batch", "receive", "single")
_TARGETS: Final[Mapping[str, dict[str, Target | None]]] = {
    "send": {"msg/s": at_least(1.5), "p99 ms": at_most(0.5), "CPU µs each": None},
    "batch": {"msg/s": at_least(2.5), "p99 ms": at_most(0.5), "CPU µs each": None},
    "receive": {"msg/s": at_least(2.5), "p99 ms": at_most(0.5), "CPU µs each": None},
    "single": {"msg/s": None, "p99 ms": None, "CPU µs each": None},
    "fifo": {"msg/s": None, "p99 ms": None, "CPU µs each": None},
}
_FIFO_GROUPS: Final = 10_000
_IDLE_POLLS: Final = 1_000
_IDLE_QUEUES: Final = 1_000


class Failed(Exception):
    """A load ended with an error; the text is its own."""


class Comparison:
    def __init__(self, stack: ExitStack, options: argparse.Namespace) -> None:
        self._stack = stack
        self._options = options
        self._started: dict[str, tuple[Broker, int]] = {}
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.foreign_cores_max = 0.0

    def beside_elasticmq(self, mode: str, flush: str) -> None:
        samples: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
        turns: list[tuple[str, Callable[[], tuple[Broker, int]]]] = [
            ("ours", lambda: self._ropewalk(flush)),
            ("theirs", self._elasticmq),
        ]
        for repetition in range(self._options.repetitions):
            for side, start in turns if repetition % 2 == 0 else reversed(turns):
                broker, port = start()
                print(
                    f"{mode}, flush={flush}, {broker.name}, {repetition + 1} of {self._options.repetitions}",
                    file=sys.stderr,
                )
                samples[side].append(self._sample(mode, broker, port))
        peer = self._elasticmq()[0].name
        self.rows += compare(
            f"{mode}, flush={flush}", peer, samples["ours"], samples["theirs"], _TARGETS[mode]
        )

    def backlog(self) -> None:
        """Of Ropewalk alone: what a message costs does not depend on how many there are."""
        broker, port = self._ropewalk("group")
        for is_fifo in (False, True):
            found: dict[int, dict[str, float]] = {}
            for count in (1_000, self._options.backlog):
                name = self._queue(port, f"backlog-{count}", is_fifo=is_fifo)
                groups = _FIFO_GROUPS if is_fifo else 0
                self._load("fill", port, name, messages=count, fifo=groups)
                for _ in range(self._options.repetitions):
                    self._load("fill", port, name, messages=2_000, fifo=groups)
                    found[count] = self._measured(broker, "receive", port, name, messages=2_000)
                self._delete(port, name)
            few, many = found.values()
            self.notes.append(
                f"receive + delete{' of FIFO groups' if is_fifo else ''} with {self._options.backlog:,} messages: "
                f"{many['CPU µs each'] / few['CPU µs each']:.2f} × the CPU of 1,000 "
                f"({many['CPU µs each']:.0f} µs a request against {few['CPU µs each']:.0f}), p99 {many['p99 ms']:.1f} ms against {few['p99 ms']:.1f}"
            )

    def idle(self) -> None:
        broker, port = self._ropewalk("group")
        name = self._queue(port, "idle", is_fifo=False)
        measured = self._measured(
            broker, "idle", port, name, connections=_IDLE_POLLS, seconds=max(20, self._options.seconds)
        )
        self.notes.append(
            f"{_IDLE_POLLS:,} idle long polls: {measured['cores'] * 100:.2f} % of a core over {measured['seconds']:.0f} s"
        )
        before_mib = resident_mib(broker.pid)
        for index in range(_IDLE_QUEUES):
            self._queue(port, f"idle-{index}", is_fifo=False)
        self.notes.append(
            f"{_IDLE_QUEUES:,} idle queues: {resident_mib(broker.pid) - before_mib:.0f} MiB more, {resident_mib(broker.pid):.0f} MiB in all"
        )

    def _sample(self, mode: str, broker: Broker, port: int) -> dict[str, float]:
        seconds, messages = self._options.seconds, self._options.messages
        if mode == "single":
            return self._measured(
                broker, "send", port, self._fresh(port, "single"), connections=1, seconds=seconds
            )
        if mode in ("send", "batch"):
            return self._measured(broker, mode, port, self._fresh(port, mode), seconds=seconds)
        groups = _FIFO_GROUPS if mode == "fifo" else 0
        name = self._fresh(port, mode, is_fifo=mode == "fifo")
        self._load("fill", port, name, messages=messages, fifo=groups)
        return self._measured(broker, "receive", port, name, messages=messages)

    def _fresh(self, port: int, name: str, *, is_fifo: bool = False) -> str:
        """A queue that nothing is in: what was sent in the run before is gone with its queue."""
        return self._queue(port, f"{name}-{time.monotonic_ns()}", is_fifo=is_fifo)

    def _queue(self, port: int, name: str, *, is_fifo: bool) -> str:
        full_name = f"{name}.fifo" if is_fifo else name
        _sqs(port).create_queue(QueueName=full_name, Attributes={"FifoQueue": "true"} if is_fifo else {})
        return full_name

    def _delete(self, port: int, name: str) -> None:
        _sqs(port).delete_queue(QueueUrl=f"http://127.0.0.1:{port}/000000000000/{name}")

    def _measured(
        self, broker: Broker, mode: str, port: int, queue: str, **options: float
    ) -> dict[str, float]:
        with Meter(broker.pid) as meter:
            figures = self._load(mode, port, queue, **options)
        self.foreign_cores_max = max(self.foreign_cores_max, meter.foreign_cores)
        figures["CPU µs each"] = meter.broker_cpu_seconds / max(figures["requests"], 1) * 1e6
        figures["cores"] = meter.broker_cpu_seconds / meter.seconds
        return figures

    def _load(self, mode: str, port: int, queue: str, **options: float) -> dict[str, float]:
        command: list[str | Path] = [
            ROOT / ".venv/bin/python",
            "-m",
            "bench.queue_load",
            mode,
            "127.0.0.1",
            str(port),
            queue,
        ]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise Failed(f"{mode} on {queue}: {ended.stderr[-1000:]}")
        figures: dict[str, float] = json.loads(ended.stdout)
        return figures

    def _ropewalk(self, flush: str) -> tuple[Broker, int]:
        return self._once(f"ropewalk-{flush}", lambda: _start_ropewalk(flush))

    def _elasticmq(self) -> tuple[Broker, int]:
        def start() -> tuple[Broker, int]:
            broker = start_elasticmq()
            return broker, broker.port

        return self._once("elasticmq", start)

    def _once(self, name: str, start: Callable[[], tuple[Broker, int]]) -> tuple[Broker, int]:
        if name not in self._started:
            broker, port = self._started[name] = start()
            self._stack.callback(broker.stop)
            warm = self._queue(port, "warm-up", is_fifo=False)
            for _ in range(3):  # Java compiles what is used often; so both are used before they are measured
                self._load("fill", port, warm, messages=5_000)
                self._load("receive", port, warm, messages=5_000)
                self._load("send", port, warm, seconds=2)
        return self._started[name]


def _start_ropewalk(flush: str) -> tuple[Broker, int]:
    CACHE.mkdir(parents=True, exist_ok=True)
    if flush == "group" and _file_system(CACHE) == "tmpfs":
        raise Unavailable(f"{CACHE} is in memory: what is measured would not be on a disk")
    credentials = CACHE / "credentials.toml"
    credentials.touch(mode=0o600)
    credentials.write_text(f'[{queue_load.ACCESS_KEY}]\nsecret = "{queue_load.SECRET_KEY}"\nadmin = true\n')
    broker = start_ropewalk(
        flush, settings={"sqs.listen": "127.0.0.1:0", "sqs.credentials": str(credentials)}
    )
    ready = json.loads((broker.directory / "ready.json").read_text())
    return broker, int(ready["sqs"][0].rpartition(":")[2])


def _file_system(path: Path) -> str:
    best = ("", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if str(path).startswith(mount) and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def _sqs(port: int) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=queue_load.ACCESS_KEY,
        aws_secret_access_key=queue_load.SECRET_KEY,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench/sqs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES))
    parser.add_argument("--repetitions", type=int, default=5, help="of every measurement (5)")
    parser.add_argument("--seconds", type=int, default=5, help="of a send run (5)")
    parser.add_argument("--messages", type=int, default=50_000, help="of a receive run (50,000)")
    parser.add_argument(
        "--backlog", type=int, default=1_000_000, help="messages of the long queue (1,000,000)"
    )
    parser.add_argument("--flush", action="append", choices=["group", "os"], help="both, one after the other")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    options = parser.parse_args(arguments)
    modes = options.modes or DEFAULT_MODES
    if unknown := set(modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    try:
        with ExitStack() as stack:
            comparison = Comparison(stack, options)
            for flush in options.flush or ("group", "os"):
                for mode in modes:
                    if mode in _TARGETS:
                        comparison.beside_elasticmq(mode, flush)
            for mode in modes:
                if mode not in _TARGETS:
                    getattr(comparison, mode)()
    except (Unavailable, Failed) as error:
        print(f"bench/sqs: {error}", file=sys.stderr)
        return 1
    table = markdown(comparison.rows, comparison.foreign_cores_max, "raw client with 16 connections, 1 KiB")
    table += "".join(f"- {note}\n" for note in comparison.notes)
    print("\n" + table)
    if options.markdown:
        options.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
