"""How members are taken out of a group, and the alarms that do it.

    SESSION      nothing was heard of the member for a session timeout
    REVOCATION   it was told to give partitions up, and has not within its rebalance timeout
    JOIN, SYNC   a member of the classic protocol was told to join, or has joined, and did not come in time

When the last member of the consumer protocol goes and classic ones stay, the group becomes a classic one (KIP-848).
"""

from ropewalk.base.timers import Timers
from ropewalk.groups.consumer.events import Current, MemberState
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.migration import Migration
from ropewalk.groups.consumer.revision import Revision
from ropewalk.groups.consumer.targets import Targets
from ropewalk.groups.rebalances import Alarm, AlarmKey
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft


class Fencing:
    def __init__(
        self, settings: GroupSettings, timers: Timers[AlarmKey], targets: Targets, migration: Migration
    ) -> None:
        self._settings = settings
        self._timers = timers
        self._targets = targets
        self._migration = migration
        self.settled: set[tuple[str, str]] = set()
        """Members, by group, that have shown that they know what they have."""

    def on_loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        """Members have a session from now to show up, and as long as ever to give up what they were told to."""
        for member_id in group.members:
            self.refresh_session(group, member_id, now_ms)
            self.watch_revocation(group, member_id, group.current(member_id), now_ms)

    def refresh_session(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        classic = group.members[member_id].classic
        timeout_ms = self._settings.consumer_session_ms if classic is None else classic.session_timeout_ms
        self._timers.set((Alarm.SESSION, group.group_id, member_id), now_ms + timeout_ms)

    def watch_revocation(self, group: ConsumerGroup, member_id: str, current: Current, now_ms: int) -> None:
        """Call when what the member has was changed. Classic members are waited for by their joins."""
        details = group.members[member_id]
        if current.state is MemberState.UNREVOKED and details.classic is None:
            due_at_ms = now_ms + details.rebalance_timeout_ms
            self._timers.set((Alarm.REVOCATION, group.group_id, member_id), due_at_ms)
        else:
            self._timers.cancel((Alarm.REVOCATION, group.group_id, member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        """All that is not durable of a member."""
        self.settled.discard((group_id, member_id))
        for alarm in (Alarm.SESSION, Alarm.REVOCATION, Alarm.JOIN, Alarm.SYNC):
            self._timers.cancel((alarm, group_id, member_id))

    def fence(self, group: ConsumerGroup, member_ids: list[str], draft: Draft, now_ms: int) -> None:
        """Take members out. Whatever they had is free from here on."""
        revision = Revision(group, draft)
        for member_id in member_ids:
            revision.remove_member(member_id)
            self.forget(group.group_id, member_id)
        if self._migration.can_downgrade(group, revision.group):
            for member_id in revision.group.members:
                self.forget(group.group_id, member_id)
            self._targets.forget(group.group_id)
            self._migration.downgrade(revision, draft, now_ms)
        else:
            self._targets.raise_epoch(revision)
