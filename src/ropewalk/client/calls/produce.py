"""Produce: one record batch to one partition, repeated where that is safe.

What a reader could get wrong
    A batch without a producer id is not sent again once it may have been appended: `ConnectionLost`,
    `TimedOut` and their kind are raised instead, and the caller decides whether twice is better than never.
    A batch with producer id, epoch and sequence (`Producer` makes such) is repeated: the broker knows it.
"""

from enum import IntEnum

from msgspec import Struct

from ropewalk.base.ids import NO_PRODUCER, ProducerEpoch, ProducerId
from ropewalk.client.connections.session import Session, only_partition, version_max_for
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import init_producer_id as wire_init_producer_id
from ropewalk.wire.messages import produce as wire_produce
from ropewalk.wire.types import Buffer


class Acks(IntEnum):
    """Who must have a batch before the broker answers. With `NONE` there is no answer."""

    NONE = 0
    LEADER = 1
    ALL = -1


class Produced(Struct, frozen=True, gc=False):
    """Where a batch went; -1 where the broker was asked not to answer."""

    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1


async def produce(
    session: Session,
    topic: str,
    partition: int,
    batch: Buffer,
    *,
    acks: Acks,
    may_create: bool,
    deadline_ms: float,
) -> Produced:
    # Loading the codecs' room takes a tenth of the command line's start, and most commands send no batch.
    from ropewalk.records.batch import decode_header

    async def once() -> Produced:
        view, target = await session.cluster.partition(
            topic, partition, deadline_ms=deadline_ms, may_create=may_create
        )
        connection = await session.cluster.connection(target.leader, deadline_ms=deadline_ms)
        data = wire_produce.PartitionProduceData(index=partition, records=batch)
        request = wire_produce.ProduceRequest(
            acks=acks,
            timeout_ms=session.remaining_ms(deadline_ms),
            topics=(wire_produce.TopicProduceData(name=topic, topic_id=view.topic_id, partitions=(data,)),),
        )
        version_max = version_max_for((view,))
        if acks is Acks.NONE:
            await connection.call_unanswered(
                wire_produce.API, request, deadline_ms=deadline_ms, version_max=version_max
            )
            return Produced(-1)
        response = await connection.call(
            wire_produce.API, request, deadline_ms=deadline_ms, version_max=version_max
        )
        answer = only_partition(response.topics, wire_produce.API.name)
        if answer.error_code != ErrorCode.NONE:
            raise RemoteError(answer.error_code, answer.error_message, about=f"{topic}-{partition}")
        return Produced(answer.base_offset, answer.log_append_time_ms, answer.log_start_offset)

    return await session.attempt(
        (topic,),
        once,
        deadline_ms=deadline_ms,
        repeatable=decode_header(batch).producer_id != NO_PRODUCER,
        may_create=may_create,
    )


async def init_producer_id(session: Session, *, deadline_ms: float) -> tuple[ProducerId, ProducerEpoch]:
    """An identity for an idempotent producer, without transactions."""

    async def once() -> tuple[ProducerId, ProducerEpoch]:
        connection = await session.cluster.any_connection(deadline_ms=deadline_ms)
        request = wire_init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000
        )
        response = await connection.call(wire_init_producer_id.API, request, deadline_ms=deadline_ms)
        if response.error_code != ErrorCode.NONE:
            raise RemoteError(response.error_code, about="InitProducerId")
        return ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch)

    return await session.attempt((), once, deadline_ms=deadline_ms)
