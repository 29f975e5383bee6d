"""Which messages can be given out now: derived from the durable state, the time, and what has been read of the log.

Nothing here is durable. A new leader makes another one, reads the log from `read_end` on as receives need it, and comes to the same.

What a reader could get wrong
    A message that was never received is known only once it is read. It lies at or above the state's cursor, so loading reads no backlog; where groups
    count, reading begins at the floor instead, because the groups of messages in flight have to be known, too.
    Times are of the log (`log_clock.py`), except where a name says wall.
"""

from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_DELAYED_MAX
from ropewalk.queues.commands import Message
from ropewalk.queues.due_times import DueTimes, of_message
from ropewalk.queues.fair_line import FairLine
from ropewalk.queues.group_line import GroupLine
from ropewalk.queues.lines import Line, PlainLine
from ropewalk.queues.log_clock import LogClock
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import Entry, QueueState


class Outlook:
    def __init__(
        self,
        state: QueueState,
        settings: QueueSettings,
        clock: LogClock,
        due_times: DueTimes,
        *,
        predecessor_end: int,
    ) -> None:
        """Messages below `predecessor_end` were sent while somebody else led. Those that have been received are still to be placed."""
        self._state = state
        self._settings = settings
        self._clock = clock
        self._due_times = due_times
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
        self.read_end = state.floor if settings.is_fifo else state.cursor
        self._predecessor_end = predecessor_end

    def place(self, offset: int, log_ms: int) -> None:
        """Put a message that has been received where it belongs by now."""
        entry = self._state.entries[offset]
        if entry.until_ms > log_ms:
            (self.in_flight if entry.is_acquired else self.resting).add(offset)
            self.line.hide(offset, is_given=entry.is_acquired)
            self._due_times.set(entry.until_ms, of_message(offset))
            return
        self.in_flight.discard(offset)
        self.resting.discard(offset)
        self.line.land(offset)
        if self._state.is_moving(offset):
            self.line.hide(offset, is_given=False)
        elif self._is_dead(entry):
            self.dying.add(offset)
            self.line.hide(offset, is_given=False)
        else:
            self.line.show(offset)

    def rest_until_ms(self, entry: Entry) -> int:
        """When a message whose visibility has ended is to be given out again."""
        backoff_ms = self._settings.retry_backoff_ms
        if not backoff_ms or not entry.is_acquired or self._is_dead(entry):
            return entry.until_ms
        doublings = min(entry.receive_count - 1, 40)  # beyond that any back-off is above its maximum
        return entry.until_ms + min(backoff_ms << max(doublings, 0), self._settings.retry_backoff_ms_max)

    def know(self, messages: tuple[Message, ...], end_offset: int, log_ms: int) -> None:
        """What there is from `read_end` to `end_offset`; other offsets in between are no messages."""
        for message in messages:
            if message.offset >= self.read_end and not self._state.is_settled(message.offset):
                self._know(message, log_ms)
        self.read_end = max(self.read_end, end_offset)

    def ripen(self, offset: int, due_ms: int, delay_ms: int) -> None:
        """Its delay is over."""
        self.delayed.discard(offset)
        self._sent_at_ms[offset] = self._clock.now_ms(due_ms) - delay_ms
        self.line.show(offset)

    def touch(self, offset: int) -> None:
        """It is received for the first time."""
        self.untouched.discard(offset)
        self.delayed.discard(offset)
        self._sent_at_ms.pop(offset, None)

    def drop(self, offset: int) -> None:
        """It is settled."""
        self.touch(offset)
        self.line.land(offset)
        self.line.drop(offset)
        for place in (self.in_flight, self.resting, self.dying):
            place.discard(offset)

    def drop_below(self, end_offset: int) -> None:
        below = BitMap64()
        below.add_range(self._state.floor, end_offset)
        for offset in (self._state.touched | self.untouched) & below:
            self.drop(offset)
        self.read_end = max(self.read_end, end_offset)

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

    def hidden_count(self) -> int:
        """Those that only time brings back."""
        return len(self.in_flight) + len(self.resting) + len(self.delayed)

    def is_due(self, offset: int, due_ms: int) -> bool:
        """Whether this due time still counts for the message."""
        entry = self._state.entries.get(offset)
        return offset in self.delayed if entry is None else entry.until_ms == due_ms

    def _know(self, message: Message, log_ms: int) -> None:
        offset = message.offset
        self.line.know(offset, message.group)
        if offset in self._state.entries:
            if offset in self.in_flight or offset in self.resting:
                self.line.hide(offset, is_given=offset in self.in_flight)
            elif offset not in self.dying and not self._state.is_moving(offset):
                self.line.show(offset)
            return
        self.untouched.add(offset)
        delay_ms = self._settings.delay_ms if self._settings.is_fifo else message.delay_ms
        sent_ms = self._clock.sent_log_ms(
            message.sent_at_ms, is_of_predecessor=offset < self._predecessor_end
        )
        due_ms = min(sent_ms, log_ms) + delay_ms  # a clock that was ahead delays nothing twice
        if delay_ms and due_ms > log_ms:
            self.delayed.add(offset)
            self._due_times.set(due_ms, of_message(offset, delay_ms))
        else:
            self._sent_at_ms[offset] = message.sent_at_ms
            self.line.show(offset)

    def _is_dead(self, entry: Entry) -> bool:
        target = self._settings.dead_letters
        return target is not None and entry.receive_count >= target.receive_count_max


def _new_line(settings: QueueSettings) -> Line:
    if settings.is_fifo:
        return GroupLine()
    return FairLine() if settings.is_fair else PlainLine()
