"""A follower of one partition: what to ask of the leader next, and what its answer means.

One question is open at a time. An answer counts only for the question that is open, so that what a former leader
says late, or what was asked before the log was cut, is dropped (KIP-320).

What a reader could get wrong
    Nothing is asked before all that is in the log is durable (as the topic's `flush` promises): the fetch offset is
    the acknowledgement.
    Cutting the log is never an opinion of the follower. The leader of the current epoch says where the two histories part,
    and the follower asks again until they agree; its high watermark has no part in it (KIP-101).
    The effects of one answer are carried out in order before the next question.
"""

from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log.epochs import EpochEnd
from ropewalk.replication.lineage import LogView, truncation_offset


class Question(Struct, frozen=True, gc=False):
    """A replica's Fetch of one partition: its log ends at `fetch_offset`, with a batch of `last_fetched_epoch` (-1: empty).

    It begins at `log_start_offset`, and no power cut makes it begin earlier: the leader takes it as proof that what is below
    is gone here.
    """

    leader_epoch: LeaderEpoch
    fetch_offset: Offset
    last_fetched_epoch: LeaderEpoch
    log_start_offset: Offset = Offset(0)


class Records(Struct, frozen=True, gc=False):
    """The logs agree. With or without records, which continue at the fetch offset."""

    high_watermark: Offset
    log_start_offset: Offset


class Diverging(Struct, frozen=True, gc=False):
    """The logs part: the leader's newest epoch that is not above the follower's last one, and where that ends."""

    shared: EpochEnd


class Elsewhere(Struct, frozen=True, gc=False):
    """The leader has nothing that continues the follower's log; its own begins at `log_start_offset`."""

    log_start_offset: Offset


class Refusal(Enum):
    """Why a leader did not answer the question."""

    FENCED = auto()
    """The follower's epoch is over, or that node does not lead: the follower's facts are old."""

    NOT_YET = auto()
    """The leader has not heard of the follower's epoch."""

    OTHER = auto()
    """It could not serve, whatever the reason."""


Answer: TypeAlias = Records | Diverging | Elsewhere | Refusal


class Append(Struct, frozen=True, gc=False):
    """Write the records that came with the answer."""


class MoveStart(Struct, frozen=True, gc=False):
    """The leader has deleted everything below `log_start_offset`, and so may this log."""

    log_start_offset: Offset


class Truncate(Struct, frozen=True, gc=False):
    """Cut the log back to `offset`."""

    offset: Offset


class Restart(Struct, frozen=True, gc=False):
    """Throw the whole log away and begin at `offset`."""

    offset: Offset


class Wait(Struct, frozen=True, gc=False):
    """Ask again after a while, or at once when other facts about the partition come."""

    reason: Refusal


Effect: TypeAlias = Append | MoveStart | Truncate | Restart | Wait


class Follower:
    """Lives for one leader epoch. Keeps what it was told of the high watermark and of the leader's start; everything else is in
    the log."""

    __slots__ = ("_high_watermark_told", "_open", "_start_told", "leader_epoch")

    def __init__(self, *, leader_epoch: LeaderEpoch, high_watermark: Offset) -> None:
        self.leader_epoch = leader_epoch
        self._high_watermark_told = high_watermark
        self._start_told = Offset(0)
        self._open: Question | None = None

    def high_watermark(self, settled_offset: Offset) -> Offset:
        """Up to where this replica may be read: what a leader told, as far as it is durable here."""
        return min(self._high_watermark_told, settled_offset)

    def ask(self, log: LogView, *, settled_offset: Offset) -> Question | None:
        """The next question, which replaces one that is still open. None: wait until `settled_offset`, which is what counts as
        durable here, has reached the log's end."""
        if settled_offset < log.end_offset:
            return None
        self._open = Question(self.leader_epoch, log.end_offset, log.leader_epoch_latest, log.start_offset)
        return self._open

    def start_due(self, log: LogView, *, settled_offset: Offset) -> Offset | None:
        """Where this log is to begin by what the leader said, as far as what is committed is durable here; None: it does.

        A leader that has said so may be silent from then on, so what could not be moved at once is not to be forgotten.
        """
        start_offset = min(self._start_told, self.high_watermark(settled_offset))
        return start_offset if start_offset > log.start_offset else None

    def on_answer(self, question: Question, answer: Answer, log: LogView) -> list[Effect]:
        """What to do about `answer`; nothing if `question` is not the open one."""
        if not self._is_open(question, log):
            return []
        self._open = None
        match answer:
            case Records(high_watermark=high_watermark, log_start_offset=log_start_offset):
                self._high_watermark_told = max(self._high_watermark_told, high_watermark)
                self._start_told = log_start_offset
                effects: list[Effect] = [Append()]
                if log_start_offset > log.start_offset:
                    effects.append(MoveStart(log_start_offset))
                return effects
            case Diverging(shared=shared):
                return [self._truncation(log, shared)]
            case Elsewhere(log_start_offset=log_start_offset):
                self._high_watermark_told = log_start_offset  # a leader deletes nothing that is not committed
                return [Restart(log_start_offset)]
            case Refusal():
                return [Wait(answer)]

    def _is_open(self, question: Question, log: LogView) -> bool:
        return question == self._open and question.fetch_offset == log.end_offset

    def _truncation(self, log: LogView, shared: EpochEnd) -> Truncate | Restart:
        offset = truncation_offset(log, shared)
        self._high_watermark_told = min(self._high_watermark_told, offset)
        return Truncate(offset) if offset > log.start_offset else Restart(offset)
