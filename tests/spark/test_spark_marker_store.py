"""Markers stay: for as long as a job rests or its source is silent, in their own topic's name and in no other's, and from former releases."""

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from ropewalk.base.ids import TopicPartition
from ropewalk.client.blocking.producer import Producer
from ropewalk.client.calls.group_offsets import OffsetToCommit
from ropewalk.metadata.internal_topics import CLIENTS_TOPICS
from ropewalk.spark.refusals import MarkerLost, NotWritten, ReplayDiffers
from ropewalk.spark.sink.marker import Decision, Marker, digest_of, to_text
from ropewalk.spark.sink.marker_store import MARKERS_TOPIC, former_first_group, former_group
from ropewalk.spark.sink.transaction import fenced_markers, recover, transactional_id, write_once
from ropewalk.testing import Cluster
from tests.spark.conftest import Node
from tests.spark.test_spark_sink_tasks import COLUMNS, committed, once, rows, task

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

LOOKING_OFTEN = {
    "log.retention.check.interval.ms": 20,
    "offsets.retention.check.interval.ms": 20,
    "log.cleaner.backoff.ms": 20,
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(settings=LOOKING_OFTEN) as cluster:
        yield cluster


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return Node(cluster.bootstrap)


def mark_as_before(
    node: Node, topic: str, task: int, batch: int, values: list[bytes], *, query: str = "q"
) -> None:
    """As a former release did: rows, and the marker in the offsets of a group."""
    ranges = {TopicPartition("in", 0): (batch, batch + 1)}
    marker = Marker(query, batch, 1, digest_of(ranges), ranges)
    place = TopicPartition(topic, 0)
    offset = OffsetToCommit(batch + 1, metadata=to_text(marker))
    with Producer(node.bootstrap, transactional_id=transactional_id(topic, task)) as producer:
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value, key=value)
        for group in (former_first_group(topic), former_group(topic, task)):
            producer.send_offsets_to_transaction({place: offset}, group)
        producer.commit_transaction()


def test_the_cluster_lays_out_the_topic_that_the_sink_asks_for() -> None:
    assert MARKERS_TOPIC in CLIENTS_TOPICS


@pytest.mark.parametrize("days", [400, 8, 1])
def test_a_job_that_rests_for_long_goes_on(cluster: Cluster, node: Node, days: int) -> None:
    topic = node.create("rests")
    options = once(node, topic)
    for batch in range(3):
        assert task(options, batch, rows(batch)) is Decision.WRITE
    cluster.advance(days=days)
    cluster.restart()
    assert task(options, 2, rows(2)) is Decision.SKIP
    assert task(options, 3, rows(3)) is Decision.WRITE
    cluster.advance(days=days)  # and while it runs, silent for so long
    assert task(options, 3, rows(3)) is Decision.SKIP
    assert task(options, 4, rows(4)) is Decision.WRITE
    assert cluster.groups() == [], "nothing that could expire is left anywhere"
    assert committed(node, topic) == list(range(5))


def test_markers_are_compacted_and_the_last_is_found(cluster: Cluster, node: Node) -> None:
    """Beside others who write often, and after so many that the first were removed."""
    quiet, busy = node.create("quiet"), node.create("busy")
    assert task(once(node, quiet), 0, rows(1)) is Decision.WRITE
    for batch in range(40):
        assert task(once(node, busy), batch, rows(batch)) is Decision.WRITE
        if batch == 20:
            cluster.advance(days=30)
    cluster.advance(days=30)
    assert task(once(node, quiet), 0, rows(1)) is Decision.SKIP
    assert task(once(node, quiet), 1, rows(2)) is Decision.WRITE
    assert task(once(node, busy), 39, rows(39)) is Decision.SKIP
    assert (committed(node, quiet), committed(node, busy)) == ([1, 2], list(range(40)))


def test_markers_of_before_are_taken_over_once(cluster: Cluster, node: Node) -> None:
    topic = node.create("upgraded")
    mark_as_before(node, topic, 0, 7, [b"7"])

    def reading(batch: int, **ids: str) -> dict[str, str]:
        said = "".join(f',"#ids":{{"{name}":"{id_}"}}' for name, id_ in ids.items())
        return {"ranges": f'{{"in":{{"0":[{batch},{batch + 1}]}}{said}}}'}

    assert task(once(node, topic, more=reading(7)), 7, rows(7)) is Decision.SKIP
    (found,) = fenced_markers(once(node, topic))
    assert found is not None
    assert (found.batch, found.ids) == (7, {})
    assert task(once(node, topic, more={**reading(8, **{"in": "an id"})}), 8, rows(8)) is Decision.WRITE
    cluster.advance(days=400)
    while cluster.groups():
        pass  # they expire at the node's next look
    assert task(once(node, topic, more=reading(8, **{"in": "an id"})), 8, rows(8)) is Decision.SKIP
    assert task(once(node, topic, more=reading(9, **{"in": "an id"})), 9, rows(9)) is Decision.WRITE
    assert committed(node, topic) == [7, 8, 9]


def test_a_first_batch_of_before_that_was_half_written_holds_the_number_of_tasks(node: Node) -> None:
    topic = node.create("upgraded-first")
    mark_as_before(node, topic, 0, 0, [b"0"])
    with pytest.raises(ReplayDiffers, match="tasks=1"):
        task(once(node, topic, tasks=2), 0, rows(1), number=1)


def test_a_topic_made_anew_has_nothing_of_what_was_written_to_the_former(node: Node) -> None:
    topic = node.create("sink")
    assert task(once(node, topic), 0, rows(0)) is Decision.WRITE
    assert task(once(node, topic), 1, rows(1)) is Decision.WRITE
    node.delete(topic)
    node.create(topic)
    with pytest.raises(MarkerLost, match="made anew"):
        task(once(node, topic), 2, rows(2))
    assert recover(once(node, topic)) is None
    assert task(once(node, topic), 0, rows(0, 1, 2), query="another") is Decision.WRITE
    assert committed(node, topic) == [0, 1, 2]


def test_a_topic_made_anew_while_it_is_written_to_ends_the_batch(node: Node) -> None:
    topic = node.create("sink-meanwhile")
    options = once(node, topic)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield rows(1)
        node.delete(topic)
        node.create(topic)
        yield rows(2)

    with pytest.raises(NotWritten):
        write_once(options, COLUMNS, interrupted(), task=0, query="q", batch=0)
    assert task(options, 0, rows(1, 2)) is Decision.WRITE
    assert committed(node, topic) == [1, 2]


def test_a_stranger_who_hangs_keeps_nobody_from_going_on(node: Node) -> None:
    """Its marker is in the same partition, and undecided."""
    topic = node.create("strangers")
    assert task(once(node, topic), 0, rows(1)) is Decision.WRITE
    with Producer(node.bootstrap, transactional_id="stranger") as stranger:
        stranger.begin_transaction()
        for partition in range(8):
            stranger.send(MARKERS_TOPIC, b"{}", key=b"theirs", partition=partition)
        stranger.flush()
        assert task(once(node, topic), 0, rows(1)) is Decision.SKIP
        assert task(once(node, topic), 1, rows(2)) is Decision.WRITE
        assert task(once(node, topic), 1, rows(2)) is Decision.SKIP
        stranger.abort_transaction()
