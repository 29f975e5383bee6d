"""Partitions of queues that other nodes lead, asked in the same words as those that are led here.

What a reader could get wrong
    An answer that does not come is an unknown outcome (`ShardUnavailable`). Only what was certainly not sent is refused as `QueueNotReady`.
    Messages come with what they say, so all of them are at hand: what is handed out has been kept since they came.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from ropewalk.base.errors import QueueNotReady, RopewalkError, ShardUnavailable, TimedOut
from ropewalk.base.ids import NodeId, OwnerId
from ropewalk.base.limits import QUEUE_CALL_MS_MAX
from ropewalk.base.ports import Rng
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.far_sends import FarSends
from ropewalk.broker.dispatch.queue_polls import Left, QueuePolls
from ropewalk.broker.peers.calls.call import Call
from ropewalk.broker.peers.calls.queue_look import queue_peek, queue_totals
from ropewalk.broker.peers.calls.queue_reset import may_purge, queue_reset
from ropewalk.broker.peers.calls.queue_settle import queue_settle
from ropewalk.broker.peers.calls.queue_ship import queue_ship
from ropewalk.broker.peers.calls.queue_task import queue_task
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.client.errors import ApiNotOffered, ConnectionLost, Unreachable
from ropewalk.metadata.queues import Queue
from ropewalk.queues.answers import Done, Given, Received
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Arrived, Delivered, Outgoing, Receipt, Seen, Sent, Shipment, Totals
from ropewalk.queues.state import TaskShare
from ropewalk.runtime.errands import Errands

T = TypeVar("T")


class FarQueues:
    """The way to all of them."""

    def __init__(self, dispatch: Dispatch, errands: Errands, rng: Rng) -> None:
        self._dispatch = dispatch
        self._errands = errands
        self.sends = FarSends(self.ask, self.begin)
        self.polls = QueuePolls(dispatch, errands, rng, self._give_back)

    def at(self, node_id: NodeId, queue: Queue, index: int) -> "FarPartition":
        return FarPartition(self, node_id, queue, index)

    async def ship(self, node_id: NodeId, shipment: Shipment) -> Arrived:
        """Bring dead letters to the leader of their target."""
        return await self.ask(node_id, queue_ship(shipment))

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Raises `Throttled` where too much is under way."""
        return self._errands.begin(work)

    async def ask(self, node_id: NodeId, call: Call[T]) -> T:
        try:
            return await self._dispatch.over_link(node_id, call, timeout_ms=QUEUE_CALL_MS_MAX)
        except (Unreachable, ApiNotOffered) as error:
            raise QueueNotReady(f"node {node_id}, which leads it, cannot be asked: {error}") from error
        except (ConnectionLost, TimedOut) as error:
            raise ShardUnavailable(f"node {node_id}, which leads it, was not heard: {error}") from error

    def _give_back(self, node_id: NodeId, queue_id: OwnerId, messages: tuple[Delivered, ...]) -> None:
        receipts = [each.receipt for each in messages]
        call = queue_settle(queue_id, receipts[0].partition, releases=receipts)
        with suppress(RopewalkError):  # too much is under way: they come back when their time is over
            self.begin(self.ask(node_id, call))


