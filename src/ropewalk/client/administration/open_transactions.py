"""Transactions as a partition sees them: who has one open, and how to end it there without its coordinator."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.together import together
from ropewalk.client.connections.session import Session, only_partition
from ropewalk.client.errors import STALE_METADATA, RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_producers, write_txn_markers

_AS_ORIGINALLY: Final = 0
"""The kind of transaction whose marker carries the epoch that was written with, and not the next."""


class OpenTransaction(Struct, frozen=True, gc=False):
    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    written_at_ms: int
    """When the producer last wrote here."""


async def open_in(
    session: Session, wanted: frozenset[TopicPartition], *, deadline_ms: float
) -> list[OpenTransaction]:
    """In order. A partition that is gone or has no leader is left out."""

    async def once() -> list[OpenTransaction]:
        names = sorted({partition.topic for partition in wanted})
        view = await session.cluster.metadata(names, deadline_ms=deadline_ms)
        by_leader: dict[NodeId, dict[str, list[int]]] = {}
        for topic in view.topics:
            for partition in topic.partitions:
                if (
                    session.cluster.knows(partition.leader)
                    and TopicPartition(topic.name, partition.index) in wanted
                ):
                    of_leader = by_leader.setdefault(partition.leader, {})
                    of_leader.setdefault(topic.name, []).append(partition.index)
        answers = await together([ask(node, topics) for node, topics in sorted(by_leader.items())])
        found = (each for answer in answers for each in answer)
        return sorted(found, key=lambda each: (each.partition, each.first_offset))

    async def ask(node: NodeId, topics: Mapping[str, Sequence[int]]) -> list[OpenTransaction]:
        connection = await session.cluster.connection(node, deadline_ms=deadline_ms)
        request = describe_producers.DescribeProducersRequest(
            tuple(describe_producers.TopicRequest(name, tuple(indexes)) for name, indexes in topics.items())
        )
        response = await connection.call(describe_producers.API, request, deadline_ms=deadline_ms)
        found: list[OpenTransaction] = []
        for topic in response.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.index)
                if answer.error_code == ErrorCode.NONE:
                    found += _open(partition, answer.active_producers)
                    continue
                error = RemoteError(answer.error_code, answer.error_message, about=str(partition))
                if (
                    error.code not in STALE_METADATA
                ):  # else it was deleted, or lost its leader, since we looked
                    raise error
        return found

    return await session.attempt((), once, deadline_ms=deadline_ms) if wanted else []


async def abort(session: Session, transaction: OpenTransaction, *, deadline_ms: float) -> None:
    """Raises what the leader refuses it with."""
    partition = transaction.partition
    request = write_txn_markers.WriteTxnMarkersRequest(
        (
            write_txn_markers.WritableTxnMarker(
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                transaction_result=False,
                topics=(write_txn_markers.WritableTxnMarkerTopic(partition.topic, (partition.partition,)),),
                coordinator_epoch=max(0, transaction.coordinator_epoch),
                transaction_version=_AS_ORIGINALLY,
            ),
        )
    )

    async def once() -> None:
        leaders = await session.leaders(partition.topic, [partition.partition], deadline_ms=deadline_ms)
        (node,) = leaders
        connection = await session.cluster.connection(node, deadline_ms=deadline_ms)
        response = await connection.call(write_txn_markers.API, request, deadline_ms=deadline_ms)
        answer = only_partition(
            [topic for marker in response.markers for topic in marker.topics], "WriteTxnMarkers"
        )
        if answer.error_code != ErrorCode.NONE:
            raise RemoteError(answer.error_code, about=str(partition))

    await session.attempt((partition.topic,), once, deadline_ms=deadline_ms)


def _open(
    partition: TopicPartition, producers: Iterable[describe_producers.ProducerState]
) -> list[OpenTransaction]:
    return [
        OpenTransaction(
            partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.current_txn_start_offset,
            each.last_timestamp,
        )
        for each in producers
        if each.current_txn_start_offset >= 0
    ]
