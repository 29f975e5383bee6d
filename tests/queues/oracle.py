"""What a queue must do, said as simply as possible: a dictionary of messages, real time, and a copy of what was last written.

It knows nothing of cursors, bitmaps, heaps or the log's time. A change of leader takes the copy, and shifts every deadline by the time that has passed since
it was made: so durations are counted, and nobody's clock.
"""

from copy import copy
from dataclasses import dataclass, field

from ropewalk.queues.answers import Received
from ropewalk.queues.settings import QueueSettings


@dataclass
class Told:
    group: str
    ready_at_ms: int
    """When it could be received for the first time: not before."""
    ready_by_ms: int = 0
    """And surely from then on. Delays end a little late, and later after changes of leader."""
    visible_at_ms: int = 0
    """Hidden before, since it was received: in flight or resting."""
    attempt: int = 0
    until_ms: int = 0
    """Of the attempt."""
    count: int = 0
    is_gone: bool = False
    is_moving: bool = False
    is_refused: bool = False
    """The dead-letter queue did not take it, so it can be received once more."""


@dataclass
class Oracle:
    settings: QueueSettings
    messages: dict[int, Told] = field(default_factory=dict)
    written: dict[int, Told] = field(default_factory=dict)
    written_at_ms: int = 0

    def visible(self, offset: int, now_ms: int, *, is_sure: bool = False) -> bool:
        told = self.messages[offset]
        ready_ms = max(told.ready_at_ms, told.ready_by_ms) if is_sure else told.ready_at_ms
        return (
            not told.is_gone
            and not told.is_moving
            and max(ready_ms, told.visible_at_ms) <= now_ms
            and (told.is_refused or not self.dies(told))
        )

    def dies(self, told: Told) -> bool:
        target = self.settings.dead_letters
        return target is not None and told.count >= target.receive_count_max

    def may_give(self, now_ms: int, *, is_sure: bool = False) -> set[int]:
        """Everything that one receive without a bound could be given; with `is_sure`, what it must be given."""
        given: set[int] = set()
        locked: set[str] = set()
        for offset, told in sorted(self.messages.items()):
            if told.is_gone or (self.settings.is_fifo and told.group in locked):
                continue
            if self.visible(offset, now_ms, is_sure=is_sure):
                given.add(offset)
            else:
                locked.add(told.group)
        return given

    def receive(self, answer: Received, count_max: int, visibility_ms: int, now_ms: int) -> None:
        """Check what was given, and note it."""
        offsets = [given.offset for given in answer.messages]
        may = self.may_give(now_ms)
        assert len(offsets) == len(set(offsets)) <= count_max
        assert set(offsets) <= may
        sure = self.may_give(now_ms, is_sure=True)
        assert len(offsets) >= min(count_max, len(sure)), "as many as it wants, if there are so many"
        if self.settings.is_fifo:  # a standard queue gives what it has read already before what it has not
            for offset in offsets:
                group = self.messages[offset].group
                earlier = {each for each in may if each < offset and self.messages[each].group == group}
                assert earlier <= set(offsets), "a run begins at the head"
                assert [each for each in offsets if self.messages[each].group == group] == sorted(
                    each for each in offsets if self.messages[each].group == group
                ), "and keeps its order"
        for given in answer.messages:
            told = self.messages[given.offset]
            told.count += 1
            assert given.receive_count == told.count
            told.attempt, told.is_refused = answer.attempt, False
            self.hide(given.offset, visibility_ms, now_ms)

    def hide(self, offset: int, visibility_ms: int, now_ms: int) -> None:
        told = self.messages[offset]
        told.until_ms = now_ms + visibility_ms
        rest_ms = self.settings.retry_backoff_ms * 2 ** (told.count - 1) if not self.dies(told) else 0
        told.visible_at_ms = told.until_ms + min(rest_ms, self.settings.retry_backoff_ms_max)

    def in_flight(self, offset: int, now_ms: int) -> bool:
        told = self.messages[offset]
        return not told.is_gone and told.attempt > 0 and told.until_ms > now_ms

    def release(self, offset: int, now_ms: int) -> None:
        told = self.messages[offset]
        told.count -= 1
        told.until_ms = told.visible_at_ms = now_ms

    def settle(self, offset: int) -> None:
        self.messages[offset].is_gone = True
        self.messages[offset].is_moving = False

    def save(self, now_ms: int) -> None:
        self.written, self.written_at_ms = (
            {offset: copy(told) for offset, told in self.messages.items()},
            now_ms,
        )

    def change_leader(self, now_ms: int) -> None:
        """Messages are in the log whether or not anything was written about them since."""
        for offset, told in self.messages.items():
            self.written.setdefault(offset, Told(told.group, told.ready_at_ms, told.ready_by_ms))
        self.messages = {offset: copy(told) for offset, told in self.written.items()}
        for told in self.messages.values():
            told.is_refused = False
            if told.attempt:
                told.until_ms += now_ms - self.written_at_ms
                told.visible_at_ms += now_ms - self.written_at_ms
