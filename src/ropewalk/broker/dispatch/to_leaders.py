"""One conversation with the leaders of partitions: one request at a time to each, with all that is due there."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ropewalk.base.errors import LeaderNotAvailable
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.gathered_calls import GatheredCalls

T = TypeVar("T")


class ToLeaders(Generic[T]):
    def __init__(
        self,
        dispatch: Dispatch,
        call: Callable[[NodeId, list[T]], Coroutine[Any, Any, None]],
        begin: Callable[[Coroutine[Any, Any, None]], object],
        *,
        items_max: int,
    ) -> None:
        """As for `GatheredCalls`."""
        self._dispatch = dispatch
        self._calls = GatheredCalls(call, begin, items_max=items_max)

    def to_leader(self, partition: TopicPartition, item: T) -> None:
        """Raises `LeaderNotAvailable` where nobody leads the partition at present."""
        leader = self._dispatch.leader(partition)
        if leader is None:
            raise LeaderNotAvailable(f"nobody leads {partition}")
        self._calls.add(leader, item)
