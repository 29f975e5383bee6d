"""All groups of one shard: the public face of the room.

The host replays the shard's log (`apply` for each event, then `on_loaded`), and from then on calls one command at a
time. Of every `Step` it appends the events and applies them before the next call, and it releases the replies when the
high watermark passes the last event appended so far. When an append fails, it throws the core away, refuses
everyone who waits, and replays into another core.

What a reader could get wrong
    A command changes what is not durable at once, and what is durable only through its events. It reads the
    durable state as it is after the events of all former steps.
    `now_ms` counts from 1970, because offsets remember when they were committed, but it must not jump: take the wall
    clock once and add what a monotonic clock measures.
    A reply may come in a later step than the command. Whoever is not answered in the step of its command waits for
    others to join, or for the leader's assignments.
"""

from collections.abc import Callable, Iterable, Iterator

from ropewalk.base import state_machine
from ropewalk.base.limits import GROUP_ALARMS_PER_TICK_MAX
from ropewalk.base.ports import Rng
from ropewalk.base.timers import Timers
from ropewalk.groups.answers import (
    Answer,
    ConsumerGroupsDescribed,
    DescribedConsumerGroup,
    DescribedGroup,
    GroupsDeleted,
    GroupsDescribed,
    GroupsListed,
    GroupState,
    Left,
    ListedGroup,
)
from ropewalk.groups.commands import (
    AnyCommand,
    Commit,
    CommitInTransaction,
    ConsumerHeartbeat,
    DeleteGroups,
    DeleteOffsets,
    DescribeConsumerGroups,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    Join,
    Leave,
    ListGroups,
    Sync,
)
from ropewalk.groups.consumer.events import EpochRecorded
from ropewalk.groups.consumer.groups import ConsumerGroups
from ropewalk.groups.consumer.offsets import check_committer as check_consumer_committer
from ropewalk.groups.consumer.offsets import check_fetcher, check_transaction
from ropewalk.groups.consumer.overview import consumer_group_overview, listed_consumer_group
from ropewalk.groups.consumer.subscriptions import Topics
from ropewalk.groups.durable import DurableState
from ropewalk.groups.errors import (
    GroupError,
    GroupNotEmpty,
    UnknownGroup,
    UnknownMember,
)
from ropewalk.groups.events import Event, GenerationRecorded, GroupRemoved, OffsetCommitted, OffsetRemoved
from ropewalk.groups.expiry import decide_expiry
from ropewalk.groups.group import Group, restored
from ropewalk.groups.joining import Joining, check_group_id
from ropewalk.groups.membership import Membership
from ropewalk.groups.offsets import (
    check_committer,
    check_transactional_committer,
    decide_commit,
    decide_delete,
    fetch,
)
from ropewalk.groups.overview import GroupOverview, described_group, listed_group, overview
from ropewalk.groups.rebalances import Alarm, AlarmKey, Rebalances
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft, Step


