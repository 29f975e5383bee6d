"""What a request of the SQS door costs between the socket and the disk: CPU and calls, in one process, without a network.

    bench/sqs-path                          send, batch, receive and delete
    bench/sqs-path send --functions 40      and the functions that a request calls, the most called first
    bench/sqs-path --flush group            with syncs (in .cache, so on a real disk); memory otherwise

Sixteen connections have one request each under way, as in `bench/sqs`; what they send is given to the door's own connections, and what these
would write is dropped. The least of many rounds is told: other work on the machine makes rounds slower, and nothing makes them quicker. The number
of calls (of Python's and C's functions) is the same every time, whatever else the machine does.
"""

import argparse
import asyncio
import gc
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import msgspec

from bench import queue_load
from bench.brokers import CACHE
from ropewalk.base.ports import Listener, Networks, TlsContexts
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.loop import run
from ropewalk.runtime.network import TcpNetwork
from ropewalk.runtime.ports import in_memory, on_disk

MODES: Final = ("send", "batch", "receive", "delete")
_CONNECTIONS: Final = 16
_QUEUE: Final = "path"
_ROUNDS: Final = 8
_URL: Final = f"http://127.0.0.1:1/000000000000/{_QUEUE}"


class _Listener:
    address = ("127.0.0.1", 1)

    def stop(self) -> None:
        pass


class _Network(TcpNetwork):
    """Keeps what makes the protocol of the last door that listens at port 1; others listen as usual."""

    factory: Callable[[], asyncio.BaseProtocol]

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
        takes_plain: Callable[[], bool] | None = None,
        proxies: Networks = (),
    ) -> Any:
        if port != 1:
            return await super().listen(
                factory, host, port, tls=tls, takes_plain=takes_plain, proxies=proxies
            )
        self.factory = factory
        return cast(Listener, _Listener())


class _Transport:
    """What the door's connection may ask of a transport. Answers are told to whoever waits for them."""

    def __init__(self, connection: asyncio.Protocol) -> None:
        self._connection = connection
        self.answered: asyncio.Future[bytes] | None = None
        connection.connection_made(cast(asyncio.Transport, self))

    def ask(self, request: bytes) -> "asyncio.Future[bytes]":
        self.answered = asyncio.get_running_loop().create_future()
        self._connection.data_received(request)
        return self.answered

    def write(self, data: bytes) -> None:
        assert self.answered is not None, "nobody asked"
        self.answered.set_result(data)

    def writelines(self, chunks: Sequence[bytes]) -> None:
        self.write(b"".join(chunks))

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 2) if name == "peername" else None

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self._connection.connection_lost(None)


class Requests:
    """The requests of every mode, over the same connections."""

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self._transports = [_Transport(cast(asyncio.Protocol, factory())) for _ in range(_CONNECTIONS)]
        self._sign = queue_load.Signer("127.0.0.1", 1).request
        text = queue_load.body_of(1024)
        self._send = self._request("SendMessage", {"MessageBody": text})
        entries = [{"Id": str(index), "MessageBody": text} for index in range(10)]
        self._batch = self._request("SendMessageBatch", {"Entries": entries})
        self._receive = self._request(
            "ReceiveMessage", {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "VisibilityTimeout": 600}
        )
        self._handles: list[list[str]] = []

    async def create(self) -> None:
        body = msgspec.json.encode({"QueueName": _QUEUE})
        await self._transports[0].ask(self._sign("CreateQueue", body))

    async def fill(self) -> None:
        """As much as a round of receives takes."""
        await self._ask_all([self._batch] * _CONNECTIONS)

    def requests(self, mode: str) -> list[bytes]:
        if mode == "delete":
            handles, self._handles = self._handles, []
            return [self._delete(each) for each in handles]
        same = {"send": self._send, "batch": self._batch, "receive": self._receive}[mode]
        return [same] * _CONNECTIONS

    async def round(self, requests: list[bytes]) -> list[bytes]:
        return await self._ask_all(requests)

    def keep_handles(self, answers: list[bytes]) -> None:
        for answer in answers:
            body = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
            self._handles.append([message["ReceiptHandle"] for message in body["Messages"]])

    async def _ask_all(self, requests: list[bytes]) -> list[bytes]:
        waiting = [each.ask(request) for each, request in zip(self._transports, requests, strict=True)]
        answers = [await each for each in waiting]
        for answer in answers:
            assert answer.startswith(b"HTTP/1.1 200"), answer[:2000]
        return answers

    def _delete(self, handles: list[str]) -> bytes:
        entries = [{"Id": str(index), "ReceiptHandle": each} for index, each in enumerate(handles)]
        return self._request("DeleteMessageBatch", {"Entries": entries})

    def _request(self, action: str, body: dict[str, object]) -> bytes:
        return self._sign(action, msgspec.json.encode({"QueueUrl": _URL, **body}))


