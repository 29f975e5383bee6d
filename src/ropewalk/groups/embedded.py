"""What members of protocol type "consumer" say to each other through the classic protocol: subscriptions and assignments.

A broker has to read and write these where classic members are in a group whose assignments are made here. Versions that
are not known yet are read as the latest that is: what comes later is appended.
"""

from collections.abc import Iterable
from typing import Annotated, Final

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.ids import TopicPartition
from ropewalk.groups.errors import InconsistentProtocol
from ropewalk.groups.versioned import Versioned
from ropewalk.wire.types import Int32, Message, since

_NEVER: Final = 999


class OwnedTopic(Message, frozen=True):
    topic: str
    partitions: tuple[Int32, ...]


class Subscription(Message, frozen=True):
    """v1 owned_partitions; v2 generation_id; v3 rack_id."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: Annotated[tuple[OwnedTopic, ...], since(1)] = ()
    generation_id: Annotated[Int32, since(2)] = -1
    rack_id: Annotated[str | None, since(3)] = None

    @property
    def owned(self) -> list[TopicPartition]:
        return [
            TopicPartition(each.topic, index) for each in self.owned_partitions for index in each.partitions
        ]


class Assignment(Message, frozen=True):
    """The same in all versions."""

    assigned_partitions: tuple[OwnedTopic, ...]
    user_data: bytes | None = None


_SUBSCRIPTION: Final = Versioned(Subscription, versions=range(4), flexible_since=_NEVER, written=3)
_ASSIGNMENTS: Final = [
    Versioned(Assignment, versions=range(4), flexible_since=_NEVER, written=version) for version in range(4)
]


def decode_subscription(metadata: bytes) -> Subscription:
    try:
        return _SUBSCRIPTION.decode(metadata, later_as_latest=True)
    except InvalidRecord as problem:
        raise InconsistentProtocol("the member's metadata is no subscription of a consumer") from problem


def decode_assignment(assignment: bytes) -> list[TopicPartition]:
    """Nothing for no bytes: the member has not been assigned anything yet."""
    if not assignment:
        return []
    try:
        decoded = _ASSIGNMENTS[-1].decode(assignment, later_as_latest=True)
    except InvalidRecord as problem:
        raise InconsistentProtocol("the member's assignment is none of a consumer") from problem
    return [
        TopicPartition(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions
    ]


def encode_assignment(places: Iterable[TopicPartition], *, like: bytes) -> bytes:
    """In the version that the member uses itself, in its metadata `like`."""
    version = int.from_bytes(like[:2], "big", signed=True)
    by_topic: dict[str, list[int]] = {}
    for place in sorted(places):
        by_topic.setdefault(place.topic, []).append(place.partition)
    codec = _ASSIGNMENTS[min(max(version, 0), len(_ASSIGNMENTS) - 1)]
    return codec.encode(
        Assignment(tuple(OwnedTopic(topic, tuple(partitions)) for topic, partitions in by_topic.items()))
    )
