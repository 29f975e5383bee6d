"""Fetch: read record batches, waiting for them if there are too few.

Behaviour worth knowing
    A fetch is whole, naming all partitions (epoch 0 or -1), or goes on with a session (KIP-227), naming only what
    changed and being answered with only what changed. A whole fetch closes the session it names; with epoch 0
    a session begins with it, if there is room for one.
    An offset in the middle of a batch gets the whole batch; clients skip what they did not ask for.
    The sizes asked for are soft: the first batch is given even if it is larger (KIP-74).
    Partitions of a whole fetch are read in the order of the request; clients put those that gave them data last. Those of
    a session take turns. Either way a small `max_bytes` starves nobody.
    While a fetch waits, for records or for the disk, the connection's next request is kept back, as in Kafka. Otherwise
    a client that pipelines fetches could have all their answers read into memory at once.
    A consumer that names its rack may be told of a replica there, and is served from copies of what other nodes lead, as
    far as they are known to be committed (KIP-392). One that names none is sent to the leader.
    With read_committed a reader gets nothing beyond the last stable offset, and with every partition's records the aborted
    transactions that have some among them: it leaves those out itself. Markers and offsets without records are its to skip.
    A fetch with a replica id is refused here: only the listener between nodes may move the high watermark.
"""

from collections.abc import Iterator
from typing import Final

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset, TopicId
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.access import Reader
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.reading.fetch import Fetch, Nearest
from ropewalk.broker.reading.fetch_session import FetchSession, Found, Interest, ReplicaReader, TopicKey
from ropewalk.broker.reading.fetch_sessions import EPOCH_FIRST, EPOCH_NONE, FetchSessions
from ropewalk.broker.reading.leader_throttle import LeaderThrottle
from ropewalk.broker.reading.nearest import NearestReplicas
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.rights.rights import Rights
from ropewalk.records.batch import max_timestamp
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

_BY_ID_SINCE: Final = 13
_CONSUMER: Final = -1
_READ_COMMITTED: Final = 1


