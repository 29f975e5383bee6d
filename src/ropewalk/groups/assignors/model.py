"""What an assignor is told about a group, and what it answers."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.ids import TopicId

Place: TypeAlias = tuple[TopicId, int]
"""One partition of a topic. A plain tuple, since sets of them by the thousand are what assigning is about."""

Share: TypeAlias = frozenset[Place]
"""What one member is to read."""


class Candidate(Struct, frozen=True):
    """One member, as an assignor sees it."""

    topics: frozenset[TopicId]
    """What it subscribes to, as far as it exists."""
    share: Share = frozenset()
    """What it was to have until now; it may hold more than there is today."""
    instance_id: str | None = None


Assignor: TypeAlias = Callable[[Mapping[str, Candidate], Mapping[TopicId, int]], dict[str, Share]]
"""From the members by their ids, and the partition counts of the topics, to everybody's share, empty ones included."""
