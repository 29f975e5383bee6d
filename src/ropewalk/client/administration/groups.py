"""Consumer groups as an administrator sees them: who is in them, how far they have read, and changing that.

What a reader could get wrong
    `commit` speaks as nobody in particular, which brokers allow while a group has no members. While it has some
    they answer UNKNOWN_MEMBER_ID: offsets are then the members' to commit.
    A group that only holds offsets, as clients without `subscribe` leave it, is empty and of no protocol.
    What deletes is not repeated once it may have been done; see `client.admin`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls import group_offsets
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed, GroupIdentity, OffsetToCommit, PartitionOutcomes
from ropewalk.client.calls.together import together
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.coordinators import Coordinators, only_group
from ropewalk.client.errors import SILENCE, ApiNotOffered, RemoteError
from ropewalk.wire import consumer_protocol
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import consumer_group_describe, delete_groups, describe_groups, list_groups

_DEAD: Final = "Dead"
"""How DescribeGroups says, before version 6, that there is no such group."""


class ListedGroup(Struct, frozen=True, gc=False):
    group: str
    protocol_type: str
    state: str
    """Empty where the broker is too old to say."""
    kind: str
    """Kafka's type of group: classic or consumer; empty where the broker is too old to say."""
    coordinator: NodeId


class Member(Struct, frozen=True, gc=False):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...] | None
    """What it is subscribed to; None where the bytes are not of the consumer protocol."""
    partitions: tuple[TopicPartition, ...]
    """What it has been assigned, sorted."""


class DescribedGroup(Struct, frozen=True, gc=False):
    group: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: Address
    members: tuple[Member, ...]


