"""A small engine in memory behind the ports of the SQS door: honest about visibility, groups and duplicates, and about nothing else.

Time is the clock's; whoever waits is woken by the event loop, so in the simulator's world an hour costs nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from msgspec import structs

from ropewalk.base.errors import (
    InvalidQueue,
    MoveTaskOver,
    MoveTaskRunning,
    PurgeInProgress,
    QueueExists,
    RopewalkError,
    UnknownMoveTask,
    UnknownQueue,
    UnknownTopic,
)
from ropewalk.base.ids import Offset, OwnerId, TopicId
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.broker.queues.headers import MESSAGE_ID, RECEIVE_COUNT, SOURCE_QUEUE
from ropewalk.metadata.queues import MoveTask, Queue
from ropewalk.queues.errors import (
    MessageNotInFlight,
    ReceiptExpired,
    TooManyInFlight,
    VisibilityTooLong,
)
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Seen, Sent, Totals
from ropewalk.records.record import Record
from ropewalk.sqs.engine import Hold
from ropewalk.sqs.message_ids import message_id

_TOTAL_MS_MAX = 43_200_000
_DEDUPLICATION_MS = 300_000
_PURGE_MS = 60_000


@dataclass
class _Message:
    record: Record
    visible_at_ms: int
    group: str = ""
    receive_count: int = 0
    first_received_at_ms: int = 0
    received_at_ms: int = 0
    attempt: int = 0
    is_gone: bool = False


@dataclass
class _Log:
    messages: list[_Message] = field(default_factory=list)
    seen: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """By scope and deduplication id: when, and which offset."""
    purged_at_ms: int | None = None
    waiting: list["_Waiting"] = field(default_factory=list)


class _Waiting:
    def __init__(self) -> None:
        self.woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def hurry(self) -> None:
        self.end(is_over=True)

    def abandon(self) -> None:
        self.end(is_over=True)

    def end(self, *, is_over: bool) -> None:
        if not self.woken.done():
            self.woken.set_result(is_over)


class FakeEngine:
    """All three ports in one."""

    def __init__(self, clock: Clock, *, topics: Sequence[str] = (), in_flight_max: int = 120_000) -> None:
        self._clock = clock
        self._topics = set(topics)
        self._in_flight_max = in_flight_max
        self._queues: dict[str, Queue] = {}
        self._logs: dict[bytes, _Log] = {}
        self._made_count = 0
        self.moves: dict[bytes, list[MoveTask]] = {}
        """Of a queue, the latest last. Nothing is moved but by `work`."""
        self.unavailable: RopewalkError | None = None
        """What every send and receive is refused with."""

    @property
    def facts(self) -> "FakeEngine":
        return self

    @property
    def changes(self) -> "_Changes":
        return _Changes(self)

    @property
    def messages(self) -> "FakeEngine":
        return self

    # Facts

    def get(self, name: str, /) -> Queue | None:
        return self._queues.get(name)

    def names(self, prefix: str = "") -> Sequence[str]:
        return sorted(name for name in self._queues if name.startswith(prefix))

    def sources_of(self, name: str, /) -> Sequence[str]:
        return sorted(
            queue.name
            for queue in self._queues.values()
            if queue.redrive is not None and queue.redrive.target == name
        )

    def moves_of(self, queue_id: OwnerId, /) -> Sequence[MoveTask]:
        return self.moves.get(queue_id, [])

    # Messages

    async def moved_count(self, queue: Queue, task_id: bytes) -> int:
        return next(each.moved_count for each in self.moves_of(queue.queue_id) if each.task_id == task_id)

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sequence[Sent | RopewalkError]:
        if self.unavailable is not None:
            raise self.unavailable
        return [self._append(queue, message) for message in messages]

    async def receive(
        self,
        queue: Queue,
        *,
        count_max: int,
        visibility_ms: int,
        wait_ms: int,
        request_id: bytes = b"",
        hold: Hold,
    ) -> Sequence[Delivered]:
        if self.unavailable is not None:
            raise self.unavailable
        loop, ends_at_ms = asyncio.get_running_loop(), self._clock.now_ms() + wait_ms
        while True:
            given = self._take(queue, count_max, visibility_ms)
            left_ms = ends_at_ms - self._clock.now_ms()
            if given or left_ms <= 0:
                return given
            waiting = _Waiting()
            self._log(queue).waiting.append(waiting)
            due = [message.visible_at_ms for message in self._log(queue).messages if not message.is_gone]
            wake_in_ms = min([left_ms, *(max(1, at_ms - self._clock.now_ms()) for at_ms in due)])
            timer = loop.call_later(wake_in_ms / 1000, lambda each: each.end(is_over=False), waiting)
            hold.begin_wait(waiting)
            try:
                is_over = await waiting.woken
            finally:
                hold.end_wait(waiting)
                timer.cancel()
            if is_over:
                return ()

    async def delete(self, queue: Queue, receipts: Sequence[Receipt]) -> Sequence[RopewalkError | None]:
        return [self._delete(queue, receipt) for receipt in receipts]

    async def change_visibility(
        self, queue: Queue, changes: Sequence[tuple[Receipt, int]]
    ) -> Sequence[RopewalkError | None]:
        return [self._change(queue, receipt, visibility_ms) for receipt, visibility_ms in changes]

    async def purge(self, queue: Queue) -> None:
        log, now_ms = self._log(queue), self._clock.now_ms()
        if log.purged_at_ms is not None and now_ms - log.purged_at_ms < _PURGE_MS:
            raise PurgeInProgress(f"{queue.name} was purged a moment ago")
        log.purged_at_ms = now_ms
        for message in log.messages:
            message.is_gone = True

    async def rewind(self, queue: Queue, *, to_ms: int) -> None:
        for message in self._log(queue).messages:
            if message.record.timestamp >= to_ms:
                message.is_gone = False
                message.visible_at_ms = 0

    async def totals(self, queue: Queue) -> Totals:
        states = [self._state(message) for message in self._log(queue).messages]
        return Totals(states.count("visible"), states.count("in flight"), states.count("delayed"), None)

    async def peek(self, queue: Queue, *, count_max: int) -> Sequence[Seen]:
        seen = [self._seen(message) for message in self._log(queue).messages if not message.is_gone]
        return seen[:count_max]

    async def look_at(self, queue: Queue, partition: int, offset: int) -> Seen | None:
        messages = self._log(queue).messages
        return self._seen(messages[offset]) if partition == 0 and offset < len(messages) else None

    def write(self, queue: str, record: Record) -> None:
        """As a Kafka producer would."""
        log = self._log(self._queues[queue])
        offset = Offset(len(log.messages))
        log.messages.append(_Message(structs.replace(record, offset=offset), 0, (record.key or b"").decode()))

    # What is behind it

    def _log(self, queue: Queue) -> _Log:
        return self._logs[queue.queue_id]

    def _append(self, queue: Queue, outgoing: Outgoing) -> Sent:
        log, now_ms = self._log(queue), self._clock.now_ms()
        if queue.is_fifo:
            by_group = queue.attributes.get("DeduplicationScope") == "messageGroup"
            key = (outgoing.group if by_group else "", outgoing.deduplication_id)
            before = log.seen.get(key)
            if before is not None and now_ms - before[0] < _DEDUPLICATION_MS:
                return Sent(0, before[1], is_duplicate=True)
            log.seen[key] = (now_ms, len(log.messages))
        offset = len(log.messages)
        record = Record(
            Offset(offset),
            outgoing.sent_at_ms,
            outgoing.group.encode() or None,
            outgoing.body,
            outgoing.headers,
        )
        log.messages.append(_Message(record, now_ms + outgoing.delay_ms, outgoing.group))
        for waiting in log.waiting:
            waiting.end(is_over=False)
        log.waiting.clear()
        return Sent(0, offset)

    def _take(self, queue: Queue, count_max: int, visibility_ms: int) -> list[Delivered]:
        log, now_ms = self._log(queue), self._clock.now_ms()
        self._move_dead_letters(queue)
        given: list[Delivered] = []
        hidden_groups: set[str] = set()
        in_flight = sum(self._state(message) == "in flight" for message in log.messages)
        if in_flight >= self._in_flight_max:
            raise TooManyInFlight(f"{in_flight} are in flight")
        for message in log.messages:
            if message.is_gone or len(given) == count_max:
                continue
            if message.visible_at_ms > now_ms:
                if message.receive_count:
                    hidden_groups.add(message.group)
                continue
            if queue.is_fifo and message.group in hidden_groups:
                continue
            message.attempt += 1
            message.receive_count += 1
            message.first_received_at_ms = message.first_received_at_ms or now_ms
            message.received_at_ms = now_ms
            message.visible_at_ms = now_ms + visibility_ms
            receipt = Receipt(0, message.record.offset, message.attempt)
            given.append(
                Delivered(receipt, message.record, message.receive_count, message.first_received_at_ms)
            )
        return given

    def _move_dead_letters(self, queue: Queue) -> None:
        redrive, now_ms = queue.redrive, self._clock.now_ms()
        target = None if redrive is None else self._queues.get(redrive.target)
        if redrive is None or target is None:
            return
        for message in self._log(queue).messages:
            is_due = message.visible_at_ms <= now_ms and message.receive_count >= redrive.receive_count_max
            if message.is_gone or not is_due:
                continue
            message.is_gone = True
            own_id = bytes.fromhex(message_id(queue.topic_id, 0, message.record.offset).replace("-", ""))
            headers = (
                *message.record.headers,
                (MESSAGE_ID, own_id),
                (RECEIVE_COUNT, b"%d" % message.receive_count),
                (SOURCE_QUEUE, queue.name.encode()),
            )
            self.write(target.name, structs.replace(message.record, headers=headers))

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def move_all(self, queue: Queue, target: str | None) -> tuple[str | None, int]:
        """Why it ended early, and how many were moved."""
        moved_count = 0
        for message in self._log(queue).messages:
            if self._state(message) != "visible":
                continue
            headers = dict(message.record.headers)
            origin = headers.pop(SOURCE_QUEUE, None) if target is None else target.encode()
            if origin is None:
                return "CouldNotDetermineMessageSource", moved_count
            message.is_gone = True
            kept = tuple(each for each in headers.items() if each[0] not in (MESSAGE_ID, RECEIVE_COUNT))
            self.write(origin.decode(), structs.replace(message.record, headers=kept))
            moved_count += 1
        return None, moved_count

    def _find(self, queue: Queue, receipt: Receipt) -> _Message | None:
        messages = self._log(queue).messages
        return messages[receipt.offset] if receipt.offset < len(messages) else None

    def _delete(self, queue: Queue, receipt: Receipt) -> RopewalkError | None:
        message = self._find(queue, receipt)
        if message is None or message.is_gone:
            return None
        if queue.is_fifo and self._is_over(message, receipt):
            return ReceiptExpired("its time is over")
        message.is_gone = True
        return None

    def _change(self, queue: Queue, receipt: Receipt, visibility_ms: int) -> RopewalkError | None:
        message, now_ms = self._find(queue, receipt), self._clock.now_ms()
        if message is None or message.is_gone:
            return MessageNotInFlight("it is gone")
        if queue.is_fifo and self._is_over(message, receipt):
            return ReceiptExpired("its time is over")
        if message.visible_at_ms <= now_ms:
            return MessageNotInFlight("it is visible")
        if now_ms + visibility_ms > message.received_at_ms + _TOTAL_MS_MAX:
            return VisibilityTooLong("more than twelve hours")
        message.visible_at_ms = now_ms + visibility_ms
        return None

    def _is_over(self, message: _Message, receipt: Receipt) -> bool:
        return message.attempt != receipt.attempt or message.visible_at_ms <= self._clock.now_ms()

    def _state(self, message: _Message) -> str:
        if message.is_gone:
            return "settled"
        if message.visible_at_ms <= self._clock.now_ms():
            return "visible"
        return "in flight" if message.receive_count else "delayed"

    def _seen(self, message: _Message) -> Seen:
        state = self._state(message)
        return Seen(
            0,
            message.record,
            state,
            message.receive_count,
            message.first_received_at_ms,
            message.attempt,
            message.visible_at_ms if state in ("in flight", "delayed") else 0,
        )

    def make(
        self, name: str, topic: str | None, attributes: Mapping[str, str], tags: Mapping[str, str]
    ) -> Queue:
        self._made_count += 1
        now_ms = self._clock.now_ms()
        queue = Queue(
            queue_id=OwnerId(sha256(f"{name} {self._made_count}".encode()).digest()[:16]),
            name=name,
            topic=topic or name,
            topic_id=TopicId(sha256(f"topic {name} {self._made_count}".encode()).digest()[:16]),
            attributes=attributes,
            tags=tags,
            created_at_ms=now_ms,
            modified_at_ms=now_ms,
            is_adopted=topic is not None,
        )
        self._logs[queue.queue_id] = _Log()
        self._queues[name] = queue
        return queue

    def knows_topic(self, topic: str) -> bool:
        return topic in self._topics

    def replace(self, queue: Queue | None, name: str) -> None:
        if queue is None:
            del self._queues[name]
        else:
            self._queues[name] = structs.replace(queue, modified_at_ms=self._clock.now_ms())


class _Changes:
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def create(
        self,
        name: str,
        *,
        attributes: Mapping[str, str],
        tags: Mapping[str, str],
        owner: str | None,
        partition_count: int = 1,
        topic: str | None = None,
        from_latest: bool = False,
        mandate: Mandate | None,
    ) -> Queue:
        before = self._engine.get(name)
        if before is not None:
            for key, value in attributes.items():
                if before.attributes.get(key) != value:
                    raise QueueExists(key)
            return before
        if topic is not None and not self._engine.knows_topic(topic):
            raise UnknownTopic(f"there is no topic {topic}")
        if topic is not None and topic.startswith("compacted"):
            raise InvalidQueue(f"{topic} is compacted, and a queue cannot be")
        return self._engine.make(name, topic, attributes, tags)

    async def change(
        self, name: str, attributes: Mapping[str, str | None], *, mandate: Mandate | None
    ) -> None:
        queue = self._known(name)
        merged = {**queue.attributes, **attributes}
        kept = {key: value for key, value in merged.items() if value is not None}
        self._engine.replace(structs.replace(queue, attributes=kept), name)

    async def tag(self, name: str, tags: Mapping[str, str | None], *, mandate: Mandate | None) -> None:
        queue = self._known(name)
        merged = {**queue.tags, **tags}
        kept = {key: value for key, value in merged.items() if value is not None}
        self._engine.replace(structs.replace(queue, tags=kept), name)

    async def delete(self, name: str, *, mandate: Mandate | None) -> None:
        self._known(name)
        self._engine.replace(None, name)

    async def start_move_task(
        self,
        name: str,
        *,
        target: str | None = None,
        messages_per_second_max: int | None = None,
        to_move_count: int = 0,
        mandate: Mandate | None,
    ) -> MoveTask:
        """Slow tasks stay as they are begun; others are done at once."""
        queue = self._known(name)
        tasks = self._engine.moves.setdefault(queue.queue_id, [])
        if tasks and tasks[-1].ended_at_ms is None:
            raise MoveTaskRunning("one at a time")
        if target == name:
            raise InvalidQueue(f"messages of {name} cannot be moved to {name} itself")
        now_ms = self._engine.now_ms()
        task = MoveTask(
            task_id=len(tasks).to_bytes(16, "big"),
            queue_id=queue.queue_id,
            target=target,
            messages_per_second_max=messages_per_second_max,
            started_at_ms=now_ms,
            to_move_count=to_move_count,
        )
        if messages_per_second_max is None:
            failure, moved_count = self._engine.move_all(queue, target)
            ending = {"status": "FAILED" if failure else "COMPLETED", "reason": failure}
            task = structs.replace(task, moved_count=moved_count, ended_at_ms=now_ms, **ending)
        tasks.append(task)
        return task

    async def cancel_move_task(self, name: str, task_id: bytes, *, mandate: Mandate | None) -> None:
        tasks = self._engine.moves.get(self._known(name).queue_id, [])
        for place, task in enumerate(tasks):
            if task.task_id == task_id:
                if task.ended_at_ms is not None:
                    raise MoveTaskOver("it has ended")
                tasks[place] = structs.replace(task, status="CANCELLED", ended_at_ms=self._engine.now_ms())
                return
        raise UnknownMoveTask("there is none")

    def _known(self, name: str) -> Queue:
        queue = self._engine.get(name)
        if queue is None:
            raise UnknownQueue(f"there is no queue {name}")
        return queue
