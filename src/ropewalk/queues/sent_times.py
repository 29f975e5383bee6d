"""When messages were sent, in the log's own time: never earlier than it was, and late by a quarter of a second where time is told often.

A delay counts from here. Doors stamp messages by clocks of their own, which may be apart by minutes, so stamps are not asked: a message that lay below an
end of the log when something was written was sent before that, whoever led then.

What a reader could get wrong
    Marks are facts about the log, so purges and rewinds change nothing here.
    What lies below the first mark was sent longer ago than any delay lasts.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from ropewalk.base.limits import QUEUE_DELAY_MS_MAX, QUEUE_MARK_MS


class SentTimes:
    __slots__ = ("_ends", "_times_ms")

    def __init__(self, marks: Iterable[tuple[int, int]] = ()) -> None:
        """Marks as `__iter__` gives them: an end of the log, and the log's time."""
        self._ends: list[int] = []
        self._times_ms: list[int] = []
        for end_offset, log_ms in marks:
            self._ends.append(end_offset)
            self._times_ms.append(log_ms)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._ends, self._times_ms, strict=True)

    def note(self, end_offset: int, log_ms: int) -> None:
        """At this time everything below was in the log. What is told within a quarter of a second becomes one mark, the later one."""
        ends, times_ms = self._ends, self._times_ms
        while ends and ends[-1] > end_offset:  # an unclean election: what was there is lost
            ends.pop()
            times_ms.pop()
        if end_offset == (ends[-1] if ends else 0):
            return
        if len(ends) > 1 and log_ms - times_ms[-2] < QUEUE_MARK_MS:
            ends[-1], times_ms[-1] = end_offset, log_ms
        else:
            ends.append(end_offset)
            times_ms.append(log_ms)
        gone = bisect_right(times_ms, log_ms - QUEUE_DELAY_MS_MAX) - 1
        if gone > 0:  # the last of those that are too old stays: it tells that what lies below is older still
            del ends[:gone], times_ms[:gone]

    def latest_ms(self, offset: int) -> int | None:
        """A time at which it was there; None: nothing was told of it yet."""
        index = bisect_right(self._ends, offset)
        return self._times_ms[index] if index < len(self._ends) else None
