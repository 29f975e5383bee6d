"""What one reader follows: its partitions, its place in each, and what it has been told of them (KIP-227).

A session lives from one fetch of a reader to the next, so that neither side repeats what the other knows. It is driven by
change: a partition that grows, loses its beginning or ends marks itself as due, and a fetch looks only at what is due.

Invariants
    A partition that is not due has nothing to say: there is nothing to read at the reader's offset, no error, and
    the reader was told its present high watermark and log start.
    Whatever is due stays so until an answer has said all there was to say. An answer that was not made takes no mark away.
    Partitions are served in the order in which they became due; one that gave records goes to the end, so a small
    answer starves nobody.

What a reader could get wrong
    Each `Interest` watches its partition by itself, once and for as long as the session lives. A fetch that waits
    registers nowhere: a session of thousands of quiet partitions costs it nothing.
    A partition in error is due in every fetch, as in Kafka. That is how one that does not exist yet is found when it does.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, Offset, TopicId
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.partitions.partition import Partition
from ropewalk.log.aborted import AbortedLookup
from ropewalk.log.epochs import EpochEnd
from ropewalk.log.log import AbortedTransaction, Span
from ropewalk.security.access import Asker

TopicKey: TypeAlias = str | TopicId
"""A session calls its topics by name or by id, never by both."""

_UNTOLD: Final = -1


class Waiting(Protocol):
    """A fetch under way, as far as its session knows it."""

    def on_growth(self, grown_bytes: int) -> None: ...

    def on_change(self) -> None:
        """Look again, for something other than growth."""

    def hurry(self) -> None:
        """Wait no more, and answer with what there is."""


class ReplicaReader(Struct, frozen=True, gc=False):
    """A node that copies."""

    node_id: NodeId
    broker_epoch: int


class Interest(Struct, eq=False):
    """One partition of a session. Two of them are never equal."""

    topic: TopicKey
    index: int
    offset: Offset
    bytes_max: int
    leader_epoch: int
    """That the reader knows; -1 if it does not say."""

    last_fetched_epoch: int = -1
    """Of the last batch that the reader holds; -1 if it does not say."""

    start_offset: int = -1
    """Where a replica's log begins; -1 of a consumer."""

    replica: ReplicaReader | None = None
    """None for a consumer. A replica is given what is not committed yet, and its offset counts as what it holds."""

    is_reported: bool = False
    """Whether the leader has been told of a replica's offset."""

    may_be_copy: bool = False
    """Whether the reader may be given what another node leads, as far as it is known here to be committed (KIP-392)."""

    committed_only: bool = False
    """Whether the reader is given only what no transaction can take back (read_committed)."""

    is_held_back: bool = False
    """Whether the partition held committed records that it may not be given yet when it last looked, or was told of growth."""

    partition: Hosted | None = None
    """None until it has been found, and again when it has ended."""

    session: "FetchSession | None" = None
    """While the partition is watched for it."""

    told_high_watermark: int = _UNTOLD
    told_start_offset: int = _UNTOLD

    def misses_start(self, partition: Hosted) -> bool:
        """Whether a replica has yet to be told where the leader begins: it keeps what others have deleted."""
        start_offset = partition.log.start_offset
        return self.replica is not None and self.start_offset < start_offset != self.told_start_offset

    def limit_offset(self, partition: Hosted) -> Offset:
        """What the reader may be given lies below it."""
        if self.replica is not None:
            return partition.log.end_offset
        return partition.last_stable_offset if self.committed_only else partition.high_watermark

    def find(self, hosted: HostedPartitions) -> Hosted:
        topic, index = self.topic, self.index
        if self.may_be_copy:
            if isinstance(topic, str):
                return hosted.find_copy(topic, index)
            return hosted.find_copy_by_id(topic, index)
        return hosted.find(topic, index) if isinstance(topic, str) else hosted.find_by_id(topic, index)

    def on_growth(self, grown_bytes: int) -> None:
        session = self.session
        assert session is not None, "only what is watched is heard of"
        session.due[self] = None
        fetch = session.fetch
        if self.committed_only:
            was_held_back, partition = self.is_held_back, self.partition
            self.is_held_back = (
                partition is not None and partition.last_stable_offset < partition.high_watermark
            )
            if was_held_back and fetch is not None:
                # The end of a transaction lets go of bytes that were counted when they were written.
                fetch.on_change()
                return
        if fetch is not None:
            fetch.on_growth(grown_bytes)

    def on_change(self) -> None:
        session = self.session
        assert session is not None, "only what is watched is heard of"
        session.due[self] = None
        if session.fetch is not None:
            session.fetch.on_change()

    def on_end(self) -> None:
        self.partition = None
        self.is_reported = False
        self.on_change()


class Found(Struct):
    """What a fetch found in one partition."""

    interest: Interest
    partition: Hosted | None
    """None where `error` says why there is none."""

    error: RopewalkError | None = None
    diverging: EpochEnd | None = None
    """Where a replica's log parts from the leader's; there are no records then."""

    preferred: NodeId | None = None
    """The replica that the reader should ask instead; there are no records then."""

    span: Span | None = None
    records: bytes | memoryview = b""
    lookup: AbortedLookup | None = None
    """While the next is not known."""

    aborted: tuple[AbortedTransaction, ...] = ()
    """Of which there may be something among the records; only whoever wants committed records alone is told."""

    @property
    def sends_away(self) -> bool:
        """Whether the reader is told to do something else before it reads here."""
        return self.diverging is not None or self.preferred is not None


