"""What a consumer wants to read as a member of a group, and whom to tell when that changes."""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.group_offsets import GroupIdentity
from ropewalk.client.errors import Misuse

Callback = Callable[[list[TopicPartition]], Awaitable[None] | None]


class Subscription(Struct, frozen=True):
    """Topics by name, or those whose name a pattern matches from its beginning to its end."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    def matches(self, topic: str) -> bool:
        return self.pattern is not None and re.fullmatch(self.pattern, topic) is not None


def subscription(
    topics: str | Iterable[str],
    pattern: str | None,
    on_assigned: Callback | None,
    on_revoked: Callback | None,
    on_lost: Callback | None,
) -> Subscription:
    names = frozenset([topics] if isinstance(topics, str) else topics)
    if (pattern is None) == (not names):
        raise Misuse("subscribe to topics by their names, or by a pattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Misuse(f"{pattern!r} is no regular expression: {error}") from None
    return Subscription(names, pattern, on_assigned, on_revoked, on_lost or on_revoked)


class Change(Struct, frozen=True):
    """What the owner of a membership must do, in this order, before it asks again."""

    revoked: frozenset[TopicPartition] = frozenset()
    """To be given up in order: the member may still commit."""
    lost: frozenset[TopicPartition] = frozenset()
    """Somebody else may read them already."""
    added: frozenset[TopicPartition] = frozenset()
    is_rebalance: bool = False
    """Whether `added` ends a rebalance, so that the callback is called even if it is empty."""


class Membership(Protocol):
    """One member of one group, from `start` to `leave`. It never touches the consumer: the consumer asks, and carries out."""

    @property
    def identity(self) -> GroupIdentity: ...

    def subscribe(self, subscription: Subscription) -> None: ...

    def on_poll(self, now_ms: float) -> None:
        """The application is alive; also what gets things going."""

    def next_change(self) -> Change | None:
        """Ask until there is none. Raises what ended the membership."""

    def on_done(self, change: Change) -> None:
        """The change was carried out."""

    async def leave(self, *, deadline_ms: float) -> None: ...
