"""The fetch sessions of a node: which there are, whose turn it is in each, and who has to go when there are too many.

A core: time and chance come in.

Invariants
    Every fetch of a session carries the next epoch. One that was sent twice, or whose answer was lost, is refused, and the
    reader begins anew with all its partitions; so what an answer said counts as known once it is made.
    There are never more sessions than there are slots, nor more partitions in them than `FETCH_SESSION_PARTITIONS_MAX`.

What a reader could get wrong
    Not to be given a session is no error: the reader is answered with id 0 and names all its partitions every time.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from ropewalk.base import metrics
from ropewalk.base.errors import (
    FetchSessionEpochInvalid,
    FetchSessionTopicsMixed,
    FetchSessionUnknown,
)
from ropewalk.base.limits import FETCH_SESSION_KEPT_MS, FETCH_SESSION_PARTITIONS_MAX
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Rng
from ropewalk.broker.reading.fetch_session import FetchSession, Interest, TopicKey

EPOCH_FIRST: Final = 0
"""The epoch of a reader that names all its partitions and would like a session."""

EPOCH_NONE: Final = -1
"""The epoch of a reader that names all its partitions and wants no session."""

_EPOCH_MAX: Final = 2**31 - 1
_ID_MAX: Final = 2**31 - 1


class FetchSessions:
    def __init__(
        self, rng: Rng, *, count_max: int, partition_count_max: int = FETCH_SESSION_PARTITIONS_MAX
    ) -> None:
        self._rng = rng
        self._count_max = count_max
        self._partition_count_max = partition_count_max
        self._by_id: dict[int, FetchSession] = {}  # the longest unused first
        self._partition_count = 0
        self._evicted_count = 0
        self._refused_count = 0
        self._resumed_count = 0

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def partition_count(self) -> int:
        """Of all sessions together."""
        return self._partition_count

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.FETCH_SESSIONS, len(self))
        sheet.add(metrics.FETCH_SESSION_PARTITIONS, self._partition_count)
        sheet.add(metrics.FETCH_SESSIONS_EVICTED, self._evicted_count)
        sheet.add(metrics.FETCH_SESSIONS_REFUSED, self._refused_count)
        sheet.add(metrics.FETCHES_IN_SESSION, self._resumed_count)
        yield

    def open(self, session: FetchSession, now_ms: float) -> bool:
        """Keep the session for the reader's next fetch, under an id of its own, if there is room."""
        if not len(session):
            return False
        if not self._make_room(len(session), now_ms):
            self._refused_count += 1
            return False
        session.id = self._unused_id()
        session.epoch = _next_epoch(EPOCH_FIRST)
        session.opened_at_ms = session.used_at_ms = now_ms
        session.watch()
        self._by_id[session.id] = session
        self._partition_count += len(session)
        return True

    def resume(
        self,
        session_id: int,
        epoch: int,
        *,
        topics_by_id: bool,
        committed_only: bool,
        named: Iterable[Interest],
        forgotten: Iterable[tuple[TopicKey, int]],
        now_ms: float,
    ) -> FetchSession:
        """The session for its next fetch, with what the reader changed in it.

        Refuses with `FetchSessionUnknown`, also a session that has grown too large, with `FetchSessionEpochInvalid` and
        with `FetchSessionTopicsMixed`. A session in which nothing is left ends here: its id is then 0.
        """
        session = self._by_id.get(session_id)
        if session is None:
            raise FetchSessionUnknown(f"there is no fetch session {session_id}")
        if epoch != session.epoch:
            raise FetchSessionEpochInvalid(
                f"fetch session {session_id} expects epoch {session.epoch}, not {epoch}"
            )
        if topics_by_id != session.topics_by_id:
            raise FetchSessionTopicsMixed(
                f"fetch session {session_id} names its topics {'by id' if session.topics_by_id else 'by name'}"
            )
        before_count = len(session)
        for interest in named:
            session.follow(interest)
        for topic, index in forgotten:
            session.forget(topic, index)
        if session.committed_only != committed_only:
            session.want_committed_only(committed_only)
        self._partition_count += len(session) - before_count
        if not len(session):
            self.close(session_id)
            session.id = 0
        elif self._partition_count > self._partition_count_max:
            self.close(session_id)
            raise FetchSessionUnknown(f"fetch session {session_id} has grown too large")
        else:
            self._resumed_count += 1
            session.epoch = _next_epoch(epoch)
            session.used_at_ms = now_ms
            del self._by_id[session_id]
            self._by_id[session_id] = session
        return session

    def hurry(self, session_id: int, epoch: int) -> None:
        """Let the fetch with that epoch wait no longer, whether it is here or on its way. One that is over is left alone."""
        session = self._by_id.get(session_id)
        if session is None:
            return
        if session.epoch == epoch:
            session.is_hurried = True
        elif session.epoch == _next_epoch(epoch) and session.fetch is not None:
            session.fetch.hurry()

    def close(self, session_id: int) -> None:
        """Forget the session; there may be none of that id any more."""
        session = self._by_id.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session)
            session.close()

    def _make_room(self, partition_count: int, now_ms: float) -> bool:
        while (
            len(self._by_id) >= self._count_max
            or self._partition_count + partition_count > self._partition_count_max
        ):
            evicted = self._evictable(partition_count, now_ms)
            if evicted is None:
                return False
            self._evicted_count += 1
            self.close(evicted.id)
        return True

    def _evictable(self, partition_count: int, now_ms: float) -> FetchSession | None:
        """One that is no longer used; else the smallest, if it has had its time and the one that comes is larger.

        This is Kafka's rule. It spends the slots on readers to whom they are worth most, and leaves each its slot for long
        enough that readers do not take it from each other in turns.
        """
        if not self._by_id:
            return None
        longest_unused = next(iter(self._by_id.values()))
        if now_ms - longest_unused.used_at_ms > FETCH_SESSION_KEPT_MS:
            return longest_unused
        settled = [
            session
            for session in self._by_id.values()
            if now_ms - session.opened_at_ms > FETCH_SESSION_KEPT_MS
        ]
        smallest = min(settled, key=len, default=None)
        return smallest if smallest is not None and len(smallest) < partition_count else None

    def _unused_id(self) -> int:
        while True:
            session_id = self._rng.randrange(1, _ID_MAX + 1)
            if session_id not in self._by_id:
                return session_id


def _next_epoch(epoch: int) -> int:
    return epoch + 1 if epoch < _EPOCH_MAX else 1
