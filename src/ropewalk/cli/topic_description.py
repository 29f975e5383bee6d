"""What `topic describe` shows: collected from several answers, printed as tables."""

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition, format_id
from ropewalk.cli.answering import begin_with_any, deadline_ms
from ropewalk.cli.output import counted, print_table
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.administration.membership import ClusterViewer, PartitionState, TopicState
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.together import together
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.errors import ApiNotOffered


class PartitionDescription(Struct, frozen=True):
    partition: int
    leader: int | None
    """None while nobody leads it; its offsets are then not known either, nor where the leader does not answer in time."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    """Not in sync, yet they hold all that was acknowledged."""
    observers: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
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
    owner: str | None
    created_at_ms: int | None
    modified_at_ms: int | None
    partitions: tuple[PartitionDescription, ...]
    settings: tuple[SettingDescription, ...]

    def print(self) -> None:
        facts = [self.topic, f"id {self.id}", counted(len(self.partitions), "partition")]
        facts += [f"owner {self.owner}"] if self.owner is not None else []
        facts += [f"created {_time(self.created_at_ms)}"] if self.created_at_ms is not None else []
        if self.modified_at_ms is not None and self.modified_at_ms != self.created_at_ms:
            facts.append(f"changed {_time(self.modified_at_ms)}")
        print("  ".join(facts))
        # What most topics have none of is shown where there is some.
        seldom = [
            column
            for column in ("eligible", "observers", "adding", "removing")
            if any(getattr(row, column) for row in self.partitions)
        ]
        print_table(
            (*_PARTITION_COLUMNS, *(column.upper() for column in seldom)),
            [
                (
                    row.partition,
                    row.leader,
                    row.leader_epoch,
                    row.replicas,
                    row.isr,
                    row.start_offset,
                    row.end_offset,
                    *(getattr(row, column) for column in seldom),
                )
                for row in self.partitions
            ],
        )
        if self.settings:
            print()
            print_table(
                ("SETTING", "VALUE", "SOURCE"), [(row.name, row.value, row.source) for row in self.settings]
            )


_Nodes = tuple[int, ...]
_PARTITION_COLUMNS: Final = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END")


async def collect(client: Client, name: str, *, all_settings: bool) -> TopicDescription:
    await begin_with_any(client)
    topic = await client.topic(name)
    starts, ends = await together(
        [_offsets(client, topic, query) for query in (OffsetQuery.EARLIEST, OffsetQuery.LATEST)]
    )
    state = await _state(client, name)
    states = {each.index: each for each in state.partitions} if state is not None else {}
    settings = await Admin(client).describe_settings(ResourceKind.TOPIC, name)
    return TopicDescription(
        name,
        format_id(topic.topic_id),
        topic.is_internal,
        state.owner if state is not None else None,
        state.created_at_ms if state is not None else None,
        state.modified_at_ms if state is not None else None,
        tuple(
            PartitionDescription(
                partition.index,
                partition.leader if partition.leader >= 0 else None,
                partition.leader_epoch,
                partition.replicas,
                partition.isr,
                *_seldom(states.get(partition.index)),
                starts.get(partition.index),
                ends.get(partition.index),
            )
            for partition in topic.partitions
        ),
        tuple(
            SettingDescription(setting.name, setting.value, setting.source.name.lower())
            for setting in settings
            if all_settings or not setting.is_default
        ),
    )


async def _offsets(client: Client, topic: TopicView, query: OffsetQuery) -> dict[int, int]:
    """Of the partitions whose leaders answer in time."""
    led = [TopicPartition(topic.name, each.index) for each in topic.partitions if each.leader >= 0]
    listed = await client.list_known_offsets(
        dict.fromkeys(led, int(query)), deadline_ms=deadline_ms(client), without_the_silent=True
    )
    return {each.partition: answer.offset for each, answer in listed.items()}


async def _state(client: Client, name: str) -> TopicState | None:
    """None from a broker that does not tell."""
    try:
        (state,) = await ClusterViewer(client).topics([name])
    except ApiNotOffered:
        return None
    return state


def _seldom(state: PartitionState | None) -> tuple[_Nodes, _Nodes, _Nodes, _Nodes]:
    return (
        ((), (), (), ()) if state is None else (state.eligible, state.observers, state.adding, state.removing)
    )


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
