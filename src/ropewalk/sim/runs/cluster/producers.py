"""Clients that write to a cluster: each finds the leader, and finds it again when it is another.

What a reader could get wrong
    A leader that was deposed and does not know it may refuse a sequence that it has never heard of. So being refused is no
    evidence while there are faults; at the end it is.
"""

from typing import Final

from ropewalk.base.ids import NO_PRODUCER, TopicPartition
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.clients.producers import Batch, IdempotentProducer, Producer, Sending
from ropewalk.sim.judges.history import Forgotten
from ropewalk.sim.runs.cluster.guide import ELSEWHERE, Guide
from ropewalk.wire.error_code import ErrorCode

INDEFINITE: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""After these the write may be in the log: whoever ceases to lead cannot know what becomes of what it wrote."""


class PlainClusterProducer(Producer):
    """Writes to every partition, a few batches at a time, each round to one of them."""

    def __init__(self, guide: Guide, *, acks: int) -> None:
        super().__init__(guide, acks=acks, indefinite=INDEFINITE, is_believed=acks == -1)
        self._guide = guide
        self._again: list[Batch] = []

    async def run(self) -> None:
        guide = self._guide
        while not guide.workload.is_over:
            try:
                await self._round()
            except LinkLost:
                await guide.pause(0.3)
            await guide.pause(0.25)
        guide.close()

    async def _round(self) -> None:
        guide = self._guide
        partition = self._again[0].partition if self._again else guide.workload.draw_partition(guide.rng)
        link = await guide.connect_to_leader(partition)
        batches = [batch for batch in self._again if batch.partition == partition]
        batches += [self.draw_batch(partition) for _ in range(guide.rng.randrange(1, 4))]
        self._again = []
        for sending in self.send_all(link, batches):
            code = await self.settle(sending)
            if code is None and guide.rng.random() < 0.3:
                self._again.append(sending.batch)
            note_refusal(guide, code)


class IdempotentClusterProducer(IdempotentProducer):
    """Writes to one partition, in order, each batch exactly once, whoever leads."""

    def __init__(self, guide: Guide, partition: TopicPartition) -> None:
        super().__init__(guide, partition, indefinite=INDEFINITE)
        self._guide = guide
        self._is_concluding = False

    async def run(self) -> None:
        guide = self._guide
        while not guide.workload.is_over:
            await self._attempt()
            await guide.pause(0.25)
        guide.close()

    async def conclude(self) -> bool:
        """Once everything is healed: send what is left; whether all of it is acknowledged now."""
        self._is_concluding = True
        if self._outstanding:
            await self._attempt()
        return not self._outstanding

    @property
    def partition(self) -> TopicPartition:
        return self._partition

    async def settle(self, sending: Sending) -> ErrorCode | None:
        code = await super().settle(sending)
        note_refusal(self._guide, code)
        return code

    def on_forgotten(self, event: Forgotten) -> None:
        if self._is_concluding:
            super().on_forgotten(event)
        self._guide.doubt()

    async def _attempt(self) -> None:
        try:
            link = await self._guide.connect_to_leader(self._partition)
            if self.identity.producer_id != NO_PRODUCER or await self._identify(link):
                await self._round(link, may_add=not self._is_concluding)
        except LinkLost:
            await self._guide.pause(0.3)


def note_refusal(guide: Guide, code: ErrorCode | None) -> None:
    if code is None or code in ELSEWHERE:
        guide.doubt()
    if code == ErrorCode.NOT_ENOUGH_REPLICAS:
        guide.workload.sometimes.note("a write was refused for want of replicas")
