"""An SQS client that costs little, in a process of its own, so that what is measured is the server.

    python -m bench.queue_load MODE HOST PORT QUEUE [--connections 16] [--seconds 5] [--messages N] [--bytes 1024] [--fifo GROUPS]

Modes: send (SendMessage), batch (SendMessageBatch of ten), fill (as many messages as said, by batches), receive (ReceiveMessage of
ten and DeleteMessageBatch of what came, until as many messages as said are deleted), idle (long polls, for as long as said).

Every connection has one request under way. Requests are signed (SigV4) with the key `bench`; those that are the same each time are
signed once. Prints one line of JSON. An answer that is not 200 ends the run with status 1.
"""

import argparse
import asyncio
import hashlib
import hmac
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final, cast

import msgspec
import uvloop
from msgspec import Struct

ACCESS_KEY: Final = "bench"
SECRET_KEY: Final = "bench-secret"
_REGION: Final = "us-east-1"
_SIGNED_HEADERS: Final = "content-type;host;x-amz-date;x-amz-target"
_CONTENT_TYPE: Final = "application/x-amz-json-1.0"
_WARM_UP_SHARE: Final = 0.25


class _Message(Struct):
    ReceiptHandle: str


class _Received(Struct):
    Messages: list[_Message] = []


class _Outcome(Struct):
    Failed: list[msgspec.Raw] = []


_decode_received: Final = msgspec.json.Decoder(_Received).decode
_decode_outcome: Final = msgspec.json.Decoder(_Outcome).decode


