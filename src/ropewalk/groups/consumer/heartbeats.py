"""ConsumerGroupHeartbeat: all that a member of the consumer protocol ever sends.

Behaviour worth knowing
    Epoch 0 joins. A member that says 0 again, because an answer was lost or because it was fenced, goes on as the member
    it is: it hears its epoch and what it has.
    Epoch -1 leaves. -2 is a static member's: it goes for a while, and whoever comes back under its instance id
    within a session timeout has its place, with everything in it. Before that nobody may take the instance id.
    What is null in a heartbeat is as it was. The answer names partitions until the member says what it holds: an answer may be
    lost, with its coordinator or without, and not every client says everything again then. Whoever has said it hears of
    partitions only when they change. It also hears of them when it says everything, and so may know nothing.
    A member may be one epoch behind: the answer that brought the epoch was lost. It must not say that it holds more than
    it has; if it does not say, it holds no more, since it came to its epoch by giving up. Kafka fences it then.
"""

from uuid import UUID

from msgspec.structs import replace

from ropewalk.base.limits import GROUP_NAME_CHARACTERS_MAX
from ropewalk.base.ports import Rng
from ropewalk.groups.answers import ConsumerHeartbeatTaken
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import EPOCH_AWAY, EPOCH_JOIN, EPOCH_LEAVE, ConsumerHeartbeat
from ropewalk.groups.consumer.events import (
    Current,
    CurrentRecorded,
    Details,
    MemberRecorded,
    MemberState,
    TargetRecorded,
)
from ropewalk.groups.consumer.fencing import Fencing
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.patterns import check_pattern
from ropewalk.groups.consumer.reconciliation import reconcile
from ropewalk.groups.consumer.revision import Revision
from ropewalk.groups.consumer.targets import Targets
from ropewalk.groups.errors import (
    FencedMemberEpoch,
    GroupFull,
    InvalidHeartbeat,
    UnreleasedInstance,
    UnsupportedAssignor,
)
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft


