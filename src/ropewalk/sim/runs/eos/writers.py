"""Producers without transactions: idempotent, one batch after the other, to any partition, each until it is acknowledged."""

import asyncio
from collections.abc import Sequence
from typing import Final

from ropewalk.base.ids import NO_PRODUCER, TopicPartition
from ropewalk.records.codec import Codec
from ropewalk.records.record import build
from ropewalk.sim.clients.content import plain_record
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.producers import Identity, ask_identity
from ropewalk.sim.clients.workload import REQUEST_TIMEOUT_MS, TOPIC_BY_NAME_VERSION_MAX
from ropewalk.sim.judges.eos.history import Ended, Outcome, Placed, Sent
from ropewalk.sim.runs.cluster.guide import ELSEWHERE
from ropewalk.sim.runs.cluster.stage import REST_S, Restless
from ropewalk.sim.runs.eos.guide import EosGuide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import produce

LATER: Final = ELSEWHERE | {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""The same batch may be sent again, and has to be: it may be in the log already."""

TRANSACTION_TIMEOUT_NONE_MS: Final = 60_000


def encode_batch(
    guide: EosGuide,
    values: tuple[int, ...],
    identity: Identity,
    base_sequence: int,
    *,
    is_transactional: bool,
) -> bytes:
    now_ms = guide.clock.now_ms()
    return bytes(
        build(
            [plain_record(value, now_ms) for value in values],
            codec=guide.rng.choice([Codec.NONE, Codec.NONE, Codec.LZ4]),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
        )
    )


async def produce_once(
    guide: EosGuide,
    link: Link,
    partition: TopicPartition,
    batch: bytes,
    *,
    version: int,
    transactional_id: str | None = None,
) -> tuple[ErrorCode, int]:
    """The leader's word and where the batch stands."""
    topic = produce.TopicProduceData(
        name=partition.topic if version <= TOPIC_BY_NAME_VERSION_MAX else "",
        topic_id=guide.workload.topics.id_of(partition.topic),
        partitions=(produce.PartitionProduceData(index=partition.partition, records=batch),),
    )
    request = produce.ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=REQUEST_TIMEOUT_MS, topics=(topic,)
    )
    guide.workload.operation_count += 1
    response = await link.send(produce.API, version, request)
    (answer,) = response.topics[0].partitions
    code = ErrorCode(answer.error_code)
    if code in ELSEWHERE:
        guide.doubt()
    return code, answer.base_offset


class Writer:
    """It never gives up on a batch, so what it is refused for good at the end of a run is a violation."""

    def __init__(self, guide: EosGuide, partitions: Sequence[TopicPartition]) -> None:
        self._guide = guide
        self._partitions = partitions
        self._identity = Identity()
        self._sequences: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        guide = self._guide
        while not guide.workload.is_over:
            if self._identity.producer_id != NO_PRODUCER or await self._identify():
                await self._write()
            await guide.pause(0.4)
        guide.close()

    async def _write(self) -> None:
        guide = self._guide
        partition = guide.rng.choice(self._partitions)
        values = tuple(guide.workload.next_value() for _ in range(guide.rng.randrange(1, 4)))
        sequence = self._sequences.get(partition, 0)
        batch = encode_batch(guide, values, self._identity, sequence, is_transactional=False)
        operation = guide.journal.begin(guide.name, is_transactional=False)
        guide.journal.note(Sent(operation, partition, values))
        base_offset = await self._place(partition, batch)
        self._sequences[partition] = sequence + len(values)
        guide.journal.note(Placed(operation, partition, base_offset, values))
        guide.journal.note(Ended(operation, Outcome.COMMITTED))
        guide.workload.sometimes.note("a write was acknowledged")

    async def _place(self, partition: TopicPartition, batch: bytes) -> int:
        """Beyond the end of the run, if it must be: the cluster will be healed."""
        guide = self._guide
        attempt_count = 0
        while True:
            attempt_count += 1
            if attempt_count == 2:
                guide.workload.sometimes.note("an idempotent batch was sent again")
            try:
                link = await guide.connect_to_leader(partition)
                version = guide.draw_version(link, produce.API)
                code, base_offset = await produce_once(guide, link, partition, batch, version=version)
            except LinkLost:
                guide.doubt()
            else:
                if code == ErrorCode.NONE:
                    return base_offset
                # A deposed leader that does not know it may never have heard of the sequences before.
                guide.doubt()
            if guide.workload.world.now_s > guide.workload.until_s + REST_S:
                raise Restless(f"{guide.name} cannot write to {partition}")
            await asyncio.sleep(guide.rng.uniform(0.05, 0.4))

    async def _identify(self) -> bool:
        guide = self._guide
        try:
            link = await guide.connect_to(None)
            identity = await ask_identity(link, transaction_timeout_ms=TRANSACTION_TIMEOUT_NONE_MS)
        except LinkLost:
            return False
        if identity is None:
            return False
        self._identity = identity
        return True
