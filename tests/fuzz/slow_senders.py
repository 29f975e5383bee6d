"""Connections that send a byte a second to the SQS port, beside a client that must not notice: `python -m tests.fuzz.slow_senders`.

Each is a request that would be served if it came. One that the node has closed is opened again, so that there are as many all the
time. What is seen: how long the client beside them waits for a message there and back, before and meanwhile, the node's memory, and
how long it took until a slow one was closed.
"""

import argparse
import asyncio
import itertools
import json
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from multiprocessing import get_context
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from tests.fuzz.target import Target

PATIENCE_S: Final = 60.0
SPARE_DESCRIPTORS: Final = 500
OPENED_AT_A_TIME: Final = 200
CALM_S: Final = 3.0
_SLOWLY: Final = (
    b"POST / HTTP/1.1\r\nHost: n\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n"
    b"X-Long: " + b"x" * 500 + b"\r\nContent-Length: 2\r\n\r\n{}"
)


class Report(Struct):
    opened_count: int = 0
    open_count_max: int = 0
    closed_count: int = 0
    """By the node."""
    kept_s_max: float = 0.0
    """The longest that the node bore with one."""
    answered_count: int = 0
    calm_ms: list[float] = []
    """A message there and back, before."""
    slow_ms: list[float] = []
    """The same, meanwhile."""
    growth_bytes: int = 0
    violations: list[str] = []


def run(connection_count: int, seconds: float) -> Report:
    report = Report(calm_ms=[], slow_ms=[], violations=[])
    with tempfile.TemporaryDirectory(prefix="ropewalk-slow-") as scratch:
        target = Target(Path(scratch), in_memory=True, settings=())
        target.start()
        try:
            asyncio.run(_Siege(target, connection_count, report).run(seconds))
            target.look()
            if not target.is_alive:
                report.violations.append(f"the node died; its last words:\n{target.last_words()}")
            report.violations += [f"in the node's log: {alarm}" for alarm in target.alarms]
        finally:
            if target.is_alive and target.stop()[0] != 0:
                report.violations.append("the node did not stop as it should")
    return report


class _Siege:
    def __init__(self, target: Target, connection_count: int, report: Report) -> None:
        self._target = target
        self._connection_count = connection_count
        self._report = report
        self._open: set[_SlowSender] = set()
        self._ended = False

    async def run(self, seconds: float) -> None:
        loop, address = asyncio.get_running_loop(), self._target.sqs_address
        with ProcessPoolExecutor(1, get_context("spawn")) as beside:
            self._report.calm_ms = await loop.run_in_executor(beside, round_trips, address, CALM_S)
            before_bytes = self._target.memory_bytes
            opening = asyncio.ensure_future(self._keep_open())
            dripping = asyncio.ensure_future(self._drip())
            try:
                self._report.slow_ms = await loop.run_in_executor(beside, round_trips, address, seconds)
            except (OSError, ValueError, KeyError, HTTPException) as error:
                self._report.violations.append(f"the client beside them: {error!r}")
        self._report.growth_bytes = self._target.memory_bytes - before_bytes
        self._ended = True
        opening.cancel()
        dripping.cancel()
        for sender in list(self._open):
            sender.abort()

    def on_closed(self, sender: "_SlowSender", kept_s: float, *, has_answer: bool) -> None:
        self._open.discard(sender)
        if self._ended:
            return
        self._report.closed_count += 1
        self._report.kept_s_max = max(self._report.kept_s_max, kept_s)
        self._report.answered_count += has_answer

    async def _keep_open(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            missing = min(self._connection_count - len(self._open), OPENED_AT_A_TIME)
            try:
                opened = await asyncio.gather(
                    *(
                        loop.create_connection(lambda: _SlowSender(self), *self._target.sqs_address)
                        for _ in range(missing)
                    )
                )
            except OSError as error:
                self._report.violations.append(f"no connection: {error}")
                return
            self._open.update(sender for _, sender in opened)
            self._report.opened_count += missing
            self._report.open_count_max = max(self._report.open_count_max, len(self._open))
            await asyncio.sleep(0.01)

    async def _drip(self) -> None:
        """A byte a second for each, spread over the second."""
        while True:
            began_at = time.monotonic()
            for number, sender in enumerate(list(self._open)):
                sender.send_byte()
                if number % 200 == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began_at)))


