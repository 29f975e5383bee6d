"""The topics that the node writes for itself: state of its own, which clients may read and must not write."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Groups and how far they have read. Named and laid out as Kafka's, so that its tools find what they expect."""

TELEMETRY_TOPIC: Final = "__telemetry"
"""Samples of partitions, groups and nodes, for looking back."""

INTERNAL_TOPICS: Final = frozenset(
    {OFFSETS_TOPIC, "__transaction_state", "__share_group_state", TELEMETRY_TOPIC}
)