async def handle(
    request: FetchRequest,
    caller: Caller,
    *,
    hosted: HostedPartitions,
    sessions: FetchSessions,
    pool: Pool,
    budget: ByteBudget,
    clock: Clock,
    bytes_max: int,
    nearest: NearestReplicas,
    rights: Rights | None = None,
) -> FetchResponse | None:
    if request.replica_id != _CONSUMER or request.replica_state.replica_id != _CONSUMER:
        caller.report("a Fetch with a replica id, which only nodes may send, and on their own listener")
        return FetchResponse(throttle_ms=0, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await answer(
        request,
        caller,
        None,
        hosted=hosted,
        sessions=sessions,
        pool=pool,
        budget=budget,
        clock=clock,
        bytes_max=bytes_max,
        nearest=nearest.seen_from(request.rack_id),
        reader=None if rights is None else Reader(rights.access, rights.asker(caller), rights.image),
    )


async def answer(
    request: FetchRequest,
    caller: Caller,
    replica: ReplicaReader | None,
    *,
    hosted: HostedPartitions,
    sessions: FetchSessions,
    pool: Pool,
    budget: ByteBudget,
    clock: Clock,
    bytes_max: int,
    nearest: Nearest | None = None,
    throttle: LeaderThrottle | None = None,
    reader: Reader | None = None,
) -> FetchResponse | None:
    """For a consumer, or for the replica that the caller has proved to be."""
    is_whole = request.session_epoch in (EPOCH_FIRST, EPOCH_NONE)
    try:
        by_id = caller.version >= _BY_ID_SINCE
        session = _session(request, replica, by_id, sessions, clock.monotonic_ms())
        fetch = Fetch(
            session,
            hosted,
            everyone=is_whole,
            bytes_min=request.min_bytes,
            bytes_max=caller.fetch_bytes_max(min(request.max_bytes, bytes_max)),
            wait_ms=request.max_wait_ms,
            pool=pool,
            budget=budget,
            nearest=nearest,
            throttle=throttle,
            reader=reader,
        )
        with caller.hold_while(fetch):
            answered = await fetch.run()
    except RopewalkError as error:
        return FetchResponse(throttle_ms=0, error_code=code_for(error))
    caller.waited_ms = fetch.waited_ms
    if replica is None:
        caller.measured_ms = _age_ms(answered, clock)
    if fetch.is_abandoned:
        if is_whole:
            sessions.close(session.id)  # its reader never heard of it
        return None
    return FetchResponse(throttle_ms=0, session_id=session.id, topics=_by_topic(answered))


def _session(
    request: FetchRequest, replica: ReplicaReader | None, by_id: bool, sessions: FetchSessions, now_ms: float
) -> FetchSession:
    """The session that the request goes on with, or one that begins with it and may end with it."""
    if request.session_epoch in (EPOCH_FIRST, EPOCH_NONE):
        sessions.close(request.session_id)
        session = FetchSession(
            _interests(request, replica, by_id),
            topics_by_id=by_id,
            committed_only=_is_committed_only(request),
        )
        if request.session_epoch == EPOCH_FIRST:
            sessions.open(session, now_ms)
        return session
    return sessions.resume(
        request.session_id,
        request.session_epoch,
        topics_by_id=by_id,
        committed_only=_is_committed_only(request),
        named=_interests(request, replica, by_id),
        forgotten=_forgotten(request, by_id),
        now_ms=now_ms,
    )


def _age_ms(answered: list[Found], clock: Clock) -> float | None:
    """Of the first batch in the answer, by its timestamp: one of each answer tells how old records are when they are read."""
    for found in answered:
        if found.records:
            return max(0.0, clock.now_ms() - max_timestamp(found.records))
    return None


def _is_committed_only(request: FetchRequest) -> bool:
    return request.isolation_level == _READ_COMMITTED


def _interests(request: FetchRequest, replica: ReplicaReader | None, by_id: bool) -> Iterator[Interest]:
    committed_only = _is_committed_only(request)
    for topic in request.topics:
        key: TopicKey = TopicId(topic.topic_id) if by_id else topic.name
        for asked in topic.partitions:
            yield Interest(
                key,
                asked.index,
                Offset(asked.fetch_offset),
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
                asked.log_start_offset,
                replica,
                may_be_copy=bool(request.rack_id),
                committed_only=committed_only,
            )


def _forgotten(request: FetchRequest, by_id: bool) -> Iterator[tuple[TopicKey, int]]:
    for topic in request.forgotten_topics:
        key: TopicKey = TopicId(topic.topic_id) if by_id else topic.name
        for index in topic.partitions:
            yield key, index


def _by_topic(answered: list[Found]) -> tuple[FetchableTopicResponse, ...]:
    topics: dict[TopicKey, list[PartitionData]] = {}
    for found in answered:
        topics.setdefault(found.interest.topic, []).append(_answer(found))
    return tuple(
        [
            FetchableTopicResponse(topic, partitions=tuple(partitions))
            if isinstance(topic, str)
            else FetchableTopicResponse(topic_id=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ]
    )


def _answer(found: Found) -> PartitionData:
    partition = found.partition
    if found.error is not None or partition is None:
        assert found.error is not None, "where there is no partition an error says why"
        return PartitionData(
            index=found.interest.index,
            error_code=code_for(found.error),
            high_watermark=-1 if partition is None else partition.high_watermark,
            log_start_offset=-1 if partition is None else partition.log.start_offset,
            records=b"",
        )
    if found.diverging is not None:
        diverging = EpochEndOffset(found.diverging.leader_epoch, found.diverging.end_offset)
        return PartitionData(
            index=found.interest.index,
            error_code=0,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.start_offset,
            diverging_epoch=diverging,
            records=b"",
        )
    return PartitionData(
        index=found.interest.index,
        error_code=0,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.start_offset,
        aborted_transactions=_aborted(found) if found.interest.committed_only else None,
        preferred_read_replica=-1 if found.preferred is None else found.preferred,
        records=found.records,
    )


def _aborted(found: Found) -> tuple[AbortedTransaction, ...]:
    return tuple([AbortedTransaction(each.producer_id, each.first_offset) for each in found.aborted])
