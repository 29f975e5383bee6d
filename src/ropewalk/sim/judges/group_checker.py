"""Judges what groups were told: everything that a coordinator must never do, in words.

    stale       an offset older than one that was acknowledged, or seen, before it was asked for (G2)
    unknown     an offset that nobody committed, or whose commit was definitely refused, among them 0 for none (G3)
    unfenced    a commit was taken from a generation, or a member, that others had taken the place of (G1)
    shared      a partition given to two owners in one generation, or to one who was not meant to have it (G1)
    regressed   a generation with a number below one that had assignments already

It is pure: a history in, violations out.

What a reader could get wrong
    Only an assignment that a member was given proves that a generation is durable. A member that has joined and was
    not assigned anything may find its generation's number used again after a crash; it never owned anything in it.
    A commit whose outcome nobody knows may take effect at any later time, once.
    After a jump of the node's clock offsets may have expired, and with its last offset a group forgets its generation.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.checker import HISTORY_END, Violation
from ropewalk.sim.judges.group_history import (
    NO_OFFSET,
    Assigned,
    CommitAnswered,
    CommitSent,
    GroupEvent,
    Jumped,
    Led,
    OffsetSeen,
)

Share = tuple[TopicPartition, ...]


def check_groups(
    history: Sequence[GroupEvent], note: Callable[[str], None] = lambda _: None
) -> list[Violation]:
    """Every violation, in the order in which it came to light; `note` hears of rare things that were in order."""
    found: list[Violation] = []
    groups: dict[str, _Group] = {}
    commits: dict[int, CommitSent] = {}
    jumps: list[int] = []
    for index, event in enumerate(history):
        match event:
            case Jumped():
                jumps.append(index)
                continue
            case CommitSent(commit, group):
                commits[commit] = event
            case CommitAnswered(commit):
                group = commits[commit].group
            case OffsetSeen() | Led() | Assigned():
                group = event.group
        if group not in groups:
            groups[group] = _Group(group, jumps, found, note)
        groups[group].on_event(index, event)
    return found


class _Write(Struct):
    """One offset of one commit."""

    began: int
    ended: int = HISTORY_END
    """When it had taken effect for certain, if it did."""
    is_refused: bool = False


class _Generation(Struct):
    led: list[dict[str, Share]]
    given: dict[str, Share]
    given_index: int = -1


class _Group:
    def __init__(
        self, name: str, jumps: Sequence[int], found: list[Violation], note: Callable[[str], None]
    ) -> None:
        self._name = name
        self._jumps = jumps
        self._found = found
        self._note = note
        self._sent: dict[int, tuple[int, CommitSent]] = {}
        self._writes: dict[TopicPartition, dict[int, _Write]] = {}
        self._generations: dict[int, _Generation] = {}
        self._assignments: list[tuple[int, Assigned]] = []
        self._first_heard: dict[str, int] = {}
        """By member id: of two that were the same instance, who came first."""
        self._first_commit_index = HISTORY_END
        """From here on the group has offsets, and is not forgotten."""

    def on_event(self, index: int, event: GroupEvent) -> None:
        if isinstance(event, CommitSent | Assigned):
            self._first_heard.setdefault(event.member_id, index)
        match event:
            case CommitSent():
                self._sent[event.commit] = (index, event)
                for partition, offset in event.offsets:
                    self._writes.setdefault(partition, {})[offset] = _Write(index)
            case CommitAnswered():
                self._on_answered(index, event)
            case OffsetSeen():
                self._on_seen(index, event)
            case Led(_, generation, shares):
                self._generation(generation).led.append(dict(shares))
            case Assigned():
                self._on_assigned(index, event)
            case Jumped():
                raise AssertionError("belongs to no group")

    def _on_answered(self, index: int, event: CommitAnswered) -> None:
        sent_index, sent = self._sent[event.commit]
        for (partition, offset), outcome in zip(sent.offsets, event.outcomes, strict=True):
            write = self._writes[partition][offset]
            if outcome is True:
                write.ended = min(write.ended, index)
            write.is_refused = outcome is False
        if True in event.outcomes:
            self._first_commit_index = min(self._first_commit_index, index)
            if sent.generation >= 0:
                self._judge_committer(sent_index, sent)

    def _judge_committer(self, sent_index: int, sent: CommitSent) -> None:
        for index, assigned in self._known_before(sent_index):
            if assigned.generation > sent.generation and not self._may_be_forgotten(index):
                self._report(
                    "unfenced",
                    f"{sent.member_id} committed for generation {sent.generation} "
                    f"when {assigned.member_id} had its share of {assigned.generation}",
                )
                return
        owned = [assigned for _, assigned in self._known_before(sent_index) if assigned.owner == sent.owner]
        if owned and self._first_heard[sent.member_id] < self._first_heard[owned[-1].member_id]:
            self._report(
                "unfenced", f"{sent.member_id} committed when {owned[-1].member_id} was {sent.owner}"
            )

    def _on_seen(self, index: int, event: OffsetSeen) -> None:
        writes = self._writes.get(event.partition, {})
        confirmed = [write for write in writes.values() if write.ended < event.began]
        if event.is_of_former:
            confirmed = []  # it tells what was committed while it led
        if event.offset == NO_OFFSET:
            if confirmed and not self._jumps:
                self._report(
                    "stale", f"nothing is committed for {event.partition}, and was acknowledged before"
                )
            elif confirmed:
                self._note("a committed offset expired")
            return
        write = writes.get(event.offset)
        if write is None or write.is_refused:
            why = "was refused" if write is not None else "was never committed"
            self._report("unknown", f"offset {event.offset} of {event.partition} {why}")
            return
        if any(other.began > write.ended for other in confirmed):
            self._report("stale", f"offset {event.offset} of {event.partition} was committed over before")
        write.ended = min(write.ended, index)

    def _on_assigned(self, index: int, event: Assigned) -> None:
        number = event.generation
        for former_index, former in self._known_before(event.began):
            if former.generation > number and not self._may_be_forgotten(former_index):
                self._report(
                    "regressed",
                    f"{event.member_id} got its share of {number} after one of {former.generation}",
                )
                break
        generation = self._generation(number)
        if not any(shares.get(event.owner, ()) == event.share for shares in generation.led):
            self._report(
                "shared", f"{event.owner} got {_list(event.share)} in {number}, as no leader meant it"
            )
        if not self._may_be_forgotten(generation.given_index):
            self._judge_share(event, generation.given)
        generation.given[event.owner] = event.share
        generation.given_index = index
        self._assignments.append((index, event))

    def _judge_share(self, event: Assigned, given: dict[str, Share]) -> None:
        number = event.generation
        for owner, share in given.items():
            if owner == event.owner:
                if share != event.share:
                    self._report(
                        "shared",
                        f"{owner} got {_list(share)}, then {_list(event.share)} in generation {number}",
                    )
            elif common := set(share) & set(event.share):
                self._report(
                    "shared",
                    f"{owner} and {event.owner} both got {_list(sorted(common))} in generation {number}",
                )

    def _known_before(self, index: int) -> list[tuple[int, Assigned]]:
        return [(known_index, known) for known_index, known in self._assignments if known_index < index]

    def _may_be_forgotten(self, index: int) -> bool:
        """Whether a generation known at `index` can have gone with the group, which had no offsets."""
        return bool(self._jumps) or index < self._first_commit_index

    def _generation(self, number: int) -> _Generation:
        return self._generations.setdefault(number, _Generation([], {}))

    def _report(self, kind: str, text: str) -> None:
        self._found.append(Violation(kind, f"{self._name}: {text}"))


def _list(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(str(partition) for partition in partitions) or "nothing"
