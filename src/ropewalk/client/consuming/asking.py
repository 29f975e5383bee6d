"""What a consumer asks one node for, and the request that says so."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.consuming.assignment import Held
from ropewalk.client.consuming.settings import ConsumerSettings
from ropewalk.wire.messages import fetch as wire

_SESSIONLESS: Final = -1
"""A fetch session's epoch that says: there shall be none."""


class Asked(Struct, frozen=True):
    held: Held
    version: int
    offset: int
    topic: TopicView
    leader: NodeId
    leader_epoch: int
    node: NodeId
    """Who is asked: the leader, or the replica that it named."""
    names_rack: bool
    """A replica serves only who names a rack; a leader may send such a one elsewhere."""


def fetch_request(wanted: Sequence[Asked], settings: ConsumerSettings, *, wait_ms: int) -> wire.FetchRequest:
    """All of them name the rack, or none does."""
    by_topic: dict[str, list[Asked]] = {}
    for asked in wanted:
        by_topic.setdefault(asked.topic.name, []).append(asked)
    return wire.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        isolation_level=settings.isolation,
        session_epoch=_SESSIONLESS,
        topics=tuple(
            wire.FetchTopic(
                name=name,
                topic_id=of_topic[0].topic.topic_id,
                partitions=tuple(_partition(asked, settings) for asked in of_topic),
            )
            for name, of_topic in by_topic.items()
        ),
        rack_id=settings.client_rack if wanted[0].names_rack else "",
    )


def _partition(asked: Asked, settings: ConsumerSettings) -> wire.FetchPartition:
    return wire.FetchPartition(
        index=asked.held.partition.partition,
        current_leader_epoch=asked.leader_epoch,
        fetch_offset=asked.offset,
        partition_max_bytes=settings.max_partition_fetch_bytes,
    )
