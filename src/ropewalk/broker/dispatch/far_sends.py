"""Messages for partitions of queues that other nodes lead: what is sent to one within a turn of the loop goes there together, and becomes one batch of its log.

What a reader could get wrong
    What is heard of the request is heard by everyone whose messages were in it. So an unknown outcome is one for all of them.
    A request is closed when it leaves, or when it is as large as a batch may be; those to one partition leave in the order in which they were begun.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeAlias

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, OwnerId
from ropewalk.base.limits import QUEUE_BATCH_BYTES
from ropewalk.broker.peers.calls.call import Call
from ropewalk.broker.peers.calls.queue_send import queue_send
from ropewalk.queues.messages import Outgoing, Sent
from ropewalk.records.packing import entry_bytes

Outcomes: TypeAlias = "list[Sent | RopewalkError]"
Place: TypeAlias = tuple[NodeId, OwnerId, int]
"""A leader, and the queue and the partition there."""


class _Together:
    """One request."""

    def __init__(self) -> None:
        self.messages: list[Outgoing] = []
        self.size_bytes = 0
        self.senders: list[tuple[int, asyncio.Future[Outcomes]]] = []
        """How many of the messages are whose."""


class FarSends:
    def __init__(
        self,
        ask: Callable[[NodeId, Call[Outcomes]], Coroutine[Any, Any, Outcomes]],
        begin: "Callable[[Coroutine[Any, Any, Outcomes]], asyncio.Future[Outcomes]]",
    ) -> None:
        """`begin` carries out later, in the order of its calls, and raises where too much is under way."""
        self._ask = ask
        self._begin = begin
        self._open: dict[Place, _Together] = {}

    def pending_bytes(self, place: Place) -> int:
        """What has not left yet."""
        together = self._open.get(place)
        return 0 if together is None else together.size_bytes

    def send(self, place: Place, messages: Sequence[Outgoing]) -> "asyncio.Future[Outcomes]":
        """Raises what `begin` does: then nothing is sent."""
        size_bytes = sum([entry_bytes(None, message.body, message.headers) for message in messages])
        together = self._open.get(place)
        if together is None or together.size_bytes + size_bytes > QUEUE_BATCH_BYTES:
            together = _Together()
            answered = self._begin(self._carry(place, together))
            self._open[place] = together
            answered.add_done_callback(partial(self._on_answered, place, together))
        answer: asyncio.Future[Outcomes] = asyncio.get_running_loop().create_future()
        together.messages += messages
        together.size_bytes += size_bytes
        together.senders.append((len(messages), answer))
        return answer

    async def _carry(self, place: Place, together: _Together) -> Outcomes:
        self._close(place, together)
        node_id, queue_id, index = place
        return await self._ask(node_id, queue_send(queue_id, index, together.messages))

    def _close(self, place: Place, together: _Together) -> None:
        if self._open.get(place) is together:
            del self._open[place]

    def _on_answered(self, place: Place, together: _Together, answered: "asyncio.Future[Outcomes]") -> None:
        self._close(place, together)  # it may never have been carried out, since the node stops
        failure = answered.exception()
        end = 0
        for count, answer in together.senders:
            start, end = end, end + count
            if answer.done():
                continue
            if failure is None:
                answer.set_result(answered.result()[start:end])
            else:
                answer.set_exception(failure)
                answer.exception()  # whoever asked may be gone with its connection, and asyncio would complain of that
