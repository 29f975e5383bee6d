"""Sends hostile SQS requests to a live node, and holds it to its answers: `python -m tests.fuzz.sqs_campaign --seconds 600`.

Every request is answered in its own protocol and in its turn, never with a failure of the node, and what is signed wrongly is never
carried out; a client beside it, with queues of its own, gets each of its messages once and can delete it; the node neither dies nor
complains nor grows. A connection sends several requests at a time: the node is kept busy, and answers what was sent ahead.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from ropewalk.security.sigv4_signing import Credentials, Signer
from tests.fuzz.sqs_signatures import KEY, SECRET, Signatures
from tests.fuzz.sqs_volleys import Known, SqsRequest, request
from tests.fuzz.target import Target

CONNECTIONS: Final = 12
VOLLEY: Final = 16
"""Requests that are sent at a time."""
PATIENCE_S: Final = 60.0
LOOK_S: Final = 1.0
GROWTH_BYTES_MAX: Final = 192 << 20
VIOLATIONS_KEPT: Final = 20
KNOWN_MAX: Final = 200
OURS: Final = frozenset({500, 501, 502, 503, 504})
"""Statuses that blame the node."""
_STANDING: Final = re.compile(rb"fuzz(-dead|[.]fifo)?[\"& ]")
"""A queue that is there from the first request to the last."""
_MAKING: Final = re.compile(rb"CreateQueue|AdoptTopic|RewindQueue")


class Report(Struct):
    request_count: int = 0
    by_status: Counter[int] = Counter()
    violations: list[str] = []
    growth_bytes: int = 0
    """Of the node's memory, from the end of the first tenth."""
    neighbour_count: int = 0
    """Messages that the client beside it sent, received once and deleted."""
    node_cpu_s: float = 0.0