class Calls:
    """Counts calls while it is on."""

    def __init__(self) -> None:
        self.by_function: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            self.by_function[f"{code.co_qualname} {_short(code.co_filename)}"] += 1
        elif event == "c_call":
            self.by_function[getattr(argument, "__qualname__", str(argument))] += 1


def _short(path: str) -> str:
    return path.rpartition("ropewalk/")[2]


async def measure(door: Requests, modes: Sequence[str], block_count: int, functions: int) -> None:
    await door.create()
    for mode in modes:
        spent: list[float] = []
        calls = Calls()
        if mode in ("receive", "delete"):
            for _ in range(
                _ROUNDS * (block_count + 2)
            ):  # more than is kept at hand, so that it is read again
                await door.fill()
        for number in range(block_count + 2):  # the first warms up, and in the last calls are counted
            profile = calls if number == block_count + 1 else None
            spent.append(await _block(door, mode, profile) / _ROUNDS / _CONNECTIONS)
        spent = sorted(spent[1:-1])
        count = sum(calls.by_function.values()) / _ROUNDS / _CONNECTIONS
        print(
            f"{mode:8} {spent[0]:7.1f} µs of CPU at least, {spent[len(spent) // 2]:7.1f} in the middle, {count:6.1f} calls",
            flush=True,
        )
        for name, times in calls.by_function.most_common(functions):
            print(f"    {times / _ROUNDS / _CONNECTIONS:6.2f} {name}")


async def _block(door: Requests, mode: str, profile: Calls | None) -> float:
    """Several rounds, with the microseconds that they took: not each of them reads."""
    spent_us = 0.0
    for _ in range(_ROUNDS):
        if mode == "delete":
            door.keep_handles(await door.round(door.requests("receive")))
        requests = door.requests(mode)
        gc.disable()  # when it comes is a matter of chance, and not of the request
        sys.setprofile(profile)
        began_ns = time.thread_time_ns()
        answers = await door.round(requests)
        spent_us += (time.thread_time_ns() - began_ns) / 1_000
        sys.setprofile(None)
        gc.enable()
        if mode == "receive":
            door.keep_handles(answers)
            await door.round(door.requests("delete"))
    return spent_us


async def _main(options: argparse.Namespace, directory: Path) -> None:
    credentials = directory / "credentials.toml"
    credentials.touch(mode=0o600)
    credentials.write_text(f'[{queue_load.ACCESS_KEY}]\nsecret = "{queue_load.SECRET_KEY}"\nadmin = true\n')
    data = directory / "data"
    ports = on_disk(str(data)) if options.flush else in_memory()
    network = _Network()
    ports.network = network
    node_options = NodeOptions(
        kafka="127.0.0.1:0",
        http="none",
        sqs="127.0.0.1:1",
        data=str(data) if options.flush else None,
        memory=not options.flush,
        settings=(f"sqs.credentials={credentials}", *([f"flush={options.flush}"] if options.flush else [])),
        log_level="warning",
    )
    node = await life.start(load(node_options, {}), ports)
    await measure(Requests(network.factory), options.modes or MODES, options.blocks, options.functions)
    await node.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench/sqs-path", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES))
    parser.add_argument("--blocks", type=int, default=25, help="of eight rounds (25)")
    parser.add_argument("--flush", choices=["group", "os"])
    parser.add_argument("--functions", type=int, default=0)
    options = parser.parse_args(arguments)
    directory = CACHE / "run" / f"sqs-path-{time.monotonic_ns()}"
    directory.mkdir(parents=True)
    try:
        run(_main(options, directory))
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
