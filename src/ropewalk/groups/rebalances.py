"""How a group comes to its next generation.

A rebalance is prepared (all members are asked to join again), completed (everyone is there, or the time is up: the
generation begins and its leader makes the assignments), and ends when the leader brings them. Anything that happens
to the membership meanwhile begins another rebalance.

What a reader could get wrong
    A session runs on while its member waits for a join or a sync: when it is over it starts again as long as
    somebody waits, and ends the member otherwise. So a member whose connection was lost while it waited goes after
    a session timeout, and one that waits for others does not.
    A dynamic member that misses a rebalance is removed; a static one keeps its place until its session is over.
    A rebalance without any joiner has no leader. It waits until the silent static members' sessions are over.
"""

from enum import IntEnum
from typing import TypeAlias

from ropewalk.base.timers import Timers
from ropewalk.groups.answers import Answer, GroupState, Synced
from ropewalk.groups.errors import GroupError, RebalanceInProgress, UnknownMember
from ropewalk.groups.group import Group, Member
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft


class Alarm(IntEnum):
    SESSION = 0
    """A member, or a member id that has been given out, has been silent for its session timeout."""
    JOIN = 1
    """The preparation of a rebalance has lasted long enough."""
    SYNC = 2
    """Members of a generation have not asked for their assignments for long enough."""
    EXPIRY = 3
    """Something of the group may have to be forgotten."""
    REVOCATION = 4
    """A member has been told to give partitions up, and has not."""


AlarmKey: TypeAlias = tuple[Alarm, str, str]
"""The kind, the group, and the member where it is about one."""


