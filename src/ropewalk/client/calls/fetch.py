"""Fetch: record batches of any number of partitions, from wherever they are led.

What a reader could get wrong
    One round asks each leader once, all at the same time, and ends when the last has answered. With several
    leaders an idle one holds the round for `wait_ms`.
    The first batch may begin before the offset asked for: brokers send whole batches.
    A partition whose leader has moved, or that has none, is left out of the round and looked up anew for the
    next: one sick partition does not keep the others from being read.
    A client with a rack reads from the copy that the leader names (`nearby.py`). The round in which the leader names it brings nothing of
    that partition, and neither does one in which the copy fails.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, LeaderEpoch, NodeId, TopicId, TopicPartition, format_id
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.client.calls.together import together
from ropewalk.client.connections.cluster import Lane, TopicView
from ropewalk.client.connections.nearby import Reading
from ropewalk.client.connections.session import Session, version_max_for
from ropewalk.client.errors import STALE_METADATA, RemoteError, TopicReplaced
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch as wire
from ropewalk.wire.types import Buffer

_SESSIONLESS: Final = -1
"""A fetch session's epoch that says: there shall be none."""

_ANY_TOPIC: Final[Mapping[str, TopicId]] = {}


class Fetched(Struct, frozen=True, gc=False):
    """What one partition answered. `records` holds whole batches, possibly none."""

    partition: TopicPartition
    records: Buffer
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...] = ()
    """Producer ids with the first offset of a transaction of theirs that was aborted; told to who reads what is committed."""


class _Wanted(Struct, frozen=True, gc=False):
    topic: TopicView
    index: int
    leader_epoch: LeaderEpoch
    offset: int

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.index)


async def fetch(
    session: Session,
    positions: Mapping[TopicPartition, int],
    *,
    wait_ms: int,
    bytes_min: int,
    isolation: Isolation,
    deadline_ms: float,
    topic_ids: Mapping[str, TopicId] = _ANY_TOPIC,
) -> list[Fetched]:
    """One round. Raises `RemoteError` for what another round would not cure, such as an offset out of range, and `TopicReplaced`
    if a topic is no longer the one of `topic_ids`."""
    topics = sorted({partition.topic for partition in positions})

    async def once() -> list[Fetched]:
        by_reading: dict[Reading, list[_Wanted]] = {}
        nearby, now_ms = session.nearby, session.clock.monotonic_ms()
        leaderless: RemoteError | None = None
        for partition, offset in positions.items():
            try:
                topic, view = await session.cluster.partition(
                    partition.topic, partition.partition, deadline_ms=deadline_ms
                )
            except RemoteError as error:
                if error.code is not ErrorCode.LEADER_NOT_AVAILABLE:
                    raise
                leaderless = error
                continue
            _check_identity(topic, topic_ids.get(partition.topic))
            wanted = _Wanted(topic, view.index, view.leader_epoch, offset)
            reading = nearby.reading(partition, view, session.cluster.knows, now_ms)
            by_reading.setdefault(reading, []).append(wanted)
        if leaderless is not None:
            for name in topics:
                session.cluster.forget(name)
            if not by_reading:
                raise leaderless
        answers = await together(
            [
                _ask_copy(session, reading, wanted, wait_ms, bytes_min, isolation, deadline_ms)
                for reading, wanted in sorted(by_reading.items(), key=lambda each: each[0].node)
            ]
        )
        return [fetched for answer in answers for fetched in answer]

    return await session.attempt(topics, once, deadline_ms=deadline_ms)


def _check_identity(topic: TopicView, expected: TopicId | None) -> None:
    """Brokers that know no ids tell none; then a topic is its name."""
    if (
        expected is not None
        and TOPIC_ID_NONE not in (expected, topic.topic_id)
        and topic.topic_id != expected
    ):
        raise TopicReplaced(topic.name, expected_id=format_id(expected), found_id=format_id(topic.topic_id))


