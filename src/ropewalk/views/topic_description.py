"""All that there is to know about one topic, collected from several answers."""

from msgspec import Struct

from ropewalk.base.ids import TopicPartition, format_id
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.administration.membership import ClusterViewer, PartitionState, TopicState
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.together import together
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.errors import ApiNotOffered
from ropewalk.views.answering import begin_with_any, deadline_ms


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
    queue: str | None = None
    """The name of the queue that it is of."""


_Nodes = tuple[int, ...]


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
        state.queue if state is not None else None,
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
