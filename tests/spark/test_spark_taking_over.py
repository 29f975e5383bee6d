"""Markers of a sink whose checkpoint is lost: nobody writes them any more once they are read, and another query goes on from them."""

from collections.abc import Iterator

import pytest

from ropewalk import Admin, Producer, TopicPartition
from ropewalk.base.errors import ProducerFenced
from ropewalk.client.calls.group_offsets import OffsetToCommit
from ropewalk.spark.refusals import ReplayDiffers
from ropewalk.spark.sink.marker import Marker, decide, digest_of, to_text
from ropewalk.spark.sink.marker_store import former_group
from ropewalk.spark.sink.options import SinkOptions, parse_sink
from ropewalk.spark.sink.transaction import fenced_markers, recover, transactional_id
from ropewalk.testing import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

TOPIC, NAME = "marked", "job"
ORDERS = TopicPartition("orders", 0)
RANGES = {ORDERS: (3, 9)}
WRITTEN = Marker("query 1", 4, 2, digest_of(RANGES), RANGES)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster() as cluster, Admin(cluster.bootstrap) as admin:
        admin.create_topic(TOPIC)
        yield cluster.bootstrap


def sink(bootstrap: str, name: str, tasks: int) -> SinkOptions:
    given = {"bootstrap": bootstrap, "topic": TOPIC, "exactlyOnce": "true", "name": name, "tasks": str(tasks)}
    return parse_sink(given, streaming=False)


def mark(producer: Producer, name: str, task: int) -> None:
    """As former releases did, in a group's offsets."""
    place = TopicPartition(TOPIC, 0)
    with producer.transaction():
        producer.send(TOPIC, b"a row")
        offset = OffsetToCommit(WRITTEN.batch + 1, metadata=to_text(WRITTEN))
        producer.send_offsets_to_transaction({place: offset}, former_group(name, task))


def test_there_are_none_at_first(bootstrap: str) -> None:
    assert fenced_markers(sink(bootstrap, "nobody", 2)) == [None, None]


def test_a_task_that_still_writes_is_fenced_when_markers_are_read(bootstrap: str) -> None:
    slow = Producer(bootstrap, transactional_id=transactional_id("slow", 0))
    slow.start()
    slow.begin_transaction()
    slow.send(TOPIC, b"a row").result()
    assert fenced_markers(sink(bootstrap, "slow", 1)) == [None]
    with pytest.raises(ProducerFenced):
        slow.commit_transaction()
    slow.close()


def test_another_query_goes_on_and_the_former_does_not(bootstrap: str) -> None:
    for task in range(2):
        with Producer(bootstrap, transactional_id=transactional_id(NAME, task)) as producer:
            mark(producer, NAME, task)
    found = fenced_markers(sink(bootstrap, NAME, 2))
    assert found == [WRITTEN, WRITTEN]
    resumed = recover(sink(bootstrap, NAME, 2))
    assert resumed is not None
    assert (resumed.unfinished, resumed.ends) == (None, {ORDERS: 9})
    following = {ORDERS: (9, 20)}
    for stored in fenced_markers(sink(bootstrap, NAME, 2)):
        decide(stored, Marker("query 2", 0, 2, digest_of(following), following))
        with pytest.raises(ReplayDiffers, match="taken over"):
            decide(stored, Marker("query 1", 5, 2, digest_of(following), following))
