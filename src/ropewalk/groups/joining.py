"""Who may take part in a group, and what a join does in each state.

Behaviour worth knowing
    A dynamic member is first given an id and joins with it (KIP-394), so that a client that retries does not
    leave a trail of members behind. Clients that do not know this, and static members, join at once.
    A known member that joins again in a stable group, and has nothing new to say, is told the current generation;
    the leader's join always begins a rebalance, since that is how it says that the assignments should change.
    A static member that comes back without its member id takes its former place under a new id (KIP-345). In a
    stable group this begins no rebalance, unless the group would select another protocol or, where subscriptions can be
    read, the member reads other topics. Kafka does not look at the topics and leaves such a member without them.
"""

from uuid import UUID

from msgspec.structs import replace

from ropewalk.base.limits import (
    GROUP_METADATA_BYTES_MAX,
    GROUP_NAME_CHARACTERS_MAX,
    GROUP_PENDING_MEMBERS_MAX,
)
from ropewalk.base.ports import Rng
from ropewalk.groups.answers import GroupState
from ropewalk.groups.commands import Join
from ropewalk.groups.errors import (
    FencedInstance,
    GroupFull,
    InconsistentProtocol,
    InvalidGroupId,
    InvalidInstanceId,
    InvalidSessionTimeout,
    MemberIdRequired,
)
from ropewalk.groups.group import Group, Member, metadata_bytes_of, rebalance_timeout_of
from ropewalk.groups.rebalances import Rebalances
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Draft
from ropewalk.groups.subscription import CONSUMER_PROTOCOL_TYPE, decode_topics


