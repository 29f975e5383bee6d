"""Every metric: its name, its kind, its labels and what it tells, declared once.

The figures themselves are plain numbers that belong to whoever counts (an `int` that is added to, a `Durations`): the way
of a request looks nothing up and takes no lock. When somebody asks, each owner writes its numbers on a `Sheet`, under
the declarations that stand here. `docs/reference/metrics.md` is generated from them.

What a reader could get wrong
    The names with `kafka_` are those of kafka_exporter, labels and all, so that dashboards made for it work. They do not
    follow our naming and must not be changed.
    A node tells of the partitions it leads, so that the sum over all nodes counts each once.
    Histograms of times are kept in milliseconds and told in seconds.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.durations import Durations


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True, eq=False):
    """One name. Compared by identity: a metric is the constant that declares it."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def is_per_partition(self) -> bool:
        """Whether it has a line for every partition, of which there may be thousands."""
        return "partition" in self.labels


class Sheet(Protocol):
    """Where figures are written when somebody asks for them."""

    @property
    def per_partition(self) -> bool:
        """Whether metrics that have a line for every partition are wanted. Those that are not wanted may be added."""

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """One figure; the values of its labels in the order of their declaration."""

    def add_durations(self, metric: Metric, durations: Durations, *labels: str) -> None: ...

    def add_row(self, row: tuple[Metric, ...], values: tuple[float, ...], *labels: str) -> None:
        """Several figures that have their labels in common."""


class Source(Protocol):
    """Somebody who counts."""

    def collect(self, sheet: Sheet) -> Iterator[None]:
        """Write the figures; yields where the event loop may have a turn, at least every `SCRAPE_SLICE_COUNT` rows."""


def _counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.COUNTER, help, labels)


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, help, labels)


def _histogram(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, help, labels)


# What kafka_exporter tells.

BROKERS: Final = _gauge("kafka_brokers", "Brokers of the cluster that are in service.")
BROKER_INFO: Final = _gauge("kafka_broker_info", "1 for each broker, with its address.", "id", "address")
TOPIC_PARTITIONS: Final = _gauge("kafka_topic_partitions", "Partitions of the topic.", "topic")
CURRENT_OFFSET: Final = _gauge(
    "kafka_topic_partition_current_offset",
    "The offset after the last record that consumers can see.",
    "topic",
    "partition",
)
OLDEST_OFFSET: Final = _gauge(
    "kafka_topic_partition_oldest_offset", "The offset of the first record.", "topic", "partition"
)
LEADER: Final = _gauge(
    "kafka_topic_partition_leader", "The number of the node that leads it.", "topic", "partition"
)
LEADER_IS_PREFERRED: Final = _gauge(
    "kafka_topic_partition_leader_is_preferred",
    "1 where its leader is the first of its replicas.",
    "topic",
    "partition",
)
REPLICAS: Final = _gauge("kafka_topic_partition_replicas", "How many replicas it has.", "topic", "partition")
IN_SYNC_REPLICAS: Final = _gauge(
    "kafka_topic_partition_in_sync_replica", "How many of its replicas are in sync.", "topic", "partition"
)
UNDER_REPLICATED: Final = _gauge(
    "kafka_topic_partition_under_replicated_partition",
    "1 where fewer replicas are in sync than there are.",
    "topic",
    "partition",
)
REPLICAS_FOLLOWED: Final = _gauge(
    "ropewalk_replicas_followed", "Partitions that this node copies from others."
)
REPLICA_LAG_MAX: Final = _gauge(
    "ropewalk_replica_lag_max", "Records by which the slowest of them is behind what is committed."
)
REPLICA_COPIED: Final = _counter("ropewalk_replica_copied_bytes_total", "Bytes copied from other nodes.")
IN_SYNC_SHRUNK: Final = _counter(
    "ropewalk_in_sync_shrunk_total",
    "Changes by which replicas of a partition led here left the ones in sync.",
)
IN_SYNC_EXPANDED: Final = _counter(
    "ropewalk_in_sync_expanded_total",
    "Changes by which replicas of a partition led here joined the ones in sync.",
)
GROUP_OFFSET: Final = _gauge(
    "kafka_consumergroup_current_offset",
    "The offset the group has committed.",
    "consumergroup",
    "topic",
    "partition",
)
GROUP_OFFSET_SUM: Final = _gauge(
    "kafka_consumergroup_current_offset_sum",
    "The offsets the group has committed, summed over the topic's partitions.",
    "consumergroup",
    "topic",
)
GROUP_LAG: Final = _gauge(
    "kafka_consumergroup_lag",
    "Offsets between what the group has committed and what it could read.",
    "consumergroup",
    "topic",
    "partition",
)
GROUP_LAG_SUM: Final = _gauge(
    "kafka_consumergroup_lag_sum",
    "The group's lag, summed over the topic's partitions.",
    "consumergroup",
    "topic",
)
GROUP_MEMBERS: Final = _gauge("kafka_consumergroup_members", "Members of the group.", "consumergroup")