def round_trips(address: tuple[str, int], seconds: float) -> list[float]:
    """How long messages took there and back, in milliseconds: by one who stays and by one who comes anew for every request, in turn.

    Raises what a client would see. In a process of its own: those who are slow keep the other busy.
    """
    times_ms: list[float] = []
    ends_at = time.monotonic() + seconds
    staying = HTTPConnection(*address, timeout=PATIENCE_S)
    ask(staying, "CreateQueue", QueueName="staying")
    ask(staying, "CreateQueue", QueueName="coming")
    for name in itertools.cycle(("staying", "coming")):
        if time.monotonic() > ends_at:
            return times_ms
        began_at = time.monotonic()
        received = {}
        for action in ("SendMessage", "ReceiveMessage", "DeleteMessage"):
            link = staying if name == "staying" else HTTPConnection(*address, timeout=PATIENCE_S)
            match action:
                case "SendMessage":
                    ask(link, action, QueueUrl=name, MessageBody="x")
                case "ReceiveMessage":
                    received = ask(link, action, QueueUrl=name, WaitTimeSeconds=5)
                case _:
                    ask(link, action, QueueUrl=name, ReceiptHandle=received["Messages"][0]["ReceiptHandle"])
            if link is not staying:
                link.close()
        times_ms.append((time.monotonic() - began_at) * 1000)
    raise AssertionError("names do not end")


def ask(link: HTTPConnection, action: str, **body: object) -> dict[str, list[dict[str, str]]]:
    link.request("POST", "/", json.dumps(body), {"X-Amz-Target": f"AmazonSQS.{action}"})
    answer = link.getresponse()
    said = answer.read()
    if answer.status != HTTPStatus.OK:
        raise ValueError(f"{action}: {answer.status} {said!r}")
    decoded: dict[str, list[dict[str, str]]] = json.loads(said)
    return decoded


class _SlowSender(asyncio.Protocol):
    def __init__(self, siege: _Siege) -> None:
        self._siege = siege
        self._position = 0
        self._made_at = 0.0
        self._has_answer = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._made_at = time.monotonic()

    def data_received(self, _: bytes) -> None:
        self._has_answer = True

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._siege.on_closed(self, time.monotonic() - self._made_at, has_answer=self._has_answer)

    def send_byte(self) -> None:
        if self._transport is not None:
            self._transport.write(_SLOWLY[self._position : self._position + 1])
            self._position += 1

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def raise_descriptor_limit(wanted: int) -> int:
    """As far as the machine lets us; answers with how many there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.slow_senders")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    arguments = parser.parse_args()
    wanted = arguments.connections + SPARE_DESCRIPTORS
    if (allowed := raise_descriptor_limit(wanted)) < wanted:
        print(f"{allowed} descriptors are allowed here, {wanted} are needed")
        return 2
    report = run(arguments.connections, arguments.seconds)
    print(
        json.dumps(
            {
                "opened": report.opened_count,
                "open_at_most": report.open_count_max,
                "closed": report.closed_count,
                "kept_s_max": round(report.kept_s_max, 1),
                "answered": report.answered_count,
                "growth_mib": report.growth_bytes >> 20,
                "calm_ms": summary(report.calm_ms),
                "slow_ms": summary(report.slow_ms),
                "violations": report.violations[:20],
            }
        )
    )
    return 1 if report.violations else 0


def summary(times_ms: list[float]) -> dict[str, float]:
    ordered = sorted(times_ms)
    if not ordered:
        return {"count": 0}
    return {
        "count": len(ordered),
        "median": round(ordered[len(ordered) // 2], 1),
        "p99": round(ordered[len(ordered) * 99 // 100], 1),
        "worst": round(ordered[-1], 1),
    }


if __name__ == "__main__":
    sys.exit(main())
