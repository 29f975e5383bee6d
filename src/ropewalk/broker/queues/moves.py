"""Carries dead letters, and what a move task wants moved, from a queue's partition to their target, once each, however often that is interrupted.

The core intends a move under the identity of an idempotent producer, and that is committed; the messages are appended to the target under it; the core
is told how that ended. Whoever comes to lead in between repeats the middle, and the target's own log knows what it has.

What a reader could get wrong
    Only what is certain is told to the core. A target that cannot be reached, or is not committed in time, is tried again under the same identity.
    What was intended longer ago than targets remember producers, and did not end, is told to the operator and not repeated: nobody could tell whether
    it is there. It ends when the queue is purged, since it does not matter then.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import structlog
from msgspec import structs

from ropewalk.base.errors import NodeStopping, QueueNotReady, RopewalkError
from ropewalk.base.ids import ProducerId, TopicId
from ropewalk.base.limits import (
    QUEUE_MOVE_REST_MS,
    QUEUE_MOVE_TELL_MS,
    QUEUE_REREAD_BYTES,
    QUEUE_SHIPMENT_MESSAGES_MAX,
)
from ropewalk.base.ports import Pool
from ropewalk.broker.queues.dead_letters import dead_letter, redriven
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.reading import read_records
from ropewalk.metadata.image import Image
from ropewalk.queues import QueuePartition
from ropewalk.queues.answers import MoveOrder
from ropewalk.queues.commands import EndMove, NextMove, ProvideProducer
from ropewalk.queues.errors import QueueError
from ropewalk.queues.events import MoveIntended
from ropewalk.queues.messages import Arrival, Arrived, Shipment
from ropewalk.records.packing import Entry
from ropewalk.runtime.bell import Bell

_log = structlog.get_logger()


class ProducerIds(Protocol):
    async def next(self) -> ProducerId: ...


class _Forgotten(QueueNotReady):
    """Nobody can tell any more whether a move has ended."""


class Moves:
    def __init__(
        self,
        image: Image,
        producer_ids: ProducerIds,
        ship: "Callable[[Shipment], Coroutine[Any, Any, Arrived]]",
        *,
        pool: Pool,
        begin: "Callable[[Coroutine[Any, Any, None]], object]",
        remembered_ms: Callable[[], int],
    ) -> None:
        """`ship` brings messages to whoever leads their target. `begin` makes a task. `remembered_ms`: how long targets remember producers."""
        self._image = image
        self._ship = ship
        self._producer_ids = producer_ids
        self._pool = pool
        self._begin = begin
        self._remembered_ms = remembered_ms
        self._rest = Bell()
        self.moved_count = 0
        self.redriven_count = 0
        self.refused_count = 0
        self._forgotten: set[HostedQueue] = set()

    def knows_end(self, hosted: HostedQueue) -> bool:
        """Whether what it has under way, if anything, can still come to an end by itself."""
        return hosted not in self._forgotten

    def begin(self, hosted: HostedQueue) -> None:
        """It serves: wait for what it has to move."""
        try:
            order = hosted.ask(NextMove()).answer
        except RopewalkError:
            return  # it serves no more; who serves next begins again
        core = hosted.core
        order.add_done_callback(lambda told: self._on_order(hosted, core, told))

    def provide(self, hosted: HostedQueue) -> None:
        """What it has to move waits for a producer id."""
        self._start(hosted, self._provide(hosted), self.provide)

    def _on_order(
        self, hosted: HostedQueue, core: QueuePartition | None, order: "asyncio.Future[MoveOrder]"
    ) -> None:
        if order.cancelled():
            return
        if order.exception() is None:
            self._start(hosted, self._carry(hosted, order.result().move), self.begin)
        elif hosted.core is core:
            # What was intended is committed late, and stays intended. Another core has another who waits for orders.
            asyncio.get_running_loop().call_later(QUEUE_MOVE_REST_MS / 1000, self._begin_again, hosted, core)

    def _begin_again(self, hosted: HostedQueue, core: QueuePartition | None) -> None:
        if hosted.core is core:
            self.begin(hosted)

    def _start(
        self,
        hosted: HostedQueue,
        work: "Coroutine[Any, Any, None]",
        again: Callable[[HostedQueue], None],
    ) -> None:
        """`again` is called after a while where too much is under way now."""
        try:
            self._begin(work)
        except NodeStopping:
            pass
        except RopewalkError as error:
            _log.warning(
                "a move of messages is put off", partition=str(hosted.partition.name), reason=str(error)
            )
            asyncio.get_running_loop().call_later(QUEUE_MOVE_REST_MS / 1000, again, hosted)

    async def _provide(self, hosted: HostedQueue) -> None:
        while hosted.is_serving:
            try:
                producer_id = await self._producer_ids.next()
                await hosted.ask(ProvideProducer(producer_id, 0)).answer
            except NodeStopping:
                raise
            except RopewalkError as error:
                await self._pause(hosted, error)
            else:
                return

    async def _carry(self, hosted: HostedQueue, move: MoveIntended) -> None:
        """Until its end is known and written down."""
        core, told_ms = hosted.core, -QUEUE_MOVE_TELL_MS
        while core is not None and hosted.core is core and core.state.move is move:
            try:
                moved_count = await self._append(hosted, move)
                await hosted.ask(EndMove(move, moved_count)).answer
            except NodeStopping:
                raise
            except QueueError:  # it has ended already
                break
            except _Forgotten as error:
                self._forgotten.add(hosted)
                if hosted.now_ms() - told_ms >= QUEUE_MOVE_TELL_MS:
                    told_ms = hosted.now_ms()
                    _log.error(
                        "messages on their way to another queue are neither moved nor given out: look for them there; to purge this queue ends their move",
                        partition=str(hosted.partition.name),
                        first_offset=move.offsets[0],
                        reason=str(error),
                    )
                await self._rest.wait(QUEUE_MOVE_REST_MS)
            except RopewalkError as error:
                await self._pause(hosted, error)
            else:
                self._count(hosted, move, moved_count)
        self._forgotten.discard(hosted)
        if hosted.is_serving and hosted.core is core:
            self.begin(hosted)

    async def _append(self, hosted: HostedQueue, move: MoveIntended) -> int:
        """How many of them the target has: the first ones, and certainly never more. Raises where nobody knows."""
        topic_id = TopicId(move.topic_id)
        if topic_id not in self._image.topics_by_id:
            return 0
        age_ms = hosted.now_ms() - move.intended_at_ms
        if age_ms > self._remembered_ms():
            state = hosted.serving().state
            if all(map(state.is_settled, move.offsets)):
                return 0
            raise _Forgotten(
                f"whether {len(move.offsets)} messages have arrived cannot be known any more after {age_ms} ms"
            )
        shipment = Shipment(
            topic_id=topic_id,
            partition=move.partition,
            producer_id=move.producer_id,
            producer_epoch=move.producer_epoch,
            sequence=move.sequence,
            message_count=len(move.offsets),
        )
        arrived = await self._ship(shipment)
        while arrived.arrival is Arrival.ARRIVED and arrived.message_count < len(move.offsets):
            if self._image.queues.by_topic(topic_id) is None:  # deleted, and its topic had been adopted
                return arrived.message_count
            entries = await self._entries(hosted, move, arrived.message_count)
            if not entries:
                return arrived.message_count
            arrived = await self._ship(
                structs.replace(shipment, first_index=arrived.message_count, entries=entries)
            )
        return arrived.message_count

    async def _entries(self, hosted: HostedQueue, move: MoveIntended, arrived_count: int) -> list[Entry]:
        """The next to be brought, up to the first that is gone from the log: those behind it are intended anew."""
        wanted = move.offsets[arrived_count : arrived_count + QUEUE_SHIPMENT_MESSAGES_MAX]
        records = await read_records(hosted.partition, set(wanted), self._pool, bytes_max=QUEUE_REREAD_BYTES)
        core = hosted.serving()
        now_ms = hosted.now_ms()
        target = self._image.queues.by_topic(TopicId(move.topic_id))
        # A purge forgets what it takes away, but not what is its target's by now: that had been received as often as may be.
        redrive = hosted.settings.dead_letters
        forgotten_count = 0 if redrive is None else redrive.receive_count_max
        entries: list[Entry] = []
        for offset in wanted:
            if offset not in records:
                break
            if move.task_id:
                entries.append(redriven(records[offset], hosted.queue, target, sent_at_ms=now_ms))
                continue
            entry = core.state.entries.get(offset)
            entries.append(
                dead_letter(
                    records[offset],
                    hosted.queue,
                    hosted.index,
                    receive_count=forgotten_count if entry is None else entry.receive_count,
                    sent_at_ms=now_ms if hosted.settings.is_fifo else records[offset].timestamp,
                )
            )
        return entries

    def _count(self, hosted: HostedQueue, move: MoveIntended, moved_count: int) -> None:
        if move.task_id:
            self.redriven_count += moved_count
        else:
            self.moved_count += moved_count
        if moved_count == len(move.offsets):
            return
        self.refused_count += len(move.offsets) - moved_count
        _log.warning(
            "messages stay where they are: nobody takes them",
            partition=str(hosted.partition.name),
            message_count=len(move.offsets) - moved_count,
        )

    async def _pause(self, hosted: HostedQueue, reason: RopewalkError) -> None:
        _log.warning(
            "a move of messages is tried again", partition=str(hosted.partition.name), reason=str(reason)
        )
        await self._rest.wait(QUEUE_MOVE_REST_MS)