class Heartbeats:
    def __init__(self, settings: GroupSettings, targets: Targets, fencing: Fencing, rng: Rng) -> None:
        self._settings = settings
        self._targets = targets
        self._fencing = fencing
        self._rng = rng

    def check(self, beat: ConsumerHeartbeat) -> None:
        """Refuse what no group could take."""
        names = (beat.group_id, beat.member_id, beat.instance_id, beat.rack_id, beat.pattern)
        if any(name is not None and len(name) > GROUP_NAME_CHARACTERS_MAX for name in names):
            raise InvalidHeartbeat(f"a name has at most {GROUP_NAME_CHARACTERS_MAX} characters")
        if not beat.group_id.strip():
            raise InvalidHeartbeat("a group id must not be empty")
        if beat.instance_id == "" or beat.rack_id == "":
            raise InvalidHeartbeat("neither an instance id nor a rack id may be empty")
        if not beat.member_id and (beat.makes_own_id or beat.epoch != EPOCH_JOIN):
            raise InvalidHeartbeat("a member id must not be empty")
        if beat.epoch < EPOCH_AWAY:
            raise InvalidHeartbeat(f"{beat.epoch} is not a member epoch")
        if beat.epoch == EPOCH_AWAY and beat.instance_id is None:
            raise InvalidHeartbeat("only a static member can be away")
        if beat.epoch == EPOCH_JOIN:
            if beat.rebalance_timeout_ms is None:
                raise InvalidHeartbeat("whoever joins must say its rebalance timeout")
            if beat.owned is None or beat.owned:
                raise InvalidHeartbeat("whoever joins must say that it owns nothing")
            if beat.topics is None and beat.pattern is None:
                raise InvalidHeartbeat("whoever joins must name topics or a pattern")
        if beat.assignor is not None and beat.assignor not in self._settings.consumer_assignors:
            known = ", ".join(self._settings.consumer_assignors)
            raise UnsupportedAssignor(f"there is no assignor {beat.assignor!r}, only {known}")
        if beat.pattern:
            check_pattern(beat.pattern)

    def check_room(self, member_count: int) -> None:
        if member_count >= self._settings.consumer_member_count_max:
            raise GroupFull(f"the group has {member_count} members, which is as many as it takes")

    def beat(self, revision: Revision, beat: ConsumerHeartbeat, now_ms: int) -> ConsumerHeartbeatTaken:
        before = revision.group
        member_id = beat.member_id or str(UUID(bytes=self._rng.randbytes(16), version=4))
        if beat.epoch == EPOCH_JOIN:
            if member_id not in before.members and before.member_of_instance(beat.instance_id) is None:
                self.check_room(len(before.members))
            self._find_place(revision, member_id, beat.instance_id)
        else:
            before.check_member(member_id, beat.instance_id)
            _check_epoch(before, member_id, beat)
        known = revision.group.members.get(member_id, Details())
        details = _updated(known, beat)
        if details != revision.group.members.get(member_id):
            revision.record(MemberRecorded(before.group_id, member_id, details))
        is_changed = (
            known.topics != details.topics or known.pattern != details.pattern or revision.group.epoch == 0
        )
        if known.pattern != details.pattern:
            revision.forget_unused_pattern(known.pattern)
        had = revision.group.current(member_id)
        is_behind = beat.epoch < had.epoch
        self._targets.follow(revision, now_ms, is_changed=is_changed, may_describe=beat.may_describe)
        current = self.come_closer(revision, member_id, beat.owned, now_ms)
        if is_behind and beat.owned is None and current.state is MemberState.UNREVOKED:
            # It may never have heard of what it is to give up, and would not know that it must say so.
            raise FencedMemberEpoch(f"{member_id} of {before.group_id} must say what it holds; join again")
        self._fencing.refresh_session(revision.group, member_id, now_ms)
        is_told = self._is_told(revision.group, member_id, beat, is_changed=current.assigned != had.assigned)
        return ConsumerHeartbeatTaken(
            member_id=member_id,
            epoch=current.epoch,
            interval_ms=self._settings.consumer_heartbeat_interval_ms,
            assigned=current.assigned if is_told or is_behind else None,
        )

    def _is_told(
        self, group: ConsumerGroup, member_id: str, beat: ConsumerHeartbeat, *, is_changed: bool
    ) -> bool:
        """Whether the answer is to say what the member has."""
        says_everything = beat.epoch == EPOCH_JOIN or (
            beat.rebalance_timeout_ms is not None
            and (beat.topics is not None or beat.pattern is not None)
            and beat.owned is not None
        )
        key = (group.group_id, member_id)
        if is_changed:
            self._fencing.settled.discard(key)
        elif beat.owned is not None:
            self._fencing.settled.add(key)
        return says_everything or key not in self._fencing.settled

    def come_closer(self, revision: Revision, member_id: str, owned: Share | None, now_ms: int) -> Current:
        """Bring the member as far towards its target as it can come for the time being."""
        group = revision.group
        had = group.current(member_id)
        current = reconcile(
            member_id,
            had,
            target_epoch=group.target_epoch,
            target=group.target(member_id),
            owned=owned,
            owners=group.owners,
        )
        if current != had:
            revision.record(CurrentRecorded(group.group_id, member_id, current))
            self._fencing.watch_revocation(group, member_id, current, now_ms)
        return current

    def take_over(self, revision: Revision, former_id: str, member_id: str) -> None:
        """A static member has come back under another member id: it has what its former self had."""
        group = revision.group
        details, target, current = (
            group.members[former_id],
            group.target(former_id),
            group.current(former_id),
        )
        revision.remove_member(former_id)
        self._fencing.forget(group.group_id, former_id)
        revision.record(MemberRecorded(group.group_id, member_id, details))
        revision.record(TargetRecorded(group.group_id, member_id, target))
        # Its epoch is that of nobody, so that it is brought to its target like any other.
        restarted = Current(epoch=0, previous_epoch=0, assigned=current.assigned)
        revision.record(CurrentRecorded(group.group_id, member_id, restarted))

    def leave(
        self, group: ConsumerGroup, beat: ConsumerHeartbeat, draft: Draft, now_ms: int
    ) -> ConsumerHeartbeatTaken:
        group.check_member(beat.member_id, beat.instance_id)
        if beat.epoch == EPOCH_LEAVE:
            self._fencing.fence(group, [beat.member_id], draft, now_ms)
        else:
            current = group.current(beat.member_id)
            away = replace(current, epoch=EPOCH_AWAY, state=MemberState.STABLE, revoking=frozenset())
            Revision(group, draft).record(CurrentRecorded(group.group_id, beat.member_id, away))
            self._fencing.watch_revocation(group, beat.member_id, away, now_ms)
        return ConsumerHeartbeatTaken(
            member_id=beat.member_id, epoch=beat.epoch, interval_ms=0, assigned=None
        )

    def _find_place(self, revision: Revision, member_id: str, instance_id: str | None) -> None:
        group = revision.group
        former_id = group.member_of_instance(instance_id)
        if former_id is None or former_id == member_id:
            return
        if group.members[former_id].classic is None and group.current(former_id).epoch != EPOCH_AWAY:
            raise UnreleasedInstance(f"{instance_id} of {group.group_id} is {former_id}, who has not left")
        self.take_over(revision, former_id, member_id)


def _updated(known: Details, beat: ConsumerHeartbeat) -> Details:
    """As the member has said before, but for what it says otherwise."""
    timeout_ms = beat.rebalance_timeout_ms
    return Details(
        client_id=beat.client_id,
        client_host=beat.client_host,
        instance_id=known.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=known.rack_id if beat.rack_id is None else beat.rack_id,
        topics=known.topics if beat.topics is None else tuple(sorted(set(beat.topics))),
        pattern=known.pattern if beat.pattern is None else beat.pattern or None,
        rebalance_timeout_ms=known.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        assignor=known.assignor if beat.assignor is None else beat.assignor,
    )


def _check_epoch(group: ConsumerGroup, member_id: str, beat: ConsumerHeartbeat) -> None:
    current = group.current(member_id)
    if beat.epoch == current.epoch:
        return
    answer_was_lost = (
        beat.epoch == current.previous_epoch
        and beat.epoch < current.epoch
        and (beat.owned is None or beat.owned <= current.assigned | current.revoking)
    )
    if not answer_was_lost:
        raise FencedMemberEpoch(
            f"{member_id} of {group.group_id} is in epoch {current.epoch}, not {beat.epoch}"
        )
