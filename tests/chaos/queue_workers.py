"""Workers that use a queue through whichever door answers, and enter into a ledger what they see.

A request goes to one of the doors; where that refuses for the time being, or is gone, the next attempt goes to another. A send is repeated
under the same deduplication id on a FIFO queue; on a standard one it is given up, since nobody can know.
"""

import asyncio
import json
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

from tests.chaos.queue_ledger import Ledger

PATIENCE_S: Final = 30.0
REST_S: Final = 0.05
GROUPS: Final = 5
VISIBILITY_S: Final = 8
BATCH: Final = 10


class Refused(Exception):
    """The door said no, for good."""


class Doors:
    """A connection at a time for each worker; the addresses may change as nodes are started again."""

    def __init__(self, addresses: Callable[[], list[str]], rng: Random) -> None:
        self._addresses = addresses
        self._rng = rng
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, action: str, body: dict[str, object]) -> dict[str, Any] | None:
        """None where the outcome is unknown."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                status, answer = await self._exchange(action, json.dumps(body).encode())
        except (OSError, asyncio.IncompleteReadError, ValueError):
            self.close()
            await asyncio.sleep(REST_S)
            return None
        if status == 200:
            decoded: dict[str, Any] = json.loads(answer or b"{}")
            return decoded
        if status >= 500:
            self.close()
            await asyncio.sleep(REST_S)
            return None
        raise Refused(f"{action}: {status} {answer[:500].decode(errors='replace')}")

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _exchange(self, action: str, data: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            addresses = self._addresses()
            if not addresses:
                raise ConnectionError("no door is open")
            address = urlsplit(self._rng.choice(addresses))
            self._streams = await asyncio.open_connection(address.hostname, address.port)
        reader, writer = self._streams
        writer.write(
            f"POST / HTTP/1.1\r\nHost: n\r\nContent-Type: application/x-amz-json-1.0\r\n"
            f"X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        answer = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return int(head[0].split(" ")[1]), answer


class Workers:
    """Of one queue: senders and receivers, until `stop`; then `empty` takes what is left."""

    def __init__(self, queue: str, addresses: Callable[[], list[str]], seed: int) -> None:
        self.is_fifo = queue.endswith(".fifo")
        self.ledger = Ledger(is_fifo=self.is_fifo)
        self._url = f"http://n/000000000000/{queue}"
        self._addresses = addresses
        self._seed = seed
        self._stopped = False
        self._serial = 0
        self.sent_count = 0
        self.deleted_count = 0
        self.last_progress_at = time.monotonic()

    def stop(self) -> None:
        self._stopped = True

    async def send(self, number: int) -> None:
        rng = Random(f"{self._seed} sender {number}")
        doors = Doors(self._addresses, rng)
        while not self._stopped:
            group = f"{number}-{rng.randrange(GROUPS)}"
            self._serial += 1
            text = f"{group}/{self._serial}"
            self.ledger.on_send(text, group)
            body: dict[str, object] = {"QueueUrl": self._url, "MessageBody": text}
            if self.is_fifo:
                body |= {"MessageGroupId": group, "MessageDeduplicationId": text}
            answer = await doors.ask("SendMessage", body)
            while answer is None and self.is_fifo and not self._stopped:
                answer = await doors.ask("SendMessage", body)
            if answer is not None:
                self.ledger.on_send_acknowledged(text)
                self.sent_count += 1
            await asyncio.sleep(rng.random() * 0.02)
        doors.close()

    async def receive(self, number: int) -> None:
        rng = Random(f"{self._seed} receiver {number}")
        doors = Doors(self._addresses, rng)
        while not self._stopped:
            for text, handle in await self._received(doors, wait_s=rng.choice((0, 1, 5))):
                await self._treat(doors, rng, text, handle)
        doors.close()

    async def empty(self) -> None:
        """Take and delete until nothing comes for longer than anything is hidden."""
        doors = Doors(self._addresses, Random(f"{self._seed} last"))
        quiet_since = time.monotonic()
        while time.monotonic() < quiet_since + 2 * VISIBILITY_S + 4:
            for text, handle in await self._received(doors, wait_s=2):
                await self._delete(doors, text, handle)
                quiet_since = time.monotonic()
        doors.close()

    async def _received(self, doors: Doors, wait_s: int) -> list[tuple[str, str]]:
        asked_at = time.monotonic()
        answer = await doors.ask(
            "ReceiveMessage",
            {
                "QueueUrl": self._url,
                "MaxNumberOfMessages": BATCH,
                "VisibilityTimeout": VISIBILITY_S,
                "WaitTimeSeconds": wait_s,
            },
        )
        if answer is None:
            return []
        now = time.monotonic()
        messages = [(each["Body"], each["ReceiptHandle"]) for each in answer.get("Messages", ())]
        self.ledger.on_received(
            [text for text, _ in messages], asked_at=asked_at, answered_at=now, visibility_s=VISIBILITY_S
        )
        if messages:
            self.last_progress_at = now
        return messages

    async def _treat(self, doors: Doors, rng: Random, text: str, handle: str) -> None:
        chance = rng.random()
        if chance < 0.05:
            return  # as a worker that died
        if chance < 0.15:
            await self._change(doors, text, handle, rng.choice((0, 3, VISIBILITY_S)))
            return
        if chance < 0.25:  # it takes longer than was thought
            await self._change(doors, text, handle, 2 * VISIBILITY_S)
        await self._delete(doors, text, handle)

    async def _change(self, doors: Doors, text: str, handle: str, visibility_s: int) -> None:
        asked_at = time.monotonic()
        self.ledger.on_visibility_asked(text, at=asked_at, visibility_s=visibility_s)
        body: dict[str, object] = {
            "QueueUrl": self._url,
            "ReceiptHandle": handle,
            "VisibilityTimeout": visibility_s,
        }
        try:
            answer = await doors.ask("ChangeMessageVisibility", body)
        except Refused:  # its time is over
            return
        if answer is not None:
            self.ledger.on_visibility_changed(text, asked_at=asked_at, visibility_s=visibility_s)

    async def _delete(self, doors: Doors, text: str, handle: str) -> None:
        self.ledger.on_delete_asked(text)
        try:
            answer = await doors.ask("DeleteMessage", {"QueueUrl": self._url, "ReceiptHandle": handle})
        except Refused:  # FIFO: its time is over, and somebody else may have it
            return
        if answer is not None:
            self.ledger.on_deleted(text, time.monotonic())
            self.deleted_count += 1
