"""The topics that the node writes for itself: state of its own, which clients may read and must not write."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Groups and how far they have read. Named and laid out as Kafka's, so that its tools find what they expect."""

TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""Transactional ids and what has become of their transactions. Named and laid out as Kafka's, too."""

TELEMETRY_TOPIC: Final = "__telemetry"
"""Samples of partitions, groups and nodes, for looking back."""

INTERNAL_TOPICS: Final = frozenset(
    {OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state", TELEMETRY_TOPIC}
)
