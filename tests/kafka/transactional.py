"""A transactional producer by hand, one request at a time, in either kind of transaction."""

from typing import Protocol, TypeVar

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    fetch,
    find_coordinator,
    init_producer_id,
    produce,
    txn_offset_commit,
)
from ropewalk.wire.types import Message
from tests.kafka.door import PATIENCE_MS, fetch_request

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

TRANSACTION = 1


class Calls(Protocol):
    async def call(self, api: Api[Q, R], version: int, request: Q) -> R: ...


class Transactional:
    """`tv2`: as clients that have seen `transaction.version` 2, else as all before them."""

    def __init__(self, door: Calls, transactional_id: str = "t", *, tv2: bool = True) -> None:
        self.door = door
        self.transactional_id = transactional_id
        self.tv2 = tv2
        self.producer_id = -1
        self.producer_epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def find(self) -> None:
        request = find_coordinator.FindCoordinatorRequest(
            key_type=TRANSACTION, coordinator_keys=(self.transactional_id,)
        )
        (found,) = (await self.door.call(find_coordinator.API, 4, request)).coordinators
        assert found.error_code == 0, found.error_message

    async def init(self, *, timeout_ms: int = 60_000) -> "Transactional":
        """Find the coordinator and take the id; asks again while it reads its log, or a former transaction is being finished."""
        await self.find()
        while (code := await self.try_init(timeout_ms=timeout_ms)) in (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ):
            pass
        assert code == 0, code
        return self

    async def try_init(self, *, timeout_ms: int = 60_000, version: int = 5) -> int:
        request = init_producer_id.InitProducerIdRequest(self.transactional_id, timeout_ms)
        answer = await self.door.call(init_producer_id.API, version, request)
        if not answer.error_code:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return answer.error_code

    async def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=(add_partitions_to_txn.AddPartitionsToTxnTopic(topic, partitions or (0,)),),
        )
        answer = await self.door.call(add_partitions_to_txn.API, version, request)
        return [
            each.partition_error_code
            for found in answer.results_by_topic_v3_and_below
            for each in found.results_by_partition
        ]

    async def add_offsets(self, group_id: str, version: int = 3) -> int:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            self.transactional_id, self.producer_id, self.producer_epoch, group_id
        )
        return (await self.door.call(add_offsets_to_txn.API, version, request)).error_code

    async def commit_offset(
        self,
        group_id: str,
        topic: str,
        offset: int,
        *,
        version: int | None = None,
        generation: int = -1,
        member_id: str = "",
        metadata: str = "",
    ) -> int:
        partition = txn_offset_commit.TxnOffsetCommitRequestPartition(0, offset, committed_metadata=metadata)
        request = txn_offset_commit.TxnOffsetCommitRequest(
            self.transactional_id,
            group_id,
            self.producer_id,
            self.producer_epoch,
            generation,
            member_id,
            topics=(txn_offset_commit.TxnOffsetCommitRequestTopic(topic, partitions=(partition,)),),
        )
        used = version if version is not None else (5 if self.tv2 else 3)
        answer = await self.door.call(txn_offset_commit.API, used, request)
        return answer.topics[0].partitions[0].error_code

    def batch(self, topic: str, *values: str, partition: int = 0) -> bytearray:
        sequence = self._sequences.get((topic, partition), 0)
        return build(
            [Record(timestamp=EPOCH_MS, key=b"k", value=value.encode()) for value in values],
            producer_id=ProducerId(self.producer_id),
            producer_epoch=ProducerEpoch(self.producer_epoch),
            base_sequence=sequence,
            is_transactional=True,
        )

    async def send(
        self, topic: str, *values: str, partition: int = 0, version: int | None = None
    ) -> produce.PartitionProduceResponse:
        batch = self.batch(topic, *values, partition=partition)
        data = produce.PartitionProduceData(partition, bytes(batch))
        request = produce.ProduceRequest(
            self.transactional_id, -1, PATIENCE_MS, (produce.TopicProduceData(topic, bytes(16), (data,)),)
        )
        used = version if version is not None else (12 if self.tv2 else 9)
        while True:
            answer = (await self.door.call(produce.API, used, request)).topics[0].partitions[0]
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        if not answer.error_code:
            key = (topic, partition)
            self._sequences[key] = self._sequences.get(key, 0) + len(values)
        return answer

    async def end(self, *, committed: bool, version: int | None = None) -> int:
        request = end_txn.EndTxnRequest(
            self.transactional_id, self.producer_id, self.producer_epoch, committed
        )
        used = version if version is not None else (5 if self.tv2 else 3)
        answer = await self.door.call(end_txn.API, used, request)
        if not answer.error_code and used >= 5:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return answer.error_code


async def read_committed(
    door: Calls, topic: str, *, partition: int = 0, offset: int = 0
) -> fetch.PartitionData:
    request = fetch_request(topic, offset, partition=partition)
    committed = fetch.FetchRequest(
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=1,
        topics=request.topics,
    )
    return (await door.call(fetch.API, 12, committed)).topics[0].partitions[0]
