"""What a subscription comes to, told by brokers that a test plays."""

from collections.abc import Mapping

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from ropewalk.client.calls.fetch import Fetched
from ropewalk.client.calls.list_offsets import ListedOffset
from ropewalk.client.connections.cluster import ClusterView, PartitionView, TopicView
from ropewalk.client.errors import RemoteError
from ropewalk.spark import reading
from ropewalk.spark.brokers import Brokers
from ropewalk.spark.columns import Column, schema_of
from ropewalk.spark.options import EARLIEST, LATEST, parse_source
from ropewalk.spark.ranges import Json, Range, from_json, to_json
from ropewalk.spark.readers import BatchReader, ReadTask, StreamReader, stream_reader
from ropewalk.spark.refusals import DataLost
from ropewalk.wire.error_code import ErrorCode


class Played:
    """Answers for a cluster of a user's topic and one that nodes keep for themselves."""

    async def metadata(self, _topics: object) -> ClusterView:
        partition = PartitionView(0, NodeId(1), LeaderEpoch(0), (), (), (), 0)
        topics = tuple(
            TopicView(name, TopicId(name.encode().ljust(16)), name.startswith("__"), (partition,))
            for name in ("orders", "returns", "__consumer_offsets")
        )
        return ClusterView(None, None, (), topics)

    async def list_offsets(
        self, _topic: str, queries: Mapping[int, int], *, isolation: object
    ) -> dict[int, ListedOffset]:
        del isolation
        bounds = {EARLIEST: 4000, LATEST: 5000}
        return {index: ListedOffset(bounds[query], -1, 0) for index, query in queries.items()}

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        isolation: object,
        topic_ids: Mapping[str, TopicId],
    ) -> list[Fetched]:
        del isolation, topic_ids
        ((partition, position),) = positions.items()
        if not 4000 <= position <= 5000:
            raise RemoteError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return [Fetched(partition, b"", 5000, 5000, 4000)]

    async def log_sizes(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """A kilobyte and a half for each offset of `orders`; of others nobody speaks."""
        return {each: 1_500_000 for each in partitions if each.topic == "orders"}

    def close(self) -> None: ...


def found(**options: str) -> list[TopicPartition]:
    with Brokers(parse_source({"bootstrap": "127.0.0.1:1", **options}, streaming=True)) as brokers:
        brokers._client = Played()  # type: ignore[assignment]
        return brokers.partitions()


def test_a_pattern_finds_no_topics_that_nodes_keep_for_themselves() -> None:
    """As with Kafka's consumers and Spark's own source. A sink's markers are in one: a query would read what it writes, for ever."""
    assert found(subscribePattern=".*") == [TopicPartition("orders", 0), TopicPartition("returns", 0)]
    assert TopicPartition("__consumer_offsets", 0) in found(subscribe="orders,__consumer_offsets")


def test_a_batch_waits_until_there_is_enough_or_for_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Brokers, "client", property(lambda _: Played()))
    options = {"minOffsetsPerTrigger": "300", "maxTriggerDelay": "60s"}
    parsed = parse_source({"bootstrap": "127.0.0.1:1", "subscribe": "orders", **options}, streaming=True)
    now_ms = 0
    reader = StreamReader(parsed, (Column.OFFSET,), lambda: now_ms)

    def brings(start: int) -> int:
        reached = reader.latestOffset({"orders": {"0": start}}, ReadAllAvailable())
        return int(reached["orders"]["0"]) - start

    assert brings(4900) == 100, "the first batch waits for nobody"
    assert brings(4800) == 0
    assert brings(4700) == 300
    now_ms = 59_999
    assert brings(4701) == 0
    now_ms = 60_000
    assert brings(4701) == 299
    assert brings(4701) == 0
    reader.prepareForTriggerAvailableNow()
    assert brings(4701) == 299, "to bring nothing would end a query that reads what is available now"


def test_a_task_without_a_range_reads_nothing() -> None:
    """What Spark makes of a read that comes to no task."""
    parsed = parse_source({"bootstrap": "127.0.0.1:1", "subscribe": "orders"}, streaming=True)
    assert list(StreamReader(parsed, (Column.OFFSET,)).read(InputPartition(None))) == []
    assert list(BatchReader(parsed, (Column.OFFSET,)).read(InputPartition(None))) == []


def test_what_is_new_and_begins_late_is_read_from_there_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first records are gone already. That is no loss: nobody was there to read them."""
    monkeypatch.setattr(Brokers, "client", property(lambda _: Played()))
    reader = stream_reader(
        {"bootstrap": "127.0.0.1:1", "subscribe": "orders", "maxOffsetsPerTrigger": "300"},
        schema_of((Column.OFFSET,)),
    )
    reached: Json = {}
    tasks: list[Range] = []
    for _ in range(4):
        start, reached = reached, reader.latestOffset(reached, ReadMaxRows(300))
        tasks += [each.wanted for each in reader.partitions(start, reached) if isinstance(each, ReadTask)]
    assert [(each.start, each.end) for each in tasks] == [
        (-2, 4300),
        (4300, 4600),
        (4600, 4900),
        (4900, 5000),
    ]


@pytest.mark.parametrize(
    ("start", "end"), [(5000, 5010), (6000, 6010), (3000, 3010)], ids=["at the end", "behind it", "before"]
)
def test_who_may_lose_records_goes_on_wherever_they_are_gone(
    start: int, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Brokers, "client", property(lambda _: Played()))
    monkeypatch.setattr(reading, "SILENT_ROUNDS_MAX", 2)
    wanted = Range(TopicPartition("orders", 0), start, end)

    def rows(**options: str) -> list[object]:
        given = {"bootstrap": "127.0.0.1:1", "subscribe": "orders", **options}
        return list(reading.read(parse_source(given, streaming=False), (Column.OFFSET,), wanted))

    with pytest.raises(DataLost, match="failOnDataLoss=false"):
        rows()
    assert rows(failOnDataLoss="false") == []


@pytest.mark.parametrize(
    ("bytes_max", "rows_max", "expected"),
    [
        pytest.param(150_000, None, 4100, id="in the bytes that brokers say"),
        pytest.param(150_000, 10, 4010, id="the lesser of two bounds"),
        pytest.param(1, None, 4001, id="one offset at least"),
        pytest.param(1_500_000, None, 5000, id="everything fits"),
    ],
)
def test_a_batch_has_no_more_bytes_than_it_may(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, rows_max: int | None, expected: int
) -> None:
    monkeypatch.setattr(Brokers, "client", property(lambda _: Played()))
    given = {
        "bootstrap": "x:1", "subscribe": "orders", "startingOffsets": "earliest",
        "maxBytesPerTrigger": str(bytes_max),
    }  # fmt: skip
    reader = stream_reader(given, schema_of((Column.OFFSET,)))
    limit = ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)
    assert from_json(reader.latestOffset(reader.initialOffset(), limit)) == {
        TopicPartition("orders", 0): expected
    }


def test_a_partition_that_is_left_out_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be one that came into being after somebody wrote down where to begin."""
    monkeypatch.setattr(Brokers, "client", property(lambda _: Played()))
    reader = stream_reader(
        {"bootstrap": "x:1", "subscribe": "orders,returns", "startingOffsets": '{"orders": {"0": 4700}}'},
        schema_of((Column.OFFSET,)),
    )
    assert to_json(from_json(reader.initialOffset())) == {"orders": {"0": 4700}, "returns": {"0": 4000}}
