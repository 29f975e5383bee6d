"""What clients were told of one queue, and what of it cannot be.

A request takes effect somewhere between its sending and its answer, or at any time after its sending where no answer came; every rule
leaves room for that. Times are those of the world, which no node's clock keeps to exactly.

What a reader could get wrong
    A leader of a standard queue answers for what it knew. So what it gave out is judged where only one can have given the answer
    (`lives.py`): then that one knew of all that was answered before. A FIFO queue has no such excuse.
    A front end that is lost with what it was given may have passed it on. A standard queue gives it out again then, and does not count it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.runs.queue_cluster.lives import Lives
from ropewalk.sim.runs.queue_cluster.sorts import QueueSort

CLOCK_RATE: Final = 0.95
"""The part of a time that has passed for certain when the fastest of all clocks says that it is over."""

Note = Callable[[str], None]


class Seen(Struct, frozen=True):
    """A message in the answer of a receive."""

    text: str
    handle: str
    message_id: str
    partition: int
    offset: int
    receive_count: int


class Moment(Struct, frozen=True):
    """When something was asked and answered, and at which door."""

    asked_s: float
    answered_s: float
    door: str


class Held(Struct):
    """The latest delivery of a message that somebody saw."""

    handle: str
    moment: Moment
    until_s: float
    """When its time is over, the earliest."""
    doubtful_s: list[float] = []
    """The same by changes of its visibility that nobody has answered."""

    @property
    def visible_s(self) -> float:
        """The earliest time at which it may be given to somebody else, as far as anybody knows."""
        return min([self.until_s, *self.doubtful_s])


class Message(Struct):
    text: str
    group: str
    asked_s: float
    """When it was sent for the first time."""
    delay_s: float
    answered_s: float | None = None
    """When its sending was acknowledged."""
    batch: tuple[int, int] | None = None
    """Of a batch that was acknowledged as a whole at the first attempt: which, and the position in it."""
    twin_of: str = ""
    """It was sent under the id of that one, which was acknowledged before: it must never come."""
    message_id: str = ""
    place: tuple[int, int] | None = None
    held: Held | None = None
    seen_count: int = 0
    certain_count: int = 0
    """Of these, the ones that the leader certainly counted, as long as it led."""
    may_be_deleted: bool = False
    deleted_s: float | None = None
    was_deleted_in_time: bool = False
    """FIFO: while nobody else could have had it."""
    may_be_purged: bool = False
    purged_s: float | None = None
    dead_s: float | None = None
    """When it was first seen among the dead letters."""
    passed_s: float | None = None
    """When one of its group had come that lies behind it."""
    must_be_gone: str = ""
    """What says so."""


class Ledger:
    def __init__(
        self, sort: QueueSort, lives: Lives, note: Note, *, is_calm: Callable[[float], bool]
    ) -> None:
        """`is_calm` tells whether nothing had befallen anybody before that time, or nothing has since all was healed."""
        self.sort = sort
        self.dead: Ledger | None = None
        """Of the queue that dead letters go to."""
        self.sources: list[Ledger] = []
        self.messages: dict[str, Message] = {}
        self.violations: list[Violation] = []
        self.early_count = 0
        self.unanswered_receives: list[float] = []
        """When they were asked."""
        self._lives = lives
        self._note = note
        self._is_calm = is_calm
        self._groups: dict[str, list[Message]] = defaultdict(list)
        self._by_place: dict[tuple[int, int], str] = {}
        self._open_purge_count = 0
        """Those of which nobody has heard, or will."""

    # Sending

    def on_send(self, text: str, group: str, *, at_s: float, delay_s: float, twin_of: str = "") -> None:
        """To send it again is the same sending."""
        if text not in self.messages:
            message = Message(text, group, at_s, delay_s, twin_of=twin_of)
            message.may_be_purged = self._open_purge_count > 0
            self.messages[text] = message
            self._groups[group].append(message)

    def on_sent(
        self, text: str, message_id: str, *, at_s: float, batch: tuple[int, int] | None = None
    ) -> None:
        message = self.messages[text]
        message.answered_s, message.batch = at_s, batch
        if message.twin_of:
            first = self.messages[message.twin_of]
            self._note("a duplicate was answered as the first one")
            if message_id != first.message_id:
                self._blame("Q4", f"{text} is a duplicate of {first.text} and was answered as {message_id}")
        elif message_id and message.message_id not in ("", message_id):
            self._blame("A", f"{text} is {message.message_id} and was acknowledged as {message_id}")
        message.message_id = message_id or message.message_id

    # Receiving

    def on_receive_unanswered(self, asked_s: float) -> None:
        self.unanswered_receives.append(asked_s)

    def on_received(self, seen: Sequence[Seen], moment: Moment, *, visibility_s: float) -> None:
        before: list[str] = []
        for each in seen:
            message = self._known(each, moment)
            if message is None:
                continue
            self._check_place(message, each)
            self._check_gone(message, each, moment)
            self._check_time(message, each, moment)
            self._check_count(message, each, moment)
            if self.sort.is_fifo:
                self._check_order(message, before, moment)
            before.append(each.text)
            visible_s = moment.asked_s + visibility_s * CLOCK_RATE
            message.held = Held(each.handle, moment, visible_s)
            message.seen_count += 1
            if self._is_near(each, moment) or self._is_calm(moment.answered_s):
                message.certain_count += 1
            self._check_limit(message, each)

    def _known(self, each: Seen, moment: Moment) -> Message | None:
        message = self.messages.get(each.text)
        if message is not None:
            return message
        for source in self.sources:
            origin = source.messages.get(each.text)
            if origin is not None:
                message = Message(each.text, origin.group, moment.asked_s, 0)
                message.message_id = origin.message_id or each.message_id
                self.messages[each.text] = message
                source.on_dead(origin, each, moment, unanswered_count=len(self.unanswered_receives))
                return message
        self._blame("A", f"{each.text!r} came, which nobody has sent")
        return None

    def _check_place(self, message: Message, each: Seen) -> None:
        if message.twin_of:
            self._blame("Q4", f"{each.text} came, though it is a duplicate of {message.twin_of}")
        place = (each.partition, each.offset)
        if message.place not in (None, place) or self._by_place.get(place, each.text) != each.text:
            self._blame("Q4", f"{each.text} is at {message.place} and at {place}: there are two of it")
        if message.message_id not in ("", each.message_id):
            self._blame("A", f"{each.text} is {message.message_id} and came as {each.message_id}")
        message.message_id, message.place = each.message_id, place
        self._by_place[place] = each.text

    def _check_gone(self, message: Message, each: Seen, moment: Moment) -> None:
        """What is deleted, purged or dead, and answered for, is not given out by who must know of it."""
        for gone_s, how in (
            (message.deleted_s, "its delete was answered"),
            (message.purged_s, "a purge was answered"),
            (message.dead_s, "it was seen among the dead letters"),
        ):
            if gone_s is None or gone_s >= moment.asked_s:
                continue
            if self.sort.is_fifo or self._sole(each, moment) is not None:
                self._blame("Q2", f"{each.text} came {moment.asked_s - gone_s:.3f} s after {how}")
            else:
                self._note("a deposed leader gave out what was gone")

    def _check_time(self, message: Message, each: Seen, moment: Moment) -> None:
        earliest_s = message.asked_s + message.delay_s * CLOCK_RATE
        if moment.answered_s < earliest_s:
            self._blame(
                "D", f"{each.text} came {earliest_s - moment.answered_s:.3f} s before its delay was over"
            )
        held = message.held
        if held is None:
            return
        early_s = held.visible_s - moment.answered_s
        if early_s <= 0:
            self._note("a message came again after its time")
        elif self.sort.is_fifo:
            self._blame("Q2", f"{each.text} came again {early_s:.3f} s before its time was over")
        else:
            self.early_count += 1
            self._note("a standard message came again early")
            if self._is_same_leader(each, held.moment, moment):
                self._blame("Q2", f"{each.text} came again {early_s:.3f} s early from the same leader")

    def _check_count(self, message: Message, each: Seen, moment: Moment) -> None:
        passed_on = self.sources[0].sort.receives_max if self.sources else 0
        least = message.seen_count + 1 + passed_on
        if self.sort.is_fifo and each.receive_count < least:
            self._blame("A", f"{each.text} came for the {least}th time and was told {each.receive_count}")
        if self._is_calm(moment.answered_s) and self._is_calm(message.asked_s) and not self.sources:
            unanswered = sum(1 for asked_s in self.unanswered_receives if asked_s <= moment.answered_s)
            if each.receive_count > least + unanswered:
                text = f"{each.text} came for the {least}th time, with {unanswered} receives unanswered"
                self._blame("Q5", f"{text}, and was told {each.receive_count}")

    def _check_order(self, message: Message, before: Sequence[str], moment: Moment) -> None:
        if message.passed_s is not None and message.passed_s < moment.asked_s:
            self._blame("Q3", f"{message.text} came, though {message.must_be_gone}")
        for earlier in self._groups[message.group]:
            if earlier is message or earlier.text in before or earlier.twin_of:
                continue
            if earlier.passed_s is not None or not _is_before(earlier, message):
                continue
            earlier.passed_s = moment.answered_s
            earlier.must_be_gone = f"{message.text} of its group had come at {moment.answered_s:.3f}"
            is_accounted = earlier.may_be_deleted or earlier.may_be_purged
            if not is_accounted and not self.sort.receives_max:
                self._blame("Q3", f"{earlier.text} is there, and {earlier.must_be_gone}")

    def _check_limit(self, message: Message, each: Seen) -> None:
        if not self.sort.receives_max:
            return
        limit = self.sort.receives_max
        if not self.sort.is_fifo:
            limit += max(self._lives.count((self.sort.topic_name, each.partition)) - 1, 0)
        count = message.seen_count if self.sort.is_fifo else message.certain_count
        if count > limit:
            self._blame("Q5", f"{each.text} was received {count} times, and {limit} are the most")

    # Settling

    def on_visibility_asked(self, text: str, handle: str, *, at_s: float, visibility_s: float) -> Held | None:
        """It may be so from now on, whether or not it is answered. Answers with whose time it is, for `on_visibility_changed`."""
        held = self.messages[text].held
        if held is None or (self.sort.is_fifo and held.handle != handle):
            return None  # it is another's by now, and will be refused
        held.doubtful_s = [*held.doubtful_s, at_s + visibility_s * CLOCK_RATE]
        return held

    def on_visibility_changed(
        self, held: Held, *, at_s: float, visibility_s: float, is_refused: bool
    ) -> None:
        """It is so, or nothing has changed."""
        until_s = at_s + visibility_s * CLOCK_RATE
        held.doubtful_s = [each for each in held.doubtful_s if each != until_s]
        if not is_refused:
            held.until_s = until_s

    def on_delete_asked(self, text: str) -> None:
        self.messages[text].may_be_deleted = True

    def on_delete_refused(self, text: str, *, had_asked_before: bool) -> None:
        """FIFO: the handle has expired."""
        self.messages[text].may_be_deleted = had_asked_before

    def on_deleted(self, text: str, handle: str, *, at_s: float) -> None:
        message = self.messages[text]
        if message.deleted_s is None:
            message.deleted_s = at_s
            held = message.held
            message.was_deleted_in_time = held is not None and held.handle == handle and at_s < held.visible_s

    def on_purge_asked(self) -> None:
        """What was sent by now, and what is sent before it is answered, may be gone."""
        self._open_purge_count += 1
        self._doubt_all()

    def on_purged(self, *, asked_s: float, at_s: float) -> None:
        self._open_purge_count -= 1
        self._doubt_all()
        for message in self.messages.values():
            if message.answered_s is not None and message.answered_s < asked_s and message.purged_s is None:
                message.purged_s = at_s

    def on_purge_refused(self) -> None:
        self._open_purge_count -= 1

    def _doubt_all(self) -> None:
        for message in self.messages.values():
            message.may_be_purged = True

    def on_dead(self, message: Message, each: Seen, moment: Moment, *, unanswered_count: int) -> None:
        """It was seen among the dead letters."""
        self._note("a dead letter was received")
        limit = self.sort.receives_max
        message.dead_s = moment.answered_s
        if message.twin_of:
            self._blame("Q4", f"{each.text} came, though it is a duplicate of {message.twin_of}")
        if each.receive_count <= limit or each.receive_count > limit + 1 + unanswered_count:
            text = f"{each.text} was moved after {limit} receives at most, and came as dead letter"
            self._blame("Q5", f"{text} with a count of {each.receive_count}")
        if self.sort.is_fifo and message.was_deleted_in_time:
            self._blame("Q5", f"{each.text} is a dead letter, though it was deleted in time")

    # The end

    def conclude(self) -> None:
        """The queue, and that of its dead letters, were emptied."""
        for message in self.messages.values():
            is_accounted = message.may_be_deleted or message.may_be_purged or message.dead_s is not None
            if message.answered_s is not None and not message.twin_of and not is_accounted:
                seen = f"seen {message.seen_count} times" if message.seen_count else "never seen"
                self._blame(
                    "Q1", f"{message.text} was acknowledged at {message.answered_s:.3f} and is lost, {seen}"
                )
            if message.must_be_gone and not is_accounted:
                self._blame("Q3", f"{message.text} is not among the dead letters, and {message.must_be_gone}")

    # What can be known

    def _sole(self, each: Seen, moment: Moment) -> object | None:
        place = (self.sort.topic_name, each.partition)
        return self._lives.sole(place, moment.asked_s, moment.answered_s)

    def _is_near(self, each: Seen, moment: Moment) -> bool:
        life = self._lives.sole((self.sort.topic_name, each.partition), moment.asked_s, moment.answered_s)
        return life is not None and life.node == moment.door

    def _is_same_leader(self, each: Seen, former: Moment, latter: Moment) -> bool:
        """Whether one leader has given both, and no front end between can have been lost."""
        place = (self.sort.topic_name, each.partition)
        life = self._lives.sole(place, former.asked_s, former.answered_s)
        if life is None or self._lives.sole(place, latter.asked_s, latter.answered_s) is not life:
            return False
        return life.node == former.door or self._is_calm(latter.answered_s)

    def _blame(self, rule: str, text: str) -> None:
        self.violations.append(Violation(rule, f"{self.sort.name}: {text}"))


def _is_before(earlier: Message, later: Message) -> bool:
    """Whether it certainly lies before the other."""
    if earlier.answered_s is not None and earlier.answered_s <= later.asked_s:
        return True
    if earlier.batch is None or later.batch is None:
        return False
    return earlier.batch[0] == later.batch[0] and earlier.batch[1] < later.batch[1]