GROUP_LAG_SECONDS: Final = _gauge(
    "ropewalk_group_lag_seconds",
    "How old what the group would read next is, at its oldest over the topic's partitions; 0 where nothing is left to read. "
    "Of many partitions some are looked up with every round, and the others may be told too old meanwhile.",
    "consumergroup",
    "topic",
)

GROUP_GENERATION: Final = _gauge(
    "ropewalk_group_generation",
    "The group's generation, or its epoch where the broker makes the assignments: it goes up by one with every rebalance.",
    "consumergroup",
)
GROUPS: Final = _gauge(
    "ropewalk_groups",
    "Consumer groups this node looks after, by state, and by type: consumer where the broker makes the assignments.",
    "state",
    "type",
)

# Transactions.

TRANSACTIONAL_IDS: Final = _gauge(
    "ropewalk_transactional_ids",
    "Transactional ids this node looks after, by the state of their transaction.",
    "state",
)
TRANSACTIONS_OPEN: Final = _gauge(
    "ropewalk_transactions_open", "Transactions this node looks after that are not finished."
)
TRANSACTIONS_ENDING: Final = _gauge(
    "ropewalk_transactions_ending",
    "Transactions whose outcome is decided and whose markers are being written.",
)
PARTITION_TRANSACTIONS: Final = _gauge(
    "ropewalk_partition_transactions_open",
    "Transactions with records in partitions this node leads, once for each of them.",
)
TRANSACTIONS_HANGING: Final = _gauge(
    "ropewalk_partitions_with_hanging_transactions",
    "Partitions with a transaction that should have been aborted for its age: readers of committed records wait there.",
)
MARKERS_WRITTEN: Final = _counter(
    "ropewalk_transaction_markers_total", "Markers that this node has had written, wherever they belong."
)
MARKERS_RETRIED: Final = _counter(
    "ropewalk_transaction_marker_retries_total", "Markers that could not be written and were tried again."
)

# Queues.

