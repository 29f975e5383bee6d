"""All groups of one shard whose assignments are made here: where commands about them are sorted out."""

from ropewalk.base.ports import Rng
from ropewalk.base.timers import Timers
from ropewalk.groups.answers import Answer, DescribedConsumerGroup
from ropewalk.groups.commands import (
    EPOCH_AWAY,
    EPOCH_JOIN,
    EPOCH_LEAVE,
    ConsumerHeartbeat,
    Join,
)
from ropewalk.groups.consumer.classic_members import ClassicMembers
from ropewalk.groups.consumer.events import MemberRecorded
from ropewalk.groups.consumer.fencing import Fencing
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.heartbeats import Heartbeats
from ropewalk.groups.consumer.migration import Migration
from ropewalk.groups.consumer.overview import described_consumer_group
from ropewalk.groups.consumer.revision import Revision
from ropewalk.groups.consumer.subscriptions import Topics
from ropewalk.groups.consumer.targets import Targets
from ropewalk.groups.durable import DurableState
from ropewalk.groups.errors import (
    UnknownGroup,
    UnknownMember,
)
from ropewalk.groups.group import Group
from ropewalk.groups.rebalances import AlarmKey, Rebalances
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft


class ConsumerGroups:
    def __init__(
        self,
        settings: GroupSettings,
        topics: Topics,
        timers: Timers[AlarmKey],
        rebalances: Rebalances,
        classic_groups: dict[str, Group],
        rng: Rng,
    ) -> None:
        self._classic_groups = classic_groups
        self._targets = Targets(topics, settings.consumer_assignors[0])
        self._migration = Migration(settings, topics, rebalances, classic_groups)
        self._fencing = Fencing(settings, timers, self._targets, self._migration)
        self._heartbeats = Heartbeats(settings, self._targets, self._fencing, rng)
        self.classic_members = ClassicMembers(
            timers, self._targets, self._heartbeats, self._fencing, self._migration, rng
        )
        self.on_loaded = self._fencing.on_loaded

    def heartbeat(
        self, durable: DurableState, command: ConsumerHeartbeat, draft: Draft, now_ms: int
    ) -> Answer:
        self._heartbeats.check(command)
        group = durable.consumers.get(command.group_id)
        if command.epoch in (EPOCH_LEAVE, EPOCH_AWAY):
            return self._heartbeats.leave(_existing(group, command.group_id), command, draft, now_ms)
        if command.epoch == EPOCH_JOIN and group is None:
            revision = self._begin(durable, command.group_id, draft, now_ms)
        elif group is None and command.group_id in self._classic_groups:
            # The group was turned back when this member was missed. Kafka says that there is no group, which clients
            # take for the end; so they join again.
            raise UnknownMember(f"{command.group_id} is a classic group by now, without {command.member_id}")
        else:
            revision = Revision(_existing(group, command.group_id), draft)
        return self._heartbeats.beat(revision, command, now_ms)

    def turn_classic(self, group: ConsumerGroup, command: Join, draft: Draft, now_ms: int) -> Group | None:
        """The last member of the consumer protocol joins as a classic one, so all of the group is classic again."""
        if not self.classic_members.turns_classic(group, command):
            return None
        revision = Revision(group, draft)
        member_id = command.member_id or group.member_of_instance(command.instance_id)
        assert member_id is not None
        details = self.classic_members.as_classic(group.members[member_id], command)
        revision.record(MemberRecorded(group.group_id, member_id, details))
        for known_id in group.members:
            self._fencing.forget(group.group_id, known_id)
        self._targets.forget(group.group_id)
        return self._migration.downgrade(revision, draft, now_ms)

    def fence(self, group: ConsumerGroup, member_id: str, draft: Draft, now_ms: int) -> None:
        """One of the member's alarms is due."""
        self._fencing.fence(group, [member_id], draft, now_ms)

    def forget(self, group_id: str) -> None:
        """The group is being removed."""
        self._targets.forget(group_id)

    def described(self, group: ConsumerGroup) -> DescribedConsumerGroup:
        return described_consumer_group(group, self._targets.assignor_of(group))

    def _begin(self, durable: DurableState, group_id: str, draft: Draft, now_ms: int) -> Revision:
        classic = self._classic_groups.get(group_id)
        if classic is None:
            return Revision(ConsumerGroup(group_id), draft)
        is_recorded = group_id in durable.generations
        revision = self._migration.upgrade(classic, draft, is_recorded=is_recorded)
        for member_id in revision.group.members:
            self._fencing.refresh_session(revision.group, member_id, now_ms)
        return revision


def _existing(group: ConsumerGroup | None, group_id: str) -> ConsumerGroup:
    if group is None:
        raise UnknownGroup(f"there is no group {group_id} whose assignments are made here")
    return group
