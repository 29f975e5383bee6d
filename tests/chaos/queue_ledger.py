"""What the workers of a queue have seen, and what of it cannot be: the judge of `tests/chaos/run-queues`.

Times are of one clock, that of the process in which all workers run. A request takes effect somewhere between its sending and its answer,
or at any time after its sending where no answer came; every rule leaves room for that.

Rules
    What was acknowledged is received at least once.
    What was deleted, and answered, is not in the answer of a receive that was sent afterwards.
    FIFO: no message comes a second time before it can be visible again.
    FIFO: a message comes only when each earlier one of its group is deleted, or comes with it, before it.
    Standard: a message that comes a second time too early does so only after a change of leader, or after a front end was lost that had not told
    the leader yet what it had taken.
"""

from collections import Counter, defaultdict
from typing import Final

from msgspec import Struct

NOTICED_WITHIN_S: Final = 10.0
"""A change of leader is noticed so much later at most: whoever asks for the leader may ask a node that stands still."""
BEFORE_S: Final = 1.0
"""What was given out so shortly before a change may not have been written yet, or not taken."""
DEADLINE: Final = "deadline"
SHOWN: Final = "shown again"
NEW_LEADER: Final = "change of leader"
LOST_FRONT_END: Final = "lost front end"


class Sent(Struct):
    group: str
    number: int
    """Within its group."""
    is_acknowledged: bool = False


class Held(Struct):
    """The latest delivery of a message."""

    answered_at: float
    visible_from: float
    """The earliest time at which it may be given to somebody else, as far as anybody knows."""
    is_shown: bool = False
    """Somebody has asked for it to be visible sooner."""


class Early(Struct, frozen=True):
    """A second delivery before the deadline, on a standard queue."""

    text: str
    first_at: float
    second_at: float
    early_s: float


class Ledger:
    def __init__(self, *, is_fifo: bool) -> None:
        self._is_fifo = is_fifo
        self.sent: dict[str, Sent] = {}
        self._by_group: dict[str, list[str]] = defaultdict(list)
        self._held: dict[str, Held] = {}
        self._deleted_at: dict[str, float] = {}
        """When the delete was answered."""
        self._maybe_deleted: set[str] = set()
        self._first_undeleted: dict[str, int] = defaultdict(int)
        self._changes: list[float] = []
        self._losses: list[float] = []
        self._early: list[Early] = []
        self.received: set[str] = set()
        self.delivery_count = 0
        self.again: Counter[str] = Counter()
        """Second deliveries by their reason."""
        self.violations: list[str] = []

    def on_leader_changed(self, at: float) -> None:
        """It was noticed now, or is about to happen."""
        self._changes.append(at)

    def on_front_end_lost(self, at: float) -> None:
        self._losses.append(at)

    def on_send(self, text: str, group: str) -> None:
        number = len(self._by_group[group])
        self.sent[text] = Sent(group, number)
        self._by_group[group].append(text)

    def on_send_acknowledged(self, text: str) -> None:
        self.sent[text].is_acknowledged = True

    def on_received(
        self, texts: list[str], *, asked_at: float, answered_at: float, visibility_s: float
    ) -> None:
        for position, text in enumerate(texts):
            self._on_delivery(text, texts[:position], asked_at, answered_at)
            self._held[text] = Held(answered_at, asked_at + visibility_s)

    def on_visibility_asked(self, text: str, *, at: float, visibility_s: float) -> None:
        """It may be so from now on, whether or not it is answered."""
        held = self._held[text]
        held.is_shown = held.is_shown or at + visibility_s < held.visible_from
        held.visible_from = min(held.visible_from, at + visibility_s)

    def on_visibility_changed(self, text: str, *, asked_at: float, visibility_s: float) -> None:
        """It is so."""
        self._held[text].visible_from = asked_at + visibility_s

    def on_delete_asked(self, text: str) -> None:
        self._maybe_deleted.add(text)

    def on_deleted(self, text: str, answered_at: float) -> None:
        self._deleted_at.setdefault(text, answered_at)

    def missing(self) -> list[str]:
        """Acknowledged and never seen."""
        return sorted(
            text for text, sent in self.sent.items() if sent.is_acknowledged and text not in self.received
        )

    def finish(self) -> list[str]:
        """All violations, once the queue has been emptied."""
        for early in self._early:
            self._judge(early)
        self._early = []
        missing = self.missing()
        if missing:
            self._blame(f"{len(missing)} acknowledged messages were lost, {missing[0]} first")
        return self.violations

    def _on_delivery(self, text: str, before: list[str], asked_at: float, answered_at: float) -> None:
        self.delivery_count += 1
        self.received.add(text)
        if text not in self.sent:
            self._blame(f"{text!r} was never sent")
            return
        deleted_at = self._deleted_at.get(text)
        if deleted_at is not None and deleted_at < asked_at:
            self._blame(f"{text} came back {asked_at - deleted_at:.3f} s after its delete was answered")
        held = self._held.get(text)
        if held is not None:
            self._on_second(text, held, answered_at)
        if self._is_fifo:
            self._check_order(text, before)

    def _on_second(self, text: str, held: Held, answered_at: float) -> None:
        if answered_at >= held.visible_from:
            self.again[SHOWN if held.is_shown else DEADLINE] += 1
            return
        early_s = held.visible_from - answered_at
        if self._is_fifo:
            self._blame(f"{text} came again {early_s:.3f} s before it could be visible")
            return
        self._early.append(Early(text, held.answered_at, answered_at, early_s))

    def _judge(self, early: Early) -> None:
        """At the end, when it is known what happened at that time."""
        began_at = early.first_at - BEFORE_S
        if any(began_at <= change <= early.second_at + NOTICED_WITHIN_S for change in self._changes):
            self.again[NEW_LEADER] += 1
        elif any(began_at <= loss <= early.second_at for loss in self._losses):
            self.again[LOST_FRONT_END] += 1
        else:
            self._blame(
                f"{early.text} came again {early.early_s:.3f} s early: no leader changed, no front end was lost"
            )

    def _check_order(self, text: str, before: list[str]) -> None:
        sent = self.sent[text]
        texts = self._by_group[sent.group]
        first = self._first_undeleted[sent.group]
        while first < sent.number and texts[first] in self._deleted_at:
            first += 1
        self._first_undeleted[sent.group] = first
        for earlier in texts[first : sent.number]:
            if (
                self.sent[earlier].is_acknowledged
                and earlier not in self._maybe_deleted
                and earlier not in before
            ):
                self._blame(f"{text} came although {earlier} of its group is neither deleted nor with it")
                return

    def _blame(self, violation: str) -> None:
        self.violations.append(violation)