QUEUE_MESSAGES: Final = _gauge(
    "ropewalk_queue_messages",
    "Messages in partitions of the queue that this node leads, by state: visible, inflight (received and hidden) or delayed.",
    "queue",
    "state",
)
QUEUE_OLDEST_AGE: Final = _gauge(
    "ropewalk_queue_oldest_message_age_seconds",
    "How long ago the oldest message was sent that nobody has deleted; 0 where there is none.",
    "queue",
)
QUEUE_DEAD: Final = _gauge(
    "ropewalk_queue_dead_messages",
    "Messages in partitions that this node leads of a queue that takes another's dead letters; left out for other queues.",
    "queue",
)
QUEUE_HOLES: Final = _gauge(
    "ropewalk_queue_ack_holes",
    "Messages that are deleted while an older one is not, so that their place in the log cannot be freed.",
    "queue",
)
QUEUE_FLOOR_LAG: Final = _gauge(
    "ropewalk_queue_floor_lag_bytes",
    "Bytes of the log from the oldest message that is not deleted on, estimated.",
    "queue",
)
QUEUE_HIDDEN_GROUPS: Final = _gauge(
    "ropewalk_queue_hidden_groups",
    "Message groups of a FIFO queue of which nothing can be given out, since their first message is in flight or delayed.",
    "queue",
)
QUEUE_WINDOWS_FULL: Final = _gauge(
    "ropewalk_queue_windows_full",
    "Partitions of the queue whose next messages are not looked at until some are deleted: their first 120,000 are delayed or of groups that are locked.",
    "queue",
)
QUEUE_MOVES_WAITING: Final = _gauge(
    "ropewalk_queue_moves_waiting", "Dead letters that wait for their move, or are under way.", "queue"
)
QUEUE_MOVES_FORGOTTEN: Final = _gauge(
    "ropewalk_queue_moves_forgotten",
    "Partitions of the queue whose messages on their way to another queue were stopped: nobody can tell any more whether they have arrived.",
    "queue",
)
QUEUE_DEAD_TARGET_MISSING: Final = _gauge(
    "ropewalk_queue_dlq_missing",
    "1 where RedrivePolicy names a queue that is gone: messages stay, however often they are received in vain.",
    "queue",
)
QUEUE_POLLS_WAITING: Final = _gauge(
    "ropewalk_queue_polls_waiting", "Receives that wait for a message.", "queue"
)
QUEUE_RECEIVED: Final = _counter(
    "ropewalk_queue_received_total", "Messages that receivers were given through this node.", "queue"
)
QUEUE_REDELIVERED: Final = _counter(
    "ropewalk_queue_redelivered_total", "Of those, messages that somebody had been given before.", "queue"
)
QUEUE_EMPTY_RECEIVES: Final = _counter(
    "ropewalk_queue_empty_receives_total", "Receives that were answered without a message.", "queue"
)
QUEUE_DEAD_MOVED: Final = _counter(
    "ropewalk_queue_dlq_moved_total", "Dead letters that were moved from partitions this node leads."
)
QUEUE_REDRIVEN: Final = _counter(
    "ropewalk_queue_redriven_total", "Messages that move tasks moved from partitions this node leads."
)
QUEUE_DEAD_REFUSED: Final = _counter(
    "ropewalk_queue_dlq_refused_total",
    "Messages that were to be moved and stayed where they were, since nobody took them.",
)

QUEUE_LOADS: Final = _counter(
    "ropewalk_queue_loads_total",
    "Partitions of queues whose state this node has read, having come to lead them.",
)
QUEUE_LOAD_SECONDS: Final = _counter(
    "ropewalk_queue_load_seconds_total",
    "How long that took: meanwhile nobody is given anything of the queue.",
)

# The process, by the names that all exporters use.

PROCESS_CPU: Final = _counter("process_cpu_seconds_total", "Processor time spent.")
PROCESS_MEMORY: Final = _gauge("process_resident_memory_bytes", "Memory in use.")
PROCESS_ADDRESS_SPACE: Final = _gauge("process_virtual_memory_bytes", "Address space in use.")
PROCESS_START: Final = _gauge("process_start_time_seconds", "When the process began, since 1970.")
PROCESS_FILES: Final = _gauge("process_open_fds", "File descriptors in use.")
PROCESS_FILES_MAX: Final = _gauge("process_max_fds", "File descriptors the process may have.")

# The node.