class Rebalances:
    def __init__(self, settings: GroupSettings, timers: Timers[AlarmKey]) -> None:
        self._settings = settings
        self._timers = timers
        self._waiting: dict[int, Member] = {}
        """Who is to be answered later, by token."""

    def forget(self, token: int) -> None:
        member = self._waiting.pop(token, None)
        if member is None:
            return
        if member.join_token == token:
            member.join_token = None
        if member.sync_token == token:
            member.sync_token = None

    def begin_session(self, group: Group, member_id: str, timeout_ms: int, now_ms: int) -> None:
        """Of a member, or of a member id that has been given out."""
        self._timers.set((Alarm.SESSION, group.group_id, member_id), now_ms + timeout_ms)

    def refresh_session(self, group: Group, member: Member, now_ms: int) -> None:
        self.begin_session(group, member.member_id, member.session_timeout_ms, now_ms)

    def end_session(self, group: Group, member_id: str) -> None:
        self._timers.cancel((Alarm.SESSION, group.group_id, member_id))

    def end(self, group: Group) -> None:
        """The group is no longer one of the classic kind; whoever waits has been answered."""
        for member_id in (*group.members, *group.pending):
            self.end_session(group, member_id)
        self._timers.cancel((Alarm.JOIN, group.group_id, ""))
        self._timers.cancel((Alarm.SYNC, group.group_id, ""))

    def await_join(self, group: Group, member: Member, token: int, draft: Draft) -> None:
        """The member has come for the next rebalance and waits for it to begin."""
        self.answer_join(member, _superseded(group), draft)
        member.join_token = token
        self._waiting[token] = member
        group.joined[member.member_id] = None

    def await_sync(self, group: Group, member: Member, token: int, draft: Draft) -> None:
        self.answer_sync(member, _superseded(group), draft)
        member.sync_token = token
        self._waiting[token] = member
        group.sync_owed.discard(member.member_id)

    def answer_join(self, member: Member, answer: Answer | GroupError, draft: Draft) -> None:
        """To whoever waits, if anyone does."""
        if member.join_token is not None:
            del self._waiting[member.join_token]
            draft.reply(member.join_token, answer)
            member.join_token = None

    def answer_sync(self, member: Member, answer: Answer | GroupError, draft: Draft) -> None:
        if member.sync_token is not None:
            del self._waiting[member.sync_token]
            draft.reply(member.sync_token, answer)
            member.sync_token = None

    def prepare(self, group: Group, draft: Draft, now_ms: int) -> None:
        """Begin a rebalance, and complete it at once if nobody is missing."""
        assert group.state is not GroupState.PREPARING_REBALANCE
        for member in group.members.values():
            self.answer_sync(member, _superseded(group), draft)
        if group.state is GroupState.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = b""
        self._timers.cancel((Alarm.SYNC, group.group_id, ""))
        group.sync_owed.clear()
        wait_ms = group.rebalance_timeout_ms()
        if group.state is GroupState.EMPTY:
            delay_ms = self._settings.initial_rebalance_delay_ms
            group.initial_delay_left_ms = max(wait_ms - delay_ms, 0) if delay_ms > 0 else None
            group.has_newcomer = False
            wait_ms = delay_ms
        group.state = GroupState.PREPARING_REBALANCE
        self._timers.set((Alarm.JOIN, group.group_id, ""), now_ms + max(wait_ms, 1))
        self.complete_if_ready(group, draft, now_ms)

    def settle(self, group: Group, draft: Draft, now_ms: int) -> None:
        """Members have been removed: begin a rebalance, or go on with the one that is being prepared."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.complete_if_ready(group, draft, now_ms)
        elif group.state is not GroupState.EMPTY:
            self.prepare(group, draft, now_ms)

    def complete_if_ready(self, group: Group, draft: Draft, now_ms: int) -> None:
        if group.state is not GroupState.PREPARING_REBALANCE or group.initial_delay_left_ms is not None:
            return
        if group.has_everyone() or not group.members:
            self._complete(group, draft, now_ms)

    def on_join_due(self, group: Group, draft: Draft, now_ms: int) -> None:
        """The preparation is over, unless it is the first one and someone came since it was last made longer."""
        assert group.state is GroupState.PREPARING_REBALANCE
        left_ms = group.initial_delay_left_ms
        if left_ms is not None and left_ms > 0 and group.has_newcomer:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            group.initial_delay_left_ms = left_ms - delay_ms
            group.has_newcomer = False
            self._timers.set((Alarm.JOIN, group.group_id, ""), now_ms + delay_ms)
            return
        self._complete(group, draft, now_ms)

    def on_sync_due(self, group: Group, draft: Draft, now_ms: int) -> None:
        """Whoever took part in the rebalance and has not come for its assignment holds nothing and is removed."""
        missing = [member for member in group.members.values() if member.member_id in group.sync_owed]
        for member in missing:
            self.drop(group, member, draft)
        if missing:
            self.settle(group, draft, now_ms)

    def on_session_due(self, group: Group, member_id: str, draft: Draft, now_ms: int) -> None:
        if member_id in group.pending:
            del group.pending[member_id]
            self.complete_if_ready(group, draft, now_ms)
            return
        member = group.members[member_id]
        if member.is_waiting:
            self.refresh_session(group, member, now_ms)
            return
        self.drop(group, member, draft)
        self.settle(group, draft, now_ms)

    def drop(self, group: Group, member: Member, draft: Draft) -> None:
        """Take a member out. The caller must `settle` the group afterwards."""
        gone = UnknownMember(f"{member.member_id} is no longer a member of {group.group_id}")
        self.answer_join(member, gone, draft)
        self.answer_sync(member, gone, draft)
        self.end_session(group, member.member_id)
        group.remove(member)

    def finish(self, group: Group, assignments: dict[str, bytes], draft: Draft, now_ms: int) -> None:
        """The leader has brought the assignments: record them, and hand them out to those who wait."""
        assert group.state is GroupState.COMPLETING_REBALANCE
        assert group.protocol is not None
        group.state, group.state_at_ms = GroupState.STABLE, now_ms
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        draft.events.append(group.recorded())
        for member in group.members.values():
            if member.sync_token is not None:
                self.refresh_session(group, member, now_ms)
                self.answer_sync(
                    member, Synced(group.protocol_type, group.protocol, member.assignment), draft
                )

    def _complete(self, group: Group, draft: Draft, now_ms: int) -> None:
        for member in list(group.members.values()):
            if member.member_id not in group.joined and not member.is_static:
                self.drop(group, member, draft)
        group.initial_delay_left_ms = None
        if group.members and not group.elect_leader():
            self._timers.set((Alarm.JOIN, group.group_id, ""), now_ms + group.rebalance_timeout_ms())
            return
        self._timers.cancel((Alarm.JOIN, group.group_id, ""))
        if group.members:
            self._begin_generation(group, draft, now_ms)
        else:
            self._become_empty(group, draft, now_ms)

    def _begin_generation(self, group: Group, draft: Draft, now_ms: int) -> None:
        group.generation += 1
        group.protocol = group.select_protocol()
        group.state, group.state_at_ms = GroupState.COMPLETING_REBALANCE, now_ms
        for member_id in group.joined:
            member = group.members[member_id]
            self.answer_join(member, group.joined_answer(member), draft)
            self.refresh_session(group, member, now_ms)
        for member in group.members.values():
            member.former_epoch = None
        # Static members that are away have not been told of this generation, so they owe it nothing.
        group.sync_owed = set(group.joined)
        group.joined.clear()
        self._timers.set((Alarm.SYNC, group.group_id, ""), now_ms + group.rebalance_timeout_ms())

    def _become_empty(self, group: Group, draft: Draft, now_ms: int) -> None:
        group.state, group.state_at_ms = GroupState.EMPTY, now_ms
        group.protocol = group.leader_id = None
        if group.generation > 0:  # else nobody has ever heard of this group
            group.generation += 1
            draft.events.append(group.recorded())


def _superseded(group: Group) -> RebalanceInProgress:
    return RebalanceInProgress(f"{group.group_id} prepares a new generation; join again")
