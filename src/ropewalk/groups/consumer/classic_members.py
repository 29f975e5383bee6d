"""Members that speak the classic protocol in a group whose assignments are made here.

They join, sync and send heartbeats as ever. A join is answered at once: nobody is waited for, nobody leads, and the generation
is the member's epoch. A sync hands out what the member has. A heartbeat that says "rebalance" makes the member join
again, and in its subscription a member says what it still owns, which is how it releases partitions.
"""

from uuid import UUID

from ropewalk.base.ports import Rng
from ropewalk.base.timers import Timers
from ropewalk.groups.answers import Answer, HeartbeatTaken, Joined, Left, Synced
from ropewalk.groups.commands import Heartbeat, Join, Leave, LeavingMember, Sync
from ropewalk.groups.consumer.events import ClassicDetails, Details, MemberRecorded, MemberState
from ropewalk.groups.consumer.fencing import Fencing
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.heartbeats import Heartbeats
from ropewalk.groups.consumer.migration import Migration, classic_details
from ropewalk.groups.consumer.revision import Revision
from ropewalk.groups.consumer.targets import Targets
from ropewalk.groups.embedded import decode_subscription, encode_assignment, owned_in
from ropewalk.groups.errors import (
    GroupError,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    StaleGeneration,
    UnknownMember,
)
from ropewalk.groups.group import rebalance_timeout_of
from ropewalk.groups.rebalances import Alarm, AlarmKey
from ropewalk.groups.step import Draft
from ropewalk.groups.subscription import CONSUMER_PROTOCOL_TYPE