BUILD: Final = _gauge(
    "ropewalk_build_info", "Always 1; its labels tell who this is.", "version", "cluster_id", "node_id"
)
NODES_WANTED: Final = _gauge(
    "ropewalk_nodes_wanted", "1 while the cluster wants another node; told by the node that decides."
)
LEVEL: Final = _gauge("ropewalk_feature_level", "The level that the cluster works at.")
LEVEL_MAX: Final = _gauge(
    "ropewalk_feature_level_max", "The highest level at which this node could work, by its version."
)
READY: Final = _gauge("ropewalk_ready", "1 while the node is ready, as /readyz says.")
CONTROLLER_ACTIVE: Final = _gauge(
    "ropewalk_controller_active", "1 on the node that decides for the cluster, as far as it knows."
)
CONTROLLER_EPOCH: Final = _gauge(
    "ropewalk_controller_epoch", "How often the cluster has got a controller, as this node has heard."
)
CONTROLLER_LOST: Final = _gauge(
    "ropewalk_controller_lost",
    "1 while this node cannot reach the controller, so that nothing about the cluster can change.",
)
CONTROLLER_HEARD: Final = _gauge(
    "ropewalk_controller_heard_seconds",
    "How old what this node knows of the cluster is: since when it has not heard the controller, or the controller not the metadata's home.",
)
CONTROLLER_OFFSET: Final = _gauge(
    "ropewalk_controller_metadata_offset", "Where the metadata log ended when the controller was last heard."
)
CLOCK_DIFFERENCE: Final = _gauge(
    "ropewalk_clock_difference_seconds", "By how much the controller's clock is ahead of this node's."
)
PARTITIONS_LEADERLESS: Final = _gauge(
    "ropewalk_partitions_without_leader",
    "Partitions of the cluster that nobody leads; told by the node that decides.",
)
PARTITIONS_BELOW_MINIMUM: Final = _gauge(
    "ropewalk_partitions_below_minimum",
    "Partitions of the cluster with a leader and fewer replicas in sync than min.insync.replicas; told by the node that decides.",
)
PARTITIONS_UNDER_REPLICATED: Final = _gauge(
    "ropewalk_partitions_under_replicated",
    "Partitions of the cluster that have enough replicas in sync, and fewer than they should; told by the node that decides.",
)
NODES_BEHIND: Final = _gauge(
    "ropewalk_nodes_behind", "Nodes that do not follow the metadata; told by the node that decides."
)
NODES_UNWELL: Final = _gauge(
    "ropewalk_nodes_unwell",
    "Nodes that say something is wrong with them, as their /healthz does; told by the node that decides.",
)
METADATA_OFFSET: Final = _gauge(
    "ropewalk_metadata_offset",
    "How much of the metadata log this node has followed; nodes that differ for long are behind.",
)
METADATA_LOST: Final = _gauge(
    "ropewalk_metadata_lost", "1 while this node cannot follow the metadata, for whatever reason."
)
METADATA_PARTED: Final = _gauge(
    "ropewalk_metadata_parted",
    "1 if the metadata was put back to an earlier state under this node: it is out of service until it is started again.",
)
NODE_FENCED: Final = _gauge(
    "ropewalk_node_fenced", "1 while the node is out of service: others lead its partitions."
)
NODES: Final = _gauge(
    "ropewalk_nodes",
    "Nodes that have registered, by state: active, fenced, stopping, or left for good.",
    "state",
)
NODES_FENCED: Final = _counter(
    "ropewalk_nodes_fenced_total",
    "Nodes that this controller took out of service since they were no longer heard.",
)
LOSSES: Final = _gauge(
    "ropewalk_losses", "Elections that may have lost acknowledged records, of those that are remembered."
)
CPU: Final = _counter("ropewalk_cpu_seconds_total", "Processor time spent, by mode: user, system.", "mode")
LOOP_DELAY: Final = _histogram(
    "ropewalk_loop_delay_seconds",
    "How late the event loop woke, asked every quarter of a second: what stalls it delays every client.",
)
BUFFER_BYTES: Final = _gauge(
    "ropewalk_buffer_bytes", "Bytes of the node's budget that requests and answers hold."
)
BUFFER_BYTES_LIMIT: Final = _gauge(
    "ropewalk_buffer_limit_bytes", "The budget: beyond it connections are not read from."
)

# The disk.