def run(
    seed: int,
    seconds: float,
    *,
    in_memory: bool = True,
    is_signed: bool = False,
    requests_max: int = sys.maxsize,
    first: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    report = Report(by_status=Counter(), violations=[])
    with tempfile.TemporaryDirectory(prefix="ropewalk-fuzz-") as scratch:
        settings: tuple[str, ...] = ()
        if is_signed:
            keys = Path(scratch) / "keys.toml"
            keys.touch(mode=0o600)
            keys.write_text(f'[{KEY}]\nsecret = "{SECRET}"\nadmin = true\n')
            settings = (f"sqs.credentials={keys}", "sqs.delete.wait.ms=0")
        target = Target(Path(scratch), in_memory=in_memory, settings=settings)
        target.start()
        try:
            campaign = _Campaign(
                seed,
                seconds,
                first + requests_max,
                target,
                report,
                first=first,
                is_signed=is_signed,
                tell=tell,
            )
            asyncio.run(campaign.run())
            target.look()
            report.node_cpu_s = target.cpu_s
            if not target.is_alive:
                report.violations.append(f"the node died; its last words:\n{target.last_words()}")
            elif (code := target.stop()[0]) != 0:
                report.violations.append(f"the node ended with {code} when it was told to stop")
            report.violations += [f"in the node's log: {alarm}" for alarm in target.alarms]
        finally:
            if target.is_alive:
                target.kill()
    return report


class _Campaign:
    def __init__(
        self,
        seed: int,
        seconds: float,
        number_end: int,
        target: Target,
        report: Report,
        *,
        first: int,
        is_signed: bool,
        tell: Callable[[str], None],
    ) -> None:
        self._seed = seed
        self._seconds = seconds
        self._number_end = number_end
        self._target = target
        self._report = report
        self._tell = tell
        self._handles: deque[str] = deque(maxlen=KNOWN_MAX)
        self._ids: deque[str] = deque(maxlen=KNOWN_MAX)
        self._known = Known(self._handles, self._ids)
        self._signatures = Signatures() if is_signed else None
        self._signer = Signer(Credentials(KEY, SECRET), region="eu-west-1", service="sqs")
        self._next_number = first
        self._base_bytes = 0
        self._began_at = self._ends_at = 0.0

    async def run(self) -> None:
        self._began_at = time.monotonic()
        self._ends_at = self._began_at + self._seconds
        for name, attributes in (
            ("fuzz", {}),
            ("fuzz-dead", {}),
            ("fuzz.fifo", {"FifoQueue": "true"}),
            ("beside", {}),
        ):
            status, answer = await self._ask("CreateQueue", {"QueueName": name, "Attributes": attributes})
            assert status == 200, f"{name}: {status} {answer!r}"
        watch = asyncio.ensure_future(self._watch())
        neighbour = asyncio.ensure_future(self._neighbour())
        try:
            await asyncio.gather(*(self._attack() for _ in range(CONNECTIONS)))
            await neighbour
        finally:
            watch.cancel()
        self._target.look()
        self._report.growth_bytes = max(0, self._target.memory_bytes - self._base_bytes)
        if self._report.growth_bytes > GROWTH_BYTES_MAX:
            self.blame(f"the node grew by {self._report.growth_bytes >> 20} MiB")

    @property
    def goes_on(self) -> bool:
        return (
            time.monotonic() < self._ends_at
            and self._next_number < self._number_end
            and len(self._report.violations) < VIOLATIONS_KEPT
            and self._target.is_alive
        )

    def next_requests(self) -> list[tuple[int, SqsRequest]]:
        first, self._next_number = self._next_number, self._next_number + VOLLEY
        return [
            (number, request(self._seed, number, self._known, self._signatures))
            for number in range(first, first + VOLLEY)
        ]

    def check(self, number: int, sent: SqsRequest, status: int, head: bytes, body: bytes) -> None:
        self._report.request_count += 1
        self._report.by_status[status] += 1
        problem = None
        if status == HTTPStatus.SERVICE_UNAVAILABLE and _may_be_unready(sent):
            pass
        elif status in OURS:
            problem = "a failure of the node"
        elif sent.is_forged and status == 200:
            problem = "a wrong signature was taken for right"
        else:
            problem = _complaint(status, head, body, sent)
        if problem is not None:
            self.blame(f"request {number}: {problem}: {status} {body[:300]!r} to {sent.raw[:600]!r}")
        elif status == 200 and sent.is_json:
            self._remember(body)

    def blame(self, violation: str) -> None:
        if len(self._report.violations) < VIOLATIONS_KEPT:
            self._report.violations.append(violation)
            self._tell(violation[:2000])

    async def _attack(self) -> None:
        loop = asyncio.get_running_loop()
        while self.goes_on:
            visit = _Visit(self, loop.create_future())
            try:
                async with asyncio.timeout(PATIENCE_S + self._ends_at - time.monotonic()):
                    await loop.create_connection(lambda visit=visit: visit, *self._target.sqs_address)  # type: ignore[misc]
                    await visit.over
            except TimeoutError:
                self.blame(f"no answer for a long time; {visit.state}")
            except OSError as error:
                self.blame(f"no connection: {error}")
                return
            finally:
                visit.close()

    def _remember(self, body: bytes) -> None:
        if b'"ReceiptHandle"' in body:
            for message in json.loads(body).get("Messages", ()):
                self._handles.append(message["ReceiptHandle"])
        elif body.startswith(b'{"MessageId"') or b'"MessageId":"' in body[:200]:
            answer = json.loads(body)
            if isinstance(answer.get("MessageId"), str):
                self._ids.append(answer["MessageId"])

    async def _watch(self) -> None:
        """Look at the node now and then, and say how far it is."""
        told_at = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._target.is_alive:
                return
            self._target.look()
            now = time.monotonic()
            if not self._base_bytes and now - self._began_at > self._seconds / 10:
                self._base_bytes = self._target.memory_bytes
            if now - told_at > 60:
                told_at = now
                self._tell(
                    f"{self._report.request_count:,} requests in {now - self._began_at:.0f} s, "
                    f"{self._target.memory_bytes >> 20} MiB, {self._report.neighbour_count:,} messages beside"
                )

    async def _neighbour(self) -> None:
        """Send a message, receive it, delete it; whatever comes otherwise is a violation."""
        url = "http://n/000000000000/beside"
        while self.goes_on:
            text = f"message {self._report.neighbour_count}"
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._must("SendMessage", {"QueueUrl": url, "MessageBody": text})
                    received = await self._must("ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 20})
                    messages = received.get("Messages", [])
                    if [message["Body"] for message in messages] != [text]:
                        self.blame(f"the client beside it sent {text!r} and received {messages!r}")
                        return
                    handle = messages[0]["ReceiptHandle"]
                    await self._must("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": handle})
            except (OSError, ValueError, asyncio.IncompleteReadError) as error:
                self.blame(f"the client beside it: {error!r}")
                return
            self._report.neighbour_count += 1

    async def _must(self, action: str, body: dict[str, object]) -> dict[str, list[dict[str, str]]]:
        status, answer = await self._ask(action, body)
        if status != 200:
            raise ValueError(f"{action} was answered with {status} {answer[:300]!r}")
        decoded: dict[str, list[dict[str, str]]] = json.loads(answer or b"{}")
        return decoded

    async def _ask(self, action: str, body: dict[str, object]) -> tuple[int, bytes]:
        data = json.dumps(body).encode()
        headers = {
            "host": "n",
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"AmazonSQS.{action}",
        }
        headers = self._signer.signed("POST", "/", headers, data, now_ms=time.time_ns() // 1_000_000)
        headers |= {"connection": "close", "content-length": str(len(data))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reader, writer = await asyncio.open_connection(*self._target.sqs_address)
        try:
            writer.write(f"POST / HTTP/1.1\r\n{head}\r\n".encode() + data)
            answer = await reader.readuntil(b"\r\n\r\n")
            return _status(answer), await reader.readexactly(_length_bytes(answer))
        finally:
            writer.close()


class _Visit(asyncio.Protocol):
    """One connection: volley after volley, each when the one before is answered."""

    def __init__(self, campaign: _Campaign, over: asyncio.Future[None]) -> None:
        self._campaign = campaign
        self.over = over
        self._due: deque[tuple[int, SqsRequest]] = deque()
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    @property
    def state(self) -> str:
        return f"{len(self._due)} answers are due, the next to {self._due[0] if self._due else None}"

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self.over.done():
            if self._due:
                self._campaign.blame(f"the node closed the connection ({error}); {self.state}")
            self.over.set_result(None)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        while (head_end := received.find(b"\r\n\r\n")) >= 0:
            head = bytes(received[: head_end + 4])
            end = len(head) + _length_bytes(head)
            if len(received) < end:
                return
            body = bytes(received[len(head) : end])
            del received[:end]
            if not self._due:
                self._campaign.blame(f"an answer that nothing asked for: {head!r}")
                self._finish()
                return
            number, sent = self._due.popleft()
            self._campaign.check(number, sent, _status(head), head, body)
            if b"\r\nconnection: close" in head:
                self._due.clear()  # what was sent behind it is not answered
                self._finish()
                return
        if not self._due:
            self._send()

    def _send(self) -> None:
        if self._transport is None or not self._campaign.goes_on:
            self._finish()
            return
        requests = self._campaign.next_requests()
        self._due += requests
        self._transport.write(b"".join(sent.raw for _, sent in requests))

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
        self.close()


def _may_be_unready(sent: SqsRequest) -> bool:
    """Whether it is about a queue that was made or deleted just now, or about one that is being rewound while letters are moved."""
    return _STANDING.search(sent.raw) is None or _MAKING.search(sent.raw) is not None


def _status(head: bytes) -> int:
    return int(head[9:12])


def _length_bytes(head: bytes) -> int:
    _, found, rest = head.partition(b"\r\ncontent-length: ")
    return int(rest[: rest.index(b"\r")]) if found else 0


def _complaint(status: int, head: bytes, body: bytes, sent: SqsRequest) -> str | None:
    """What is wrong with an answer; None: nothing."""
    if b"\r\nx-amzn-requestid: " not in head:
        return "no request id"
    if sent.is_json:
        try:
            answer = msgspec.json.decode(body) if body else {}
        except msgspec.DecodeError:
            return "no JSON"
        return None if status == 200 or "__type" in answer else "an error without a type"
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        return f"no XML ({error})"
    tag = root.tag.rpartition("}")[2]
    return (
        None
        if tag.endswith("Response") and (status == 200) != (tag == "ErrorResponse")
        else "not the answer's element"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sqs_campaign")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=sys.maxsize)
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signed", action="store_true", help="with keys, and signatures right and wrong")
    parser.add_argument("--disk", action="store_true", help="on a disk rather than in memory")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the node must not outlive the run
    began_at = time.monotonic()
    report = run(
        arguments.seed,
        arguments.seconds,
        in_memory=not arguments.disk,
        is_signed=arguments.signed,
        requests_max=arguments.requests,
        first=arguments.first,
        tell=lambda line: print(line, flush=True),
    )
    took_s = time.monotonic() - began_at
    print(
        f"{report.request_count:,} requests in {took_s:.0f} s: {dict(sorted(report.by_status.items()))}; "
        f"{report.node_cpu_s:.0f} s of CPU, the fuzzer {sum(os.times()[:2]):.0f} s"
    )
    print(
        f"the client beside it had {report.neighbour_count:,} messages; the node grew by {report.growth_bytes >> 10:,} KiB; "
        f"violations: {len(report.violations)}"
    )
    for violation in report.violations:
        print(" ", violation[:2000])
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
