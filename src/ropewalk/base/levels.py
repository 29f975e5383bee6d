"""Feature levels: what each brought to records, to what nodes say to each other, and to files, in one table.

A cluster works at one level, a number that is a record of its metadata. Nothing that a level brought is written before that level is
in force, so until then every node can go back to the release before. `tests/test_levels.py` compares the table with the code:
whatever is written and is not named here fails it.

What a reader could get wrong
    A level belongs to a release, and a release knows its own levels and the last one of the release before. That is why nodes
    of neighbouring releases work together, and no others.
    A field of a later level may be written while it has its default: whoever does not know it means the same.
    An entry never changes once its release is out. What a later release adds stands under its own level.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from ropewalk.base.version import VERSION

LEVEL_FIRST: Final = 1
"""What is written without a word about levels is of this one."""


class Level(Struct, frozen=True, kw_only=True):
    """What one level brought. A name stands for itself and for the parts that are listed with it."""

    number: int
    release: tuple[int, int]
    records: Mapping[str, tuple[str, ...]] = {}
    """Of the metadata: the type, with the fields that came at this level."""
    peer_versions: Mapping[str, tuple[int, int]] = {}
    """Of APIs between nodes: the oldest and the newest version that came at this level."""
    peer_fields: Mapping[str, tuple[str, ...]] = {}
    """Of messages between nodes: fields in tagged sections, which no version stands for."""
    files: Mapping[str, tuple[str, ...]] = {}
    """By the name that the code has for the format: its fields, or the value that marks it."""


class Software(Struct, frozen=True):
    """Which version a process is of, and at which levels it can work."""

    version: str
    level_min: int
    level_max: int

    def knows(self, level: int) -> bool:
        return self.level_min <= level <= self.level_max

    @property
    def release(self) -> tuple[int, int] | None:
        return release_of(self.version)

    @property
    def range(self) -> str:
        if self.level_min == self.level_max:
            return f"level {self.level_min}"
        return f"levels {self.level_min} to {self.level_max}"


def release_of(version: str) -> tuple[int, int] | None:
    """Major and minor number; None for a version that does not begin with them."""
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def are_neighbours(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether nodes of these releases may be in one cluster: at most one release apart."""
    return one[0] == other[0] and abs(one[1] - other[1]) <= 1


