"""Topics of the cluster's own that clients write: as any topic in a transaction, and as no other when somebody wants them gone."""

from collections.abc import Iterator

import pytest

from ropewalk import Admin, Producer
from ropewalk.client.errors import RemoteError
from ropewalk.metadata.internal_topics import CLIENTS_TOPICS
from ropewalk.testing import Cluster

pytestmark = pytest.mark.parametrize("topic", sorted(CLIENTS_TOPICS))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def test_clients_write_them_in_transactions(cluster: Cluster, topic: str) -> None:
    with Admin(cluster.bootstrap) as admin, Producer(cluster.bootstrap, transactional_id="job") as producer:
        admin.create_topic(topic)
        cluster.create_topic("rows")
        for number in range(2):
            producer.begin_transaction()
            producer.send("rows", b"row %d" % number)
            producer.send(topic, b"marker %d" % number, key=b"task")
            if number:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        assert cluster.topics() == ["rows"], "it is the cluster's own"
        written = [record.value for record in cluster.records(topic) if record.key == b"task"]
        assert written[0] == b"marker 0"
        with pytest.raises(RemoteError, match="TOPIC_DELETION_DISABLED"):
            admin.delete_topic(topic)
        with pytest.raises(RemoteError, match="INVALID_PARTITIONS"):
            admin.add_partitions(topic, 99)


def test_they_outlive_the_node(cluster: Cluster, topic: str) -> None:
    cluster.create_topic(topic)
    with Producer(cluster.bootstrap) as producer:
        placed = producer.send(topic, b"value", key=b"key").result()
    cluster.restart()
    found = cluster.records(topic, partition=placed.partition)
    assert [(record.key, record.value) for record in found] == [(b"key", b"value")]
