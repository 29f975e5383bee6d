"""The settings the engine acts on, as values of their proper types.

Only what has an effect is here; a part of the engine takes these structures and never looks at a catalogue.
Resolving one walks the catalogue, which takes longer than opening a partition, so `AppliedSettings` remembers them.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct, convert

from ropewalk.base.limits import TOPIC_SETTINGS_REMEMBERED_MAX
from ropewalk.metadata.image import Partition, Topic
from ropewalk.metadata.settings.effective import EffectiveSetting, SettingsView
from ropewalk.metadata.settings.setting import Value


class TopicSettings(Struct, frozen=True, kw_only=True):
    ack_policy: Literal["isr", "quorum"]
    cleanup_policy: tuple[Literal["compact", "delete"], ...]
    compression_type: Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    delete_retention_ms: int
    flush: Literal["group", "os"]
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"]
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    """Never more than the topic has replicas. Of one partition, which may be on its way to another number, it is
    `AppliedSettings.minimum_in_sync`."""
    partitions_auto_byte_rate: int
    partitions_auto_max: int | None
    """None where the topic does not grow by itself."""
    queue_delete: Literal["erase", "keep"]
    queue_retry_backoff_ms: int
    queue_retry_backoff_max_ms: int
    records_validate: Literal["header", "full"]
    replica_straggler_ms: int
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_ms: int
    storage: Literal["disk", "memory"]
    unclean_leader_election_enable: bool

    @property
    def compression_level(self) -> int | None:
        """The effort for `compression_type`; None where the codec knows no levels or chooses itself."""
        levels = {
            "gzip": self.compression_gzip_level if self.compression_gzip_level >= 0 else None,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @property
    def deletes(self) -> bool:
        """Whether retention removes segments."""
        return "delete" in self.cleanup_policy

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def keys_required(self) -> bool:
        return self.compacts


class BrokerSettings(Struct, frozen=True, kw_only=True):
    alerts_silences: tuple[str, ...]
    alerts_webhook: str | None
    auto_create_topics_enable: bool
    auto_leader_rebalance_enable: bool
    cluster_delete_by: str
    cluster_scale_cpu_percent: int
    cluster_scale_disk_percent: int
    cluster_scale_replicas_percent: int
    cluster_scale_sustained_ms: int
    cluster_scale_webhook: str | None
    connection_failed_authentication_delay_ms: int
    connections_max_idle_ms: int
    connections_max_reauth_ms: int
    controlled_shutdown_enable: bool
    default_replication_factor: int
    delete_topic_enable: bool
    features_finalize: str
    fetch_max_bytes: int
    follower_replication_throttled_rate: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    leader_imbalance_check_interval_seconds: int
    leader_replication_throttled_rate: int
    log_retention_check_interval_ms: int
    max_broker_partitions: int
    max_connections: int
    max_connections_per_ip: int
    max_request_partition_size_limit: int
    max_incremental_fetch_session_cache_slots: int
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    partitions_auto_sustained_ms: int
    producer_id_expiration_ms: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    sasl_enabled_mechanisms: tuple[str, ...]
    socket_request_max_bytes: int
    sqs_account: str
    sqs_delete_wait_ms: int
    sqs_fifo_partitions: int
    transaction_max_timeout_ms: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int


class AppliedSettings:
    """The settings in force, resolved once: thousands of topics have the same few sets of overrides."""

    __slots__ = ("_broker", "_sources", "_topics", "_view")

    def __init__(self, view: SettingsView) -> None:
        self._view = view
        self._sources = view.broker_sources()
        self._broker: BrokerSettings | None = None
        self._topics: dict[tuple[object, ...], TopicSettings] = {}

    @property
    def of_broker(self) -> BrokerSettings:
        self._forget_if_changed()
        if self._broker is None:
            self._broker = resolve_broker_settings(self._view)
        return self._broker

    def of_topic(self, topic: Topic) -> TopicSettings:
        return self._of(topic.settings, topic.replication_factor)

    def minimum_in_sync(self, topic: Topic, partition: Partition) -> int:
        """How many replicas of the partition must be in sync for a write with acks=all to count.

        It depends on the partition alone and on settings that all nodes agree on, and changes only together with the partition
        epoch: leader and controller never mean different numbers by the same epoch.
        """
        return self._of(topic.settings, partition.replication_factor).min_insync_replicas

    def _of(self, overrides: Mapping[str, str], replication_factor: int) -> TopicSettings:
        self._forget_if_changed()
        key = (replication_factor, *overrides.items())
        settings = self._topics.get(key)
        if settings is None:
            if len(self._topics) >= TOPIC_SETTINGS_REMEMBERED_MAX:
                self._topics.clear()
            settings = self._topics[key] = _resolve(self._view, overrides, replication_factor)
        return settings

    def _forget_if_changed(self) -> None:
        former, sources = self._sources, self._view.broker_sources()
        if (  # asked for every partition of an election: without a call for each
            sources[3] != former[3]
            or sources[0] is not former[0]
            or sources[1] is not former[1]
            or sources[2] is not former[2]
        ):
            self._sources = sources
            self._broker = None
            self._topics.clear()


def resolve_topic_settings(view: SettingsView, topic: Topic) -> TopicSettings:
    return _resolve(view, topic.settings, topic.replication_factor)


def _resolve(view: SettingsView, overrides: Mapping[str, str], replication_factor: int) -> TopicSettings:
    values = _values(TopicSettings, lambda name: view.of_new_topic(overrides, replication_factor, name))
    minimum = values["min_insync_replicas"]
    assert isinstance(minimum, int), "the catalogue says it is a number"
    values["min_insync_replicas"] = min(minimum, replication_factor)
    return convert(values, TopicSettings)


def resolve_broker_settings(view: SettingsView) -> BrokerSettings:
    return convert(_values(BrokerSettings, view.of_broker), BrokerSettings)


def _values(shape: type[Struct], find: Callable[[str], EffectiveSetting]) -> dict[str, Value]:
    """Every field is the setting of the same name, with dots for underscores."""
    return {field: find(field.replace("_", ".")).parsed for field in shape.__struct_fields__}
