"""What jobs written for Spark's own Kafka connector say that has no meaning here, and what that connector refuses itself.

A job that is carried over runs as it is: an option that cannot change what is read or written is taken, and one line says that it
means nothing here. An option that would change what is read must do what it does there, or be refused; none of those is in these lists.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import structlog

from ropewalk.spark.refusals import WrongUse

SOURCE_MEANINGLESS: Final = frozenset(
    {
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        # Spark's own, handed on with the options of a stream; names are given to memory tables alone.
        "queryname",
        "checkpointlocation",
    }
)
"""Options of a read. There is no group here, no poll and no second look at offsets: a task fetches what it is told to."""

CONSUMER_MEANINGLESS: Final = frozenset(
    {
        "group.id", "group.instance.id", "group.protocol", "group.remote.assignor", "session.timeout.ms",
        "heartbeat.interval.ms", "max.poll.records", "max.poll.interval.ms", "partition.assignment.strategy",
        "auto.commit.interval.ms", "default.api.timeout.ms", "fetch.min.bytes", "receive.buffer.bytes",
        "send.buffer.bytes", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "connections.max.idle.ms",
        "socket.connection.setup.timeout.max.ms", "client.dns.lookup", "check.crcs", "exclude.internal.topics",
        "allow.auto.create.topics", "metric.reporters", "metrics.num.samples", "metrics.recording.level",
        "metrics.sample.window.ms", "enable.metrics.push", "auto.include.jmx.reporter", "security.providers",
        "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    }
)  # fmt: skip
"""Settings of Kafka's consumer that decide how it gets records, never which. Checksums are always checked."""

CONSUMER_REFUSED: Final = {
    "auto.offset.reset": "say where to begin with startingOffsets; what is gone is answered by failOnDataLoss",
    "enable.auto.commit": "progress is kept in the checkpoint, and nothing is committed",
    "key.deserializer": "keys are bytes; take them apart with functions of Spark",
    "value.deserializer": "values are bytes; take them apart with functions of Spark",
    "interceptor.classes": "there is no Java between brokers and Spark that could run them",
}
"""Refused by Spark's own connector too, with what to do instead."""

PRODUCER_MEANINGLESS: Final = frozenset(
    {
        "retries", "receive.buffer.bytes", "send.buffer.bytes", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
        "connections.max.idle.ms", "socket.connection.setup.timeout.max.ms", "client.dns.lookup", "metadata.max.idle.ms",
        "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
        "enable.metrics.push", "auto.include.jmx.reporter", "security.providers", "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms", "compression.gzip.level", "compression.lz4.level", "compression.zstd.level",
        "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    }
)  # fmt: skip
"""Settings of Kafka's producer that decide how it sends, never what or where. How often it tries is bounded by
`delivery.timeout.ms`."""

_log = structlog.get_logger()


def without_meaningless(
    given: Mapping[str, str], meaningless: frozenset[str], refused: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """What is left of a client's settings, and the names of those that mean nothing here."""
    for name, why in refused.items():
        if name in given:
            raise WrongUse(f"kafka.{name} cannot be set: {why}")
    ignored = sorted(name for name in given if name in meaningless)
    return {name: value for name, value in given.items() if name not in ignored}, ignored


def tell_meaningless(names: Iterable[str]) -> None:
    told = ", ".join(names)
    if told:
        _log.warning("options that mean nothing here are taken and not used", options=told)
