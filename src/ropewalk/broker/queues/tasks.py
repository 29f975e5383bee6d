"""Carries out move tasks: whoever leads a partition of a dead-letter queue moves what lies in it, each message to its own source or all to one queue.

A task is a fact of the cluster, and each partition's share of it lies in the partition's own log: how far the log belongs to the task, how many were moved, how it
ended. So a new leader goes on where the one before it was. The leader of the first partition ends the task when all shares have ended; whoever fails ends it at once.

What a reader could get wrong
    What is moved is chosen here and carried by `moves.py`, as dead letters are: intended, appended under an identity, settled.
    What is in flight or delayed when the task comes to it stays where it is, and so does what is sent later.
    A task has one rate, and its partitions have equal parts of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol

import structlog
from msgspec import Struct

from ropewalk.base.errors import NodeStopping, RopewalkError, UnknownMoveTask, UnknownQueue
from ropewalk.base.ids import TopicId
from ropewalk.base.limits import (
    QUEUE_MOVE_MESSAGES_MAX,
    QUEUE_MOVE_REST_MS,
    QUEUE_REREAD_BYTES,
    QUEUE_SHIPMENT_MESSAGES_MAX,
    QUEUE_TASK_LOOK_MS,
    QUEUE_TASK_STEPS_PER_SECOND,
)
from ropewalk.base.ports import Pool
from ropewalk.broker.queues.group_partitions import partition_for_return
from ropewalk.broker.queues.headers import SOURCE_PARTITION, SOURCE_QUEUE
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.opened import header_of
from ropewalk.broker.queues.reading import read_records
from ropewalk.metadata.image import Image
from ropewalk.metadata.queues import RUNNING, MoveTask, Queue
from ropewalk.queues.answers import ToMove
from ropewalk.queues.commands import BeginTask, EndTask, Move, NextToMove
from ropewalk.queues.state import TaskShare
from ropewalk.records.record import Record
from ropewalk.runtime.bell import Bell

_log = structlog.get_logger()

COMPLETED: Final = "COMPLETED"
CANCELLED: Final = "CANCELLED"
FAILED: Final = "FAILED"

NO_ORIGIN: Final = "CouldNotDetermineMessageSource"
"""In the words of SQS: it was sent to the dead-letter queue itself."""
NO_TARGET: Final = "AWS.SimpleQueueService.NonExistentQueue"
NOT_TAKEN: Final = "DestinationRefusedMessage"
"""Ours: the message is larger than a segment of its target's log."""


class EndsTask(Protocol):
    def __call__(
        self, name: str, task_id: bytes, *, status: str, moved_count: int, reason: str | None = None
    ) -> Awaitable[None]: ...


class _Chosen(Struct):
    """Messages that are to be moved, by where they go, in order; and what keeps the one behind them from being moved."""

    offsets: dict[tuple[TopicId, int], list[int]]
    failure: str = ""


class _Pace(Struct):
    """How many are moved at once, and how often that was in vain."""

    count_max: int
    refusals_count: int = 0


