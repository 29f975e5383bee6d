"""What one task does, without Spark: fetch a range, decode it, hand it on."""

import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

import confluent_kafka
from confluent_kafka.admin import AdminClient

from ropewalk.base.ids import TopicPartition
from ropewalk.spark import weights
from ropewalk.spark.columns import Column
from ropewalk.spark.options import SourceOptions, parse_source
from ropewalk.spark.ranges import FROM_THE_START, Range
from ropewalk.spark.reading import TopicRecords, read
from ropewalk.spark.refusals import DataLost, WrongUse
from tests.spark.conftest import Node

pytestmark = pytest.mark.compat

COUNT = 3000
GONE = 1000


@pytest.fixture(scope="module")
def trimmed(node: Node) -> str:
    """A topic whose first records are gone."""
    topic = node.create("trimmed", partitions=1)
    node.write(topic, COUNT, partitions=1)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for done in admin.delete_records([confluent_kafka.TopicPartition(topic, 0, GONE)]).values():
        done.result(30)
    return topic


def options(bootstrap: str, topic: str, **given: str) -> SourceOptions:
    # So little at a time that a range takes many rounds.
    few = {"kafka.max.partition.fetch.bytes": "2000"}
    return parse_source({"bootstrap": bootstrap, "subscribe": topic, **few, **given}, streaming=False)


def offsets(chosen: SourceOptions, topic: str, start: int, end: int) -> Iterator[int]:
    for rows in read(chosen, (Column.OFFSET,), Range(TopicPartition(topic, 0), start, end)):
        yield from rows.column(0).to_pylist()


@pytest.mark.parametrize(
    ("start", "end"), [(GONE, COUNT), (1234, 1235), (2000, 2777), (FROM_THE_START, 1500)]
)
def test_a_range_is_read_exactly(node: Node, trimmed: str, start: int, end: int) -> None:
    found = list(offsets(options(node.bootstrap, trimmed), trimmed, start, end))
    assert found == list(range(GONE if start == FROM_THE_START else start, end))


def test_what_begins_late_is_cut_into_pieces_of_what_is_there(node: Node, trimmed: str) -> None:
    records = TopicRecords(options(node.bootstrap, trimmed, minPartitions="4"))
    pieces = records.split([Range(TopicPartition(trimmed, 0), FROM_THE_START, COUNT)])
    assert [each.start for each in pieces] == [FROM_THE_START, 1500, 2000, 2500]
    rows = [rows for piece in pieces for rows in records.read(piece)]
    assert [offset for each in rows for offset in each.column("offset").to_pylist()] == list(
        range(GONE, COUNT)
    )
    later = Range(TopicPartition(trimmed, 0), 2000, COUNT)
    assert [each.start for each in records.split([later])] == [2000, 2250, 2500, 2750]


def test_a_large_batch_is_cut_into_as_many_tasks_as_there_is_room_for(
    node: Node, trimmed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Range(TopicPartition(trimmed, 0), FROM_THE_START, COUNT)
    records = TopicRecords(options(node.bootstrap, trimmed), tasks_min=4)
    assert records.split([whole]) == [whole], "too little to share"
    monkeypatch.setattr(weights, "PIECE_BYTES_MIN", 1000)
    pieces = records.split([whole])
    assert [each.start for each in pieces] == [FROM_THE_START, 1500, 2000, 2500]
    assert [each.end for each in pieces] == [1500, 2000, 2500, COUNT]
    told = TopicRecords(options(node.bootstrap, trimmed, minPartitions="2"), tasks_min=4)
    assert len(told.split([whole])) == 2, "as the user says"


def test_what_is_gone_is_told_unless_it_may_be(node: Node, trimmed: str) -> None:
    with pytest.raises(DataLost, match="offsets 900 to 1000 of trimmed-0 are gone"):
        list(offsets(options(node.bootstrap, trimmed), trimmed, 900, 1100))
    careless = options(node.bootstrap, trimmed, failOnDataLoss="false")
    assert list(offsets(careless, trimmed, 900, 1100)) == list(range(GONE, 1100))
    assert list(offsets(careless, trimmed, 500, 900)) == []


def test_a_reader_that_is_left_early_leaves_nothing_behind(node: Node, trimmed: str) -> None:
    before = threading.active_count()
    rows = offsets(options(node.bootstrap, trimmed), trimmed, GONE, COUNT)
    assert next(rows) == GONE
    assert threading.active_count() > before
    assert isinstance(rows, Iterator)
    rows.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_nobody_at_the_address_is_told() -> None:
    unreachable = options("127.0.0.1:1", "trimmed", **{"kafka.request.timeout.ms": "500"})
    with pytest.raises(WrongUse, match="no broker answers at"):
        list(offsets(unreachable, "trimmed", 0, 1))
