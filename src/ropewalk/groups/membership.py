"""What members do between joins: fetch their assignments, stay alive, and leave."""

from ropewalk.groups.answers import Answer, GroupState, HeartbeatTaken, Left, Synced
from ropewalk.groups.commands import Heartbeat, Leave, LeavingMember, Sync
from ropewalk.groups.errors import GroupError, InconsistentProtocol, RebalanceInProgress
from ropewalk.groups.group import Group
from ropewalk.groups.rebalances import Rebalances
from ropewalk.groups.step import Draft


class Membership:
    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def sync(self, group: Group, token: int, command: Sync, draft: Draft, now_ms: int) -> Answer | None:
        """None: the answer follows when the leader brings the assignments, which it may just have done."""
        member = group.check_member(command.member_id, command.instance_id)
        group.check_generation(member, command.generation)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"{group.group_id} prepares a new generation; join again")
        assert group.protocol is not None
        if command.protocol_type not in (None, group.protocol_type) or (
            command.protocol_name not in (None, group.protocol)
        ):
            raise InconsistentProtocol(
                f"{group.group_id} speaks {group.protocol} of type {group.protocol_type}"
            )
        self._rebalances.refresh_session(group, member, now_ms)
        if group.state is GroupState.STABLE:
            group.sync_owed.discard(member.member_id)
            return Synced(group.protocol_type, group.protocol, member.assignment)
        self._rebalances.await_sync(group, member, token, draft)
        if member.member_id == group.leader_id:
            assignments = {entry.member_id: entry.assignment for entry in command.assignments}
            self._rebalances.finish(group, assignments, draft, now_ms)
        return None

    def heartbeat(self, group: Group, command: Heartbeat, now_ms: int) -> Answer:
        """A refusal because of a rebalance is how a member learns of it; its session goes on all the same."""
        member = group.check_member(command.member_id, command.instance_id)
        group.check_generation(member, command.generation)
        self._rebalances.refresh_session(group, member, now_ms)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"{group.group_id} prepares a new generation; join again")
        return HeartbeatTaken()

    def leave(self, group: Group, command: Leave, draft: Draft, now_ms: int) -> Answer:
        """All who leave together cause one rebalance."""
        member_count = len(group.members)
        results: list[GroupError | None] = []
        for leaving in command.members:
            try:
                self._leave(group, leaving, draft)
                results.append(None)
            except GroupError as refusal:
                results.append(refusal)
        if len(group.members) < member_count:
            self._rebalances.settle(group, draft, now_ms)
        else:
            # A member id that is given back is no longer waited for.
            self._rebalances.complete_if_ready(group, draft, now_ms)
        return Left(tuple(results))

    def _leave(self, group: Group, leaving: LeavingMember, draft: Draft) -> None:
        if leaving.member_id in group.pending:
            del group.pending[leaving.member_id]
            self._rebalances.end_session(group, leaving.member_id)
            return
        member = group.member_of_instance(leaving.instance_id)
        if member is None or leaving.member_id:
            member = group.check_member(leaving.member_id, leaving.instance_id)
        self._rebalances.drop(group, member, draft)
