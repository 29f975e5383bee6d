"""Fetch: read record batches, waiting for them if there are too few.

Behaviour worth knowing
    Every fetch is a full one: the session id is always 0, which tells clients to send all partitions each time.
    An offset in the middle of a batch gets the whole batch; clients skip what they did not ask for.
    The sizes asked for are soft: the first batch is given even if it is larger (KIP-74).
    Partitions are read in the order of the request. Clients put those that gave them data last in their next
    request, so a small `max_bytes` starves nobody.
    While a fetch waits, for records or for the disk, the connection's next request is kept back, as in Kafka. Otherwise
    a client that pipelines fetches could have all their answers read into memory at once.
    A fetch with a replica id is refused here: only the listener between nodes may move the high watermark.
"""

from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset, TopicId
from ropewalk.base.ports import Pool
from ropewalk.broker.fetch import Want, fetch
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.leaders import Leaders, check_epoch
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_BY_ID_SINCE: Final = 13
_CONSUMER: Final = -1
_SESSION_NEW: Final = 0
_SESSION_NONE: Final = -1


async def handle(
    request: FetchRequest, caller: Caller, *, leaders: Leaders, pool: Pool, bytes_max: int
) -> FetchResponse:
    if request.replica_id != _CONSUMER or request.replica_state.replica_id != _CONSUMER:
        return FetchResponse(throttle_ms=0, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.session_id != 0:
        return FetchResponse(throttle_ms=0, error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if request.session_epoch not in (_SESSION_NEW, _SESSION_NONE):
        return FetchResponse(throttle_ms=0, error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    wants = [
        [_want(topic, partition, caller.version, leaders) for partition in topic.partitions]
        for topic in request.topics
    ]
    with caller.hold():
        await fetch(
            [want for group in wants for want in group],
            bytes_min=request.min_bytes,
            bytes_max=caller.fetch_bytes_max(min(request.max_bytes, bytes_max)),
            wait_ms=request.max_wait_ms,
            pool=pool,
        )
    return FetchResponse(
        throttle_ms=0,
        topics=tuple(
            FetchableTopicResponse(
                topic.name,
                topic.topic_id,
                tuple(
                    [
                        _answer(partition, want)
                        for partition, want in zip(topic.partitions, group, strict=True)
                    ]
                ),
            )
            for topic, group in zip(request.topics, wants, strict=True)
        ),
    )


def _want(topic: FetchTopic, asked: FetchPartition, version: int, leaders: Leaders) -> Want:
    offset = Offset(asked.fetch_offset)
    try:
        if version >= _BY_ID_SINCE:
            partition = leaders.find_by_id(TopicId(topic.topic_id), asked.index)
        else:
            partition = leaders.find(topic.name, asked.index)
        check_epoch(partition, asked.current_leader_epoch)
    except RopewalkError as error:
        return Want(None, offset, 0, error)
    return Want(partition, offset, asked.partition_max_bytes)


def _answer(asked: FetchPartition, want: Want) -> PartitionData:
    if want.error is not None:
        partition = want.partition
        return PartitionData(
            index=asked.index,
            error_code=code_for(want.error),
            high_watermark=-1 if partition is None else partition.high_watermark,
            log_start_offset=-1 if partition is None else partition.log.start_offset,
            records=b"",
        )
    assert want.partition is not None, "a want without a partition has an error"
    return PartitionData(
        index=asked.index,
        error_code=0,
        high_watermark=want.partition.high_watermark,
        last_stable_offset=want.partition.last_stable_offset,
        log_start_offset=want.partition.log.start_offset,
        records=want.records if want.records is not None else b"",
    )
