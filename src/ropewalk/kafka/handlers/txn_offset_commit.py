"""TxnOffsetCommit: store how far a group has read, if the transaction is committed.

Behaviour worth knowing
    It is a write to the group's partition like any other of the transaction, so the coordinator of the transaction is asked first
    where it is the first there. From v5 on that adds the partition; older clients have sent AddOffsetsToTxn.
    From v3 on the member says who it is, and is refused if its group has moved on without it (KIP-447).
    A partition that does not exist is refused by itself. A caller who must not commit at all hears so for every partition.
    From v6 on topics are named by id.
"""

from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError, UnknownPartition
from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicId, TopicPartition
from ropewalk.broker.hosting.shard import Asked
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.groups.answers import Committed
from ropewalk.groups.commands import CommitInTransaction, OffsetToCommit
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.entering import Join
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.fencing import code_for_producer
from ropewalk.metadata.image import Image
from ropewalk.transactions.commands import AddPartitions
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.txn_offset_commit import (
    API,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ABORTABLE_SINCE: Final = 4
_ADDS_SINCE: Final = 5
_BY_ID_SINCE: Final = 6


class Groups(Protocol):
    def offsets_partition(self, group_id: str) -> TopicPartition: ...

    def verification_needed(
        self, group_id: str, producer_id: ProducerId, producer_epoch: ProducerEpoch
    ) -> VerificationGuard | None: ...

    def commit_in_transaction(
        self, command: CommitInTransaction, guard: VerificationGuard | None = None
    ) -> Asked[Committed]: ...


async def handle(
    request: TxnOffsetCommitRequest, caller: Caller, *, groups: Groups, join: Join, image: Image
) -> TxnOffsetCommitResponse:
    by_id = caller.version >= _BY_ID_SINCE
    wanted = [
        _wanted(topic, partition, image, by_id) for topic in request.topics for partition in topic.partitions
    ]
    command = CommitInTransaction(
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        offsets=tuple(each for each in wanted if isinstance(each, OffsetToCommit)),
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.instance_id,
    )
    try:
        with caller.hold():
            guard = await _enter(request, caller.version, groups, join)
            asked = groups.commit_in_transaction(command, guard)
        committed = await asked.answer
    except RopewalkError as error:
        return _respond(request, [_code(error, caller.version)] * len(wanted))
    outcomes = iter(committed.offsets)
    results: list[RopewalkError | None] = [
        next(outcomes) if isinstance(each, OffsetToCommit) else each for each in wanted
    ]
    return _respond(request, [ErrorCode.NONE if error is None else code_for(error) for error in results])


async def _enter(
    request: TxnOffsetCommitRequest, version: int, groups: Groups, join: Join
) -> VerificationGuard | None:
    """Raises what the coordinator of the transaction refuses with."""
    partition = groups.offsets_partition(request.group_id)
    guard = groups.verification_needed(
        request.group_id, ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)
    )
    if guard is not None:
        command = AddPartitions(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            partitions=(partition,),
            verify_only=version < _ADDS_SINCE,
        )
        refusal = (await join(command))[partition]
        if refusal is not None:
            raise refusal
    return guard


def _code(error: RopewalkError, version: int) -> ErrorCode:
    code = code_for_producer(error, API.key, version)
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _wanted(
    topic: TxnOffsetCommitRequestTopic,
    partition: TxnOffsetCommitRequestPartition,
    image: Image,
    by_id: bool,
) -> OffsetToCommit | RopewalkError:
    try:
        found = image.topic_by_id(TopicId(topic.topic_id)) if by_id else image.topic(topic.name)
        if not 0 <= partition.index < len(found.partitions):
            raise UnknownPartition(f"{found.name} has no partition {partition.index}")
    except RopewalkError as error:
        return error
    return OffsetToCommit(
        topic=found.name,
        partition=partition.index,
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
    )


def _respond(request: TxnOffsetCommitRequest, codes: list[ErrorCode]) -> TxnOffsetCommitResponse:
    remaining = iter(codes)
    return TxnOffsetCommitResponse(
        0,
        tuple(
            TxnOffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                tuple(
                    TxnOffsetCommitResponsePartition(partition.index, next(remaining))
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