class Joining:
    def __init__(self, settings: GroupSettings, rebalances: Rebalances, rng: Rng) -> None:
        self._settings = settings
        self._rebalances = rebalances
        self._rng = rng

    def check(self, command: Join) -> None:
        """Refuse what no group could take."""
        check_group_id(command.group_id)
        if command.instance_id is not None and not _fits(command.instance_id):
            raise InvalidInstanceId(f"an instance id has 1 to {GROUP_NAME_CHARACTERS_MAX} characters")
        low, high = self._settings.session_ms_min, self._settings.session_ms_max
        if not low <= command.session_timeout_ms <= high:
            raise InvalidSessionTimeout(
                f"a session of {command.session_timeout_ms} ms is not between {low} and {high}"
            )
        names = [command.protocol_type, *(protocol.name for protocol in command.protocols)]
        if any(len(name) > GROUP_NAME_CHARACTERS_MAX for name in names):
            raise InconsistentProtocol(
                f"a protocol's name has at most {GROUP_NAME_CHARACTERS_MAX} characters"
            )

    def join(self, group: Group, token: int, command: Join, draft: Draft, now_ms: int) -> None:
        former = None if command.member_id else group.member_of_instance(command.instance_id)
        member_id = command.member_id if former is None else former.member_id
        if not self._has_room(group, member_id):
            member = group.members.get(member_id)
            if member is not None:
                self._rebalances.drop(group, member, draft)
                self._rebalances.settle(group, draft, now_ms)
            raise GroupFull(f"{group.group_id} takes {self._settings.member_count_max} members")
        known = group.members.get(member_id)
        known_bytes = 0 if known is None else metadata_bytes_of(known.protocols)
        if (
            group.metadata_bytes - known_bytes + metadata_bytes_of(command.protocols)
            > GROUP_METADATA_BYTES_MAX
        ):
            raise GroupFull(
                f"members of {group.group_id} say more than {GROUP_METADATA_BYTES_MAX} bytes of themselves"
            )
        if not group.takes_protocols(command):
            raise InconsistentProtocol(
                f"{group.group_id} has no protocol of type {command.protocol_type!r} that all members would speak"
            )
        if command.member_id:
            self._join_known(group, token, command, draft, now_ms)
        elif former is not None:
            self._take_over(group, former, token, command, draft, now_ms)
        elif command.requires_known_member and command.instance_id is None:
            self._give_member_id(group, command, now_ms)
        else:
            self._add(group, self._make_member_id(command), token, command, draft, now_ms)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """While a rebalance is prepared those who have come count, so that the last to come are those who go."""
        count_max = self._settings.member_count_max
        match group.state:
            case GroupState.EMPTY:
                return True
            case GroupState.PREPARING_REBALANCE:
                return member_id in group.joined or len(group.joined) < count_max
            case _:
                return member_id in group.members or len(group.members) < count_max

    def _give_member_id(self, group: Group, command: Join, now_ms: int) -> None:
        if len(group.pending) >= GROUP_PENDING_MEMBERS_MAX:
            raise GroupFull(f"{group.group_id} waits for {GROUP_PENDING_MEMBERS_MAX} members already")
        member_id = self._make_member_id(command)
        group.pending[member_id] = None
        self._rebalances.begin_session(group, member_id, command.session_timeout_ms, now_ms)
        raise MemberIdRequired(group.group_id, member_id)

    def _add(
        self, group: Group, member_id: str, token: int, command: Join, draft: Draft, now_ms: int
    ) -> None:
        if not group.members:
            group.protocol_type = command.protocol_type
        member = Member(
            member_id=member_id,
            instance_id=command.instance_id,
            client_id=command.client_id,
            client_host=command.client_host,
            session_timeout_ms=command.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_of(command),
            protocols=command.protocols,
        )
        group.add(member)
        group.has_newcomer = True
        self._await_round(group, member, token, draft, now_ms)

    def _join_known(self, group: Group, token: int, command: Join, draft: Draft, now_ms: int) -> None:
        if command.member_id in group.pending and command.instance_id is None:
            del group.pending[command.member_id]
            self._add(group, command.member_id, token, command, draft, now_ms)
            return
        member = group.check_member(command.member_id, command.instance_id)
        is_leader = member.member_id == group.leader_id
        is_unchanged = member.protocols == command.protocols
        # Someone who has not heard the answer to its first join asks again; so does a follower without news.
        repeats = is_unchanged and (
            group.state is GroupState.COMPLETING_REBALANCE
            or (group.state is GroupState.STABLE and not is_leader)
        )
        group.update(member, command)
        if repeats:
            self._rebalances.refresh_session(group, member, now_ms)
            draft.reply(token, group.joined_answer(member))
        else:
            self._await_round(group, member, token, draft, now_ms)

    def _take_over(
        self, group: Group, member: Member, token: int, command: Join, draft: Draft, now_ms: int
    ) -> None:
        former_leader_id = group.leader_id
        fenced = FencedInstance(f"another process joined {group.group_id} as {member.instance_id}")
        self._rebalances.answer_join(member, fenced, draft)
        self._rebalances.answer_sync(member, fenced, draft)
        self._rebalances.end_session(group, member.member_id)
        topics_known = _topics(group, member)
        group.rename(member, self._make_member_id(command))
        group.update(member, command)
        if (
            group.state is GroupState.STABLE
            and group.select_protocol() == group.protocol
            and _topics(group, member) == topics_known
        ):
            self._rebalances.refresh_session(group, member, now_ms)
            draft.events.append(group.recorded())
            answer = group.joined_answer(member)
            if member.member_id == group.leader_id:
                # The assignments are made. Either the leader is told so, or it must not learn that it leads.
                if command.understands_skip_assignment:
                    answer = replace(answer, skip_assignment=True)
                else:
                    answer = replace(answer, leader_id=former_leader_id, members=())
            draft.reply(token, answer)
        else:
            self._await_round(group, member, token, draft, now_ms)

    def _await_round(self, group: Group, member: Member, token: int, draft: Draft, now_ms: int) -> None:
        self._rebalances.refresh_session(group, member, now_ms)
        self._rebalances.await_join(group, member, token, draft)
        if group.state is GroupState.PREPARING_REBALANCE:
            self._rebalances.complete_if_ready(group, draft, now_ms)
        else:
            self._rebalances.prepare(group, draft, now_ms)

    def _make_member_id(self, command: Join) -> str:
        """Names its owner to whoever reads it, and cannot be guessed by anyone else."""
        name = command.client_id if command.instance_id is None else command.instance_id
        return f"{name[:_MEMBER_NAME_CHARACTERS_MAX]}-{UUID(bytes=self._rng.randbytes(16), version=4)}"


_MEMBER_NAME_CHARACTERS_MAX = 249
"""Kafka's bound of instance ids; longer client ids are cut."""


def check_group_id(group_id: str) -> None:
    if not _fits(group_id):
        raise InvalidGroupId(f"a group id has 1 to {GROUP_NAME_CHARACTERS_MAX} characters")


def _fits(name: str) -> bool:
    return 0 < len(name) <= GROUP_NAME_CHARACTERS_MAX


def _topics(group: Group, member: Member) -> frozenset[str] | None:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    return decode_topics(member.metadata_for(group.protocol))
