"""ListOffsets: where a partition begins and ends, and which offset belongs to a time."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.together import together
from ropewalk.client.connections.cluster import PartitionView
from ropewalk.client.connections.session import Session
from ropewalk.client.errors import SILENCE, STALE_METADATA, RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import list_offsets as wire


class Isolation(IntEnum):
    """Whether records of open and aborted transactions are seen."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetQuery(IntEnum):
    """The instants that are not instants."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


class ListedOffset(Struct, frozen=True, gc=False):
    """`offset` is -1 where no record answers the query."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    session: Session, topic: str, queries: Mapping[int, int], *, isolation: Isolation, deadline_ms: float
) -> dict[int, ListedOffset]:
    async def once() -> dict[int, ListedOffset]:
        leaders = await session.leaders(topic, queries, deadline_ms=deadline_ms)
        answers = await together(
            [
                _ask(session, node, topic, partitions, queries, isolation, deadline_ms)
                for node, partitions in leaders.items()
            ]
        )
        return {index: listed for answer in answers for index, listed in answer.items()}

    return await session.attempt((topic,), once, deadline_ms=deadline_ms) if queries else {}


async def list_known(
    session: Session,
    queries: Mapping[TopicPartition, int],
    *,
    isolation: Isolation,
    deadline_ms: float,
    without_the_silent: bool = False,
) -> dict[TopicPartition, ListedOffset]:
    """Over any number of topics, with one request to each leader. What is gone or has no leader is left out, and where that is wanted also
    what is led by a node that does not answer in time."""

    async def once() -> dict[TopicPartition, ListedOffset]:
        names = sorted({partition.topic for partition in queries})
        view = await session.cluster.metadata(names, deadline_ms=deadline_ms)
        by_leader: dict[NodeId, dict[str, list[PartitionView]]] = {}
        for topic in view.topics:
            for partition in topic.partitions:
                is_led = session.cluster.knows(partition.leader)
                if is_led and TopicPartition(topic.name, partition.index) in queries:
                    of_leader = by_leader.setdefault(partition.leader, {})
                    of_leader.setdefault(topic.name, []).append(partition)
        answers = await together([ask_or_leave(node, topics) for node, topics in sorted(by_leader.items())])
        return {partition: listed for answer in answers for partition, listed in answer.items()}

    async def ask_or_leave(
        node: NodeId, topics: Mapping[str, Sequence[PartitionView]]
    ) -> dict[TopicPartition, ListedOffset]:
        try:
            return await ask(node, topics)
        except SILENCE:
            if not without_the_silent:
                raise
            return {}

    async def ask(
        node: NodeId, topics: Mapping[str, Sequence[PartitionView]]
    ) -> dict[TopicPartition, ListedOffset]:
        connection = await session.cluster.connection(node, deadline_ms=deadline_ms)
        request = wire.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=tuple(
                wire.ListOffsetsTopic(
                    name=name,
                    partitions=tuple(
                        _asked(partition, queries[TopicPartition(name, partition.index)])
                        for partition in partitions
                    ),
                )
                for name, partitions in topics.items()
            ),
        )
        response = await connection.call(wire.API, request, deadline_ms=deadline_ms)
        listed: dict[TopicPartition, ListedOffset] = {}
        for topic in response.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.index)
                if answer.error_code == ErrorCode.NONE:
                    listed[partition] = ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)
                    continue
                error = RemoteError(answer.error_code, about=str(partition))
                if (
                    error.code not in STALE_METADATA
                ):  # else it was deleted, or lost its leader, since we looked
                    raise error
        return listed

    return await session.attempt((), once, deadline_ms=deadline_ms) if queries else {}


async def _ask(
    session: Session,
    node: NodeId,
    topic: str,
    partitions: Sequence[PartitionView],
    queries: Mapping[int, int],
    isolation: Isolation,
    deadline_ms: float,
) -> dict[int, ListedOffset]:
    connection = await session.cluster.connection(node, deadline_ms=deadline_ms)
    asked = tuple(_asked(partition, queries[partition.index]) for partition in partitions)
    request = wire.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=(wire.ListOffsetsTopic(name=topic, partitions=asked),),
    )
    response = await connection.call(wire.API, request, deadline_ms=deadline_ms)
    listed: dict[int, ListedOffset] = {}
    for answer in [answer for topic in response.topics for answer in topic.partitions]:
        if answer.error_code != ErrorCode.NONE:
            raise RemoteError(answer.error_code, about=f"{topic}-{answer.index}")
        listed[answer.index] = ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)
    if len(listed) != len(asked):
        raise ProtocolError(f"ListOffsets answered for {len(listed)} of {len(asked)} partitions of {topic}")
    return listed


def _asked(partition: PartitionView, query: int) -> wire.ListOffsetsPartition:
    return wire.ListOffsetsPartition(
        index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=query
    )