class FetchSession:
    __slots__ = (
        "_interests",
        "committed_only",
        "decided_by",
        "due",
        "epoch",
        "fetch",
        "id",
        "is_hurried",
        "is_watching",
        "opened_at_ms",
        "topics_by_id",
        "unreported",
        "used_at_ms",
    )

    def __init__(
        self, interests: Iterable[Interest], *, topics_by_id: bool, committed_only: bool = False
    ) -> None:
        """Of a partition that is named twice the last is taken."""
        self._interests = {(interest.topic, interest.index): interest for interest in interests}
        self.committed_only = committed_only
        self.decided_by: tuple[Asker, int] | None = None
        """Who was allowed by which rules to read what the session has told of; None where nobody asked."""

        self.is_watching = False
        self.topics_by_id = topics_by_id
        self.due: dict[Interest, None] = dict.fromkeys(self._interests.values())
        """In the order of service."""

        self.unreported = [each for each in self._interests.values() if each.replica is not None]
        """Places of replicas that were named and that no leader has been told of."""

        self.fetch: Waiting | None = None
        """The fetch that uses the session. A later one takes it from an earlier one."""

        self.is_hurried = False
        """Whether the next fetch is not to wait."""

        # The table's: 0 is the id of a session that ends with its only fetch.
        self.id = 0
        self.epoch = 0
        self.opened_at_ms = 0.0
        self.used_at_ms = 0.0

    def __len__(self) -> int:
        return len(self._interests)

    def follow(self, interest: Interest) -> None:
        """The reader names a partition: one more, or a new place in one that is followed already."""
        key = interest.topic, interest.index
        known = self._interests.get(key)
        if known is None:
            self._interests[key] = known = interest
        else:
            known.offset, known.bytes_max = interest.offset, interest.bytes_max
            known.leader_epoch = interest.leader_epoch
            known.last_fetched_epoch = interest.last_fetched_epoch
            known.start_offset = interest.start_offset
            known.committed_only = interest.committed_only
            known.replica, known.is_reported = interest.replica, False
        self.due[known] = None
        if known.replica is not None:
            self.unreported.append(known)

    def want_committed_only(self, committed_only: bool) -> None:
        """The reader says so with every fetch, for all partitions, whether it names them or not."""
        self.committed_only = committed_only
        for interest in self._interests.values():
            if interest.committed_only != committed_only:
                interest.committed_only = committed_only
                self.due[interest] = None

    def mark_all(self) -> None:
        """Everything is due: what was told of it may be told no more, or again."""
        for interest in self._interests.values():
            self.due.setdefault(interest)

    def forget(self, topic: TopicKey, index: int) -> None:
        """The reader wants to hear no more of a partition; it may never have been followed."""
        interest = self._interests.pop((topic, index), None)
        if interest is not None:
            self.due.pop(interest, None)
            _unwatch(interest)

    def on_found(self, interest: Interest, partition: Hosted) -> None:
        interest.partition = partition
        if self.is_watching:
            self._watch(interest, partition)

    def watch(self) -> None:
        """Be told of every change from here on."""
        if self.is_watching:
            return
        self.is_watching = True
        for interest in self._interests.values():
            if interest.partition is not None:
                self._watch(interest, interest.partition)

    def unwatch(self) -> None:
        self.is_watching = False
        for interest in self._interests.values():
            _unwatch(interest)

    def begin(self, fetch: Waiting) -> None:
        """Use the session from here on; a fetch that is still using it is told to look, and finds that it lost it."""
        before, self.fetch = self.fetch, fetch
        if before is not None:
            before.on_change()
        if self.is_hurried:
            self.is_hurried = False
            fetch.hurry()

    def close(self) -> None:
        """The reader is forgotten. A fetch that is under way stops waiting and answers with what it has found."""
        self.unwatch()
        if self.fetch is not None:
            self.fetch.on_change()

    def tell(self, looked_at: list[Found], *, everyone: bool) -> list[Found]:
        """Those of them that the reader must hear of, or all of them. They count as told, so make the answer at once."""
        news = [found for found in looked_at if self._tell(found)]
        return looked_at if everyone else news

    def _tell(self, found: Found) -> bool:
        interest, partition = found.interest, found.partition
        if found.error is not None or partition is None:
            # When the error has gone, the reader has to be told everything anew.
            interest.told_high_watermark = interest.told_start_offset = _UNTOLD
            return True
        high_watermark, start_offset = partition.high_watermark, partition.log.start_offset
        is_news = (
            len(found.records) > 0
            or found.sends_away
            or interest.told_high_watermark != high_watermark
            or interest.told_start_offset != start_offset
        )
        if found.sends_away:  # of that answer the reader takes nothing else
            interest.told_high_watermark = interest.told_start_offset = _UNTOLD
        else:
            interest.told_high_watermark, interest.told_start_offset = high_watermark, start_offset
        if len(found.records) or found.sends_away:
            self.due.pop(interest, None)
            self.due[interest] = None
        elif _is_quiet(interest, partition):
            self.due.pop(interest, None)
        return is_news

    def _watch(self, interest: Interest, partition: Hosted) -> None:
        interest.session = self
        if interest.replica is not None and isinstance(partition, Partition):
            partition.watch_as_replica(interest)
        else:
            partition.watch(interest)


def _is_quiet(interest: Interest, partition: Hosted) -> bool:
    """Whether the next look could find nothing but what the reader has been told.

    Asked when the answer is made, not when the partition was looked at: much may have happened while others were read.
    """
    return (
        partition is interest.partition
        and partition.log.start_offset <= interest.offset
        and interest.offset >= interest.limit_offset(partition)
        and interest.leader_epoch in (-1, partition.leader_epoch)
    )


def _unwatch(interest: Interest) -> None:
    interest.session = None
    if interest.partition is not None:
        interest.partition.unwatch(interest)  # whichever way it was watched
