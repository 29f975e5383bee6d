"""What a topic's settings mean for its log and for the batches that enter it."""

from ropewalk.log.settings import UNLIMITED, LogSettings
from ropewalk.metadata.queues import Queue
from ropewalk.metadata.settings.applied import BrokerSettings, TopicSettings
from ropewalk.records.codec import Codec
from ropewalk.records.validate import Rules, TimestampType


def log_settings(topic: TopicSettings, broker: BrokerSettings) -> LogSettings:
    return LogSettings(
        segment_bytes=topic.segment_bytes,
        # What is in the active segment escapes compaction.
        segment_ms=min(topic.segment_ms, topic.max_compaction_lag_ms) if topic.compacts else topic.segment_ms,
        retention_bytes=topic.retention_bytes if topic.deletes else UNLIMITED,
        retention_ms=topic.retention_ms if topic.deletes else UNLIMITED,
        index_interval_bytes=topic.index_interval_bytes,
        compacts=topic.compacts,
        delete_retention_ms=topic.delete_retention_ms,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        producer_expiry_ms=broker.producer_id_expiration_ms,
        rewrites_tail=topic.flush == "group",
    )


def record_rules(topic: TopicSettings, queue: Queue | None = None) -> Rules:
    """`queue` is the one whose topic it is. A FIFO queue's leader decides on every message, so nobody else writes; an adopted topic has
    its own producers, who know nothing of queues."""
    return Rules(
        bytes_max=topic.max_message_bytes,
        timestamp_type=TimestampType(topic.message_timestamp_type),
        before_max_ms=topic.message_timestamp_before_max_ms,
        after_max_ms=topic.message_timestamp_after_max_ms,
        checks_records=topic.records_validate == "full",
        keys_required=topic.keys_required,
        compression=_codec(topic.compression_type),
        compression_level=topic.compression_level,
        is_closed=queue is not None and queue.is_fifo and not queue.is_adopted,
    )


def _codec(name: str) -> Codec | None:
    if name == "producer":
        return None
    return Codec.NONE if name == "uncompressed" else Codec[name.upper()]