_LEVEL_1: Final = Level(
    number=1,
    release=(0, 1),
    records={
        "cluster_created": ("cluster_id",),
        "controller_changed": ("node_id", "epoch", "settings", "reign", "offset"),
        "broker_registered": (
            "node_id",
            "broker_epoch",
            "directory",
            "endpoints",
            "rack",
            "roles",
            "state",
            "life",
            "process",
            "version",
            "level_min",
            "level_max",
        ),
        "level_changed": ("level",),
        "broker_state_changed": ("node_id", "broker_epoch", "state"),
        "broker_leaving": ("node_id", "is_leaving"),
        "broker_removed": ("node_id",),
        "topic_created": ("topic_id", "name", "owner", "created_at_ms"),
        "topic_changed": ("topic_id", "owner", "modified_at_ms"),
        "topic_deleted": ("topic_id",),
        "partition_created": (
            "topic_id",
            "index",
            "replicas",
            "isr",
            "leader",
            "leader_epoch",
            "partition_epoch",
            "eligible",
            "last_leader",
            "adding",
            "removing",
            "observers",
            "start_offset",
        ),
        "partition_changed": (
            "topic_id",
            "index",
            "replicas",
            "isr",
            "leader",
            "leader_epoch",
            "partition_epoch",
            "eligible",
            "last_leader",
            "adding",
            "removing",
            "observers",
            "start_offset",
        ),
        "loss_recorded": ("topic_id", "index", "leader", "leader_epoch", "at_ms", "reason"),
        "topic_settings_changed": ("topic_id", "changes"),
        "broker_settings_changed": ("node_id", "changes"),
        "producer_ids_allocated": ("node_id", "end_producer_id"),
        "client_quotas_changed": ("entity", "changes"),
        "change_begun": (),
        "change_ended": (),
        "change_abandoned": (),
        "Endpoint": ("listener", "host", "port"),
    },
    peer_versions={
        "ApiVersions": (0, 5),
        "Fetch": (4, 18),
        "ListOffsets": (1, 11),
        "OffsetForLeaderEpoch": (2, 4),
        "AddPartitionsToTxn": (0, 5),
        "WriteTxnMarkers": (1, 2),
        "Hello": (0, 0),
        "Prove": (0, 0),
        "FindController": (0, 0),
        "RegisterNode": (0, 3),
        "NodeHeartbeat": (0, 0),
        "AlterPartition": (0, 0),
        "FetchMetadata": (0, 0),
        "AllocateProducerIds": (0, 0),
        "Forward": (0, 0),
        "HurryFetch": (0, 0),
        "ClusterHealth": (0, 0),
    },
    peer_fields={
        "NodeHeartbeatRequest": ("complaints", "applied_offset", "applied_epoch", "applied_reign"),
        "NodeHeartbeatResponse": ("metadata_end_offset", "clock_ms", "hindrance"),
        "PartitionAlteration": ("start_offset",),
        "FetchMetadataRequest": ("applied_epoch", "applied_reign"),
    },
    files={
        "log.aborted._HEADER": ("<4sI",),
        "log.index._HEADER": ("<IqI",),
        "log.index._GUARDED": ("<Iq",),
        "log.snapshot._HEADER": ("<4sI",),
        "log.aborted._MAGIC": ("52574131",),
        "log.directory.LAYOUT_VERSION": ("1",),
        "log.snapshot._MAGIC": ("52575331",),
        "metadata.frames._MARKER": ("f772774d",),
        "metadata.snapshots._MAGIC": ("7277736e61703031",),
        "groups.consumer.event_codec._EPOCH": ("v0",),
        "groups.consumer.event_codec._MEMBER": ("v0",),
        "groups.consumer.event_codec._TARGET_EPOCH": ("v0",),
        "groups.consumer.event_codec._TARGET": ("v0",),
        "groups.consumer.event_codec._CURRENT": ("v0",),
        "groups.consumer.event_codec._PATTERN": ("v0",),
        "groups.event_codec._OFFSET_KEY": ("v1",),
        "groups.event_codec._OFFSET_VALUE": ("v3",),
        "groups.event_codec._GROUP_KEY": ("v2",),
        "groups.event_codec._GROUP_VALUE": ("v3",),
        "log.aborted.AbortedTransaction": ("producer_id", "first_offset", "last_offset"),
        "log.checkpoints._Entry": ("topic_id", "offset"),
        "log.directory.Identity": ("layout_version", "cluster_id", "node_id", "directory_id"),
        "log.directory.Lives": ("count",),
        "log.directory.PartitionIdentity": ("topic_id",),
        "log.known_damage._Entry": ("topic_id", "ranges"),
        "log.damage.DamagedRange": (
            "start_offset",
            "end_offset",
            "segment_base_offset",
            "start_position",
            "end_position",
        ),
        "log.snapshot.Snapshot": (
            "end_offset",
            "epochs",
            "producers",
            "closed",
            "tail",
            "compacted_offset",
            "transactions",
            "aborted",
        ),
        "log.producers.SavedProducer": (
            "producer_id",
            "epoch",
            "appended_at_ms",
            "may_skip",
            "batches",
            "coordinator_epoch",
            "marker_offset",
        ),
        "log.snapshot.ClosedSegment": ("base_offset", "size_bytes", "max_timestamp"),
        "log.snapshot.Tail": ("base_offset", "size_bytes", "max_timestamp", "opened_at_ms"),
        "log.transactions.SavedTransactions": ("open", "unsettled"),
        "log.transactions.OpenTransaction": (
            "producer_id",
            "producer_epoch",
            "first_offset",
            "started_at_ms",
        ),
        "log.aborted.SavedAborted": ("floor_offset", "chunks", "recent"),
        "log.aborted.Chunk": ("name_offset", "first_offset", "last_offset", "guard"),
        "metadata.etcd.keys.Held": ("node_id", "epoch", "nonce"),
        "metadata.etcd.keys.Pointer": ("name", "chunk_count", "end_offset", "size_bytes", "reign"),
        "metadata.log.Snapshot": ("epoch", "end_offset", "facts"),
        "transactions.event_codec.TransactionLogKey": ("transactional_id",),
        "transactions.event_codec.TransactionLogValue": (
            "producer_id",
            "previous_producer_id",
            "next_producer_id",
            "producer_epoch",
            "next_producer_epoch",
            "transaction_timeout_ms",
            "transaction_status",
            "transaction_partitions",
            "transaction_last_update_timestamp_ms",
            "transaction_start_timestamp_ms",
            "client_transaction_version",
            "previous_epoch",
        ),
        "transactions.event_codec.PartitionsSchema": ("topic", "partition_ids"),
    },
)
_LEVEL_2: Final = Level(
    number=2,
    release=(0, 2),
    records={
        "broker_maintenance": ("node_id", "is_on"),
        "home_left": ("to",),
        "queue_created": (
            "queue_id",
            "name",
            "topic_id",
            "attributes",
            "tags",
            "owner",
            "created_at_ms",
            "is_adopted",
            "starts",
        ),
        "queue_changed": ("queue_id", "attributes", "tags", "modified_at_ms"),
        "queue_deleted": ("queue_id", "name", "deleted_at_ms"),
        "move_task_started": (
            "task_id",
            "queue_id",
            "target",
            "messages_per_second_max",
            "started_at_ms",
            "to_move_count",
        ),
        "move_task_cancelling": ("task_id", "queue_id"),
        "scram_credential_set": (
            "user",
            "mechanism",
            "iterations",
            "salt",
            "stored_key",
            "server_key",
        ),
        "scram_credential_removed": ("user", "mechanism"),
        "decoy_key_set": ("key",),
        "token_key_added": ("key_id", "key", "created_at_ms"),
        "token_key_removed": ("key_id",),
        "move_task_ended": ("task_id", "queue_id", "status", "moved_count", "ended_at_ms", "reason"),
        "acl_added": ("resource_type", "name", "pattern", "principal", "host", "operation", "permission"),
        "change_made": (
            "number",
            "operation",
            "principal",
            "at_ms",
            "groups",
            "method",
            "client_id",
            "host",
            "listener",
            "forwarded_by",
            "details",
            "more_count",
            "offset",
        ),
        "ChangeDetail": ("kind", "resource", "before", "after"),
        "acl_removed": ("resource_type", "name", "pattern", "principal", "host", "operation", "permission"),
    },
    peer_versions={
        "Hello": (
            1,
            1,
        ),  # spoken at level 1 as well: by it two nodes find out what they speak, and nothing of it is kept
        "QueueSend": (0, 0),
        "QueueSettle": (0, 0),
        "QueueCredits": (0, 0),
        "QueueDeliveries": (0, 0),
        "QueueLook": (0, 0),
        "QueueReset": (0, 0),
        "QueueShip": (0, 0),
        "QueueTask": (0, 0),
        "ChangeQueue": (0, 0),
    },
    peer_fields={
        "ForwardRequest": ("groups", "method", "listener"),
    },
    files={
        "records.control._KEY": (">hh16sq",),
        "log.snapshot.Snapshot": ("places",),
        "log.places.SavedOwner": ("owner", "places"),
        "log.places.Place": ("start_offset", "whole_offset"),
    },
)
LEVELS: Final = (_LEVEL_1, _LEVEL_2)
"""In their order, without gaps."""

