"""What `group describe` prints."""

from ropewalk.cli.output import counted, print_table
from ropewalk.views.group_description import AssignedPartition, GroupDescription


def print_group(group: GroupDescription) -> None:
    protocol = "/".join(filter(None, (group.protocol_type, group.protocol)))
    facts = (
        group.group,
        group.state,
        *([protocol] if protocol else []),
        f"coordinator {group.coordinator}",
        counted(len(group.members), "member"),
        f"lag {group.lag}",
        *([f"unknown for {counted(group.unknown, 'partition')}"] if group.unknown else []),
    )
    print("  ".join(facts))
    if group.members:
        print_table(
            ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"),
            [
                (row.member, row.instance, row.client, row.host, _shortened(row.partitions) or None)
                for row in group.members
            ],
        )
    if group.offsets:
        if group.members:
            print()
        print_table(
            ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"),
            [
                (row.topic, row.partition, row.committed, row.end, row.lag, row.member)
                for row in group.offsets
            ],
        )


def _shortened(partitions: tuple[AssignedPartition, ...]) -> str:
    """`orders:0,1 bills:3`."""
    indexes: dict[str, list[str]] = {}
    for each in partitions:
        indexes.setdefault(each.topic, []).append(str(each.partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in indexes.items())
