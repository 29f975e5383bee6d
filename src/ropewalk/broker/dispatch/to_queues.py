"""From a door to the leaders of a queue's partitions, and back.

What a reader could get wrong
    Everything here may be awaited where there is no task: it waits for futures and nothing else.
    What a standard queue's partition certainly has not taken goes to another one. Where nobody knows, nobody sends it again but its sender.
    How a receive goes about with leaders that change is told in `queue_receives.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, TypeVar

from ropewalk.base.errors import (
    DiskFull,
    NotEnoughReplicas,
    NotLeader,
    QueueNotReady,
    RopewalkError,
    Throttled,
)
from ropewalk.base.ids import NodeId, OwnerId, TopicPartition
from ropewalk.base.limits import QUEUE_PEEK_BYTES_MAX
from ropewalk.base.ports import Pool
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.far_queues import FarQueues
from ropewalk.broker.dispatch.queue_receives import Hold, QueueReceives
from ropewalk.broker.queues.asked_partition import AskedPartition
from ropewalk.broker.queues.group_partitions import partition_of_group
from ropewalk.broker.queues.looking import record_bytes
from ropewalk.broker.queues.near_partition import NearPartition
from ropewalk.broker.queues.queues import Queues
from ropewalk.broker.queues.receive_counts import ReceiveCounts
from ropewalk.broker.queues.tasks import moved_count_of
from ropewalk.metadata.queues import Queue
from ropewalk.queues.answers import Done
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Seen, Sent, Totals
from ropewalk.queues.state import TaskShare

T = TypeVar("T")

_TAKES_NOTHING: Final = (DiskFull, NotEnoughReplicas, NotLeader, QueueNotReady, Throttled)
"""What a leader refuses messages with before anything is written, and what is heard of one that cannot be reached. Any other failure may have come too late."""


class ToQueues:
    def __init__(self, queues: Queues, far: FarQueues, dispatch: Dispatch, pool: Pool) -> None:
        self._queues = queues
        self._far = far
        self._dispatch = dispatch
        self._pool = pool
        self._turns = count()
        self._receives = QueueReceives(queues, at=self._end, leader=dispatch.leader, turns=self._turns)
        self.counts = ReceiveCounts()

    def on_leaders_changed(self) -> None:
        """The image may name other leaders: receives that were left with former ones go over to these."""
        self._far.polls.on_leaders_changed(self._leads)

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sequence[Sent | RopewalkError]:
        """Of a FIFO queue those of one group keep their order."""
        if not queue.is_fifo:
            return await self._send_anywhere(queue, messages)
        partition_count = self.partition_count(queue)

        def ask(
            end: AskedPartition, positions: Sequence[int]
        ) -> "asyncio.Future[list[Sent | RopewalkError]]":
            return end.send([messages[each] for each in positions])

        outcomes: list[Sent | RopewalkError] = [QueueNotReady("it was not sent")] * len(messages)
        asked = self._ask_each(
            queue,
            [partition_of_group(queue, message.group, partition_count) for message in messages],
            ask,
            outcomes,
        )
        for positions, answer in asked:
            try:
                _put(outcomes, positions, await answer)
            except RopewalkError as error:
                _put(outcomes, positions, [error] * len(positions))
        return outcomes

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
        """Empty where nothing came in time. What was taken for a client that has gone meanwhile is released."""
        command = Receive(count_max, visibility_ms, wait_ms, request_id)
        delivered = await self._receives.receive(queue, command, self.partition_count(queue), hold)
        self.counts.note(queue.queue_id, delivered)
        return delivered

    async def delete(self, queue: Queue, receipts: Sequence[Receipt]) -> Sequence[RopewalkError | None]:
        def ask(end: AskedPartition, positions: Sequence[int]) -> "asyncio.Future[Done]":
            return end.delete([receipts[each] for each in positions])

        return await self._settle(queue, [receipt.partition for receipt in receipts], ask)

    async def change_visibility(
        self, queue: Queue, changes: Sequence[tuple[Receipt, int]]
    ) -> Sequence[RopewalkError | None]:
        """Each with the new visibility in milliseconds."""

        def ask(end: AskedPartition, positions: Sequence[int]) -> "asyncio.Future[Done]":
            return end.change([changes[each] for each in positions])

        return await self._settle(queue, [receipt.partition for receipt, _ in changes], ask)

    async def purge(self, queue: Queue) -> None:
        """Raises `PurgeInProgress` within a minute of the last: the leader of the first partition remembers.

        That one is asked first and purged last. So what failed in between is done anew, and whole, when the client comes again.
        """
        first, *others = self._all(queue)
        if others:
            await first.check_may_purge()
        for end in (*others, first):
            await end.purge()

    async def rewind(self, queue: Queue, *, to_ms: int) -> None:
        """As if nothing that was sent since had been received or deleted, as far as it is in the log; what was sent before is gone."""
        for end in self._all(queue):
            await end.rewind(to_ms)

    async def totals(self, queue: Queue) -> Totals:
        ends = self._all(queue)
        totals = [await end.totals() for end in ends]
        oldest = [each.oldest_sent_at_ms for each in totals if each.oldest_sent_at_ms is not None]
        return Totals(
            sum([each.visible_count for each in totals]),
            sum([each.in_flight_count for each in totals]),
            sum([each.delayed_count for each in totals]),
            min(oldest, default=None),
            tuple([figures for each in totals for figures in each.partitions]),
        )

    async def totals_of(self, queue: Queue, index: int) -> Totals:
        """Of one partition, whoever leads it."""
        return await self._end(queue, index).totals()

    async def share(self, queue: Queue, index: int) -> TaskShare | None:
        """Of the latest move task that came to a partition; None: none did."""
        return await self._end(queue, index).share()

    async def moved_count(self, queue: Queue, task_id: bytes) -> int:
        """For a move task, as far as those can be asked who move."""
        shares: list[TaskShare | None] = []
        for index in range(self.partition_count(queue)):
            try:
                shares.append(await self.share(queue, index))
            except RopewalkError:  # nobody leads it for the moment
                continue
        return moved_count_of(shares, task_id)

    async def peek(self, queue: Queue, *, count_max: int) -> Sequence[Seen]:
        """The first ones that are not settled, as many as one look may show."""
        seen: list[Seen] = []
        shown_bytes = 0
        for end in self._all(queue):
            for each in await end.peek(count_max - len(seen)):
                if shown_bytes < QUEUE_PEEK_BYTES_MAX:
                    seen.append(each)
                    shown_bytes += record_bytes(each.record)
            if len(seen) >= count_max or shown_bytes >= QUEUE_PEEK_BYTES_MAX:
                break
        return seen

    async def look_at(self, queue: Queue, partition: int, offset: int) -> Seen | None:
        """One message, whatever has become of it; None where it is no longer in the log."""
        if not 0 <= partition < self.partition_count(queue):
            return None
        return next(iter(await self._end(queue, partition).look_at(offset)), None)

    async def _settle(
        self,
        queue: Queue,
        partitions: Sequence[int],
        ask: "Callable[[AskedPartition, Sequence[int]], asyncio.Future[Done]]",
    ) -> Sequence[RopewalkError | None]:
        """One outcome for each, in their order."""
        outcomes: list[RopewalkError | None] = [None] * len(partitions)
        for positions, answer in self._ask_each(queue, partitions, ask, outcomes):
            try:
                _put(outcomes, positions, (await answer).refusals)
            except RopewalkError as error:
                _put(outcomes, positions, [error] * len(positions))
        return outcomes

    def _ask_each(
        self,
        queue: Queue,
        partitions: Sequence[int],
        ask: "Callable[[AskedPartition, Sequence[int]], asyncio.Future[T]]",
        outcomes: list[Sent | RopewalkError] | list[RopewalkError | None],
    ) -> "list[tuple[list[int], asyncio.Future[T]]]":
        """`partitions` has one for each item; those of one partition are asked together. What is refused at once is put among the outcomes."""
        by_partition: dict[int, list[int]] = {}
        for position, index in enumerate(partitions):
            by_partition.setdefault(index, []).append(position)
        asked: list[tuple[list[int], asyncio.Future[T]]] = []
        for index, positions in by_partition.items():
            try:
                asked.append((positions, ask(self._end(queue, index), positions)))
            except RopewalkError as error:
                for position in positions:
                    outcomes[position] = error
        return asked

    def _in_turn(self, queue: Queue, start: int) -> list[AskedPartition]:
        """Its partitions that somebody leads, one after the other from the one that `start` chooses. Raises `QueueNotReady` where there is none."""
        partition_count = self.partition_count(queue)
        if partition_count == 1:
            return [self._end(queue, 0)]
        ends: list[AskedPartition] = []
        failure: QueueNotReady | None = None
        for number in range(partition_count):
            try:
                ends.append(self._end(queue, (start + number) % partition_count))
            except QueueNotReady as error:
                failure = error
        if not ends and failure is not None:
            raise failure
        return ends

    def _all(self, queue: Queue) -> list[AskedPartition]:
        """Raises `QueueNotReady` where nobody leads one of them."""
        return [self._end(queue, index) for index in range(self.partition_count(queue))]

    def _end(self, queue: Queue, index: int) -> AskedPartition:
        hosted = self._queues.here(queue, index)
        if hosted is not None:
            return NearPartition(hosted, self._pool)
        leader = self._dispatch.leader(TopicPartition(queue.topic, index))
        if leader is None or leader == self._dispatch.node_id:
            return NearPartition(self._queues.find(queue, index), self._pool)
        return self._far.at(leader, queue, index)

    def _leads(self, node_id: NodeId, queue_id: OwnerId, index: int) -> bool:
        queue = self._queues.image.queues.by_id(queue_id)
        return queue is not None and self._dispatch.leader(TopicPartition(queue.topic, index)) == node_id

    async def _send_anywhere(
        self, queue: Queue, messages: Sequence[Outgoing]
    ) -> Sequence[Sent | RopewalkError]:
        """To the least loaded partition; to the next one where it is certain that this one has taken nothing."""
        refusal: RopewalkError | None = None
        for end in self._least_loaded_first(queue):
            try:
                return await end.send(messages)
            except _TAKES_NOTHING as error:
                refusal = refusal or error
        assert refusal is not None, "there is a partition"
        raise refusal

    def _least_loaded_first(self, queue: Queue) -> list[AskedPartition]:
        ends = self._in_turn(queue, next(self._turns))
        if len(ends) > 1:
            ends.sort(key=lambda each: (not each.is_serving, each.pending_bytes))
        return ends

    def partition_count(self, queue: Queue) -> int:
        """Raises `QueueNotReady` where nothing is known of it."""
        topic = self._queues.image.topics_by_id.get(queue.topic_id)
        if topic is None:
            raise QueueNotReady(f"queue {queue.name} has no topic here")
        return len(topic.partitions)


def _put(outcomes: list[T], positions: Sequence[int], told: Sequence[T]) -> None:
    for position, outcome in zip(positions, told, strict=True):
        outcomes[position] = outcome