MAINTENANCE_LEVEL: Final = 2
"""From here on nodes can be kept from leading."""

QUEUES_LEVEL: Final = 2
"""From here on there are queues, and with them state batches in logs (`records/control.py`): nodes before it would not keep what their owners need."""

USERS_LEVEL: Final = 2
"""From here on there are users."""

TOKENS_LEVEL: Final = 2
"""From here on the cluster issues tokens of its own."""

ACLS_LEVEL: Final = 2
"""From here on there are rules about who may do what."""

AUDIT_LEVEL: Final = 2
"""From here on changes say who asked for them."""

PEER_TLS_LEVEL: Final = 2
"""From here on nodes that listen where others can reach them demand TLS of each other, unless they are told otherwise."""


def _ours() -> Software:
    newest = LEVELS[-1]
    before = [level.number for level in LEVELS if level.release < newest.release]
    return Software(VERSION, before[-1] if before else LEVEL_FIRST, newest.number)


OURS: Final = _ours()
"""What this process is, unless a test says otherwise."""


@cache
def peer_version_max(api_name: str, level: int) -> int:
    """The newest version of an API between nodes that may be used at `level`."""
    return max(
        level_brought.peer_versions[api_name][1]
        for level_brought in LEVELS
        if level_brought.number <= level and api_name in level_brought.peer_versions
    )
