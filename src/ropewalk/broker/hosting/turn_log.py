"""What was decided in one turn of the loop goes into the log as one append, and its replies leave when that is committed.

Invariants
    A reply is released when the high watermark has passed the last event that was appended before the reply was decided. Whoever
    reads state that is not committed yet waits for it, too.
    Events and markers are in the log in the order in which they were put here. Events of one turn share a batch, but for those of a
    transaction, which have one of their own.

What a reader could get wrong
    Between `put` and the end of the loop's turn the state is ahead of the log. Nothing leaves the shard in that time.
    A late commit is no failure: its events are in the log, and whoever asks next waits for them as well.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from ropewalk.base.errors import RopewalkError, ShardUnavailable
from ropewalk.base.ids import Offset
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.state_machine import LogForm
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.records.marker import TransactionMarker

E = TypeVar("E")
A = TypeVar("A")

Due: TypeAlias = list[tuple[asyncio.Future[A], A | RopewalkError]]
"""Who is to be told what."""


class TurnLog(Generic[E, A]):
    def __init__(
        self,
        partition: Partition,
        form: LogForm[E],
        time: SteadyTime,
        *,
        commit_timeout_ms: int,
        on_failed: Callable[[RopewalkError], None],
    ) -> None:
        """`on_failed` is told when a turn could not be appended: nothing that was decided since can be trusted."""
        self._partition = partition
        self._form = form
        self._time = time
        self._commit_timeout_ms = commit_timeout_ms
        self._on_failed = on_failed
        self._events: list[E] = []
        """Applied, and to be appended at the end of this turn of the loop."""
        self._replies: Due[A] = []
        """Decided after `_events`, and to be released when they are committed."""
        self._end_offset = Offset(0)
        """After the last event that the state contains and the log too."""
        self._latest: _Release[A] | None = None
        self._flush_is_due = False

    def begin_at(self, end_offset: Offset) -> None:
        """The state contains all that the log has below."""
        self._end_offset = end_offset

    def put(self, events: Sequence[E], replies: Due[A]) -> None:
        """Events that have been applied, and replies that were decided after them."""
        if events:
            self._events += events
            if not self._flush_is_due:
                self._flush_is_due = True
                asyncio.get_running_loop().call_soon(self.flush)
        self._replies += replies
        if not self._events:
            self._release()

    def flush(self) -> None:
        """Write what was decided in this turn of the loop."""
        self._flush_is_due = False
        if not self._events:
            return
        events, self._events = self._events, []
        try:
            self.append(events)
        except RopewalkError as error:
            self._on_failed(error)
            return
        self._release()

    def append(
        self,
        events: Sequence[E],
        enrolment: Enrolment | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """At once. Raises what the partition refuses with."""
        if events:
            for prepared in self._form.batches(events, now_ms=self._time.now_ms(), enrolment=enrolment):
                self._partition.append(prepared, Acks.NOBODY, 0, guard)
            self._end_offset = self._partition.log.end_offset

    def append_marker(self, marker: TransactionMarker) -> None:
        """As `append`."""
        self._partition.append_marker(marker, Acks.NOBODY, 0)
        self._end_offset = self._partition.log.end_offset

    def committed(self) -> "asyncio.Future[None] | None":
        """Done when everything that is in the log by now is committed; None where it is."""
        return self._partition.expect(self._end_offset, self._commit_timeout_ms)

    def drop(self) -> "list[asyncio.Future[A]]":
        """Forget what is not appended. Answers who was to be told of it.

        What was appended in full keeps its replies: it is in the log, and commits or not by itself.
        """
        self._events = []
        replies, self._replies = self._replies, []
        return [answer for answer, _ in replies]

    def outcome_unknown(self, reason: str) -> ShardUnavailable:
        return ShardUnavailable(f"{self._partition.name}: the outcome is not known: {reason}")

    def _release(self) -> None:
        """Let the replies go when the log is committed as far as the state has come."""
        replies, self._replies = self._replies, []
        if not replies:
            return
        if self._latest is not None and self._latest.end_offset == self._end_offset:
            self._latest.replies += replies
            return
        if self._partition.has_ended:
            # Another node may lead and know more, though what this one knows is committed.
            reason = self.outcome_unknown("its partition has ended")
            refuse((answer for answer, _ in replies), reason)
            return
        committed = self._partition.expect(self._end_offset, self._commit_timeout_ms)
        if committed is None:
            _answer(replies)
            return
        self._latest = release = _Release(self._end_offset, replies)
        committed.add_done_callback(partial(self._on_committed, release))

    def _on_committed(self, release: "_Release[A]", committed: "asyncio.Future[None]") -> None:
        if self._latest is release:
            self._latest = None
        failure = committed.exception()
        if failure is None:
            _answer(release.replies)
        else:
            refuse((answer for answer, _ in release.replies), self.outcome_unknown(str(failure)))


class _Release(Struct, Generic[A]):
    """Replies that wait for one place in the log."""

    end_offset: Offset
    replies: list[tuple[asyncio.Future[A], A | RopewalkError]]


def _answer(replies: Due[A]) -> None:
    for answer, reply in replies:
        if isinstance(reply, RopewalkError):
            fail(answer, reply)
        elif not answer.cancelled():
            answer.set_result(reply)


def refuse(answers: "Iterable[asyncio.Future[A]]", reason: RopewalkError) -> None:
    for answer in answers:
        fail(answer, reason)


def fail(answer: "asyncio.Future[A]", reason: RopewalkError) -> None:
    if answer.cancelled():  # a task that waited for it has been ended
        return
    answer.set_exception(reason)
    answer.exception()  # whoever asked may be gone with its connection, and asyncio would complain of that
