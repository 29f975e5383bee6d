"""End the transactions whose outcome is decided: write their markers wherever they have written, then say so to the coordinator.

    watch    from when a shard serves: be told which of its transactions are decided, by a producer or since they took too
             long. The answer comes when the decision is committed, so no marker precedes its decision
    write    one request at a time to every node that leads some of the partitions, with all that is due there
    finish   every partition has its marker: the shard is told, and the producer may begin its next transaction

What a reader could get wrong
    Nothing here has to survive: what is not finished when the shard moves is found again by whoever leads it then.
    A marker may be written twice. The log knows a repeated one and takes it for done.
    A partition that is gone has nothing to end. Which ones are gone the image says, and it is never behind the decision: the
    partitions were there when they joined the transaction, and whoever leads the shard has heard of that.
    A partition that has heard of a newer epoch of the producer is done as well: a marker of this
    transaction was there before, or an administrator's.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from ropewalk.base.errors import LeaderNotAvailable, ProducerFenced, RopewalkError
from ropewalk.base.ids import NodeId, ProducerEpoch, ProducerId, TopicPartition
from ropewalk.base.limits import (
    MARKER_CALL_MS_MAX,
    MARKER_RETRY_MS_MAX,
    MARKER_RETRY_MS_MIN,
    MARKERS_TOGETHER_MAX,
)
from ropewalk.broker.coordinators.marker_writing import MarkerToWrite, MarkerWriting
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.to_leaders import ToLeaders
from ropewalk.broker.hosting.host import ask
from ropewalk.broker.hosting.shard import Shard
from ropewalk.broker.peers.calls.write_txn_markers import write_markers
from ropewalk.metadata.image import Image
from ropewalk.records.marker import TransactionMarker
from ropewalk.transactions.answers import Answer, Finish
from ropewalk.transactions.commands import AnyCommand, ListUnfinished, MarkersWritten
from ropewalk.transactions.errors import TransactionalProducerFenced
from ropewalk.transactions.events import Event

TransactionShard = Shard[AnyCommand, Event, Answer]


class _Ending:
    """One transaction on its way to its end."""

    __slots__ = ("attempt_count", "finish", "remaining", "shard")

    def __init__(self, shard: TransactionShard, finish: Finish) -> None:
        self.shard = shard
        self.finish = finish
        self.remaining = set(finish.partitions)
        self.attempt_count = 0

    def is_about(self, finish: Finish) -> bool:
        ours = self.finish
        return (ours.producer_id, ours.producer_epoch, ours.started_at_ms) == (
            finish.producer_id,
            finish.producer_epoch,
            finish.started_at_ms,
        )

    @property
    def marker(self) -> TransactionMarker:
        """In the epoch in which the shard is led now: whoever comes later may overrule this one."""
        finish = self.finish
        return TransactionMarker(
            producer_id=ProducerId(finish.producer_id),
            producer_epoch=ProducerEpoch(finish.producer_epoch),
            committed=finish.committed,
            coordinator_epoch=self.shard.partition.leader_epoch,
            version=finish.version,
        )


class _Due(Struct, frozen=True):
    ending: _Ending
    partition: TopicPartition


class Finisher:
    def __init__(self, writing: MarkerWriting, image: Image, dispatch: Dispatch) -> None:
        self._writing = writing
        self._image = image
        self._dispatch = dispatch
        self._tasks: asyncio.TaskGroup | None = None
        self._markers: ToLeaders[_Due] | None = None
        self._endings: dict[str, _Ending] = {}
        """By transactional id."""
        self._watched: set[TransactionShard] = set()
        self.written_count = 0
        self.retry_count = 0

    @property
    def unfinished_count(self) -> int:
        return len(self._endings)

    def watch(self, shard: TransactionShard) -> None:
        """The shard has begun to serve, for the first time or again."""
        if shard not in self._watched:
            self._watched.add(shard)
            if self._tasks is not None:
                self._tasks.create_task(self._watch(shard))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._markers = ToLeaders(
                self._dispatch, self._send, tasks.create_task, items_max=MARKERS_TOGETHER_MAX
            )
            for shard in self._watched:
                tasks.create_task(self._watch(shard))
            await (
                asyncio.get_running_loop().create_future()
            )  # until cancelled, and with it all that was begun

    async def _watch(self, shard: TransactionShard) -> None:
        serial = 0
        while shard.is_serving:
            try:
                unfinished = await ask(shard, ListUnfinished(after=serial, waits=True)).answer
            except RopewalkError:  # it is read again, or has gone, or its log is not committed at present
                serial = 0
                await asyncio.sleep(MARKER_RETRY_MS_MIN / 1000)
                continue
            serial = unfinished.serial
            for finish in unfinished.transactions:
                self._begin(shard, finish)
        self._watched.discard(shard)

    def _begin(self, shard: TransactionShard, finish: Finish) -> None:
        known = self._endings.get(finish.transactional_id)
        if known is not None and known.shard is shard and known.is_about(finish):
            return
        ending = self._endings[finish.transactional_id] = _Ending(shard, finish)
        for partition in finish.partitions:
            self._enqueue(_Due(ending, partition))

    def _enqueue(self, due: _Due) -> None:
        assert self._markers is not None, "it runs"
        partition = due.partition
        topic = self._image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            self._settle(due)
            return
        try:
            self._markers.to_leader(partition, due)
        except LeaderNotAvailable:
            self._try_again([due])

    async def _send(self, node_id: NodeId, gathered: list[_Due]) -> None:
        dues = [due for due in gathered if self._is_wanted(due.ending)]
        if not dues:
            return
        try:
            outcomes = await self._dispatch.to_node(
                node_id,
                here=partial(self._write_here, dues),
                there=lambda: write_markers([(due.ending.marker, due.partition) for due in dues]),
                timeout_ms=MARKER_CALL_MS_MAX,
            )
        except RopewalkError as error:
            outcomes = [error] * len(dues)
        failed: list[_Due] = []
        for due, outcome in zip(dues, outcomes, strict=True):
            if outcome is None or _is_fenced(outcome):
                self.written_count += 1
                self._settle(due)
            else:
                failed.append(due)
        if failed:
            self._try_again(failed)

    def _is_wanted(self, ending: _Ending) -> bool:
        """No longer when the shard has gone, or has been read again and found the transaction anew."""
        transactional_id = ending.finish.transactional_id
        if self._endings.get(transactional_id) is not ending:
            return False
        if not ending.shard.is_serving:
            del self._endings[transactional_id]
            return False
        return True

    async def _write_here(self, dues: Sequence[_Due]) -> list[RopewalkError | None]:
        wanted = [MarkerToWrite(due.ending.marker, due.partition) for due in dues]
        return await self._writing.write(wanted, timeout_ms=MARKER_CALL_MS_MAX)

    def _settle(self, due: _Due) -> None:
        ending = due.ending
        ending.remaining.discard(due.partition)
        if not ending.remaining and self._endings.get(ending.finish.transactional_id) is ending:
            self._finish(ending)

    def _finish(self, ending: _Ending) -> None:
        """A shard that serves may refuse, as while its disk is full, and would never name the transaction again."""
        finish = ending.finish
        try:
            ending.shard.ask(
                MarkersWritten(
                    finish.transactional_id,
                    finish.producer_id,
                    finish.producer_epoch,
                    finish.started_at_ms,
                    finish.partitions,
                )
            )
        except RopewalkError:
            assert self._tasks is not None, "it runs"
            ending.attempt_count += 1
            self._tasks.create_task(self._finish_later(ending))
        else:
            del self._endings[finish.transactional_id]

    async def _finish_later(self, ending: _Ending) -> None:
        await asyncio.sleep(_delay_ms(ending.attempt_count) / 1000)
        if self._is_wanted(ending):
            self._finish(ending)

    def _try_again(self, dues: Sequence[_Due]) -> None:
        assert self._tasks is not None, "it runs"
        self.retry_count += len(dues)
        for ending in {id(due.ending): due.ending for due in dues}.values():
            ending.attempt_count += 1
        attempt_count = min(due.ending.attempt_count for due in dues)
        self._tasks.create_task(self._later(dues, _delay_ms(attempt_count)))

    async def _later(self, dues: Sequence[_Due], delay_ms: float) -> None:
        await asyncio.sleep(delay_ms / 1000)
        for due in dues:
            if self._is_wanted(due.ending):
                self._enqueue(due)


def _delay_ms(attempt_count: int) -> int:
    return min(MARKER_RETRY_MS_MAX, MARKER_RETRY_MS_MIN << min(attempt_count, 16))


def _is_fenced(outcome: RopewalkError) -> bool:
    return isinstance(outcome, ProducerFenced | TransactionalProducerFenced)
