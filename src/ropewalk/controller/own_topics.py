"""How the topics are laid out that hold state of the cluster's own clients: by the cluster, whatever was asked for."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.limits import SPARK_MARKERS_PARTITION_COUNT, SPARK_MARKERS_SEGMENT_BYTES
from ropewalk.metadata.internal_topics import SPARK_MARKERS_TOPIC

INTERNAL_FACTOR: Final = 3
"""Replicas of each partition of the cluster's own topics, as far as there are brokers for them."""


class Layout(Struct, frozen=True):
    partition_count: int
    """It can never change: what is in a partition would be looked for elsewhere."""
    settings: Mapping[str, str]


LAYOUTS: Final[Mapping[str, Layout]] = {
    SPARK_MARKERS_TOPIC: Layout(
        SPARK_MARKERS_PARTITION_COUNT,
        {
            "cleanup.policy": "compact",
            "segment.bytes": str(SPARK_MARKERS_SEGMENT_BYTES),
            "unclean.leader.election.enable": "false",
        },
    ),
}
"""Of every topic that clients of the cluster's own write."""
