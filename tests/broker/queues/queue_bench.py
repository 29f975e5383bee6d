"""One partition of a queue, hosted on a simulated disk, with its group commit run by hand."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ropewalk.base.flow import Waiting
from ropewalk.base.ids import Offset, OwnerId
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.queues.headers import DEDUPLICATION_ID, DELAY_MS
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.read_ahead import ReadAheadRoom
from ropewalk.metadata.queues import Queue
from ropewalk.queues.answers import Received
from ropewalk.queues.commands import ChangeVisibility, Delete, Handle, Receive, VisibilityChange
from ropewalk.queues.messages import Delivered, Outgoing, Sent
from ropewalk.queues.settings import QueueSettings
from ropewalk.records.batch import BatchHeader, iterate
from ropewalk.records.control import StateKey, read_state_key
from tests.broker.partition_bench import NAME, TOPIC_ID, Bench, at_the_bench

T = TypeVar("T")
OWNER = OwnerId(b"q" * 16)
STANDARD = QueueSettings()
FIFO = QueueSettings(is_fifo=True)


def queue_of(settings: QueueSettings, **facts: object) -> Queue:
    name = "jobs.fifo" if settings.is_fifo else "jobs"
    return Queue(queue_id=OWNER, name=name, topic=NAME.topic, topic_id=TOPIC_ID, **facts)  # type: ignore[arg-type]


class Holding:
    """A client that may go."""

    def __init__(self) -> None:
        self.waits: list[Waiting] = []

    def begin_wait(self, waiting: Waiting) -> None:
        self.waits.append(waiting)

    def end_wait(self, waiting: Waiting) -> None:
        self.waits.remove(waiting)

    def go(self) -> None:
        for waiting in list(self.waits):
            waiting.abandon()


class Host:
    def __init__(self, bench: Bench, settings: QueueSettings, queue: Queue | None = None) -> None:
        self.bench = bench
        self.settings = settings
        self.queue = queue or queue_of(settings)
        self.partition = bench.partition
        self.time = SteadyTime(bench.ports.clock)
        self.room = ReadAheadRoom()
        self.thrown_away: list[HostedQueue] = []
        self.wanting_producers: list[HostedQueue] = []
        self.hosted = self.another()

    def another(self) -> HostedQueue:
        """As a node makes it that has come to lead."""
        return HostedQueue(
            self.queue,
            self.settings,
            self.partition,
            time=self.time,
            pool=self.bench.ports.pool,
            room=self.room,
            commit_timeout_ms=lambda: 5000,
            on_thrown_away=self.thrown_away.append,
            on_producer_wanted=self.wanting_producers.append,
        )

    async def replace(self) -> None:
        """Somebody else leads, who knows what is in the log."""
        self.hosted.end(RuntimeError("moved"))  # type: ignore[arg-type]
        self.hosted = self.another()
        await self.hosted.load()

    async def commit(self) -> None:
        """Until what is decided by now is committed and told."""
        for _ in range(3):
            await a_turn()
            await self.bench.commits.commit()
        await a_turn()

    async def told(self, answer: "asyncio.Future[T]") -> T:
        await self.commit()
        return await answer

    def sending(self, *bodies: str, group: str = "", delay_ms: int = 0) -> "asyncio.Future[list[object]]":
        messages = [self.outgoing(body, group=group, delay_ms=delay_ms) for body in bodies]
        return self.hosted.send(messages)  # type: ignore[return-value]

    def outgoing(
        self, body: str, *, group: str = "", deduplication_id: str = "", delay_ms: int = 0
    ) -> Outgoing:
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if delay_ms:
            headers += ((DELAY_MS, str(delay_ms).encode()),)
        if self.settings.is_fifo:
            deduplication_id = deduplication_id or body
            headers += ((DEDUPLICATION_ID, deduplication_id.encode()),)
            group = group or "g"
        return Outgoing(
            body=body.encode(),
            headers=headers,
            sent_at_ms=self.time.now_ms(),
            group=group,
            deduplication_id=deduplication_id,
            delay_ms=delay_ms,
        )

    async def send(self, *bodies: str, group: str = "", delay_ms: int = 0) -> list[int]:
        outcomes = await self.told(self.sending(*bodies, group=group, delay_ms=delay_ms))
        offsets = []
        for outcome in outcomes:
            assert isinstance(outcome, Sent)
            offsets.append(outcome.offset)
        return offsets

    def receiving(
        self, count_max: int = 10, *, visibility_ms: int = 30_000, wait_ms: int = 0
    ) -> "asyncio.Future[Received]":
        return self.hosted.receive(Receive(count_max, visibility_ms, wait_ms)).answer

    async def receive(
        self, count_max: int = 10, *, visibility_ms: int = 30_000, wait_ms: int = 0
    ) -> list[Delivered]:
        answer = self.receiving(count_max, visibility_ms=visibility_ms, wait_ms=wait_ms)
        return await self.hosted.deliver(await self.told(answer))

    async def delete(self, *delivered: Delivered) -> list[object]:
        handles = tuple(Handle(each.receipt.offset, each.receipt.attempt) for each in delivered)
        return list((await self.told(self.hosted.ask(Delete(handles)).answer)).refusals)

    async def hide(self, delivered: Delivered, visibility_ms: int) -> list[object]:
        change = VisibilityChange(Handle(delivered.receipt.offset, delivered.receipt.attempt), visibility_ms)
        return list((await self.told(self.hosted.ask(ChangeVisibility((change,))).answer)).refusals)

    async def pass_time(self, duration_ms: int) -> None:
        await asyncio.sleep(duration_ms / 1000)
        await self.commit()

    def batches(self) -> list[tuple[BatchHeader, StateKey | None]]:
        """All that is in the log, with the key of what is state."""
        log = self.partition.log
        found: list[tuple[BatchHeader, StateKey | None]] = []
        offset = log.start_offset
        while offset < log.end_offset:
            span = log.locate(offset, limit_offset=log.end_offset, bytes_max=1 << 20)
            assert span is not None
            view = memoryview(span.read())
            for position, header in iterate(view):
                if header.base_offset >= log.start_offset:
                    batch = view[position : position + header.size_bytes]
                    found.append((header, read_state_key(header, batch)))
                offset = Offset(header.end_offset)
        return found

    def shapes(self) -> list[str]:
        """Each batch as `3` for three messages, `state` or `snapshot`."""
        return [
            str(header.record_count) if key is None else "state" if key.snapshot_start == -1 else "snapshot"
            for header, key in self.batches()
        ]


def bodies_of(delivered: Sequence[Delivered]) -> list[str]:
    return [(each.record.value or b"").decode() for each in delivered]


async def a_turn() -> None:
    """Until the loop has done what is due by now."""
    for _ in range(4):
        await asyncio.sleep(0)


def hosting(
    story: Callable[[Host], Awaitable[T]],
    settings: QueueSettings = STANDARD,
    *,
    durable_first: bool = True,
    queue: Queue | None = None,
) -> T:
    async def at_bench(bench: Bench) -> T:
        host = Host(bench, settings, queue)
        await host.hosted.load()
        await host.commit()
        return await story(host)

    return at_the_bench(at_bench, durable_first=durable_first)
