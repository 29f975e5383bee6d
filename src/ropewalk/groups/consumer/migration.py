"""A classic group becomes one whose assignments are made here, and back, while its members go on (KIP-848).

Behaviour worth knowing
    The first member of the consumer protocol that joins a classic group of consumers turns it. Members stay members, keep
    what they have, and are told to join again; they do so in their own protocol.
    When the last member of the consumer protocol goes, the group is turned back, and begins a rebalance.
    `group.consumer.migration.policy` says whether a group may go up, down, both ways, or none.
    The epoch goes on from the generation, and the generation from the epoch.
"""

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import GroupState
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import Protocol
from ropewalk.groups.consumer.events import (
    ClassicDetails,
    Current,
    CurrentRecorded,
    Details,
    EpochRecorded,
    MemberRecorded,
    TargetEpochRecorded,
    TargetRecorded,
)
from ropewalk.groups.consumer.group import ConsumerGroup
from ropewalk.groups.consumer.revision import Revision
from ropewalk.groups.consumer.subscriptions import Topics
from ropewalk.groups.embedded import decode_assignment, decode_subscription, encode_assignment
from ropewalk.groups.errors import GroupFull, InconsistentProtocol, RebalanceInProgress, UnknownGroup
from ropewalk.groups.events import GroupRemoved
from ropewalk.groups.group import Group, Member
from ropewalk.groups.rebalances import Rebalances
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft
from ropewalk.groups.subscription import CONSUMER_PROTOCOL_TYPE


class Migration:
    def __init__(
        self, settings: GroupSettings, topics: Topics, rebalances: Rebalances, groups: dict[str, Group]
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._rebalances = rebalances
        self._groups = groups
        """The classic groups of the shard, which this adds to and takes from."""

    def upgrade(self, group: Group, draft: Draft, *, is_recorded: bool) -> Revision:
        """Turn a classic group. Raises `UnknownGroup` if it must stay one: it is not there as far as the caller goes."""
        members = {} if group.state is GroupState.EMPTY else self._read(group)
        if len(members) >= self._settings.consumer_member_count_max:
            raise GroupFull(f"{group.group_id} has {len(members)} members and could not take another")
        for member in group.members.values():
            turned = RebalanceInProgress(f"{group.group_id} makes its assignments another way; join again")
            self._rebalances.answer_join(member, turned, draft)
            self._rebalances.answer_sync(member, turned, draft)
        self._rebalances.end(group)
        del self._groups[group.group_id]
        if is_recorded:
            draft.events.append(GroupRemoved(group.group_id))
        revision = Revision(ConsumerGroup(group.group_id), draft)
        if members:
            self._write(revision, members, group.generation)
        return revision

    def can_downgrade(self, before: ConsumerGroup, after: ConsumerGroup) -> bool:
        return (
            self._settings.migration_policy in ("bidirectional", "downgrade")
            and bool(after.members)
            and not before.has_classic_only
            and after.has_classic_only
            and len(after.members) <= self._settings.member_count_max
        )

    def downgrade(self, revision: Revision, draft: Draft, now_ms: int) -> Group:
        """Turn a group all of whose members are classic ones, and begin a rebalance for them to take part in."""
        turned = self._classic(revision.group)
        for part in list(revision.group.removal()):
            revision.record(part)
        self._groups[turned.group_id] = turned
        turned.state_at_ms = now_ms
        draft.events.append(turned.recorded())
        for member in turned.members.values():
            self._rebalances.refresh_session(turned, member, now_ms)
        self._rebalances.prepare(turned, draft, now_ms)
        return turned

    def share_of(self, partitions: list[TopicPartition]) -> Share:
        """By topic ids; topics that are gone are left out."""
        found = ((self._topics.find(each.topic), each.partition) for each in partitions)
        return frozenset((facts.topic_id, partition) for facts, partition in found if facts is not None)

    def partitions_of(self, share: Share) -> list[TopicPartition]:
        """By topic names; topics that are gone are left out."""
        named = ((self._topics.name_of(topic_id), partition) for topic_id, partition in share)
        return [TopicPartition(name, partition) for name, partition in named if name is not None]

    def _read(self, group: Group) -> dict[str, tuple[Details, Share]]:
        if self._settings.migration_policy not in ("bidirectional", "upgrade"):
            raise UnknownGroup(f"{group.group_id} is a classic group, and is not to be turned")
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise UnknownGroup(f"{group.group_id} is a group of type {group.protocol_type}")
        protocol = group.protocol or group.select_protocol()
        try:
            return {
                member.member_id: (
                    _details(member, protocol),
                    self.share_of(decode_assignment(member.assignment)),
                )
                for member in group.members.values()
            }
        except InconsistentProtocol as problem:
            raise UnknownGroup(
                f"members of {group.group_id} do not speak as consumers do: {problem}"
            ) from problem

    def _write(self, revision: Revision, members: dict[str, tuple[Details, Share]], epoch: int) -> None:
        group_id = revision.group.group_id
        for member_id, (details, _) in members.items():
            revision.record(MemberRecorded(group_id, member_id, details))
        # The hash is that of nothing, so the assignments are compared with the topics at once.
        revision.record(EpochRecorded(group_id, epoch, 0))
        for member_id, (_, share) in members.items():
            revision.record(TargetRecorded(group_id, member_id, share))
        revision.record(TargetEpochRecorded(group_id, epoch, 0))
        for member_id, (_, share) in members.items():
            current = Current(epoch=epoch, previous_epoch=epoch, assigned=share)
            revision.record(CurrentRecorded(group_id, member_id, current))

    def _classic(self, group: ConsumerGroup) -> Group:
        turned = Group(group.group_id, GroupState.STABLE)
        turned.generation = group.epoch
        turned.protocol_type = CONSUMER_PROTOCOL_TYPE
        for member_id, details in group.members.items():
            assert details.classic is not None
            member = Member(
                member_id=member_id,
                instance_id=details.instance_id,
                client_id=details.client_id,
                client_host=details.client_host,
                session_timeout_ms=details.classic.session_timeout_ms,
                rebalance_timeout_ms=details.rebalance_timeout_ms,
                protocols=details.classic.protocols,
            )
            current = group.current(member_id)
            member.assignment = encode_assignment(
                self.partitions_of(current.assigned | current.revoking),
                like=details.classic.protocols[0].metadata,
            )
            # Until the rebalance begins it may commit, and is told to join, in the epoch that it is in.
            member.former_epoch = current.epoch
            turned.add(member)
        turned.protocol = turned.select_protocol()
        turned.leader_id = next(iter(turned.members))
        return turned


def _details(member: Member, protocol: str) -> Details:
    subscription = decode_subscription(member.metadata_for(protocol))
    # The protocol that the group has chosen comes first: it is what the member hears when it joins again.
    protocols = sorted(member.protocols, key=lambda spoken: spoken.name != protocol)
    return classic_details(
        subscription.topics,
        rack_id=subscription.rack_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        protocols=tuple(protocols),
    )


def classic_details(
    topics: tuple[str, ...],
    *,
    rack_id: str | None,
    instance_id: str | None,
    client_id: str,
    client_host: str,
    rebalance_timeout_ms: int,
    session_timeout_ms: int,
    protocols: tuple[Protocol, ...],
) -> Details:
    return Details(
        client_id=client_id,
        client_host=client_host,
        instance_id=instance_id,
        rack_id=rack_id,
        topics=tuple(sorted(set(topics))),
        rebalance_timeout_ms=rebalance_timeout_ms,
        classic=ClassicDetails(session_timeout_ms, protocols),
    )
