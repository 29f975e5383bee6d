"""Options of jobs written for Spark's own Kafka connector: each does what it does there, is taken with one line, or is refused."""

import pytest

pytest.importorskip("pyspark")

from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.spark.options import SourceOptions, Subscription, parse_source
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.options import SinkOptions, parse_sink

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}

SOURCE_DOCUMENTED = {
    "assign": '{"orders": [0]}', "subscribe": "orders", "subscribePattern": "orders.*", "startingTimestamp": "1",
    "startingOffsetsByTimestamp": '{"orders": {"0": 1}}', "startingOffsets": "earliest", "endingTimestamp": "1",
    "endingOffsetsByTimestamp": '{"orders": {"0": 1}}', "endingOffsets": "latest", "failOnDataLoss": "false",
    "kafkaConsumer.pollTimeoutMs": "1000", "fetchOffset.numRetries": "3", "fetchOffset.retryIntervalMs": "10",
    "maxOffsetsPerTrigger": "10", "minOffsetsPerTrigger": "10", "maxTriggerDelay": "5m", "minPartitions": "4",
    "maxRecordsPerPartition": "1000", "groupIdPrefix": "etl", "kafka.group.id": "etl", "includeHeaders": "true",
    "startingOffsetsByTimestampStrategy": "latest",
}  # fmt: skip
"""Every option of a read that Spark's guide to its connector names, with a value that it allows."""

SINK_DOCUMENTED = {"topic": "orders", "includeHeaders": "true"}


def source(**options: str) -> SourceOptions:
    named = (
        {"subscribe": "orders"} | SERVERS if not {"assign", "subscribePattern"} & set(options) else SERVERS
    )
    ends = any(name.startswith("ending") for name in options)
    return parse_source({**named, **options}, streaming=not ends)


def sink(**options: str) -> SinkOptions:
    return parse_sink({**SERVERS, "topic": "orders", **options}, streaming=True)


@pytest.mark.parametrize("name", SOURCE_DOCUMENTED)
def test_every_documented_option_of_a_read_is_taken(name: str) -> None:
    source(**{name: SOURCE_DOCUMENTED[name]})


@pytest.mark.parametrize("name", SINK_DOCUMENTED)
def test_every_documented_option_of_a_write_is_taken(name: str) -> None:
    sink(**{name: SINK_DOCUMENTED[name]})


@pytest.mark.parametrize(
    ("options", "field", "expected"),
    [
        ({"minOffsetsPerTrigger": "100"}, "offsets_per_trigger_min", 100),
        ({"maxTriggerDelay": "5m"}, "trigger_delay_max_ms", 300_000),
        ({"maxTriggerDelay": "1500"}, "trigger_delay_max_ms", 1500),
        ({"maxTriggerDelay": "2 h"}, "trigger_delay_max_ms", 7_200_000),
        ({}, "trigger_delay_max_ms", 900_000),
        ({"maxRecordsPerPartition": "7"}, "records_per_partition_max", 7),
        ({"kafka.isolation.level": "read_uncommitted"}, "isolation", Isolation.READ_UNCOMMITTED),
        ({"isolation": "read_uncommitted"}, "isolation", Isolation.READ_UNCOMMITTED),
        ({}, "isolation", Isolation.READ_COMMITTED),
    ],
)
def test_an_option_that_changes_what_is_read_does_so(
    options: dict[str, str], field: str, expected: object
) -> None:
    assert getattr(source(**options), field) == expected


def test_tasks_are_told_where_they_are() -> None:
    assert source(**{"kafka.client.rack": "north"}).client.client_rack == "north"


def test_what_means_nothing_here_is_named_as_it_was_written() -> None:
    given = {
        "groupIdPrefix": "etl", "kafka.max.poll.records": "500", "kafka.sasl.mechanism": "PLAIN",
        "kafka.fetch.max.wait.ms": "100", "fetchOffset.numRetries": "3",
    }  # fmt: skip
    parsed = source(**given)
    assert parsed.meaningless == (
        "fetchOffset.numRetries",
        "groupIdPrefix",
        "kafka.max.poll.records",
        "kafka.sasl.mechanism",
    )
    assert parsed.client.fetch_max_wait_ms == 100
    assert sink(**{"kafka.retries": "3", "kafka.linger.ms": "20"}).meaningless == ("kafka.retries",)
    assert sink(**{"kafka.linger.ms": "20"}).settings.linger_ms == 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint"),
        ({"kafka.value.deserializer": "x"}, "functions of Spark"),
        ({"kafka.no.such.setting": "1"}, "not a client setting"),
        ({"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"}, "must not be above"),
        ({"maxTriggerDelay": "soon"}, "like 30s"),
        ({"isolation": "read_committed", "kafka.isolation.level": "read_uncommitted"}, "different things"),
        ({"maxOffsetPerTrigger": "1"}, "unknown option: maxOffsetPerTrigger"),
        ({"kafka.security.protocol": "SASL_SSL"}, "say sasl_mechanism"),
        ({"startingTimestamp": "9" * 23}, "milliseconds since 1970"),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":%s}}' % ("9" * 23)}, "no partition and number"),
        ({"startingOffsets": '{"orders":{"0":%s}}' % ("9" * 23)}, "no partition and number"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(options: dict[str, str], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        source(**options)


def test_a_name_that_is_loaded_is_the_topic() -> None:
    assert parse_source({**SERVERS, "path": "orders"}, streaming=False).subscription == Subscription(
        topics=("orders",)
    )
    with pytest.raises(WrongUse, match="names the topic to read, and so does an option"):
        source(path="orders")
    with pytest.raises(WrongUse, match="say what to read"):
        parse_source(SERVERS, streaming=False)


def test_what_spark_itself_hands_to_a_sink_is_known() -> None:
    handed = {"queryName": "loud", "checkpointLocation": "/tmp/x", "path": "orders"}
    assert sink(**handed).topic == "orders"
    assert parse_sink({**SERVERS, "path": "orders"}, streaming=False).topic == "orders"
    with pytest.raises(WrongUse, match="name the topic once"):
        sink(path="others")
