"""One group whose assignments are made here: what its events add up to.

`apply` is the only thing that writes. It never fails, and takes events in any order in which a compacted log may hold
them, so a group may be seen for a while with parts of it missing; at the end of a replay it is whole.

Invariant: every partition that a member has, or is to give up, names that member in `owners`.
"""

from collections.abc import Iterator

from ropewalk.groups.answers import GroupState
from ropewalk.groups.assignors.model import Place, Share
from ropewalk.groups.consumer.events import (
    ConsumerEvent,
    Current,
    CurrentRecorded,
    Details,
    EpochRecorded,
    MemberRecorded,
    MemberState,
    Part,
    PartRemoved,
    PatternRecorded,
    TargetEpochRecorded,
    TargetRecorded,
)
from ropewalk.groups.errors import FencedInstance, UnknownMember

_NOTHING: Share = frozenset()
_NEWCOMER = Current()


class ConsumerGroup:
    __slots__ = (
        "_instances",
        "currents",
        "epoch",
        "group_id",
        "members",
        "owners",
        "patterns",
        "target_epoch",
        "targets",
        "topics_hash",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.topics_hash = 0
        self.target_epoch = 0
        self.members: dict[str, Details] = {}
        self.targets: dict[str, Share] = {}
        self.currents: dict[str, Current] = {}
        self.patterns: dict[str, PatternRecorded] = {}
        self.owners: dict[Place, str] = {}
        self._instances: dict[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConsumerGroup) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def copy(self) -> "ConsumerGroup":
        copied = ConsumerGroup(self.group_id)
        copied.epoch, copied.topics_hash, copied.target_epoch = (
            self.epoch,
            self.topics_hash,
            self.target_epoch,
        )
        copied.members = self.members.copy()
        copied.targets = self.targets.copy()
        copied.currents = self.currents.copy()
        copied.patterns = self.patterns.copy()
        copied.owners = self.owners.copy()
        copied._instances = self._instances.copy()
        return copied

    @property
    def is_forgotten(self) -> bool:
        """Nothing is left of it. The group is there as long as any part of it is."""
        return not (self.epoch or self.target_epoch or self.members or self.targets or self.currents)

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(map(self.is_reconciled, self.members)):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def has_classic_only(self) -> bool:
        return all(details.classic is not None for details in self.members.values())

    def current(self, member_id: str) -> Current:
        return self.currents.get(member_id, _NEWCOMER)

    def target(self, member_id: str) -> Share:
        return self.targets.get(member_id, _NOTHING)

    def is_reconciled(self, member_id: str) -> bool:
        current = self.current(member_id)
        return current.state is MemberState.STABLE and current.epoch == self.target_epoch

    def member_of_instance(self, instance_id: str | None) -> str | None:
        return None if instance_id is None else self._instances.get(instance_id)

    def check_member(self, member_id: str, instance_id: str | None) -> Details:
        """Refuse whoever is not a member, or was one until another process took over its instance id."""
        if instance_id is not None:
            holder = self._instances.get(instance_id)
            if holder is None:
                raise UnknownMember(f"{self.group_id} has no static member {instance_id}")
            if holder != member_id:
                raise FencedInstance(f"{instance_id} of {self.group_id} is {holder}, not {member_id}")
        details = self.members.get(member_id)
        if details is None:
            raise UnknownMember(f"{self.group_id} has no member {member_id!r}")
        return details

    def subscribed_names(self) -> set[str]:
        """Topics that any member means, whether they exist or not."""
        names: set[str] = set()
        for details in self.members.values():
            names.update(details.topics)
        for resolved in self.patterns.values():
            names.update(resolved.topics)
        return names

    def removal(self) -> Iterator[PartRemoved]:
        """What would make the group forgotten."""
        for part, names in (
            (Part.CURRENT, self.currents),
            (Part.TARGET, self.targets),
            (Part.MEMBER, self.members),
            (Part.PATTERN, self.patterns),
        ):
            for name in names:
                yield PartRemoved(self.group_id, part, name)
        yield PartRemoved(self.group_id, Part.TARGET_EPOCH)
        yield PartRemoved(self.group_id, Part.EPOCH)

    def apply(self, event: ConsumerEvent) -> None:
        match event:
            case EpochRecorded(epoch=epoch, topics_hash=topics_hash):
                self.epoch, self.topics_hash = epoch, topics_hash
            case MemberRecorded(member_id=member_id, details=details):
                self._forget_instance(member_id)
                self.members[member_id] = details
                if details.instance_id is not None:
                    self._instances[details.instance_id] = member_id
            case TargetEpochRecorded(epoch=epoch):
                self.target_epoch = epoch
            case TargetRecorded(member_id=member_id, share=share):
                self.targets[member_id] = share
            case CurrentRecorded(member_id=member_id, current=current):
                self._release(member_id)
                self.currents[member_id] = current
                for partition in current.assigned | current.revoking:
                    self.owners[partition] = member_id
            case PatternRecorded(pattern=pattern):
                self.patterns[pattern] = event
            case PartRemoved(part=part, name=name):
                self._remove(part, name)

    def _remove(self, part: Part, name: str) -> None:
        match part:
            case Part.EPOCH:
                self.epoch = self.topics_hash = 0
            case Part.MEMBER:
                self._forget_instance(name)
                self.members.pop(name, None)
            case Part.TARGET_EPOCH:
                self.target_epoch = 0
            case Part.TARGET:
                self.targets.pop(name, None)
            case Part.CURRENT:
                self._release(name)
                self.currents.pop(name, None)
            case Part.PATTERN:
                self.patterns.pop(name, None)

    def _release(self, member_id: str) -> None:
        current = self.currents.get(member_id)
        if current is not None:
            for partition in current.assigned | current.revoking:
                if self.owners.get(partition) == member_id:
                    del self.owners[partition]

    def _forget_instance(self, member_id: str) -> None:
        details = self.members.get(member_id)
        if (
            details is not None
            and details.instance_id is not None
            and self._instances.get(details.instance_id) == member_id
        ):
            del self._instances[details.instance_id]