DISK_READ: Final = _counter("ropewalk_disk_read_bytes_total", "Bytes the process made the disk read.")
DISK_WRITTEN: Final = _counter("ropewalk_disk_written_bytes_total", "Bytes the process made the disk write.")
DISK_FREE: Final = _gauge("ropewalk_disk_free_bytes", "Room left where the data directory is.")
DISK_FULL: Final = _gauge(
    "ropewalk_disk_full", "1 while writes are refused because only the reserve is left on the disk."
)
DISK_RESERVE: Final = _gauge(
    "ropewalk_disk_reserve_bytes", "Room that is kept back to empty a full disk with, as far as it is left."
)
SYNC_TIME: Final = _histogram(
    "ropewalk_sync_duration_seconds", "How long the group commit waited for the disk."
)

CERTIFICATE_LEFT: Final = _gauge(
    "ropewalk_certificate_seconds_left",
    "How long the node's own certificate is still good, or a list of revocations beside it if that is shorter, by its file.",
    "file",
)

# Partitions.

PARTITIONS: Final = _gauge("ropewalk_partitions", "Partitions this node leads.")
PARTITIONS_UNOPENED: Final = _gauge(
    "ropewalk_partitions_unopened", "Partitions that could not be opened for want of room."
)
PARTITIONS_DAMAGED: Final = _gauge(
    "ropewalk_partitions_damaged", "Partitions with a range that fails its checksums and is not served."
)
LOG_BYTES: Final = _gauge("ropewalk_log_bytes", "Bytes of all segments.")
LOG_SEGMENTS: Final = _gauge("ropewalk_log_segments", "Segments of all partitions.")
PARTITION_BYTES: Final = _gauge(
    "ropewalk_partition_log_bytes", "Bytes of the partition's segments.", "topic", "partition"
)
PARTITION_SEGMENTS: Final = _gauge(
    "ropewalk_partition_log_segments", "The partition's segments.", "topic", "partition"
)
TOPIC_APPENDED: Final = _counter(
    "ropewalk_topic_appended_bytes_total", "Bytes of batches appended since the node started.", "topic"
)
RETENTION_USED: Final = _gauge(
    "ropewalk_retention_used_ratio",
    "The fullest partition: its size (by bytes) or the age of its oldest segment (by time) over what retention allows. "
    "Well above 1 retention does not keep up.",
    "by",
)
COMPACTION_PASSES: Final = _counter("ropewalk_compaction_passes_total", "Compactions that went to their end.")
COMPACTION_REMOVED: Final = _counter(
    "ropewalk_compaction_removed_records_total", "Records that compaction removed."
)
COMPACTION_WORK: Final = _counter(
    "ropewalk_compaction_work_bytes_total", "Bytes of its budget that compaction has spent."
)

# Clients.

