"""Which partition a record goes to, when its sender did not say.

| partitioner | records with a key | records without |
|---|---|---|
| `Keyed` (the default) | by the key's hash, as Java's clients choose | one partition until a batch's worth went there, then another |
| `RoundRobin` | in turn, whatever the key | in turn |
| `ByLoad` | by the key's hash | more to partitions that answer fast and have little waiting |
| `Salted(n)` | in turn over n partitions that belong to the key | as `Keyed` |

What a reader could get wrong
    Order holds within a partition. `RoundRobin` gives up the order of a key altogether; `Salted` keeps it only among the
    records that went to the same one of the key's n partitions, and a consumer of one key must read all n.
"""

from functools import lru_cache
from typing import Final, Protocol

from ropewalk.base.limits import CLIENT_KEYS_KEPT
from ropewalk.base.ports import Rng
from ropewalk.client.calls.partitioner import murmur2

_hash: Final = lru_cache(CLIENT_KEYS_KEPT)(murmur2)


class TopicLoad(Protocol):
    """One topic as its producer sees it."""

    @property
    def name(self) -> str: ...

    @property
    def partition_count(self) -> int: ...

    @property
    def sent_bytes(self) -> int:
        """All that was ever given to the topic."""

    def queued_bytes(self, partition: int) -> int:
        """Not acknowledged yet."""

    def latency_ms(self, partition: int) -> float:
        """From sending a batch to its answer, of late; 0 where none was sent."""

    def has_leader(self, partition: int) -> bool: ...


class Partitioner(Protocol):
    def choose(self, key: bytes | None, topic: TopicLoad) -> int: ...


def partition_of_key(key: bytes, partition_count: int) -> int:
    return (_hash(key) & 0x7FFFFFFF) % partition_count


class _Sticky:
    """One partition until `bytes_each` went to the topic, then another: batches are filled instead of many begun."""

    def __init__(self, rng: Rng, bytes_each: int) -> None:
        self._rng = rng
        self._bytes_each = bytes_each
        self._chosen: dict[str, tuple[int, int]] = {}

    def choose(self, topic: TopicLoad) -> int:
        chosen, until_bytes = self._chosen.get(topic.name, (0, -1))
        if topic.sent_bytes >= until_bytes or chosen >= topic.partition_count:
            chosen = self._other(topic, chosen)
            self._chosen[topic.name] = (chosen, topic.sent_bytes + self._bytes_each)
        return chosen

    def _other(self, topic: TopicLoad, former: int) -> int:
        led = [index for index in range(topic.partition_count) if topic.has_leader(index)]
        candidates = [index for index in led if index != former] or led or list(range(topic.partition_count))
        return candidates[self._rng.randrange(0, len(candidates))]


class Keyed:
    def __init__(self, rng: Rng, bytes_each: int) -> None:
        self._sticky = _Sticky(rng, bytes_each)

    def choose(self, key: bytes | None, topic: TopicLoad) -> int:
        if key is None:
            return self._sticky.choose(topic)
        return (_hash(key) & 0x7FFFFFFF) % topic.partition_count


class RoundRobin:
    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, key: bytes | None, topic: TopicLoad) -> int:
        del key
        chosen = self._next.get(topic.name, 0) % topic.partition_count
        self._next[topic.name] = chosen + 1
        return chosen


class ByLoad:
    """Records without a key go where they wait least.

    Each choice holds for a share of a batch. A partition's chance is the inverse of what a record would wait there: its
    latency, and what is queued at the pace of the fastest partition.
    """

    def __init__(self, rng: Rng, bytes_each: int) -> None:
        self._rng = rng
        self._bytes_each = bytes_each
        self._chosen: dict[str, tuple[int, int]] = {}

    def choose(self, key: bytes | None, topic: TopicLoad) -> int:
        if key is not None:
            return partition_of_key(key, topic.partition_count)
        chosen, until_bytes = self._chosen.get(topic.name, (0, -1))
        if topic.sent_bytes >= until_bytes or chosen >= topic.partition_count:
            chosen = self._draw(topic)
            self._chosen[topic.name] = (chosen, topic.sent_bytes + self._bytes_each)
        return chosen

    def _draw(self, topic: TopicLoad) -> int:
        indexes = [index for index in range(topic.partition_count) if topic.has_leader(index)]
        indexes = indexes or list(range(topic.partition_count))
        weights = [1 / self._wait_ms(topic, index) for index in indexes]
        point = self._rng.random() * sum(weights)
        for index, weight in zip(indexes, weights, strict=True):
            point -= weight
            if point < 0:
                return index
        return indexes[-1]

    def _wait_ms(self, topic: TopicLoad, index: int) -> float:
        latency_ms = max(1.0, topic.latency_ms(index))
        return latency_ms * (1 + topic.queued_bytes(index) / self._bytes_each)


class Salted:
    """Spreads each key over `salt` neighbouring partitions, for a key that is too much for one."""

    def __init__(self, rng: Rng, bytes_each: int, *, salt: int) -> None:
        assert salt > 0, "a key needs a partition"
        self._salt = salt
        self._turn = 0
        self._sticky = _Sticky(rng, bytes_each)

    def choose(self, key: bytes | None, topic: TopicLoad) -> int:
        if key is None:
            return self._sticky.choose(topic)
        self._turn = (self._turn + 1) % self._salt
        return ((_hash(key) & 0x7FFFFFFF) + self._turn) % topic.partition_count
