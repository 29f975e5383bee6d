"""Who leads, and where replicas are: elections and moves, as an administrator asks for them.

What a reader could get wrong
    A move has begun when `reassign` answers, not ended: `moves` shows what is under way.
    Neither is repeated once it may have been done.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)

PartitionOutcomes = dict[TopicPartition, RemoteError | None]

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


class Move(Struct, frozen=True, gc=False):
    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


class Leadership:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def elect(
        self,
        partitions: Sequence[TopicPartition] | None,
        *,
        unclean: bool = False,
        deadline_ms: float | None = None,
    ) -> PartitionOutcomes:
        """Have preferred replicas lead; with `unclean`, whoever is there where nobody leads. None: wherever it is needed."""
        until_ms = self._until(deadline_ms)
        asked = (
            None
            if partitions is None
            else tuple(
                elect_leaders.TopicPartitions(
                    topic, tuple(each.partition for each in partitions if each.topic == topic)
                )
                for topic in dict.fromkeys(each.topic for each in partitions)
            )
        )

        async def once() -> PartitionOutcomes:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = elect_leaders.ElectLeadersRequest(
                election_type=_UNCLEAN if unclean else _PREFERRED,
                topic_partitions=asked,
                timeout_ms=self._session.remaining_ms(until_ms),
            )
            response = await connection.call(elect_leaders.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about="ElectLeaders")
            return {
                TopicPartition(topic.name, each.index): _error(
                    each.error_code, each.error_message, f"{topic.name}-{each.index}"
                )
                for topic in response.replica_election_results
                for each in topic.partitions
            }

        return await self._session.attempt((), once, deadline_ms=until_ms, repeatable=False)

    async def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[NodeId] | None],
        *,
        deadline_ms: float | None = None,
    ) -> PartitionOutcomes:
        """Begin to move each partition to these replicas; None gives up a move that is under way."""
        until_ms = self._until(deadline_ms)
        asked = tuple(
            alter_partition_reassignments.ReassignableTopic(
                topic,
                tuple(
                    alter_partition_reassignments.ReassignablePartition(
                        each.partition, None if replicas is None else tuple(replicas)
                    )
                    for each, replicas in targets.items()
                    if each.topic == topic
                ),
            )
            for topic in dict.fromkeys(each.topic for each in targets)
        )

        async def once() -> PartitionOutcomes:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
                timeout_ms=self._session.remaining_ms(until_ms), topics=asked
            )
            response = await connection.call(alter_partition_reassignments.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="reassignment")
            return {
                TopicPartition(topic.name, each.index): _error(
                    each.error_code, each.error_message, f"{topic.name}-{each.index}"
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._session.attempt((), once, deadline_ms=until_ms, repeatable=False)

    async def moves(self, *, deadline_ms: float | None = None) -> list[Move]:
        """What is being moved."""
        until_ms = self._until(deadline_ms)

        async def once() -> list[Move]:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = list_partition_reassignments.ListPartitionReassignmentsRequest(
                timeout_ms=self._session.remaining_ms(until_ms)
            )
            response = await connection.call(list_partition_reassignments.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="reassignments")
            return [
                Move(
                    topic.name,
                    each.index,
                    _nodes(each.replicas),
                    _nodes(each.adding_replicas),
                    _nodes(each.removing_replicas),
                )
                for topic in response.topics
                for each in topic.partitions
            ]

        return await self._session.attempt((), once, deadline_ms=until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms


def _nodes(numbers: Sequence[int]) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


def _error(code: int, message: str | None, about: str) -> RemoteError | None:
    return None if code == ErrorCode.NONE else RemoteError(code, message, about=about)