class FarPartition:
    def __init__(self, far: FarQueues, node_id: NodeId, queue: Queue, index: int) -> None:
        self.index = index
        self._far = far
        self._node_id = node_id
        self._queue_id = queue.queue_id
        self._place = (node_id, queue.queue_id, index)
        self._left: dict[int, Left] = {}
        self._came: dict[tuple[int, int], Delivered] = {}
        """By attempt and offset, until they are handed out or given back."""

    @property
    def is_serving(self) -> bool:
        """As far as is known here."""
        return True

    @property
    def pending_bytes(self) -> int:
        return self._far.sends.pending_bytes(self._place)

    @property
    def is_far(self) -> bool:
        return True

    def send(self, messages: Sequence[Outgoing]) -> "asyncio.Future[list[Sent | RopewalkError]]":
        return self._far.sends.send(self._place, messages)

    def delete(self, receipts: Sequence[Receipt]) -> "asyncio.Future[Done]":
        async def delete() -> Done:
            settled = await self._ask(queue_settle(self._queue_id, self.index, deletes=receipts))
            return Done(tuple(settled.deleted))

        return self._far.begin(delete())

    def change(self, changes: Sequence[tuple[Receipt, int]]) -> "asyncio.Future[Done]":
        async def change() -> Done:
            settled = await self._ask(queue_settle(self._queue_id, self.index, changes=changes))
            return Done(tuple(settled.changed))

        return self._far.begin(change())

    def receive(self, command: Receive) -> Asked[Received]:
        left = self._far.polls.leave(self._node_id, self._queue_id, self.index, command)
        answer: asyncio.Future[Received] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_forget)
        self._left[left.token] = left
        left.answer.add_done_callback(partial(self._on_answer, left.token, answer))
        return Asked(left.token, answer)

    def forget(self, token: int) -> None:
        """Whoever asked has gone, and is not answered."""
        left = self._left.pop(token, None)
        if left is not None:
            self._far.polls.withdraw(left)

    def at_hand(self, received: Received) -> list[Delivered]:
        return [self._came.pop((received.attempt, given.offset)) for given in received.messages]

    async def deliver(self, received: Received) -> list[Delivered]:
        return self.at_hand(received)

    def release(self, received: Received) -> None:
        """It was given to somebody who has gone: visible at once, and not counted."""
        receipts = []
        for given in received.messages:
            self._came.pop((received.attempt, given.offset), None)
            receipts.append(Receipt(self.index, given.offset, received.attempt))
        if receipts:
            with suppress(RopewalkError):  # too much is under way: they come back when their time is over
                self._far.begin(self._ask(queue_settle(self._queue_id, self.index, releases=receipts)))

    def check_may_purge(self) -> "asyncio.Future[None]":
        return self._far.begin(self._ask(may_purge(self._queue_id, self.index)))

    def purge(self) -> "asyncio.Future[None]":
        return self._far.begin(self._ask(queue_reset(self._queue_id, self.index)))

    def rewind(self, to_ms: int) -> "asyncio.Future[None]":
        return self._far.begin(self._ask(queue_reset(self._queue_id, self.index, rewind_to_ms=to_ms)))

    def totals(self) -> "asyncio.Future[Totals]":
        return self._far.begin(self._ask(queue_totals(self._queue_id, self.index)))

    def peek(self, count_max: int) -> "asyncio.Future[list[Seen]]":
        return self._far.begin(self._ask(queue_peek(self._queue_id, self.index, count_max=count_max)))

    def look_at(self, offset: int) -> "asyncio.Future[list[Seen]]":
        """One, or none."""
        return self._far.begin(self._ask(queue_peek(self._queue_id, self.index, offset=offset)))

    def share(self) -> "asyncio.Future[TaskShare | None]":
        return self._far.begin(self._ask(queue_task(self._queue_id, self.index)))

    async def _ask(self, call: Call[T]) -> T:
        return await self._far.ask(self._node_id, call)

    def _on_answer(
        self,
        token: int,
        answer: "asyncio.Future[Received]",
        came: "asyncio.Future[tuple[Delivered, ...]]",
    ) -> None:
        self._left.pop(token, None)
        failure = came.exception()
        if answer.done():
            return
        if failure is not None:
            answer.set_exception(failure)
            return
        attempt = 0
        messages = came.result()
        for each in messages:
            attempt = each.receipt.attempt
            self._came[attempt, each.receipt.offset] = each
        answer.set_result(
            Received(
                attempt,
                tuple(
                    [
                        Given(each.receipt.offset, each.receive_count, each.first_received_at_ms)
                        for each in messages
                    ]
                ),
            )
        )


def _forget(answer: "asyncio.Future[Received]") -> None:
    """A refusal that nobody came for, since its client has gone, is not worth asyncio's complaint."""
    if not answer.cancelled():
        answer.exception()