class Signer:
    """Makes whole requests. One date for the run: a signature is good for fifteen minutes."""

    def __init__(self, host: str, port: int) -> None:
        self._host = f"{host}:{port}"
        self._date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._scope = f"{self._date[:8]}/{_REGION}/sqs/aws4_request"
        key = f"AWS4{SECRET_KEY}".encode()
        for part in self._scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._key = key

    def request(self, action: str, body: bytes) -> bytes:
        target = f"AmazonSQS.{action}"
        canonical = (
            f"POST\n/\n\ncontent-type:{_CONTENT_TYPE}\nhost:{self._host}\nx-amz-date:{self._date}\n"
            f"x-amz-target:{target}\n\n{_SIGNED_HEADERS}\n{hashlib.sha256(body).hexdigest()}"
        )
        text = (
            f"AWS4-HMAC-SHA256\n{self._date}\n{self._scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        )
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        head = (
            f"POST / HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {_CONTENT_TYPE}\r\nX-Amz-Date: {self._date}\r\n"
            f"X-Amz-Target: {target}\r\nContent-Length: {len(body)}\r\nAuthorization: AWS4-HMAC-SHA256 "
            f"Credential={ACCESS_KEY}/{self._scope}, SignedHeaders={_SIGNED_HEADERS}, Signature={signature}\r\n\r\n"
        )
        return head.encode() + body


class Connection(asyncio.Protocol):
    """One request at a time: `next_request` is given the last answer's body and makes the next, or None at the end."""

    def __init__(self, next_request: Callable[[bytes], bytes | None], done: "asyncio.Future[None]") -> None:
        self._next_request = next_request
        self._done = done
        self._buffer = bytearray()
        self._needed_bytes = 0
        self._head_bytes = 0
        self._sent_at = 0.0
        self.latencies: list[tuple[float, float]] = []
        """When each answer came, and after how long."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._go_on(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(f"the server closed a connection: {exc}"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._needed_bytes:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            if not head.startswith(b"http/1.1 200"):
                self._fail(f"{bytes(self._buffer[:2000])!r}")
                return
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            if not length:
                self._fail(f"an answer without a length: {head!r}")
                return
            self._head_bytes = end + 4
            self._needed_bytes = self._head_bytes + int(length)
        if len(self._buffer) >= self._needed_bytes:
            now = time.perf_counter()
            self.latencies.append((now, now - self._sent_at))
            body = bytes(self._buffer[self._head_bytes : self._needed_bytes])
            del self._buffer[: self._needed_bytes]
            self._needed_bytes = 0
            self._go_on(body)

    def _go_on(self, body: bytes) -> None:
        try:
            request = self._next_request(body)
        except ValueError as error:
            self._fail(str(error))
            return
        if request is None:
            if not self._done.done():
                self._done.set_result(None)
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def _fail(self, reason: str) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(reason))
        self._transport.close()


def body_of(size_bytes: int) -> str:
    return ("0123456789abcdef" * (size_bytes // 16 + 1))[:size_bytes]


class Load:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._signer = Signer(options.host, options.port)
        self._url = f"http://{options.host}:{options.port}/000000000000/{options.queue}"
        self._text = body_of(options.bytes)
        self._left = options.messages
        self._ends_at = 0.0
        self._serial = 0

    async def run(self) -> dict[str, float]:
        options = self._options
        began_at = time.perf_counter()
        self._ends_at = began_at + options.seconds
        loop = asyncio.get_running_loop()
        connections: list[Connection] = []
        ends: list[asyncio.Future[None]] = []
        for _ in range(options.connections):
            done = loop.create_future()
            step = {
                "send": self._sends,
                "batch": self._batches,
                "fill": self._fills,
                "receive": self._receives,
                "idle": self._idles,
            }[options.mode]()
            _, connection = await loop.create_connection(
                partial(Connection, step, done), options.host, options.port
            )
            connections.append(connection)
            ends.append(done)
        await asyncio.gather(*ends)
        ended_at = time.perf_counter()
        return self._figures(connections, began_at, ended_at)

    def _figures(self, connections: list[Connection], began_at: float, ended_at: float) -> dict[str, float]:
        answers = [each for connection in connections for each in connection.latencies]
        is_timed = self._options.mode in ("send", "batch")
        measured_from = began_at + (ended_at - began_at) * _WARM_UP_SHARE if is_timed else began_at
        late = sorted(latency for at, latency in answers if at >= measured_from)
        per_request = {"batch": 10, "receive": 10}.get(self._options.mode, 1)
        requests = len(late)
        messages = requests * per_request
        if self._options.mode in ("fill", "receive"):
            messages = self._options.messages
        seconds = ended_at - measured_from
        return {
            "requests": float(len(answers)),
            "msg/s": messages / seconds,
            "p50 ms": _percentile(late, 0.5) * 1000,
            "p99 ms": _percentile(late, 0.99) * 1000,
            "seconds": seconds,
        }

    def _entry(self, index: int) -> dict[str, object]:
        entry: dict[str, object] = {"Id": str(index), "MessageBody": self._text}
        if self._options.fifo:
            self._serial += 1
            entry["MessageGroupId"] = f"group-{self._serial % self._options.fifo}"
            entry["MessageDeduplicationId"] = f"{self._options.run}-{self._serial}"
        return entry

    def _sends(self) -> Callable[[bytes], bytes | None]:
        def make() -> bytes:
            entry = self._entry(0)
            del entry["Id"]
            return self._signer.request("SendMessage", _json({"QueueUrl": self._url, **entry}))

        return self._until_time_is_over(make)

    def _batches(self) -> Callable[[bytes], bytes | None]:
        return self._until_time_is_over(lambda: self._batch(10))

    def _batch(self, count: int) -> bytes:
        entries = [self._entry(index) for index in range(count)]
        return self._signer.request("SendMessageBatch", _json({"QueueUrl": self._url, "Entries": entries}))

    def _until_time_is_over(self, make: Callable[[], bytes]) -> Callable[[bytes], bytes | None]:
        same = None if self._options.fifo else make()

        def step(answer: bytes) -> bytes | None:
            if self._options.mode == "batch" and answer:
                _check(answer)
            if time.perf_counter() >= self._ends_at:
                return None
            return same or make()

        return step

    def _fills(self) -> Callable[[bytes], bytes | None]:
        whole = None if self._options.fifo else self._batch(10)

        def step(answer: bytes) -> bytes | None:
            if answer:
                _check(answer)
            count = min(10, self._left)
            self._left -= count
            if not count:
                return None
            return whole if whole is not None and count == 10 else self._batch(count)

        return step

    def _receives(self) -> Callable[[bytes], bytes | None]:
        ask = self._signer.request(
            "ReceiveMessage",
            _json(
                {
                    "QueueUrl": self._url,
                    "MaxNumberOfMessages": 10,
                    "WaitTimeSeconds": 1,
                    "VisibilityTimeout": 600,
                }
            ),
        )
        is_receiving = False

        def step(answer: bytes) -> bytes | None:
            nonlocal is_receiving
            if is_receiving:
                is_receiving = False
                messages = _decode_received(answer).Messages
                if messages:
                    entries = [
                        {"Id": str(i), "ReceiptHandle": each.ReceiptHandle} for i, each in enumerate(messages)
                    ]
                    self._left -= len(messages)
                    return self._signer.request(
                        "DeleteMessageBatch", _json({"QueueUrl": self._url, "Entries": entries})
                    )
            elif answer:
                _check(answer)
            if self._left <= 0:
                return None
            is_receiving = True
            return ask

        return step

    def _idles(self) -> Callable[[bytes], bytes | None]:
        ask = self._signer.request("ReceiveMessage", _json({"QueueUrl": self._url, "WaitTimeSeconds": 20}))

        def step(answer: bytes) -> bytes | None:
            return None if answer and time.perf_counter() >= self._ends_at else ask

        return step


def _check(answer: bytes) -> None:
    if _decode_outcome(answer).Failed:
        raise ValueError(f"refused: {answer[:500]!r}")


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)


def _percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", choices=["send", "batch", "fill", "receive", "idle"])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("queue")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--fifo", type=int, default=0, help="groups of a FIFO queue")
    options = parser.parse_args()
    options.run = time.time_ns()
    try:
        figures = uvloop.run(Load(options).run())
    except (RuntimeError, OSError, msgspec.MsgspecError) as error:
        print(f"bench.queue_load: {error}", file=sys.stderr)
        return 1
    print(msgspec.json.encode(figures).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
