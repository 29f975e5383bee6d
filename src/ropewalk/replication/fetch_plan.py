"""What a follower asks one leader for, in one session: who is named, who rests, who is behind, and who is repaired first.

A session keeps what the leader knows, so that a fetch names only the partitions whose question has changed. The plan is told what
became of a fetch and what happens to the copies, and answers with the next fetch and what has to be done before it.

What a reader could get wrong
    A partition that rests, whose log is being cut, or that waits for its share of the catch-up budget is taken out of the session,
    so that the leader does not send it anything.
    After a fetch that failed, whatever the reason, the session begins anew: nobody knows what the leader took as told.
    The first fetch of a session has no id yet. Nobody could ask for its answer, so the leader does not hold it.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from ropewalk.base.ids import TopicId
from ropewalk.base.limits import CATCH_UP_PARTITIONS_MAX, REPLICA_FETCH_MS_MAX, REPLICAS_NAMED_MAX
from ropewalk.replication.follower import Question, Restart, Truncate

Key: TypeAlias = tuple[TopicId, int]


class Copied(Protocol):
    """One partition as it is copied here."""

    broker_epoch: int | None
    """In which the leader has been asked for it; None before the first time."""
    rest_until_ms: float

    @property
    def is_behind(self) -> bool:
        """Whether it has yet to reach what is committed: then it has to do with what others leave."""

    @property
    def is_held(self) -> bool:
        """Whether nothing is asked for now: its log is being cut, or somebody else has it, or nobody."""

    @property
    def is_unsettled(self) -> bool:
        """Whether its log holds what does not count yet, so that only a sync keeps it from being asked for."""

    @property
    def question(self) -> Question | None:
        """That the leader has been asked, or would be with the same words."""

    def ask(self) -> Question | None:
        """None while the log holds something that does not count yet."""

    def repair(self) -> Truncate | Restart | None:
        """What has to go of a copy that is damaged; None where it is whole."""


C = TypeVar("C", bound=Copied)


class Repair(Struct, frozen=True):
    """Cut the copy before the leader hears of it, so that what is damaged comes again."""

    key: Key
    effect: Truncate | Restart


class LookAtStart(Struct, frozen=True):
    """The copy is about to be asked for: it may begin before its leader does."""

    key: Key


class Settle(Struct, frozen=True):
    """Only a sync keeps the copy from being asked for."""

    key: Key


Step: TypeAlias = Repair | LookAtStart | Settle


class PlannedFetch(Struct, frozen=True):
    session_id: int
    session_epoch: int
    broker_epoch: int
    named: tuple[tuple[Key, Question], ...]
    forgotten: tuple[Key, ...]
    wait_ms_max: float
    """How long the leader may hold it; 0 for the first of a session."""

    @property
    def may_be_held(self) -> bool:
        """Whether the leader can be asked to answer it."""
        return self.wait_ms_max > 0 and self.session_id > 0


class FetchPlan(Generic[C]):
    def __init__(self) -> None:
        self.copied: dict[Key, C] = {}
        self.session_id = 0
        self.session_epoch = 0
        self.is_beginning = True
        """Whether the session has had no answer yet."""
        self._broker_epoch = -1
        self._to_name: dict[Key, None] = {}
        """Those that the leader has to be told of anew, the longest waiting first."""
        self._in_session: dict[Key, None] = {}
        self._to_forget: dict[Key, None] = {}

    def follow(self, key: Key, copied: C) -> None:
        """Ask for this one from here on, as if it had never been asked for."""
        self.copied[key] = copied
        self._to_name[key] = None

    def leave(self, key: Key) -> None:
        """Ask for this one no more; it may never have been asked for."""
        if self.copied.pop(key, None) is not None:
            self._to_name.pop(key, None)
            self._leave_session(key)

    def next_fetch(
        self,
        now_ms: float,
        *,
        broker_epoch: int,
        catch_up_wait_ms: float,
        counts_on: Callable[[Key], bool],
    ) -> tuple[list[Step], PlannedFetch | None]:
        """What is to be done, in this order, and the fetch to send then; None if there is nothing to ask for at the moment.

        `catch_up_wait_ms`: until those who are behind may copy more. `counts_on`: whether the cluster takes a copy for complete.
        """
        if self._broker_epoch != broker_epoch:
            # Leaders hear of it along with every question that is named, and let nobody join of whom they have not.
            self._broker_epoch = broker_epoch
            self.begin_anew()
        if not self.session_id:
            self._to_name.update(dict.fromkeys(self.copied))
            self._in_session, self._to_forget = {}, {}
        steps: list[Step] = []
        named: list[tuple[Key, Question]] = []
        behind_count = 0
        for key in list(self._to_name):
            if len(named) >= REPLICAS_NAMED_MAX:
                break
            copied = self.copied[key]
            if copied.is_held or copied.rest_until_ms > now_ms:
                continue
            if copied.broker_epoch != broker_epoch:
                repair = copied.repair()
                if repair is not None and not counts_on(key):
                    # The leader has heard nothing of this copy yet, so nobody can come to count on it meanwhile.
                    self._leave_session(key)
                    steps.append(Repair(key, repair))
                    continue
                copied.broker_epoch = broker_epoch
            steps.append(LookAtStart(key))
            if copied.is_behind:
                if behind_count >= CATCH_UP_PARTITIONS_MAX or catch_up_wait_ms:
                    continue
                behind_count += 1
            question = copied.ask()
            if question is None:  # a commit is on its way, and the next round comes after it
                steps.append(Settle(key))
                continue
            named.append((key, question))
            del self._to_name[key]
            self._to_forget.pop(key, None)
            self._in_session[key] = None
        if not self._in_session:
            return steps, None
        return steps, PlannedFetch(
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            broker_epoch=broker_epoch,
            named=tuple(named),
            forgotten=self._take_forgotten(),
            wait_ms_max=0 if self.is_beginning else self.rest_ms(now_ms, catch_up_wait_ms),
        )

    def rest_ms(self, now_ms: float, catch_up_wait_ms: float) -> float:
        """How long until something can be asked for that cannot now."""
        rest_ms = float(REPLICA_FETCH_MS_MAX)
        for key in self._to_name:
            copied = self.copied[key]
            if copied.is_held:
                continue
            wait_ms = copied.rest_until_ms - now_ms
            if copied.is_behind:
                wait_ms = max(wait_ms, catch_up_wait_ms)
            rest_ms = min(rest_ms, max(0.0, wait_ms))
        return rest_ms

    def waits_for_time(self) -> bool:
        """Whether anything will be asked for when time has passed, with nobody saying so."""
        return bool(self._to_name)

    def waits_for_disk(self, now_ms: float, catch_up_wait_ms: float) -> bool:
        """Whether for some copy the sync alone is missing. A log that counts without one may be dirty for as long as it rests."""
        return any(
            not copied.is_held
            and copied.rest_until_ms <= now_ms
            and not (copied.is_behind and catch_up_wait_ms)
            and copied.is_unsettled
            for copied in (self.copied[key] for key in self._to_name)
        )

    def on_answered(self, session_id: int) -> None:
        """The leader has taken everything that the fetch told it; 0: it keeps no session."""
        self.is_beginning = False
        self.session_id = session_id
        self.session_epoch = self.session_epoch + 1 if session_id else 0

    def begin_anew(self) -> None:
        """What the leader took as told, nobody knows."""
        self.session_id = self.session_epoch = 0
        self.is_beginning = True

    def on_taken(self, key: Key, copied: C, *, has_grown: bool) -> None:
        """What the leader had for it is in the log, or there was nothing."""
        if has_grown:
            self._to_name[key] = None
            if copied.is_behind:
                self._leave_session(key)  # others that are behind have their turn
        elif key in self._in_session:
            asked = copied.question
            if copied.ask() != asked:  # the same words the leader need not hear again
                self._to_name[key] = None

    def on_cut_begun(self, key: Key) -> None:
        """Its log is being cut: it is asked for when that is done."""
        self._leave_session(key)
        self._to_name[key] = None

    def rest(self, key: Key, copied: C, until_ms: float) -> None:
        copied.rest_until_ms = until_ms
        self._to_name[key] = None
        self._leave_session(key)

    def name_again(self, key: Key) -> None:
        """There is something to tell the leader of it."""
        self._to_name[key] = None

    def _take_forgotten(self) -> tuple[Key, ...]:
        forgotten, self._to_forget = tuple(self._to_forget), {}
        return forgotten

    def _leave_session(self, key: Key) -> None:
        if key in self._in_session:
            del self._in_session[key]
            self._to_forget[key] = None