class ClassicMembers:
    def __init__(
        self,
        timers: Timers[AlarmKey],
        targets: Targets,
        heartbeats: Heartbeats,
        fencing: Fencing,
        migration: Migration,
        rng: Rng,
    ) -> None:
        self._timers = timers
        self._targets = targets
        self._heartbeats = heartbeats
        self._fencing = fencing
        self._migration = migration
        self._rng = rng

    def join(self, group: ConsumerGroup, command: Join, draft: Draft, now_ms: int) -> Answer:
        """The caller has checked the command by itself."""
        member_id = command.member_id or str(UUID(bytes=self._rng.randbytes(16), version=4))
        former_id = group.member_of_instance(command.instance_id)
        if member_id not in group.members and former_id is None:
            self._heartbeats.check_room(len(group.members))
        if not _takes_protocols(group, command):
            raise InconsistentProtocol(
                f"{group.group_id} has no protocol that {member_id} would share with all classic members"
            )
        subscription = decode_subscription(command.protocols[0].metadata)
        if not command.member_id and command.requires_known_member and command.instance_id is None:
            raise MemberIdRequired(group.group_id, member_id)
        revision = Revision(group, draft)
        if command.instance_id is not None and command.member_id:
            group.check_member(member_id, command.instance_id)
        elif former_id is not None:
            self._heartbeats.take_over(revision, former_id, member_id)
        known = revision.group.members.get(member_id, Details())
        details = classic_details(
            subscription.topics,
            rack_id=subscription.rack_id,
            instance_id=command.instance_id,
            client_id=command.client_id,
            client_host=command.client_host,
            rebalance_timeout_ms=rebalance_timeout_of(command),
            session_timeout_ms=command.session_timeout_ms,
            protocols=command.protocols,
        )
        if details != revision.group.members.get(member_id):
            revision.record(MemberRecorded(group.group_id, member_id, details))
        revision.forget_unused_pattern(known.pattern)
        is_changed = known.topics != details.topics or known.pattern is not None or revision.group.epoch == 0
        self._targets.follow(revision, now_ms, is_changed=is_changed, may_describe=command.may_describe)
        owned = self._migration.share_of(owned_in(subscription))
        current = self._heartbeats.come_closer(revision, member_id, owned, now_ms)
        self._fencing.refresh_session(revision.group, member_id, now_ms)
        self._timers.cancel((Alarm.JOIN, group.group_id, member_id))
        due_at_ms = now_ms + details.rebalance_timeout_ms
        self._timers.set((Alarm.SYNC, group.group_id, member_id), due_at_ms)
        return Joined(current.epoch, CONSUMER_PROTOCOL_TYPE, command.protocols[0].name, "", member_id)

    def turns_classic(self, group: ConsumerGroup, command: Join) -> bool:
        """Whether with this join nobody would be left who speaks the consumer protocol."""
        former_id = command.member_id or group.member_of_instance(command.instance_id)
        if command.member_id and command.instance_id is not None:
            group.check_member(command.member_id, command.instance_id)
        after = group.copy()
        if former_id not in after.members:
            return False
        details = after.members[former_id]
        if details.classic is not None or not _takes_protocols(group, command):
            return False  # `join` says why
        after.members[former_id] = self.as_classic(details, command)
        return self._migration.can_downgrade(group, after)

    def as_classic(self, details: Details, command: Join) -> Details:
        """A member that has changed its protocol, and nothing else yet."""
        return classic_details(
            details.topics,
            rack_id=details.rack_id,
            instance_id=details.instance_id,
            client_id=details.client_id,
            client_host=details.client_host,
            rebalance_timeout_ms=rebalance_timeout_of(command),
            session_timeout_ms=command.session_timeout_ms,
            protocols=command.protocols,
        )

    def sync(self, group: ConsumerGroup, command: Sync, now_ms: int) -> Answer:
        details, classic = self._check(group, command.member_id, command.instance_id, command.generation)
        protocol = classic.protocols[0]
        if command.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            command.protocol_name not in (None, protocol.name)
        ):
            raise InconsistentProtocol(
                f"{command.member_id} joined {group.group_id} with {protocol.name} of type {CONSUMER_PROTOCOL_TYPE}"
            )
        current = group.current(command.member_id)
        if group.epoch > current.epoch and current.state is not MemberState.UNREVOKED:
            self._await_join(group, command.member_id, details, now_ms)
            raise _must_join(group)
        self._timers.cancel((Alarm.SYNC, group.group_id, command.member_id))
        self._fencing.refresh_session(group, command.member_id, now_ms)
        assignment = encode_assignment(
            self._migration.partitions_of(current.assigned), like=protocol.metadata
        )
        return Synced(CONSUMER_PROTOCOL_TYPE, protocol.name, assignment)

    def heartbeat(self, group: ConsumerGroup, command: Heartbeat, now_ms: int) -> Answer:
        """A refusal because of a rebalance is how a member learns of it; its session goes on all the same."""
        details, _ = self._check(group, command.member_id, command.instance_id, command.generation)
        self._fencing.refresh_session(group, command.member_id, now_ms)
        current = group.current(command.member_id)
        if (
            current.epoch < group.epoch
            or current.state is MemberState.UNREVOKED
            or (current.state is MemberState.UNRELEASED and not _waits_for_others(group, command.member_id))
        ):
            self._await_join(group, command.member_id, details, now_ms)
            raise _must_join(group)
        return HeartbeatTaken()

    def leave(self, group: ConsumerGroup, command: Leave, draft: Draft, now_ms: int) -> Answer:
        leaving: dict[str, None] = {}
        results: list[GroupError | None] = []
        for member in command.members:
            try:
                leaving[_leaving_id(group, member)] = None
                results.append(None)
            except GroupError as refusal:
                results.append(refusal)
        if leaving:
            self._fencing.fence(group, list(leaving), draft, now_ms)
        return Left(tuple(results))

    def _check(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Details, ClassicDetails]:
        details = group.check_member(member_id, instance_id)
        if details.classic is None:
            raise UnknownMember(f"{member_id} of {group.group_id} does not speak the classic protocol")
        current = group.current(member_id)
        if generation == current.previous_epoch < current.epoch:
            # The answer to its join was lost. To be told to join again costs it nothing that it has.
            raise _must_join(group)
        if generation != current.epoch:
            raise StaleGeneration(
                f"{member_id} of {group.group_id} is in epoch {current.epoch}, not {generation}"
            )
        return details, details.classic

    def _await_join(self, group: ConsumerGroup, member_id: str, details: Details, now_ms: int) -> None:
        """It has been told; how often it is told again does not make it later."""
        due_at_ms = now_ms + details.rebalance_timeout_ms
        self._timers.set_earlier((Alarm.JOIN, group.group_id, member_id), due_at_ms)


def _takes_protocols(group: ConsumerGroup, command: Join) -> bool:
    if command.protocol_type != CONSUMER_PROTOCOL_TYPE or not command.protocols:
        return False
    spoken = [
        {protocol.name for protocol in details.classic.protocols}
        for member_id, details in group.members.items()
        if details.classic is not None and member_id != command.member_id
    ]
    return any(all(protocol.name in names for names in spoken) for protocol in command.protocols)


def _waits_for_others(group: ConsumerGroup, member_id: str) -> bool:
    wanted = group.target(member_id) - group.current(member_id).assigned
    return any(partition in group.owners for partition in wanted)


def _leaving_id(group: ConsumerGroup, leaving: LeavingMember) -> str:
    member_id = leaving.member_id or group.member_of_instance(leaving.instance_id) or ""
    if group.check_member(member_id, leaving.instance_id).classic is None:
        raise UnknownMember(f"{member_id} of {group.group_id} does not speak the classic protocol")
    return member_id


def _must_join(group: ConsumerGroup) -> RebalanceInProgress:
    return RebalanceInProgress(f"{group.group_id} has other assignments; join again")
