"""What members of groups asked and were told: the evidence of `group_checker`.

As in `history`, events stand in the order in which they happened, and `began` says how long the history was when a
call was made. Every offset that is committed is a number of its own, never 0, so that whoever reads it back can tell
which commit it comes from.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

NO_OFFSET: Final = -1
"""What a node answers where nothing was committed."""

FORGED: Final = -2
"""An offset that came back with metadata it was not committed with."""


class CommitSent(Struct, frozen=True):
    """A member, or with generation -1 nobody in particular, asked that offsets be stored."""

    commit: int
    group: str
    owner: str
    """Who it is for the group, whatever its member id: the instance id if it has one."""
    member_id: str
    generation: int
    offsets: tuple[tuple[TopicPartition, int], ...]


class CommitAnswered(Struct, frozen=True):
    """For each offset: True if it was stored, False if the node said that it was not, None if nobody knows."""

    commit: int
    outcomes: tuple[bool | None, ...]


class OffsetSeen(Struct, frozen=True):
    """Somebody was told what is committed for a partition."""

    began: int
    group: str
    partition: TopicPartition
    offset: int
    is_of_former: bool = False
    """Whether another coordinator had taken the place of who said so, by the metadata; it may not have heard."""


class Led(Struct, frozen=True):
    """The leader of a generation handed in who is to get what."""

    group: str
    generation: int
    shares: tuple[tuple[str, tuple[TopicPartition, ...]], ...]
    """By owner."""


class Assigned(Struct, frozen=True):
    """A member was told its share in a generation."""

    began: int
    group: str
    generation: int
    owner: str
    member_id: str
    share: tuple[TopicPartition, ...]


class Jumped(Struct, frozen=True):
    """The node's clock was put forward or back: from here on offsets may be older than they are."""


GroupEvent = CommitSent | CommitAnswered | OffsetSeen | Led | Assigned | Jumped


class GroupJournal:
    """The history while it is being made."""

    def __init__(self) -> None:
        self.events: list[GroupEvent] = []
        self._commit_count = 0
        self._offset_count = 0

    @property
    def now(self) -> int:
        return len(self.events)

    def note(self, event: GroupEvent) -> None:
        self.events.append(event)

    def next_commit(self) -> int:
        self._commit_count += 1
        return self._commit_count

    def next_offset(self) -> int:
        self._offset_count += 1
        return self._offset_count
