"""Where records go: keys where every client puts them, the rest by turn, by stickiness, by load."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.client.producing.partitioners import ByLoad, Keyed, Partitioner, RoundRobin, Salted

BYTES_EACH = 1000


class Topic:
    """A topic of which every partition is as busy as it is told to be."""

    def __init__(self, *latencies_ms: float, led: set[int] | None = None) -> None:
        self.name: str = "orders"
        self.partition_count: int = len(latencies_ms)
        self.sent_bytes: int = 0
        self.queued = [0] * len(latencies_ms)
        self._latencies_ms = latencies_ms
        self._led = set(range(len(latencies_ms))) if led is None else led

    def queued_bytes(self, partition: int) -> int:
        return self.queued[partition]

    def latency_ms(self, partition: int) -> float:
        return self._latencies_ms[partition]

    def has_leader(self, partition: int) -> bool:
        return partition in self._led


def chosen(partitioner: Partitioner, topic: Topic, count: int, key: bytes | None = None) -> list[int]:
    """Records of 100 bytes."""
    found = []
    for _ in range(count):
        found.append(partitioner.choose(key, topic))
        topic.sent_bytes += 100
    return found


@pytest.mark.parametrize("kind", [Keyed, ByLoad])
def test_a_key_has_one_partition(kind: type[Keyed] | type[ByLoad]) -> None:
    partitioner = kind(random.Random(1), BYTES_EACH)
    for number in range(50):
        key = b"key %d" % number
        assert set(chosen(partitioner, Topic(1, 9, 1, 1, 1), 3, key)) == {partition_for_key(key, 5)}


def test_records_without_a_key_stay_for_a_batch_and_then_move_on() -> None:
    found = chosen(Keyed(random.Random(1), BYTES_EACH), Topic(1, 1, 1), 300)
    runs = [found[start : start + 10] for start in range(0, 300, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(former[0] != latter[0] for former, latter in pairwise(runs))
    assert set(found) == {0, 1, 2}


def test_nothing_goes_where_nobody_leads_if_somebody_leads_elsewhere() -> None:
    found = chosen(Keyed(random.Random(1), BYTES_EACH), Topic(1, 1, 1, led={0, 2}), 300)
    assert set(found) == {0, 2}
    assert set(chosen(Keyed(random.Random(1), BYTES_EACH), Topic(1, 1, led=set()), 300)) == {0, 1}


def test_in_turn_means_in_turn_whatever_the_key() -> None:
    assert chosen(RoundRobin(), Topic(1, 1, 1), 7, b"key") == [0, 1, 2, 0, 1, 2, 0]


def test_a_slow_partition_gets_fewer_records() -> None:
    counts = Counter(chosen(ByLoad(random.Random(1), BYTES_EACH), Topic(2, 2, 20), 30_000))
    assert counts[2] * 5 < counts[0]
    assert counts[2] > 0, "it is not forgotten, or nobody would notice that it has recovered"


def test_a_partition_with_much_waiting_gets_fewer_records() -> None:
    topic = Topic(2, 2)
    topic.queued[1] = 9 * BYTES_EACH
    counts = Counter(chosen(ByLoad(random.Random(1), BYTES_EACH), topic, 30_000))
    assert counts[1] * 5 < counts[0]


def test_a_salted_key_is_spread_over_its_own_partitions_and_no_others() -> None:
    topic = Topic(*[1.0] * 12)
    counts = Counter(chosen(Salted(random.Random(1), BYTES_EACH, salt=3), topic, 300, b"hot"))
    first = partition_for_key(b"hot", 12)
    assert counts == Counter({(first + step) % 12: 100 for step in range(3)})
