"""The newest record of a key that counts, whatever others have left open in the same partition."""

from collections.abc import Iterator

import pytest

from ropewalk import Producer
from ropewalk.testing import Cluster

pytestmark = [pytest.mark.compat, pytest.mark.timeout(60)]

TOPIC = "kept"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(settings={"log.cleaner.backoff.ms": 20}) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    cluster.create_topic(TOPIC, partitions=1, cleanup_policy="compact")
    yield TOPIC
    cluster.delete_topics([TOPIC])


def write(cluster: Cluster, topic: str, *values: bytes, key: bytes = b"mine", commits: bool = True) -> None:
    """As a task of its own, that takes over from the one before."""
    with Producer(cluster.bootstrap, transactional_id="writer") as producer:
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value, key=key)
        producer.flush()
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def found(cluster: Cluster, topic: str, *keys: bytes) -> dict[bytes, bytes | None]:
    with Producer(cluster.bootstrap, transactional_id="writer") as producer:
        return {key: record.value for key, record in producer.newest(topic, keys).items()}


def test_what_was_committed_last_counts(cluster: Cluster, topic: str) -> None:
    assert found(cluster, topic, b"mine") == {}
    write(cluster, topic, b"1", b"2")
    write(cluster, topic, b"aborted", commits=False)
    with Producer(cluster.bootstrap) as plain:
        plain.send(topic, b"p", key=b"plain").result()
    assert found(cluster, topic, b"mine", b"plain", b"nobody's") == {b"mine": b"2", b"plain": b"p"}
    write(cluster, topic, b"3")
    assert found(cluster, topic, b"mine") == {b"mine": b"3"}


def test_nobody_is_waited_for(cluster: Cluster, topic: str) -> None:
    """A reader of committed records would see nothing behind what the stranger has left open."""
    write(cluster, topic, b"1")
    with Producer(cluster.bootstrap, transactional_id="stranger") as stranger:
        stranger.begin_transaction()
        stranger.send(topic, b"undecided", key=b"theirs")
        stranger.send(topic, b"not counted yet", key=b"mine")
        stranger.flush()
        write(cluster, topic, b"2")
        assert found(cluster, topic, b"mine", b"theirs") == {b"mine": b"2"}
        stranger.commit_transaction()


def test_a_key_that_was_not_written_for_long_is_found_far_back_and_after_compaction(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropewalk.client.calls.newest.NEWEST_OFFSETS_FIRST", 4)
    monkeypatch.setattr("ropewalk.client.calls.newest.NEWEST_OFFSETS_GROWTH", 2)
    cluster.advance(days=1)
    write(cluster, topic, b"once")
    for number in range(20):
        write(cluster, topic, b"%d" % number, bytes(200_000), key=b"busy", commits=number % 3 != 0)
    before = cluster.records(topic)
    assert found(cluster, topic, b"mine", b"busy") == {b"mine": b"once", b"busy": bytes(200_000)}
    cluster.advance(days=400)
    write(
        cluster, topic, b"x", key=b"busy"
    )  # its segment has ended by its age, and what lies before is compacted
    while len(cluster.records(topic)) >= len(before):
        pass
    assert found(cluster, topic, b"mine", b"busy") == {b"mine": b"once", b"busy": b"x"}
