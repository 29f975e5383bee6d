"""A group as it will be when what is being decided has been applied.

Decisions about a group build on each other: a member comes, so the epoch rises, so the assignments are made anew, so the
member has something. Each is drafted here, and the next one reads the result; the group itself is not touched.
"""

from ropewalk.groups.consumer.events import ConsumerEvent, Part, PartRemoved
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.step import Draft


class Revision:
    __slots__ = ("_draft", "_is_copied", "group")

    def __init__(self, group: ConsumerGroup, draft: Draft) -> None:
        self.group = group
        """To be read only."""
        self._draft = draft
        self._is_copied = False

    def record(self, event: ConsumerEvent) -> None:
        if not self._is_copied:
            # Most heartbeats change nothing, and copy nothing.
            self.group = self.group.copy()
            self._is_copied = True
        self.group.apply(event)
        self._draft.events.append(event)

    def remove_member(self, member_id: str) -> None:
        """With all that is recorded of it. What it alone made the group read is read no more."""
        group_id = self.group.group_id
        details = self.group.members[member_id]
        if member_id in self.group.currents:
            self.record(PartRemoved(group_id, Part.CURRENT, member_id))
        if member_id in self.group.targets:
            self.record(PartRemoved(group_id, Part.TARGET, member_id))
        self.record(PartRemoved(group_id, Part.MEMBER, member_id))
        self.forget_unused_pattern(details.pattern)

    def forget_unused_pattern(self, pattern: str | None) -> None:
        if pattern in self.group.patterns and all(
            details.pattern != pattern for details in self.group.members.values()
        ):
            assert pattern is not None
            self.record(PartRemoved(self.group.group_id, Part.PATTERN, pattern))
