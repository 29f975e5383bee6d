"""What a consumer commits, and in whose name.

What a reader could get wrong
    A commit belongs to the generation of the group in which it was asked for. One that is sent only after a rebalance is sent as
    that former member, and refused, unless the member has held all of its partitions without a break.
    A member commits nothing that it does not hold, and one that was thrown out commits nothing at all: others may be further.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls import group_offsets
from ropewalk.client.calls.group_offsets import GroupIdentity, OffsetToCommit
from ropewalk.client.connections.coordinators import Coordinators
from ropewalk.client.connections.session import Session
from ropewalk.client.consuming.assignment import Assignment, Held
from ropewalk.client.errors import CommitFailed
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode

_AHEAD: Final = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})
"""The member is known, in another epoch or generation than the commit was asked for in."""

_MOVED_ON: Final = _AHEAD | {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
}

Told = Callable[[RopewalkError | None], None]


@dataclass(slots=True)
class Commit:
    """What was asked for, by whom, and in which hands the partitions were; None for one that is not this consumer's."""

    identity: GroupIdentity
    is_members: bool
    offsets: dict[TopicPartition, OffsetToCommit]
    holders: dict[TopicPartition, Held | None]
    told: list[Told] = field(default_factory=list)


class Commits:
    def __init__(
        self,
        session: Session,
        coordinators: Coordinators,
        assignment: Assignment,
        tasks: Supervisor,
        identity: Callable[[], GroupIdentity],
        *,
        timeout_ms: int,
    ) -> None:
        self._session = session
        self._coordinators = coordinators
        self._assignment = assignment
        self._tasks = tasks
        self._identity = identity
        self._timeout_ms: Final = timeout_ms
        self._waiting: deque[Commit] = deque()
        self._is_sending = False
        self._send_count = 0

    def ask(self, offsets: Mapping[TopicPartition, OffsetToCommit], *, is_members: bool) -> Commit:
        """A commit of this moment, still to be sent. `is_members`: the consumer shares partitions with others."""
        holders = {partition: self._assignment.get(partition) for partition in offsets}
        return Commit(self._identity(), is_members, dict(offsets), holders)

    def send_soon(self, commit: Commit, on_done: Told | None) -> None:
        """While one is on its way those that follow, of the same generation, are gathered into the next."""
        if on_done is not None:
            commit.told.append(on_done)
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.identity == commit.identity:
            last.offsets.update(commit.offsets)
            last.holders.update(commit.holders)
            last.told += commit.told
        else:
            self._waiting.append(commit)
        if not self._is_sending:
            self._is_sending = True
            self._send_count += 1
            self._tasks.start(f"commit {self._send_count}", self._send_waiting())

    async def send(self, commit: Commit, *, deadline_ms: float) -> None:
        """Raises `CommitFailed` where the group has gone on without this member."""
        if commit.is_members:
            self._check_may(commit)
        identity = commit.identity
        outcomes = await group_offsets.commit(
            self._coordinators, identity, commit.offsets, deadline_ms=deadline_ms
        )
        for partition, error in outcomes.items():
            if error is None:
                continue
            if error.code in _AHEAD and self._is_held_on(commit):
                commit.identity = self._identity()
                await self.send(commit, deadline_ms=deadline_ms)
                return
            if error.code in _MOVED_ON:
                raise CommitFailed(
                    f"{identity.group} has moved on, {partition} and others may be read again: {error}"
                ) from error
            raise error

    def _check_may(self, commit: Commit) -> None:
        group = commit.identity.group
        if not commit.identity.member_id:
            raise CommitFailed(f"this consumer is no member of {group}, and holds nothing to commit there")
        for partition, holder in commit.holders.items():
            if holder is None:
                raise CommitFailed(f"{partition} is not this member's to commit: {group} gave it to others")

    def _is_held_on(self, commit: Commit) -> bool:
        return self._identity() != commit.identity and all(
            holder is not None and self._assignment.get(partition) is holder
            for partition, holder in commit.holders.items()
        )

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                commit = self._waiting.popleft()
                failure: RopewalkError | None = None
                try:
                    await self.send(commit, deadline_ms=self._session.deadline_ms(self._timeout_ms))
                except RopewalkError as error:
                    failure = error
                for on_done in commit.told:
                    on_done(failure)
        finally:
            self._is_sending = False