async def _ask_copy(
    session: Session,
    reading: Reading,
    wanted: Sequence[_Wanted],
    wait_ms: int,
    bytes_min: int,
    isolation: Isolation,
    deadline_ms: float,
) -> list[Fetched]:
    """The leader's, or one nearby: what that one refuses, the leader may have."""
    if not reading.is_copy:
        return await _ask(session, reading, wanted, wait_ms, bytes_min, isolation, deadline_ms)
    try:
        fetched = await _ask(session, reading, wanted, wait_ms, bytes_min, isolation, deadline_ms)
    except RopewalkError as error:
        session.on_retry(error)
        fetched = []
    brought = {each.partition for each in fetched if each.records}
    for want in wanted:
        if want.partition not in brought:
            session.cluster.forget(want.topic.name)
            session.nearby.on_failed(want.partition, session.clock.monotonic_ms())
    return [each for each in fetched if each.records]


async def _ask(
    session: Session,
    reading: Reading,
    wanted: Sequence[_Wanted],
    wait_ms: int,
    bytes_min: int,
    isolation: Isolation,
    deadline_ms: float,
) -> list[Fetched]:
    connection = await session.cluster.connection(reading.node, deadline_ms=deadline_ms, lane=Lane.POLLS)
    by_topic: dict[str, list[_Wanted]] = {}
    for want in wanted:
        by_topic.setdefault(want.topic.name, []).append(want)
    request = wire.FetchRequest(
        replica_id=-1,
        max_wait_ms=min(wait_ms, session.remaining_ms(deadline_ms)),
        min_bytes=bytes_min,
        max_bytes=session.settings.fetch_max_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=_SESSIONLESS,
        topics=tuple(_topic_request(session, wants) for wants in by_topic.values()),
        rack_id=session.settings.client_rack if reading.names_rack else "",
    )
    topics = [wants[0].topic for wants in by_topic.values()]
    response = await connection.call(
        wire.API, request, deadline_ms=deadline_ms, version_max=version_max_for(topics)
    )
    if response.error_code != ErrorCode.NONE:
        raise RemoteError(response.error_code, about="Fetch")
    names = {topic.topic_id: topic.name for topic in topics}
    fetched: list[Fetched] = []
    failure: RopewalkError | None = None
    for topic in response.topics:
        name = topic.name or names.get(TopicId(bytes(topic.topic_id)))
        if name is None:
            raise ProtocolError("Fetch answered for a topic that was not asked for")
        for answer in topic.partitions:
            partition = TopicPartition(name, answer.index)
            if answer.error_code == ErrorCode.NONE:
                if answer.preferred_read_replica >= 0 and not answer.records:
                    _go_there(session, reading, partition, NodeId(answer.preferred_read_replica))
                fetched.append(_fetched(partition, answer))
                continue
            failure = RemoteError(answer.error_code, about=str(partition))
            if failure.code not in STALE_METADATA:
                raise failure
            session.cluster.forget(name)
    if failure is not None and not any(answer.records for answer in fetched):
        # A broker answers at once when a partition is in error: without a pause we would ask in a circle.
        raise failure
    return fetched


def _go_there(session: Session, reading: Reading, partition: TopicPartition, copy: NodeId) -> None:
    now_ms = session.clock.monotonic_ms()
    if copy != reading.node and not reading.is_copy and session.cluster.knows(copy):
        session.cluster.forget(partition.topic)  # the leader may know it to be in sync since a moment ago
        session.nearby.on_sent(partition, copy, now_ms)
    else:
        session.nearby.on_failed(partition, now_ms)


def _topic_request(session: Session, wants: Sequence[_Wanted]) -> wire.FetchTopic:
    partitions = tuple(
        wire.FetchPartition(
            index=want.index,
            current_leader_epoch=want.leader_epoch,
            fetch_offset=want.offset,
            partition_max_bytes=session.settings.fetch_partition_max_bytes,
        )
        for want in wants
    )
    topic = wants[0].topic
    return wire.FetchTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _fetched(partition: TopicPartition, answer: wire.PartitionData) -> Fetched:
    return Fetched(
        partition,
        answer.records if answer.records is not None else b"",
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
        tuple([(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]),
    )
