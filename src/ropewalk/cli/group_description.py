"""What `group describe` shows: collected from several answers, printed as tables."""

from msgspec import Struct

from ropewalk.cli.group_lag import PartitionLag, measure_read, readers_in
from ropewalk.cli.output import counted, print_table
from ropewalk.client.administration.groups import Groups, Member
from ropewalk.client.calls.client import Client


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

    def print(self) -> None:
        protocol = "/".join(filter(None, (self.protocol_type, self.protocol)))
        facts = (
            self.group,
            self.state,
            *([protocol] if protocol else []),
            f"coordinator {self.coordinator}",
            counted(len(self.members), "member"),
            f"lag {self.lag}",
            *([f"unknown for {counted(self.unknown, 'partition')}"] if self.unknown else []),
        )
        print("  ".join(facts))
        if self.members:
            print_table(
                ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"),
                [
                    (row.member, row.instance, row.client, row.host, _shortened(row.partitions) or None)
                    for row in self.members
                ],
            )
        if self.offsets:
            if self.members:
                print()
            print_table(
                ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"),
                [
                    (row.topic, row.partition, row.committed, row.end, row.lag, row.member)
                    for row in self.offsets
                ],
            )


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


def _shortened(partitions: tuple[AssignedPartition, ...]) -> str:
    """`orders:0,1 bills:3`."""
    indexes: dict[str, list[str]] = {}
    for each in partitions:
        indexes.setdefault(each.topic, []).append(str(each.partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in indexes.items())
