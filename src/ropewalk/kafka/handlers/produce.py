"""Produce: append each partition's batch, then wait for the acks the client asked for.

Behaviour worth knowing
    Every append happens before the first `await`, in request order, so one connection's writes keep their
    order however many requests it has in flight. Topics that demand a look into the batch are the exception:
    there the batch is copied, checked in the disk pool, and the connection's next request held back until every
    batch of this one is in its log: those that wait for their turn still lie in the receive buffer.
    So is a batch that begins a transaction in its partition: its coordinator is asked first (`entering.py`).
    A producer that its partition does not know begins with the batch that was refused first, if one was (`refused_firsts.py`).
    A failure belongs to its partition; the request as a whole fails only for a nonsensical `acks`.
    With acks=0 nothing is answered; an error can then only be told by closing the connection.
"""

import asyncio
from typing import Final, TypeAlias

from ropewalk.base.errors import InvalidRecord, RopewalkError, TransactionalIdMissing, UnsupportedCompression
from ropewalk.base.limits import PRODUCE_PARTITIONS_MAX, UNANSWERED_BYTES_PER_PARTITION
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.acknowledgements import Acks, Ticket
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.entering import Join, Permissions, enter, find_led, refused
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.refused_firsts import RefusedFirsts
from ropewalk.records.batch import CODEC_MASK
from ropewalk.records.codec import Codec
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

_ZSTD_SINCE: Final = 7
_ATTRIBUTES_LOW_BYTE: Final = 22
_NONE_NEEDED: Final[Permissions] = {}
_ACKS: Final = {acks.value: acks for acks in Acks}


_Writes: TypeAlias = list[tuple[int, Ticket | RopewalkError]]
"""What became of each partition's batch, as far as it is in the log or refused."""


async def handle(
    request: ProduceRequest,
    caller: Caller,
    *,
    hosted: HostedPartitions,
    pool: Pool,
    join: Join,
    firsts: RefusedFirsts,
) -> ProduceResponse | None:
    # One coroutine for all of it: every request comes here, and most wait for nothing.
    acks = _ACKS.get(request.acks)
    if acks is None:
        return _refuse(request)
    if sum([len(topic.partitions) for topic in request.topics]) > PRODUCE_PARTITIONS_MAX:
        raise Disconnect(f"a Produce to more than {PRODUCE_PARTITIONS_MAX} partitions")
    permissions = _NONE_NEEDED
    started: list[tuple[TopicProduceData, _Writes]] = []
    try:
        if request.transactional_id is not None:
            permissions = await enter(request, caller, hosted, join)
        for topic in request.topics:
            writes: _Writes = []
            for data in topic.partitions:
                try:
                    partition = find_led(topic, data.index, caller.version, hosted)
                    permission = permissions.get(partition.name) if permissions else None
                    if isinstance(permission, RopewalkError):
                        raise permission
                    batch = _batch(data, caller.version)
                    if partition.opens_batches:
                        caller.keep_back()
                        prepared = await pool.run(partition.prepare, memoryview(bytearray(batch)))
                    else:
                        prepared = partition.prepare(batch)
                    if prepared.header.is_transactional and request.transactional_id is None:
                        raise _id_missing()
                    if firsts.by_connection:
                        firsts.check(caller, topic, data.index, partition, prepared.header)
                    ticket = partition.append(prepared, acks, request.timeout_ms, permission)
                    writes.append((data.index, ticket))
                    del batch, prepared  # perhaps a copy, which nobody needs while this waits for its acks
                except RopewalkError as error:
                    told = refused(error, caller.version)
                    told = firsts.note(caller, topic, data.index, memoryview(data.records or b""), told)
                    writes.append((data.index, told))
            started.append((topic, writes))
    finally:
        caller.let_go()
    if acks is Acks.NOBODY:
        _disconnect_if_any_failed(started)
        return None
    clock_s = asyncio.get_running_loop().time
    began_s = clock_s()
    topics: list[TopicProduceResponse] = []
    for topic, writes in started:
        answers: list[PartitionProduceResponse] = []
        for index, write in writes:
            outcome = write
            if isinstance(write, Ticket) and write.acknowledged is not None:
                try:
                    await write.acknowledged
                except RopewalkError as error:
                    outcome = error
            answers.append(_answer(index, outcome))
        topics.append(TopicProduceResponse(topic.name, topic.topic_id, tuple(answers)))
    caller.measured_ms = (clock_s() - began_s) * 1000
    return ProduceResponse(tuple(topics))


def weigh(request: ProduceRequest, _: int) -> int:
    """What the request holds while it waits for its acks: no records any more."""
    return UNANSWERED_BYTES_PER_PARTITION * sum([len(topic.partitions) for topic in request.topics])


def _batch(data: PartitionProduceData, version: int) -> memoryview:
    batch = memoryview(data.records or b"")
    if (
        version < _ZSTD_SINCE
        and len(batch) > _ATTRIBUTES_LOW_BYTE
        and batch[_ATTRIBUTES_LOW_BYTE] & CODEC_MASK == Codec.ZSTD
    ):
        raise UnsupportedCompression(f"zstd needs Produce v{_ZSTD_SINCE} or newer")
    return batch


def _id_missing() -> TransactionalIdMissing:
    return TransactionalIdMissing("a batch of a transaction needs the transactional id in its request")


def _answer(index: int, outcome: Ticket | RopewalkError) -> PartitionProduceResponse:
    if isinstance(outcome, RopewalkError):
        return _failed(index, outcome)
    return PartitionProduceResponse(
        index, 0, outcome.base_offset, outcome.append_time_ms, outcome.log_start_offset
    )


def _failed(index: int, error: RopewalkError) -> PartitionProduceResponse:
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    if isinstance(error, InvalidRecord):
        record_errors = tuple(BatchIndexAndErrorMessage(at) for at in error.record_indexes)
    return PartitionProduceResponse(
        index=index,
        error_code=code_for(error),
        base_offset=-1,
        record_errors=record_errors,
        error_message=str(error),
    )


def _refuse(request: ProduceRequest) -> ProduceResponse:
    def refused(data: PartitionProduceData) -> PartitionProduceResponse:
        return PartitionProduceResponse(
            index=data.index,
            error_code=ErrorCode.INVALID_REQUIRED_ACKS,
            base_offset=-1,
            error_message=f"acks is {request.acks}, must be -1, 0 or 1",
        )

    return ProduceResponse(
        tuple(
            TopicProduceResponse(topic.name, topic.topic_id, tuple(map(refused, topic.partitions)))
            for topic in request.topics
        )
    )


def _disconnect_if_any_failed(started: list[tuple[TopicProduceData, _Writes]]) -> None:
    for topic, writes in started:
        for index, write in writes:
            if isinstance(write, RopewalkError):
                raise Disconnect(f"acks=0 to {topic.name}-{index} failed: {write}")
