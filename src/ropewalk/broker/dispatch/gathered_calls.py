"""Calls to other nodes, one at a time to each: what comes up meanwhile is gathered and goes with the next."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ropewalk.base.ids import NodeId

T = TypeVar("T")


class GatheredCalls(Generic[T]):
    def __init__(
        self,
        call: Callable[[NodeId, list[T]], Coroutine[Any, Any, None]],
        begin: Callable[[Coroutine[Any, Any, None]], object],
        *,
        items_max: int,
    ) -> None:
        """`call` tells each item what became of it, and raises nothing that is to be expected. `begin` makes a task of it."""
        self._call = call
        self._begin = begin
        self._items_max = items_max
        self._waiting: dict[NodeId, list[T]] = {}
        self._busy: set[NodeId] = set()

    def add(self, node_id: NodeId, item: T) -> None:
        """Raises what `begin` does; then nothing is sent."""
        if node_id in self._busy:
            self._waiting.setdefault(node_id, []).append(item)
        else:
            self._begin(self._serve(node_id))
            self._busy.add(node_id)
            self._waiting[node_id] = [item]

    async def _serve(self, node_id: NodeId) -> None:
        try:
            while items := self._waiting.pop(node_id, None):
                if len(items) > self._items_max:
                    self._waiting[node_id] = items[self._items_max :]
                await self._call(node_id, items[: self._items_max])
        finally:
            self._busy.discard(node_id)