class GroupsCore:
    def __init__(self, settings: GroupSettings, rng: Rng, topics: Topics) -> None:
        self.durable = DurableState()
        """To be read by whoever likes, and written by `apply` alone."""
        self._settings = settings
        self._topics = topics
        self._timers: Timers[AlarmKey] = Timers()
        self._rebalances = Rebalances(settings, self._timers)
        self._joining = Joining(settings, self._rebalances, rng)
        self._membership = Membership(self._rebalances)
        self._groups: dict[str, Group] = {}
        """Classic groups that have, had or expect members; a group that only stores offsets is not among them."""
        self._consumers = ConsumerGroups(settings, topics, self._timers, self._rebalances, self._groups, rng)
        self._is_loaded = False
        self._expiry_wait_ms = min(settings.offsets_retention_ms, settings.offsets_check_interval_ms)

    def apply(self, event: Event, now_ms: int) -> None:
        self.durable.apply(event)
        if self._is_loaded:
            self._watch_expiry(event, now_ms)

    def apply_pending(self, producer_id: int, event: Event, now_ms: int) -> None:
        """As `apply`, for what counts only once the transaction of the producer is committed."""
        del now_ms  # it does not grow old while it is pending
        self.durable.apply_pending(producer_id, event)

    def apply_end(self, producer_id: int, committed: bool, now_ms: int) -> None:
        for event in self.durable.apply_end(producer_id, committed):
            if self._is_loaded:
                removed = OffsetRemoved(event.group_id, event.topic, event.partition)
                self._watch_expiry(event if committed else removed, now_ms)

    def on_loaded(self, now_ms: int) -> None:
        """The log has been replayed. Members of the recorded generations have a session from now to show up."""
        assert not self._is_loaded
        self._is_loaded = True
        for event in self.durable.generations.values():
            group = self._groups[event.group_id] = restored(event)
            for member in group.members.values():
                self._rebalances.refresh_session(group, member, now_ms)
            if len(group.members) > self._settings.member_count_max:
                # A rebalance lets go of those who come last.
                self._rebalances.prepare(group, state_machine.Draft(), now_ms)
        for consumers in self.durable.consumers.values():
            self._consumers.on_loaded(consumers, now_ms)
        for group_id in sorted(self.durable.group_ids()):  # alarms that are due together keep this order
            self._timers.set((Alarm.EXPIRY, group_id, ""), now_ms + self._settings.offsets_check_interval_ms)

    def decide(self, token: int, command: AnyCommand, now_ms: int) -> Step:
        """Any command, for hosts that do not care which."""
        match command:
            case Join():
                return self.join(token, command, now_ms)
            case Sync():
                return self.sync(token, command, now_ms)
            case Heartbeat():
                return self.heartbeat(token, command, now_ms)
            case Leave():
                return self.leave(token, command, now_ms)
            case ConsumerHeartbeat():
                return self.consumer_heartbeat(token, command, now_ms)
            case Commit():
                return self.commit(token, command, now_ms)
            case CommitInTransaction():
                return self.commit_in_transaction(token, command, now_ms)
            case FetchOffsets():
                return self.fetch(token, command, now_ms)
            case ListGroups():
                return self.list_groups(token, command, now_ms)
            case DescribeGroups():
                return self.describe_groups(token, command, now_ms)
            case DescribeConsumerGroups():
                return self.describe_consumer_groups(token, command, now_ms)
            case DeleteGroups():
                return self.delete_groups(token, command, now_ms)
            case DeleteOffsets():
                return self.delete_offsets(token, command, now_ms)

    def join(self, token: int, command: Join, now_ms: int) -> Step:
        """Answered with `Joined` when the next generation begins, at once where that is known already."""

        def decide(draft: Draft) -> Answer | None:
            self._joining.check(command)
            group = self._groups.get(command.group_id)
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None and consumers.members:
                group = self._consumers.turn_classic(consumers, command, draft, now_ms)
                if group is None:
                    return self._consumers.classic_members.join(consumers, command, draft, now_ms)
            if group is None:
                if command.member_id:
                    raise UnknownMember(f"{command.group_id} has no members, so not {command.member_id!r}")
                group = self._groups[command.group_id] = Group(command.group_id)
                if consumers is not None:
                    draft.events += consumers.removal()  # nobody is in it, so it may be of either kind
            self._joining.join(group, token, command, draft, now_ms)
            return None

        step = self._step(token, decide)
        self._let_go(command.group_id)
        return step

    def sync(self, token: int, command: Sync, now_ms: int) -> Step:
        """Answered with `Synced` when the leader's assignments are there."""

        def decide(draft: Draft) -> Answer | None:
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None:
                return self._consumers.classic_members.sync(consumers, command, now_ms)
            group = self._group_of_member(command.group_id)
            return self._membership.sync(group, token, command, draft, now_ms)

        return self._step(token, decide)

    def heartbeat(self, token: int, command: Heartbeat, now_ms: int) -> Step:
        def decide(_: Draft) -> Answer:
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None:
                return self._consumers.classic_members.heartbeat(consumers, command, now_ms)
            return self._membership.heartbeat(self._group_of_member(command.group_id), command, now_ms)

        return self._step(token, decide)

    def consumer_heartbeat(self, token: int, command: ConsumerHeartbeat, now_ms: int) -> Step:
        """Answered at once, whoever else is in the group (KIP-848)."""

        def decide(draft: Draft) -> Answer:
            return self._consumers.heartbeat(self.durable, command, draft, now_ms)

        return self._step(token, decide)

    def leave(self, token: int, command: Leave, now_ms: int) -> Step:
        def decide(draft: Draft) -> Answer:
            check_group_id(command.group_id)
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None:
                return self._consumers.classic_members.leave(consumers, command, draft, now_ms)
            group = self._groups.get(command.group_id)
            if group is None:
                gone = UnknownMember(f"{command.group_id} has no members")
                return Left(tuple(gone for _ in command.members))
            return self._membership.leave(group, command, draft, now_ms)

        step = self._step(token, decide)
        self._let_go(command.group_id)
        return step

    def commit(self, token: int, command: Commit, now_ms: int) -> Step:
        def decide(draft: Draft) -> Answer:
            group = self._groups.get(command.group_id)
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None:
                check_consumer_committer(consumers, command, self._topics)
            else:
                has_offsets = self.durable.has_offsets(command.group_id)
                member = check_committer(group, command, has_offsets=has_offsets)
                if group is not None and member is not None:
                    self._rebalances.refresh_session(group, member, now_ms)
            events, answer = decide_commit(
                command, metadata_bytes_max=self._settings.offset_metadata_bytes_max, now_ms=now_ms
            )
            draft.events += events
            return answer

        return self._step(token, decide)

    def commit_in_transaction(self, token: int, command: CommitInTransaction, now_ms: int) -> Step:
        """The events are for `apply_pending`. Nothing changes by the decision itself: the partition may refuse the producer."""

        def decide(draft: Draft) -> Answer:
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None:
                check_transaction(consumers, command, self._topics)
            else:
                check_transactional_committer(self._groups.get(command.group_id), command)
            events, answer = decide_commit(
                command, metadata_bytes_max=self._settings.offset_metadata_bytes_max, now_ms=now_ms
            )
            draft.events += events
            return answer

        return self._step(token, decide)

    def fetch(self, token: int, command: FetchOffsets, _now_ms: int) -> Step:
        def decide(_: Draft) -> Answer:
            consumers = self.durable.consumers.get(command.group_id)
            if consumers is not None:
                check_fetcher(consumers, command)
            return fetch(self.durable, command)

        return self._step(token, decide)

    def list_groups(self, token: int, command: ListGroups, _now_ms: int) -> Step:
        states = {state.lower() for state in command.states}
        types = {group_type.lower() for group_type in command.types}
        groups = tuple(
            group
            for group_id in sorted(self._groups.keys() | self.durable.group_ids())
            if (group := self._listed(group_id))
            and (not states or group.state.value.lower() in states)
            and (not types or group.group_type.value in types)
        )
        return self._step(token, lambda _: GroupsListed(groups))

    def describe_groups(self, token: int, command: DescribeGroups, _now_ms: int) -> Step:
        groups = tuple(self._described(group_id) for group_id in command.group_ids)
        return self._step(token, lambda _: GroupsDescribed(groups))

    def describe_consumer_groups(self, token: int, command: DescribeConsumerGroups, _now_ms: int) -> Step:
        groups = tuple(self._described_consumers(group_id) for group_id in command.group_ids)
        return self._step(token, lambda _: ConsumerGroupsDescribed(groups))

    def delete_groups(self, token: int, command: DeleteGroups, _now_ms: int) -> Step:
        def decide(draft: Draft) -> Answer:
            results: list[GroupError | None] = []
            deleted: set[str] = set()
            for group_id in command.group_ids:
                try:
                    if group_id in deleted:
                        raise UnknownGroup(f"there is no group {group_id}")
                    draft.events += self._delete(group_id)
                    deleted.add(group_id)
                    results.append(None)
                except GroupError as refusal:
                    results.append(refusal)
            return GroupsDeleted(tuple(results))

        return self._step(token, decide)

    def delete_offsets(self, token: int, command: DeleteOffsets, _now_ms: int) -> Step:
        def decide(draft: Draft) -> Answer:
            events, answer = decide_delete(self.durable, self._groups.get(command.group_id), command)
            draft.events += events
            return answer

        return self._step(token, decide)

    def forget(self, token: int) -> None:
        """Its connection is closed, and nobody is owed a reply. A waiting member has a session timeout to come again."""
        self._rebalances.forget(token)

    def on_topics_deleted(self, names: Iterable[str]) -> Step:
        """A topic made again under the same name is another topic: what was read of the former says nothing of it."""
        draft: Draft = state_machine.Draft()
        for name in names:
            draft.events += self.durable.offsets_of_topic(name)
        return draft.finish()

    def tick(self, now_ms: int) -> Step:
        """Do what is due. With very much to do it stops in between, and `deadline_ms` is in the past.

        So it does when something durable is changed: what is due next may build on that.
        """
        draft: Draft = state_machine.Draft()
        for _ in range(GROUP_ALARMS_PER_TICK_MAX):
            alarm = self._timers.pop_due(now_ms)
            if alarm is None:
                break
            is_durable = alarm[1] in self.durable.consumers
            self._on_alarm(alarm, draft, now_ms)
            if is_durable and draft.events:
                break
        return draft.finish()

    def deadline_ms(self) -> float | None:
        """When `tick` is due next; None: not before another command."""
        return self._timers.next_due_at_ms()

    def overviews(self) -> Iterator[GroupOverview]:
        """Every group, for those who count and watch."""
        for group_id in self._groups.keys() | self.durable.group_ids():
            consumers = self.durable.consumers.get(group_id)
            if consumers is None:
                yield overview(group_id, self._groups.get(group_id))
            else:
                yield consumer_group_overview(consumers)

    def _step(self, token: int, decide: Callable[[Draft], Answer | None]) -> Step:
        """What was drafted before a refusal stays: a member that is refused may have lost its place."""
        draft: Draft = state_machine.Draft()
        try:
            answer = decide(draft)
            if answer is not None:
                draft.reply(token, answer)
        except GroupError as refusal:
            draft.reply(token, refusal)
        return draft.finish()

    def _on_alarm(self, alarm: AlarmKey, draft: Draft, now_ms: int) -> None:
        kind, group_id, member_id = alarm
        group = self._groups.get(group_id)
        if kind is Alarm.EXPIRY:
            self._expire(group_id, draft, now_ms)
            return
        consumers = self.durable.consumers.get(group_id)
        if consumers is not None:
            self._consumers.fence(consumers, member_id, draft, now_ms)
            return
        assert group is not None
        match kind:
            case Alarm.SESSION:
                self._rebalances.on_session_due(group, member_id, draft, now_ms)
            case Alarm.JOIN:
                self._rebalances.on_join_due(group, draft, now_ms)
            case Alarm.SYNC:
                self._rebalances.on_sync_due(group, draft, now_ms)
        self._let_go(group_id)

    def _expire(self, group_id: str, draft: Draft, now_ms: int) -> None:
        expired = decide_expiry(self.durable, group_id, self._groups.get(group_id), self._settings, now_ms)
        draft.events += expired.events
        if any(isinstance(event, GroupRemoved) for event in expired.events):
            del self._groups[group_id]
        if expired.check_at_ms is None:
            self._consumers.forget(group_id)
        else:
            self._timers.set((Alarm.EXPIRY, group_id, ""), expired.check_at_ms)

    def _watch_expiry(self, event: Event, now_ms: int) -> None:
        retention_ms = self._settings.offsets_retention_ms
        match event:
            case OffsetCommitted(group_id):
                self._timers.set_earlier((Alarm.EXPIRY, group_id, ""), now_ms + retention_ms)
            case GenerationRecorded(group_id, members=()) | OffsetRemoved(group_id):
                # The group may have nothing left that is worth keeping it for.
                self._timers.set_earlier((Alarm.EXPIRY, group_id, ""), now_ms + self._expiry_wait_ms)
            case EpochRecorded(group_id) if not self.durable.consumers[group_id].members:
                self._timers.set_earlier((Alarm.EXPIRY, group_id, ""), now_ms + self._expiry_wait_ms)
            case _:
                pass

    def _group_of_member(self, group_id: str) -> Group:
        check_group_id(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMember(f"{group_id} has no members")
        return group

    def _let_go(self, group_id: str) -> None:
        """Forget a group that nobody is in, is expected in, or has left a trace of."""
        group = self._groups.get(group_id)
        if (
            group is not None
            and group.generation == 0
            and group.state is GroupState.EMPTY
            and not group.pending
        ):
            del self._groups[group_id]

    def _delete(self, group_id: str) -> list[Event]:
        group = self._groups.get(group_id)
        consumers = self.durable.consumers.get(group_id)
        if group is None and consumers is None and not self.durable.has_offsets(group_id):
            raise UnknownGroup(f"there is no group {group_id}")
        if consumers is not None:
            if consumers.members:
                raise GroupNotEmpty(f"{group_id} has members")
            self._consumers.forget(group_id)
        if group is not None:
            if group.state is not GroupState.EMPTY:
                raise GroupNotEmpty(f"{group_id} has members")
            for member_id in group.pending:
                self._rebalances.end_session(group, member_id)
            del self._groups[group_id]
        self._timers.cancel((Alarm.EXPIRY, group_id, ""))
        events: list[Event] = [
            OffsetRemoved(group_id, partition.topic, partition.partition)
            for partition in self.durable.partitions(group_id)
        ]
        if group_id in self.durable.generations:
            events.append(GroupRemoved(group_id))
        if consumers is not None:
            events += consumers.removal()
        return events

    def _described(self, group_id: str) -> DescribedGroup | GroupError:
        group = self._groups.get(group_id)
        if group_id in self.durable.consumers:
            return UnknownGroup(f"{group_id} is not a classic group")
        if group is None and not self.durable.has_offsets(group_id):
            return UnknownGroup(f"there is no group {group_id}")
        return described_group(group_id, group)

    def _described_consumers(self, group_id: str) -> DescribedConsumerGroup | GroupError:
        consumers = self.durable.consumers.get(group_id)
        if consumers is None:
            return UnknownGroup(f"{group_id} is not a group whose assignments are made here")
        return self._consumers.described(consumers)

    def _listed(self, group_id: str) -> ListedGroup:
        consumers = self.durable.consumers.get(group_id)
        if consumers is None:
            return listed_group(group_id, self._groups.get(group_id))
        return listed_consumer_group(consumers)
