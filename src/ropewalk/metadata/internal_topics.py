"""The topics that hold the cluster's own state, which are laid out by the cluster and not by clients.

Most are written by nodes alone. Some are written by clients of the cluster's own making, like any topic: the state is theirs, and
the cluster sees to it that it is kept.
"""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Groups and how far they have read. Named and laid out as Kafka's, so that its tools find what they expect."""

TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""Transactional ids and what has become of their transactions. Named and laid out as Kafka's, too."""

TELEMETRY_TOPIC: Final = "__telemetry"
"""Samples of partitions, groups and nodes, for looking back."""

AUDIT_TOPIC: Final = "__audit"
"""Who asked for which change of the cluster, in the order of the changes."""

SPARK_MARKERS_TOPIC: Final = "__spark_markers"
"""How far tasks of Spark have come that write to topics, each marker in one transaction with the rows."""

PIPELINES_TOPIC: Final = "__pipelines"
"""How jobs on Spark are: of each its state, its figures and its last error."""

NODES_TOPICS: Final = frozenset(
    {OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state", TELEMETRY_TOPIC, AUDIT_TOPIC}
)
"""Clients may read them and must not write."""

CLIENTS_TOPICS: Final = frozenset({SPARK_MARKERS_TOPIC, PIPELINES_TOPIC})
"""Clients write keyed records to them. Whoever needs one first asks for it like for any topic (CreateTopics); how many partitions and copies
it has and what is kept in it is the cluster's decision, whatever was asked for. Nobody deletes them."""

INTERNAL_TOPICS: Final = NODES_TOPICS | CLIENTS_TOPICS
