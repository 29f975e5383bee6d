"""Which messages can be given out now: derived from the durable state, the time, and what has been read of the log.

Nothing here is durable. A new leader makes another one, reads the log from `read_end` on as receives need it, and comes to the same.

What a reader could get wrong
    A message that was never received is known only once it is read. It lies at or above the state's cursor, so loading reads no backlog; where groups
    count, reading begins at the floor instead, because the groups of messages in flight have to be known, too.
    Times are of the log (`log_clock.py`), except where a name says wall.
"""

from collections.abc import Sequence

from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_DELAY_MS_MAX, QUEUE_DELAYED_MAX
from ropewalk.queues.commands import Message
from ropewalk.queues.due_times import DueTimes, of_message
from ropewalk.queues.fair_line import FairLine
from ropewalk.queues.group_line import GroupLine
from ropewalk.queues.lines import Line, PlainLine
from ropewalk.queues.log_clock import LogClock
from ropewalk.queues.sent_times import SentTimes
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import Entry, QueueState


class Outlook:
    def __init__(
        self,
        state: QueueState,
        settings: QueueSettings,
        clock: LogClock,
        due_times: DueTimes,
        sent_times: SentTimes,
    ) -> None:
        """Messages that have been received are still to be placed."""
        self._state = state
        self._settings = settings
        self._clock = clock
        self._due_times = due_times
        self._sent_times = sent_times
        self.line = _new_line(settings)
        self.in_flight = BitMap64()
        self.resting = BitMap64()
        """Received in vain, and hidden for a while before they are given out again."""
        self.dying = BitMap64()
        """Received as often as they may be: to be moved to the dead letters."""
        self.delayed = BitMap64()
        """Never received, and not yet to be."""
        self.untouched = BitMap64()
        """Read and never received, the delayed ones included."""
        self._sent_at_ms: dict[int, int] = {}
        """Wall time, of the untouched ones that are not delayed."""
        self._read_end = state.floor if settings.is_fifo else state.cursor

    @property
    def read_end(self) -> int:
        """Offsets below were looked at, or all that they hold is settled: the log need not have them any more."""
        return max(self._read_end, self._state.floor)

    def place(self, offset: int, log_ms: int) -> None:
        """Put a message that has been received where it belongs by now."""
        entry = self._state.entries[offset]
        if entry.until_ms > log_ms:
            self._hide(offset, entry)
            self._due_times.set(entry.until_ms, of_message(offset))
            return
        self.in_flight.discard(offset)
        self.resting.discard(offset)
        self.line.land(offset)
        if self._state.is_moving(offset):
            self.line.hide(offset)
        elif self._is_dead(entry):
            self.dying.add(offset)
            self.line.hide(offset)
        else:
            self.line.show((offset,))

    def give(self, offsets: tuple[int, ...], until_ms: int) -> None:
        """They have just been received, and are hidden until then, which lies ahead: what `place` does for each."""
        self.in_flight.update(offsets)
        self.line.give(offsets)
        self._due_times.set_messages(until_ms, offsets)

    def rest_until_ms(self, entry: Entry) -> int:
        """When a message whose visibility has ended is to be given out again."""
        backoff_ms = self._settings.retry_backoff_ms
        if not backoff_ms or not entry.is_acquired or self._is_dead(entry):
            return entry.until_ms
        doublings = min(entry.receive_count - 1, 40)  # beyond that any back-off is above its maximum
        return entry.until_ms + min(backoff_ms << max(doublings, 0), self._settings.retry_backoff_ms_max)

    def know(self, messages: tuple[Message, ...], end_offset: int, log_ms: int) -> None:
        """What there is from `read_end` to `end_offset`; other offsets in between are no messages."""
        state, settings = self._state, self._settings
        least, settled, entries = self.read_end, state.settled, state.entries
        visible: list[int] = []
        for message in messages:
            offset = message.offset
            if offset < least or offset in settled:
                continue
            if message.group or settings.is_fifo:
                self.line.know(offset, message.group)
            if offset in entries:
                self._know_again(offset)
                continue
            self.untouched.add(offset)
            delay_ms = settings.delay_ms if settings.is_fifo else message.delay_ms
            is_moving = state.move is not None and state.is_moving(offset)  # then its delay was over once
            if delay_ms > 0 and not is_moving and self._delay(message, delay_ms, log_ms):
                continue
            self._sent_at_ms[offset] = message.sent_at_ms
            if not is_moving:
                visible.append(offset)
        self.line.show(visible)
        self._read_end = max(self._read_end, end_offset)

    def ripen(self, offset: int, due_ms: int, age_ms: int) -> None:
        """Its delay is over."""
        self.delayed.discard(offset)
        self._sent_at_ms[offset] = self._clock.now_ms(due_ms) - age_ms
        self.line.show((offset,))

    def touch(self, offsets: Sequence[int]) -> None:
        """They are received for the first time, or settled."""
        forget = self._sent_at_ms.pop
        for offset in offsets:
            forget(offset, None)
        _leave(self.untouched, offsets)
        _leave(self.delayed, offsets)

    def drop(self, offsets: Sequence[int]) -> None:
        """They are settled."""
        self.touch(offsets)
        self.line.drop(offsets)
        for place in (self.in_flight, self.resting, self.dying):
            _leave(place, offsets)

    def bring_back(self, offset: int) -> None:
        """It was to be moved, and stays, unless it was purged meanwhile."""
        if offset in self._state.entries or offset in self.untouched:
            self.line.show((offset,))

    def drop_below(self, end_offset: int) -> None:
        below = BitMap64()
        below.add_range(self._state.floor, end_offset)
        self.drop(list((self._state.touched | self.untouched) & below))
        self._read_end = max(self._read_end, end_offset)

    def can_read(self) -> bool:
        """Whether more of the log may be kept in mind."""
        return (
            len(self.delayed) < QUEUE_DELAYED_MAX
            and self.line.known_count() < self._settings.window_messages_max
        )

    def sent_at_ms(self, offset: int) -> int | None:
        """Wall time; None of one that is delayed."""
        entry = self._state.entries.get(offset)
        return self._sent_at_ms.get(offset) if entry is None else entry.sent_at_ms

    def head(self) -> int | None:
        """The first that is not settled, as far as is known."""
        heads = [offsets.min() for offsets in (self._state.touched, self.untouched) if offsets]
        return min(heads, default=None)

    def cursor(self) -> int:
        """Below it, everything that is a message has been received."""
        return self.untouched.min() if self.untouched else self.read_end

    def held_count(self) -> int:
        """Received, and neither settled nor visible: all of them take memory, so all count where so many may be in flight."""
        return len(self.in_flight) + len(self.resting) + len(self.dying)

    def hidden_count(self) -> int:
        """Those that only time brings back."""
        return len(self.in_flight) + len(self.resting) + len(self.delayed)

    def is_due(self, offset: int, due_ms: int) -> bool:
        """Whether this due time still counts for the message."""
        entry = self._state.entries.get(offset)
        return offset in self.delayed if entry is None else entry.until_ms == due_ms

    def _hide(self, offset: int, entry: Entry) -> None:
        """It has been received, and its time lies ahead."""
        if entry.is_acquired:
            self.in_flight.add(offset)
            self.line.give((offset,))
        else:
            self.resting.add(offset)
            self.line.hide(offset)

    def _know_again(self, offset: int) -> None:
        """It has been received, so where it belongs is known, and only its group was not."""
        if offset in self.in_flight:
            self.line.give((offset,))
        elif offset in self.resting:
            self.line.hide(offset)
        elif offset not in self.dying and not self._state.is_moving(offset):
            self.line.show((offset,))

    def _delay(self, message: Message, delay_ms: int, log_ms: int) -> bool:
        """Whether its delay is not over yet: then it is hidden until it is."""
        sent_ms = self._sent_times.latest_ms(message.offset)
        due_ms = min(delay_ms, QUEUE_DELAY_MS_MAX) + (log_ms if sent_ms is None else min(sent_ms, log_ms))
        if due_ms <= log_ms:
            return False
        self.delayed.add(message.offset)
        age_ms = self._clock.now_ms(due_ms) - message.sent_at_ms
        self._due_times.set(due_ms, of_message(message.offset, age_ms))
        return True

    def _is_dead(self, entry: Entry) -> bool:
        target = self._settings.dead_letters
        return target is not None and entry.receive_count >= target.receive_count_max


def _leave(place: BitMap64, offsets: Sequence[int]) -> None:
    if place:
        discard = place.discard
        for offset in offsets:
            discard(offset)


def _new_line(settings: QueueSettings) -> Line:
    if settings.is_fifo:
        return GroupLine()
    return FairLine() if settings.is_fair else PlainLine()