class Tasks:
    def __init__(
        self, image: Image, *, pool: Pool, begin: "Callable[[Coroutine[Any, Any, None]], object]"
    ) -> None:
        """`begin` makes a task of asyncio."""
        self._image = image
        self._pool = pool
        self._begin = begin
        self._share_at: Callable[[Queue, int], Awaitable[TaskShare | None]] | None = None
        self._end_task: EndsTask | None = None
        self._running: dict[HostedQueue, None] = {}
        self._news = Bell()

    def connect(
        self, share_at: "Callable[[Queue, int], Awaitable[TaskShare | None]]", end_task: EndsTask
    ) -> None:
        """From now on tasks are carried out. `share_at` asks whoever leads a partition, `end_task` the controller."""
        self._share_at, self._end_task = share_at, end_task

    def look(self, hosted: HostedQueue) -> None:
        """It serves, or tasks have come, or changed: begin what is to be done there."""
        self._news.ring()
        task = self._image.queues.open_move_of(hosted.queue.queue_id)
        if task is None or not hosted.is_serving or hosted in self._running or self._end_task is None:
            return
        try:
            self._begin(self._run(hosted, task))
        except NodeStopping:
            return
        except RopewalkError as error:
            _log.warning("a move task is put off", partition=str(hosted.partition.name), reason=str(error))
            asyncio.get_running_loop().call_later(QUEUE_MOVE_REST_MS / 1000, self.look, hosted)
            return
        self._running[hosted] = None

    async def _run(self, hosted: HostedQueue, task: MoveTask) -> None:
        try:
            while hosted.is_serving and self._status(task):
                try:
                    share = await self._move_all(hosted, task)
                    if await self._conclude(hosted, task, share):
                        break
                    await self._news.wait(QUEUE_TASK_LOOK_MS)
                except NodeStopping:
                    raise
                except (UnknownQueue, UnknownMoveTask):  # deleted meanwhile, and its tasks with it
                    break
                except RopewalkError as error:
                    _log.warning(
                        "a move task is tried again",
                        partition=str(hosted.partition.name),
                        reason=str(error),
                    )
                    await self._news.wait(QUEUE_MOVE_REST_MS)
        finally:
            self._running.pop(hosted, None)
        after = self._image.queues.open_move_of(hosted.queue.queue_id)
        if after is not None and after.task_id != task.task_id:
            self.look(hosted)

    def _status(self, task: MoveTask) -> str:
        """RUNNING or CANCELLING; empty: it has ended."""
        there = self._image.queues.open_move_of(task.queue_id)
        return there.status if there is not None and there.task_id == task.task_id else ""

    # One partition's share

    async def _move_all(self, hosted: HostedQueue, task: MoveTask) -> TaskShare:
        share = await hosted.ask(BeginTask(task.task_id, hosted.partition.log.end_offset)).answer
        pace = _Pace(self._step_count(task))
        while not share.ending:
            started_ms = hosted.now_ms()
            next_ones = await self._next(hosted, task, pace.count_max)
            if next_ones is None or self._status(task) != RUNNING:
                return await hosted.ask(EndTask(task.task_id, CANCELLED)).answer
            if not next_ones.offsets:
                return await hosted.ask(EndTask(task.task_id, COMPLETED)).answer
            chosen = await self._choose(hosted, task, next_ones.offsets)
            moved_count = await self._move(hosted, task, chosen, pace)
            if not moved_count and chosen.failure:
                return await hosted.ask(EndTask(task.task_id, FAILED, chosen.failure)).answer
            if not moved_count:  # others have received them, or nobody takes them at the moment
                await self._news.wait(QUEUE_TASK_LOOK_MS)
            await self._pause(hosted, task, started_ms, moved_count)
        return share

    async def _next(self, hosted: HostedQueue, task: MoveTask, count_max: int) -> ToMove | None:
        """None: it is being cancelled, or has ended."""
        asked = hosted.ask(NextToMove(count_max))
        try:
            while not asked.answer.done():
                await asyncio.wait((asked.answer,), timeout=QUEUE_TASK_LOOK_MS / 1000)
                if self._status(task) != RUNNING:
                    return None
            return asked.answer.result()
        finally:
            hosted.forget(asked.token)

    async def _choose(self, hosted: HostedQueue, task: MoveTask, offsets: tuple[int, ...]) -> _Chosen:
        """Where each goes, up to the first that goes nowhere. Few are read at a time, since messages may be large."""
        chosen = _Chosen({})
        for start in range(0, len(offsets), QUEUE_SHIPMENT_MESSAGES_MAX):
            some = offsets[start : start + QUEUE_SHIPMENT_MESSAGES_MAX]
            records = await read_records(
                hosted.partition, set(some), self._pool, bytes_max=QUEUE_REREAD_BYTES
            )
            for offset in some:
                if offset not in records:  # expired meanwhile
                    continue
                target = self._target(hosted, task, records[offset])
                if isinstance(target, str):
                    chosen.failure = target
                    return chosen
                chosen.offsets.setdefault(target, []).append(offset)
        return chosen

    def _target(self, hosted: HostedQueue, task: MoveTask, record: Record) -> tuple[TopicId, int] | str:
        """Topic and partition; or why there is none."""
        source = hosted.queue
        origin = header_of(record, SOURCE_QUEUE)
        if task.target is None and origin is None:
            return NO_ORIGIN
        name = (origin or b"").decode(errors="replace") if task.target is None else task.target
        queue = self._image.queues.get(name)
        topic = None if queue is None else self._image.topics_by_id.get(queue.topic_id)
        if queue is None or topic is None or not topic.partitions:
            return NO_TARGET
        if queue.is_fifo != source.is_fifo or queue.queue_id == source.queue_id:  # nobody's dead letter
            return NO_ORIGIN
        count = len(topic.partitions)
        if queue.is_fifo:
            return topic.topic_id, partition_for_return(queue, record, count)
        before = header_of(record, SOURCE_PARTITION)
        is_number = task.target is None and before is not None and before.isdigit()
        return topic.topic_id, (int(before[:9]) if is_number and before else hosted.index) % count

    async def _move(self, hosted: HostedQueue, task: MoveTask, chosen: _Chosen, pace: _Pace) -> int:
        """How many were moved."""
        moved_count = 0
        for (topic_id, index), offsets in chosen.offsets.items():
            moved = await hosted.ask(Move(tuple(offsets), topic_id, index)).answer
            moved_count += moved.moved_count
            if moved.moved_count < moved.chosen_count:
                is_alone = pace.count_max == 1 and topic_id in self._image.topics_by_id
                pace.count_max, pace.refusals_count = 1, pace.refusals_count + is_alone
                if pace.refusals_count > 1:  # the first time the producer may have been forgotten
                    chosen.failure = NOT_TAKEN
                break
            pace.refusals_count = 0
        if not pace.refusals_count and moved_count:
            pace.count_max = self._step_count(task)
        return moved_count

    def _step_count(self, task: MoveTask) -> int:
        """How many are moved at once."""
        rate = self._rate(task)
        if rate is None:
            return QUEUE_MOVE_MESSAGES_MAX
        return max(1, min(int(rate / QUEUE_TASK_STEPS_PER_SECOND), QUEUE_MOVE_MESSAGES_MAX))

    def _rate(self, task: MoveTask) -> float | None:
        """Of one partition, a second; None: as many as go."""
        queue = self._image.queues.by_id(task.queue_id)
        topic = None if queue is None else self._image.topics_by_id.get(queue.topic_id)
        if task.messages_per_second_max is None or topic is None:
            return None
        return task.messages_per_second_max / max(len(topic.partitions), 1)

    async def _pause(self, hosted: HostedQueue, task: MoveTask, started_ms: int, moved_count: int) -> None:
        """Until the rate allows more, or the task is to end."""
        rate = self._rate(task)
        if rate is None:
            return
        due_ms = started_ms + 1000 * moved_count / rate
        while self._status(task) == RUNNING and hosted.is_serving and hosted.now_ms() < due_ms:
            await self._news.wait(due_ms - hosted.now_ms())

    # All of it

    async def _conclude(self, hosted: HostedQueue, task: MoveTask, share: TaskShare) -> bool:
        """Whether nothing is left to do here. Raises where others cannot be asked now."""
        is_mine = hosted.index == 0
        if share.ending != FAILED and not is_mine:
            return True
        topic = self._image.topics_by_id.get(hosted.queue.topic_id)
        assert self._share_at is not None, "it was connected before anything began"
        assert self._end_task is not None, "it was connected before anything began"
        shares = [share]
        for index in range(0 if topic is None else len(topic.partitions)):
            if index == hosted.index:
                continue
            other = await self._other_share(hosted.queue, index, must_answer=share.ending != FAILED)
            is_its = other is not None and other.task_id == task.task_id
            if is_its and other is not None:
                shares.append(other)
            if share.ending != FAILED and (not is_its or other is None or not other.ending):
                return False
        failed = next((each for each in shares if each.ending == FAILED), None)
        status = COMPLETED
        if failed is not None:
            status = FAILED
        elif any(each.ending == CANCELLED for each in shares):
            status = CANCELLED
        await self._end_task(
            hosted.queue.name,
            task.task_id,
            status=status,
            moved_count=sum([each.moved_count for each in shares]),
            reason=None if failed is None else failed.reason,
        )
        return True

    async def _other_share(self, queue: Queue, index: int, *, must_answer: bool) -> TaskShare | None:
        assert self._share_at is not None, "it was connected before anything began"
        try:
            return await self._share_at(queue, index)
        except NodeStopping:
            raise
        except RopewalkError:
            if must_answer:
                raise
            return None  # its count is missing, which is called approximate


def share_of(hosted: HostedQueue) -> TaskShare | None:
    """The latest task's share of a partition that is led here. Raises `QueueNotReady` while it is being loaded."""
    return hosted.serving().state.task


def moved_count_of(shares: "list[TaskShare | None]", task_id: bytes) -> int:
    """Of one task, over the partitions that could be asked."""
    return sum([share.moved_count for share in shares if share is not None and share.task_id == task_id])
