"""The settings the engine acts on, as values of their proper types.

Only what has an effect is here; a part of the engine takes these structures and never looks at a catalogue.
Resolving one walks the catalogue, so the caller keeps the result for as long as `Image.end_offset` stays.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, convert

from ropewalk.metadata.image import Topic
from ropewalk.metadata.settings.effective import EffectiveSetting, SettingsView
from ropewalk.metadata.settings.setting import Value


class TopicSettings(Struct, frozen=True, kw_only=True):
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
    """Never more than the topic has replicas."""
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_ms: int
    storage: Literal["disk", "memory"]

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
    auto_create_topics_enable: bool
    connections_max_idle_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
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
    producer_id_expiration_ms: int
    socket_request_max_bytes: int


def resolve_topic_settings(view: SettingsView, topic: Topic) -> TopicSettings:
    values = _values(TopicSettings, lambda name: view.of_topic(topic, name))
    minimum = values["min_insync_replicas"]
    assert isinstance(minimum, int), "the catalogue says it is a number"
    values["min_insync_replicas"] = min(minimum, topic.replication_factor)
    return convert(values, TopicSettings)


def resolve_broker_settings(view: SettingsView) -> BrokerSettings:
    return convert(_values(BrokerSettings, view.of_broker), BrokerSettings)


def _values(shape: type[Struct], find: Callable[[str], EffectiveSetting]) -> dict[str, Value]:
    """Every field is the setting of the same name, with dots for underscores."""
    return {field: find(field.replace("_", ".")).parsed for field in shape.__struct_fields__}