CONNECTIONS: Final = _gauge("ropewalk_connections", "Connections open, by door: kafka, http, peer.", "door")
CONNECTIONS_OPENED: Final = _counter(
    "ropewalk_connections_opened_total", "Connections accepted, by door.", "door"
)
CONNECTIONS_REFUSED: Final = _counter(
    "ropewalk_connections_refused_total",
    "Connections closed for a reason that was logged: bad bytes, a limit.",
    "door",
)
LOGINS: Final = _counter("ropewalk_logins_total", "Clients that proved who they are, each time they did.")
LOGINS_FAILED: Final = _counter(
    "ropewalk_logins_failed_total", "Logins that were refused, whatever was wrong, or not finished in time."
)
RECEIVED_BYTES: Final = _counter(
    "ropewalk_network_received_bytes_total", "Bytes from clients, by door.", "door"
)
SENT_BYTES: Final = _counter("ropewalk_network_sent_bytes_total", "Bytes to clients, by door.", "door")
REQUEST_TIME: Final = _histogram(
    "ropewalk_request_duration_seconds",
    "From a request's last byte to its answer, by API. A fetch may wait for records on purpose.",
    "api",
)
REQUEST_WORK: Final = _histogram(
    "ropewalk_request_work_duration_seconds",
    "The same without the time that a request waited on purpose, for APIs where it may: a fetch for records.",
    "api",
)
COMMIT_TIME: Final = _histogram(
    "ropewalk_commit_duration_seconds",
    "From a Produce's batches being in the log to their being acknowledged: by this node's disk with acks=1, by all replicas in sync with acks=all.",
)
END_TO_END_TIME: Final = _histogram(
    "ropewalk_end_to_end_duration_seconds",
    "How old records were when a consumer was given them, by the timestamp of one batch of each answer. Whoever reads old records makes it large.",
)
SERVED: Final = _counter(
    "ropewalk_served_total",
    "Produce and Fetch requests that were answered, by kind: produce, fetch. With the next one the availability of the node.",
    "kind",
)
SERVED_BADLY: Final = _counter(
    "ropewalk_served_badly_total",
    "Those of them in which something failed for a reason of ours: storage, replicas that are missing, time that ran out, a bug.",
    "kind",
)
REQUEST_ERRORS: Final = _counter(
    "ropewalk_request_errors_total",
    "Error codes in answers, by API and Kafka's name of the error.",
    "api",
    "error",
)
THROTTLES: Final = _counter("ropewalk_throttles_total", "Times a client was made to wait for its quota.")
THROTTLE_TIME: Final = _counter(
    "ropewalk_throttle_seconds_total", "How long clients were made to wait for their quotas, all together."
)
FETCH_SESSIONS: Final = _gauge(
    "ropewalk_fetch_sessions", "Fetch sessions kept; a consumer has one for each node it reads from."
)
FETCH_SESSION_PARTITIONS: Final = _gauge(
    "ropewalk_fetch_session_partitions", "Partitions in all fetch sessions together."
)
FETCH_SESSIONS_EVICTED: Final = _counter(
    "ropewalk_fetch_sessions_evicted_total", "Fetch sessions that made way for others."
)
FETCH_SESSIONS_REFUSED: Final = _counter(
    "ropewalk_fetch_sessions_refused_total", "Times a consumer asked for a session and there was no room."
)
FETCHES_IN_SESSION: Final = _counter(
    "ropewalk_fetches_in_session_total", "Fetches that named only what had changed."
)
HTTP_ANSWERS: Final = _counter(
    "ropewalk_http_answers_total", "Answers of the HTTP door, by status.", "status"
)

# Who asked for changes.

AUDIT_COPIED: Final = _counter(
    "ropewalk_audit_copied_total",
    "Changes whose audit events this node has written to `__audit`, which it leads.",
)
AUDIT_WAITING: Final = _gauge(
    "ropewalk_audit_waiting",
    "Changes whose audit events are yet to be copied to `__audit`, at its leader; without a leader, those kept, at the node that decides.",
)
AUDIT_MISSING: Final = _counter(
    "ropewalk_audit_missing_total",
    "Changes whose audit events the metadata no longer kept when `__audit` could be written again; an event there tells which.",
)
AUDIT_LINES: Final = _counter("ropewalk_audit_lines_total", "Lines written to `audit.file`.")
AUDIT_LINES_DROPPED: Final = _counter(
    "ropewalk_audit_lines_dropped_total",
    "Events for `audit.file` that found no room to wait; a line there tells how many.",
)
AUDIT_FAILURES: Final = _counter(
    "ropewalk_audit_failures_total", "Attempts to copy audit events that failed."
)

# What the node writes down about itself.

TELEMETRY_RECORDS: Final = _counter("ropewalk_telemetry_records_total", "Samples written to `__telemetry`.")
TELEMETRY_FAILURES: Final = _counter(
    "ropewalk_telemetry_failures_total", "Rounds of samples that could not be written."
)

ALERTS: Final = _gauge(
    "ropewalk_alerts",
    "Alerts of this node's own rules, by name and by state: pending, firing, silenced.",
    "alert",
    "state",
)
ALERT_ROUND_TIME: Final = _histogram(
    "ropewalk_alert_round_duration_seconds", "How long the node took to look at its own figures for alerts."
)
ALERT_NOTICES: Final = _counter(
    "ropewalk_alert_notices_total",
    "Notices of alerts to the webhook, by outcome: delivered, failed (and tried again), dropped.",
    "outcome",
)

METRICS: Final[tuple[Metric, ...]] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Metric)
)
"""All of them, in the order in which they are told."""
