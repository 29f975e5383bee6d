"""All that there is to know about one group, collected from several answers."""

from msgspec import Struct

from ropewalk.client.administration.groups import Groups, Member
from ropewalk.client.calls.client import Client
from ropewalk.views.group_lag import PartitionLag, measure_read, readers_in


class AssignedPartition(Struct, frozen=True):
    topic: str
    partition: int


class MemberDescription(Struct, frozen=True):
    member: str
    instance: str | None
    client: str
    host: str
    topics: tuple[str, ...] | None
    """None where it does not speak the consumer protocol."""
    partitions: tuple[AssignedPartition, ...]


class GroupDescription(Struct, frozen=True):
    group: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: str
    members: tuple[MemberDescription, ...]
    lag: int
    unknown: int
    offsets: tuple[PartitionLag, ...]


async def collect(client: Client, groups: Groups, name: str) -> GroupDescription:
    described = await groups.describe(name)
    (lag,) = await measure_read(client, groups, {name: readers_in(described)})
    return GroupDescription(
        name,
        described.state,
        described.protocol_type,
        described.protocol,
        str(described.coordinator),
        tuple(map(_member, described.members)),
        lag.lag,
        lag.unknown,
        lag.partitions,
    )


def _member(member: Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.host.removeprefix("/"),  # as Java prints an address that has no name
        member.topics,
        tuple(AssignedPartition(each.topic, each.partition) for each in member.partitions),
    )
