"""How the topics are laid out that hold state of the cluster's own clients: by the cluster, whatever was asked for."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.limits import (
    AUDIT_RETENTION_MS,
    AUDIT_SEGMENT_MS,
    PIPELINES_SEGMENT_BYTES,
    SPARK_MARKERS_PARTITION_COUNT,
    SPARK_MARKERS_SEGMENT_BYTES,
)
from ropewalk.metadata.internal_topics import AUDIT_TOPIC, PIPELINES_TOPIC, SPARK_MARKERS_TOPIC

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
    AUDIT_TOPIC: Layout(
        1,
        {
            "cleanup.policy": "delete",
            "retention.ms": str(AUDIT_RETENTION_MS),
            "segment.ms": str(AUDIT_SEGMENT_MS),
            "unclean.leader.election.enable": "false",
        },
    ),
    PIPELINES_TOPIC: Layout(
        1,
        {
            "cleanup.policy": "compact",
            "segment.bytes": str(PIPELINES_SEGMENT_BYTES),
            "unclean.leader.election.enable": "false",
        },
    ),
}
"""Of every topic that clients of the cluster's own write, and of the one that is to be as nobody else would have it."""
