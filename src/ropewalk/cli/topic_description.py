"""What `topic describe` shows: collected from several answers, printed as tables."""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import format_id
from ropewalk.cli.output import counted, print_table
from ropewalk.client.admin import Admin, ResourceKind
from ropewalk.client.client import Client
from ropewalk.client.list_offsets import OffsetQuery


class PartitionDescription(Struct, frozen=True):
    partition: int
    leader: int | None
    """None while nobody leads it; its offsets are then not known either."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None


class SettingDescription(Struct, frozen=True):
    name: str
    value: str | None
    source: str


class TopicDescription(Struct, frozen=True):
    topic: str
    id: str
    internal: bool
    partitions: tuple[PartitionDescription, ...]
    settings: tuple[SettingDescription, ...]

    def print(self) -> None:
        print(f"{self.topic}  id {self.id}  {counted(len(self.partitions), 'partition')}")
        print_table(
            _PARTITION_COLUMNS,
            [
                (
                    row.partition,
                    row.leader,
                    row.leader_epoch,
                    row.replicas,
                    row.isr,
                    row.start_offset,
                    row.end_offset,
                )
                for row in self.partitions
            ],
        )
        if self.settings:
            print()
            print_table(
                ("SETTING", "VALUE", "SOURCE"), [(row.name, row.value, row.source) for row in self.settings]
            )


_PARTITION_COLUMNS: Final = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END")


async def collect(client: Client, name: str, *, all_settings: bool) -> TopicDescription:
    topic = await client.topic(name)
    led = [partition.index for partition in topic.partitions if partition.leader >= 0]
    starts = await client.list_offsets(name, dict.fromkeys(led, OffsetQuery.EARLIEST))
    ends = await client.list_offsets(name, dict.fromkeys(led, OffsetQuery.LATEST))
    settings = await Admin(client).describe_settings(ResourceKind.TOPIC, name)
    return TopicDescription(
        name,
        format_id(topic.topic_id),
        topic.is_internal,
        tuple(
            PartitionDescription(
                partition.index,
                partition.leader if partition.leader >= 0 else None,
                partition.leader_epoch,
                partition.replicas,
                partition.isr,
                starts[partition.index].offset if partition.index in starts else None,
                ends[partition.index].offset if partition.index in ends else None,
            )
            for partition in topic.partitions
        ),
        tuple(
            SettingDescription(setting.name, setting.value, setting.source.name.lower())
            for setting in settings
            if all_settings or not setting.is_default
        ),
    )
