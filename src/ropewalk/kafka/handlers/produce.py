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

from typing import Final

from msgspec import Struct

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


class _Started(Struct):
    topic: TopicProduceData
    writes: list[tuple[int, Ticket | RopewalkError]]


async def handle(
    request: ProduceRequest,
    caller: Caller,
    *,
    hosted: HostedPartitions,
    pool: Pool,
    join: Join,
    firsts: RefusedFirsts,
) -> ProduceResponse | None:
    try:
        acks = Acks(request.acks)
    except ValueError:
        return _refuse(request)
    if sum([len(topic.partitions) for topic in request.topics]) > PRODUCE_PARTITIONS_MAX:
        raise Disconnect(f"a Produce to more than {PRODUCE_PARTITIONS_MAX} partitions")
    permissions = _NONE_NEEDED
    try:
        if request.transactional_id is not None:
            permissions = await enter(request, caller, hosted, join)
        started = [
            await _start(topic, request, acks, caller, hosted, pool, permissions, firsts)
            for topic in request.topics
        ]
    finally:
        caller.let_go()
    if acks is Acks.NOBODY:
        _disconnect_if_any_failed(started)
        return None
    return ProduceResponse(tuple([await _finish(each) for each in started]))


def weigh(request: ProduceRequest, _: int) -> int:
    """What the request holds while it waits for its acks: no records any more."""
    return UNANSWERED_BYTES_PER_PARTITION * sum([len(topic.partitions) for topic in request.topics])


async def _start(
    topic: TopicProduceData,
    request: ProduceRequest,
    acks: Acks,
    caller: Caller,
    hosted: HostedPartitions,
    pool: Pool,
    permissions: Permissions,
    firsts: RefusedFirsts,
) -> _Started:
    """Suspends only for a topic that opens batches; see the module's docstring."""
    writes: list[tuple[int, Ticket | RopewalkError]] = []
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
                raise TransactionalIdMissing(
                    "a batch of a transaction needs the transactional id in its request"
                )
            if firsts:
                firsts.check(caller, topic, data.index, partition, prepared.header)
            writes.append((data.index, partition.append(prepared, acks, request.timeout_ms, permission)))
        except RopewalkError as error:
            told = firsts.note(
                caller, topic, data.index, memoryview(data.records or b""), refused(error, caller.version)
            )
            writes.append((data.index, told))
    return _Started(topic, writes)


def _batch(data: PartitionProduceData, version: int) -> memoryview:
    batch = memoryview(data.records or b"")
    if (
        version < _ZSTD_SINCE
        and len(batch) > _ATTRIBUTES_LOW_BYTE
        and batch[_ATTRIBUTES_LOW_BYTE] & CODEC_MASK == Codec.ZSTD
    ):
        raise UnsupportedCompression(f"zstd needs Produce v{_ZSTD_SINCE} or newer")
    return batch


async def _finish(started: _Started) -> TopicProduceResponse:
    answers: list[PartitionProduceResponse] = []
    for index, write in started.writes:
        if isinstance(write, RopewalkError):
            answers.append(_failed(index, write))
            continue
        try:
            if write.acknowledged is not None:
                await write.acknowledged
        except RopewalkError as error:
            answers.append(_failed(index, error))
        else:
            answers.append(
                PartitionProduceResponse(
                    index, 0, write.base_offset, write.append_time_ms, write.log_start_offset
                )
            )
    return TopicProduceResponse(started.topic.name, started.topic.topic_id, tuple(answers))


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


def _disconnect_if_any_failed(started: list[_Started]) -> None:
    for each in started:
        for index, write in each.writes:
            if isinstance(write, RopewalkError):
                raise Disconnect(f"acks=0 to {each.topic.name}-{index} failed: {write}")
