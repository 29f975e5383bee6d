"""One group as it is at the moment: its members, what they speak, who leads, and who is being waited for.

This is the part of a group that is lost with the core, except for what the last recorded generation says of it.
It holds together and answers questions; when a rebalance begins and ends is decided in `rebalances.py`.

Invariants
    All members speak at least one common protocol: whoever would break that is refused.
    A static member's name leads to the one member id that may use it.
    Nobody has joined the next rebalance (`joined`) unless the group is preparing one.
"""

from dataclasses import dataclass, field

from ropewalk.groups.answers import GroupState, Joined, JoinedMember
from ropewalk.groups.commands import Join, Protocol
from ropewalk.groups.errors import FencedInstance, StaleGeneration, UnknownMember
from ropewalk.groups.events import GenerationRecorded, RecordedMember
from ropewalk.groups.subscription import CONSUMER_PROTOCOL_TYPE, decode_topics


@dataclass(slots=True, eq=False)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    join_token: int | None = None
    """Whoever waits for the rebalance to begin. None with the member in `Group.joined`: its connection is gone."""
    sync_token: int | None = None
    former_epoch: int | None = None
    """Of a member of a group that was turned: what it knows as its generation until it has joined."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_waiting(self) -> bool:
        return self.join_token is not None or self.sync_token is not None

    def metadata_for(self, protocol_name: str | None) -> bytes:
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""


@dataclass(slots=True, eq=False)
class Group:
    group_id: str
    state: GroupState = GroupState.EMPTY
    state_at_ms: int = -1
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    joined: dict[str, None] = field(default_factory=dict)
    """Members that have come for the next generation, the first first."""
    pending: dict[str, None] = field(default_factory=dict)
    """Member ids that have been given out and not been used yet (KIP-394)."""
    sync_owed: set[str] = field(default_factory=set)
    """Members of this generation that have not asked for their assignment yet."""
    initial_delay_left_ms: int | None = None
    """While an empty group waits for its first members: how much longer that may be made. None otherwise."""
    has_newcomer: bool = False
    """Someone came during the initial delay, so it is made longer."""
    metadata_bytes: int = 0
    """What all members say of themselves, in all their protocols."""
    _instances: dict[str, str] = field(default_factory=dict)
    _speakers: dict[str, int] = field(default_factory=dict)
    """How many members speak each protocol."""

    def add(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        self._count(member.protocols, 1)

    def remove(self, member: Member) -> None:
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self._instances[member.instance_id]
        self._count(member.protocols, -1)
        self.joined.pop(member.member_id, None)
        self.sync_owed.discard(member.member_id)
        if self.leader_id == member.member_id:
            self.leader_id = None

    def update(self, member: Member, command: Join) -> None:
        """It has come again, with what it says of itself at present."""
        self._count(member.protocols, -1)
        self._count(command.protocols, 1)
        member.protocols = command.protocols
        member.client_id, member.client_host = command.client_id, command.client_host
        member.session_timeout_ms = command.session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_of(command)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member has come back and gets another id, so that its former self can be told apart."""
        former_id = member.member_id
        assert member.instance_id is not None
        # The order of the members is kept: the leader may depend on it.
        self.members = {
            member_id if known == former_id else known: kept for known, kept in self.members.items()
        }
        member.member_id = member_id
        self._instances[member.instance_id] = member_id
        if former_id in self.joined:
            del self.joined[former_id]
            self.joined[member_id] = None
        if former_id in self.sync_owed:
            self.sync_owed.remove(former_id)
            self.sync_owed.add(member_id)
        if self.leader_id == former_id:
            self.leader_id = member_id

    def member_of_instance(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self._instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """Refuse whoever is not a member, or was one until another process took over its instance id."""
        if instance_id is not None:
            holder = self.member_of_instance(instance_id)
            if holder is not None and holder.member_id != member_id:
                raise FencedInstance(
                    f"{instance_id} of {self.group_id} is {holder.member_id}, not {member_id}"
                )
            if holder is None:
                raise UnknownMember(f"{self.group_id} has no static member {instance_id}")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(f"{self.group_id} has no member {member_id!r}")
        return member

    def check_generation(self, member: Member, generation: int) -> None:
        """Whether it is the current one, as the member knows it."""
        if self.state is GroupState.PREPARING_REBALANCE and generation == member.former_epoch:
            return
        if generation != self.generation:
            raise StaleGeneration(f"{self.group_id} is in generation {self.generation}, not {generation}")

    def takes_protocols(self, command: Join) -> bool:
        """Whether with this member there would still be a protocol that all speak."""
        if not command.protocols or not command.protocol_type:
            return False
        if not self.members:
            return True
        return command.protocol_type == self.protocol_type and any(
            self._speakers.get(protocol.name) == len(self.members) for protocol in command.protocols
        )

    def select_protocol(self) -> str:
        """Each member votes for the first it likes of those that all speak; the earliest wins a draw."""
        votes = {name: 0 for name, count in self._speakers.items() if count == len(self.members)}
        for member in self.members.values():
            votes[next(protocol.name for protocol in member.protocols if protocol.name in votes)] += 1
        return max(votes, key=votes.__getitem__)

    def elect_leader(self) -> bool:
        """Keep the leader if it has come for this rebalance, else take the first who has; False if nobody has."""
        if self.leader_id not in self.joined:
            self.leader_id = next(iter(self.joined), None)
        return self.leader_id is not None

    def has_everyone(self) -> bool:
        return len(self.joined) == len(self.members) and not self.pending

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def subscribed_topics(self) -> frozenset[str] | None:
        """What the members of this generation read, or None where that cannot be known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or self.protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = decode_topics(member.metadata_for(self.protocol))
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)

    def joined_answer(self, member: Member) -> Joined:
        """The current generation, as this member is to hear of it."""
        assert self.protocol is not None
        assert self.leader_id is not None
        everyone = tuple(
            JoinedMember(other.member_id, other.instance_id, other.metadata_for(self.protocol))
            for other in (self.members.values() if member.member_id == self.leader_id else ())
        )
        return Joined(
            self.generation, self.protocol_type, self.protocol, self.leader_id, member.member_id, everyone
        )

    def recorded(self) -> GenerationRecorded:
        return GenerationRecorded(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader_id=self.leader_id,
            state_at_ms=self.state_at_ms,
            members=tuple(
                RecordedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata_for(self.protocol),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ),
        )

    def _count(self, protocols: tuple[Protocol, ...], change: int) -> None:
        self.metadata_bytes += change * metadata_bytes_of(protocols)
        for name in {protocol.name: None for protocol in protocols}:
            count = self._speakers.get(name, 0) + change
            if count:
                self._speakers[name] = count
            else:
                del self._speakers[name]


def metadata_bytes_of(protocols: tuple[Protocol, ...]) -> int:
    return sum(len(protocol.name) + len(protocol.metadata) for protocol in protocols)


def rebalance_timeout_of(command: Join) -> int:
    return command.rebalance_timeout_ms if command.rebalance_timeout_ms > 0 else command.session_timeout_ms


def restored(event: GenerationRecorded) -> Group:
    """A group as its last recorded generation says. Of the protocols, only the selected one is known."""
    group = Group(event.group_id, GroupState.STABLE if event.members else GroupState.EMPTY)
    group.state_at_ms = event.state_at_ms
    group.generation = event.generation
    group.protocol_type = event.protocol_type
    if event.members:
        # Kafka has always written both; a record that lacks them is still a group that can rebalance.
        group.protocol = event.protocol or ""
        group.leader_id = event.leader_id or event.members[0].member_id
    for member in event.members:
        group.add(
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                # Before its v1 the record did not say; the session was the limit then.
                rebalance_timeout_ms=member.rebalance_timeout_ms
                if member.rebalance_timeout_ms > 0
                else member.session_timeout_ms,
                protocols=(Protocol(event.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    return group
