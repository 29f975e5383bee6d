"""Where the load is: the partitions that carry most, and the keys that are written most often.

Keys are found with the space-saving sketch (Metwally, Agrawal and El Abbadi, 2005): a fixed number of counters, of which the
smallest is given to each key that has none. A key that makes up more than one part in `capacity` of all that was added is
always among them, and no count is too small; it is too large by `error` at the most. Nothing is counted while records are
written: whoever wants to know reads the ends of the busiest partitions, as any consumer can, and counts what is there.
"""

from collections.abc import Iterable

from msgspec import Struct

from ropewalk.controller.load import ClusterLoad
from ropewalk.metadata.image import Image


class HotPartition(Struct, frozen=True):
    topic_name: str
    index: int
    leader: int | None
    bytes_in: int
    bytes_out: int
    share: float
    """Of everything that is written and read."""


class HotKey(Struct, frozen=True):
    key: bytes
    count: int
    error: int
    """The true number is not below `count - error`."""


def hot_partitions(image: Image, load: ClusterLoad, count: int) -> list[HotPartition]:
    """The busiest first, at most `count`; quiet ones are not told."""
    total = sum(traffic.bytes_in + traffic.bytes_out for traffic in load.traffic.values())
    found = [
        HotPartition(
            topic_name=(topic := image.topic_by_id(topic_id)).name,
            index=index,
            leader=topic.partitions[index].leader,
            bytes_in=traffic.bytes_in,
            bytes_out=traffic.bytes_out,
            share=(traffic.bytes_in + traffic.bytes_out) / total,
        )
        for (topic_id, index), traffic in load.traffic.items()
        if traffic.bytes_in + traffic.bytes_out > 0
    ]
    return sorted(found, key=lambda hot: (-hot.share, hot.topic_name, hot.index))[:count]


class HotKeys:
    """The sketch. `added` is how much has gone in."""

    __slots__ = ("_capacity", "_counts", "_errors", "added")

    def __init__(self, capacity: int) -> None:
        assert capacity > 0, "a sketch has at least one counter"
        self._capacity = capacity
        self._counts: dict[bytes, int] = {}
        self._errors: dict[bytes, int] = {}
        self.added = 0

    def add(self, key: bytes, count: int = 1) -> None:
        """In time proportional to the capacity at the worst, so it is fed with a sample and not with everything."""
        self.added += count
        counts = self._counts
        if key in counts:
            counts[key] += count
            return
        error = 0
        if len(counts) >= self._capacity:
            smallest = min(counts, key=counts.__getitem__)
            error = counts.pop(smallest)
            del self._errors[smallest]
        counts[key] = error + count
        self._errors[key] = error

    def add_all(self, others: Iterable[HotKey]) -> None:
        """What another sketch has found; its errors are not forgotten."""
        for other in others:
            self.add(other.key, other.count)
            self._errors[other.key] += other.error

    def top(self, count: int) -> list[HotKey]:
        ordered = sorted(self._counts, key=lambda key: (-self._counts[key], key))
        return [HotKey(key, self._counts[key], self._errors[key]) for key in ordered[:count]]

    def fade(self) -> None:
        """Halve everything, so that what was hot long ago gives way."""
        self.added //= 2
        self._counts = {key: count // 2 for key, count in self._counts.items() if count > 1}
        self._errors = {key: (self._errors[key] + 1) // 2 for key in self._counts}
