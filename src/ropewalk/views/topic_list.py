"""Topics in a list: what is known of every one at no cost, what was seen of it a moment ago, and how far those are who read it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ropewalk.client.administration.membership import ClusterViewer
from ropewalk.client.calls.client import Client
from ropewalk.client.errors import ApiNotOffered
from ropewalk.views.observation import Picture, Sample, TopicRow


class TopicReader(Struct, frozen=True, gc=False):
    """A group that has read of the topic, or has members that do."""

    group: str
    lag: int
    """The sum of what is known."""
    unknown: int
    """Of how many partitions the lag is not known."""


class ListedTopic(Struct, frozen=True):
    name: str
    is_internal: bool
    queue: str | None
    """The name of the queue that it is of; None where there is none, or the broker does not say."""
    owner: str | None
    partitions: int
    replicas: int
    leaderless: int
    behind: int
    """Of how many partitions a replica is not in sync."""
    records: int | None
    """Offsets between the start and the end of each partition; None where nobody has looked yet."""
    written_per_second: float | None
    readers: tuple[TopicReader, ...]
    """Who is furthest behind comes first."""

    @property
    def lag(self) -> int:
        """Of the group that is furthest behind."""
        return self.readers[0].lag if self.readers else 0


async def collect(client: Client, picture: Picture, sample: Sample) -> list[ListedTopic]:
    """All topics by name: those that are there now, with what was seen a moment ago."""
    seen = {each.topic: each for each in picture.topics}
    readers = readers_of(sample)
    try:
        states = await ClusterViewer(client).topics()
    except ApiNotOffered:
        return sorted(
            (
                _listed(
                    each.name,
                    each.is_internal,
                    None,
                    None,
                    [(part.leader >= 0, part.replicas, part.isr) for part in each.partitions],
                    seen,
                    readers,
                )
                for each in (await client.metadata()).topics
            ),
            key=lambda each: each.name,
        )
    return sorted(
        (
            _listed(
                each.name,
                each.is_internal,
                each.queue,
                each.owner,
                [(part.leader is not None, part.replicas, part.isr) for part in each.partitions],
                seen,
                readers,
            )
            for each in states
        ),
        key=lambda each: each.name,
    )


def readers_of(sample: Sample) -> dict[str, tuple[TopicReader, ...]]:
    """By topic."""
    lags: dict[tuple[str, str], tuple[int, int]] = {}
    for group, seen in sample.groups.items():
        for row in seen.lag.partitions:
            lag, unknown = lags.get((row.topic, group), (0, 0))
            lags[row.topic, group] = (lag + (row.lag or 0), unknown + (row.lag is None))
    found: dict[str, list[TopicReader]] = {}
    for (topic, group), (lag, unknown) in lags.items():
        found.setdefault(topic, []).append(TopicReader(group, lag, unknown))
    return {
        topic: tuple(sorted(readers, key=lambda each: (-each.lag, each.group)))
        for topic, readers in found.items()
    }


def matching(topics: Iterable[ListedTopic], words: str) -> list[ListedTopic]:
    """Those in whose name, owner or queue every one of the words is."""
    wanted = words.casefold().split()
    return [
        each
        for each in topics
        if all(word in f"{each.name}\n{each.owner or ''}\n{each.queue or ''}".casefold() for word in wanted)
    ]


def _listed(
    name: str,
    is_internal: bool,
    queue: str | None,
    owner: str | None,
    partitions: Sequence[tuple[bool, Sequence[int], Sequence[int]]],
    seen: Mapping[str, TopicRow],
    readers: Mapping[str, tuple[TopicReader, ...]],
) -> ListedTopic:
    """Of each partition: whether it is led, its replicas, and those in sync."""
    row = seen.get(name)
    return ListedTopic(
        name,
        is_internal,
        queue,
        owner,
        len(partitions),
        max((len(replicas) for _, replicas, _ in partitions), default=0),
        sum(not is_led for is_led, _, _ in partitions),
        sum(len(isr) < len(replicas) for _, replicas, isr in partitions),
        None if row is None else row.records,
        None if row is None else row.written_per_second,
        readers.get(name, ()),
    )