class Groups:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._session = client.session
        self._coordinators = Coordinators(client.session)

    async def list(
        self, *, deadline_ms: float | None = None, without_the_silent: bool = False
    ) -> list[ListedGroup]:
        """All groups, from all brokers, by name; where that is wanted without those of brokers that do not answer in time."""
        until_ms = self._until(deadline_ms)

        async def ask(node: NodeId) -> tuple[ListedGroup, ...]:
            connection = await self._session.cluster.connection(node, deadline_ms=until_ms)
            response = await connection.call(
                list_groups.API, list_groups.ListGroupsRequest(), deadline_ms=until_ms
            )
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=f"ListGroups at broker {node}")
            return tuple(
                ListedGroup(each.group_id, each.protocol_type, each.group_state, each.group_type, node)
                for each in response.groups
            )

        async def ask_or_leave(node: NodeId) -> tuple[ListedGroup, ...]:
            try:
                return await ask(node)
            except SILENCE:
                if not without_the_silent:
                    raise
                return ()

        async def once() -> list[ListedGroup]:
            view = await self._session.cluster.metadata([], deadline_ms=until_ms)
            answers = await together([ask_or_leave(broker.node_id) for broker in view.brokers])
            return sorted((each for answer in answers for each in answer), key=lambda each: each.group)

        return await self._session.attempt((), once, deadline_ms=until_ms)

    async def describe(self, group: str, *, deadline_ms: float | None = None) -> DescribedGroup:
        """Raises GROUP_ID_NOT_FOUND, whatever the broker's version, for a group that is not there."""
        until_ms = self._until(deadline_ms)

        async def once(connection: Connection) -> DescribedGroup:
            request = describe_groups.DescribeGroupsRequest(groups=(group,))
            response = await connection.call(describe_groups.API, request, deadline_ms=until_ms)
            answer = only_group(response.groups, "DescribeGroups")
            if answer.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                raise RemoteError(answer.error_code, answer.error_message, about=group)
            if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND or answer.group_state == _DEAD:
                return await self._describe_assigned(group, connection, until_ms)
            return DescribedGroup(
                group,
                answer.group_state,
                answer.protocol_type,
                answer.protocol_data,
                connection.address,
                tuple(_member(member, answer.protocol_type) for member in answer.members),
            )

        return await self._coordinators.ask(group, once, deadline_ms=until_ms)

    async def _describe_assigned(self, group: str, connection: Connection, until_ms: float) -> DescribedGroup:
        """A group whose assignments the broker makes (KIP-848): to DescribeGroups it is not there."""
        request = consumer_group_describe.ConsumerGroupDescribeRequest((group,), False)
        try:
            response = await connection.call(consumer_group_describe.API, request, deadline_ms=until_ms)
        except ApiNotOffered:
            raise _no_such_group(group) from None
        answer = only_group(response.groups, "ConsumerGroupDescribe")
        if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise _no_such_group(group)  # neither kind: what the broker says is about one of them
        if answer.error_code != ErrorCode.NONE:
            raise RemoteError(answer.error_code, answer.error_message, about=group)
        return DescribedGroup(
            group,
            answer.group_state,
            consumer_protocol.CONSUMER_PROTOCOL_TYPE,
            answer.assignor_name,
            connection.address,
            tuple(map(_assigned_member, answer.members)),
        )

    async def committed(
        self, group: str, *, deadline_ms: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Every offset the group has committed, sorted. A group that is not there has none."""
        return await group_offsets.fetch(self._coordinators, group, deadline_ms=self._until(deadline_ms))

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], *, deadline_ms: float | None = None
    ) -> PartitionOutcomes:
        """Set the group's offsets from outside, which brokers allow only while it has no members."""
        until_ms = self._until(deadline_ms)
        return await group_offsets.commit(
            self._coordinators,
            GroupIdentity(group),
            {partition: OffsetToCommit(offset) for partition, offset in offsets.items()},
            deadline_ms=until_ms,
        )

    async def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, deadline_ms: float | None = None
    ) -> PartitionOutcomes:
        """Have the group forget how far it has read; refused for topics that a member is subscribed to."""
        until_ms = self._until(deadline_ms)
        return await group_offsets.delete(self._coordinators, group, partitions, deadline_ms=until_ms)

    async def delete(
        self, groups: Iterable[str], *, deadline_ms: float | None = None
    ) -> dict[str, RemoteError | None]:
        """Delete empty groups with their offsets; each has its own outcome."""
        until_ms = self._until(deadline_ms)
        names = list(dict.fromkeys(groups))
        outcomes = await together([self._delete(name, until_ms) for name in names])
        return dict(zip(names, outcomes, strict=True))

    async def _delete(self, group: str, until_ms: float) -> RemoteError | None:
        async def once(connection: Connection) -> RemoteError | None:
            request = delete_groups.DeleteGroupsRequest((group,))
            response = await connection.call(delete_groups.API, request, deadline_ms=until_ms)
            answer = only_group(response.results, "DeleteGroups")
            if answer.error_code != ErrorCode.NONE:
                raise RemoteError(answer.error_code, answer.error_message, about=group)
            return None

        try:
            return await self._coordinators.ask(group, once, deadline_ms=until_ms, repeatable=False)
        except RemoteError as error:
            return error

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms


def _no_such_group(group: str) -> RemoteError:
    return RemoteError(ErrorCode.GROUP_ID_NOT_FOUND, "there is no group of this name", about=group)


def _assigned_member(member: consumer_group_describe.Member) -> Member:
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.subscribed_topic_names,
        tuple(
            sorted(
                TopicPartition(topic.topic_name, index)
                for topic in member.assignment.topic_partitions
                for index in topic.partitions
            )
        ),
    )


def _member(member: describe_groups.DescribedGroupMember, protocol_type: str) -> Member:
    is_consumer = protocol_type == consumer_protocol.CONSUMER_PROTOCOL_TYPE
    subscription = consumer_protocol.decode_subscription(member.member_metadata) if is_consumer else None
    assignment = consumer_protocol.decode_assignment(member.member_assignment) if is_consumer else None
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        None if subscription is None else tuple(sorted(subscription.topics)),
        tuple(
            sorted(
                TopicPartition(topic.topic, index)
                for topic in (assignment.assigned_partitions if assignment is not None else ())
                for index in topic.partitions
            )
        ),
    )
