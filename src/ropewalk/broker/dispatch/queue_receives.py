"""Receives, from a door to the leaders of a queue's partitions, whoever they are by the time.

A short poll asks one partition after the other, beginning with another one each time, and all of them before it is answered empty: nothing is
acquired twice over. A long poll waits at all of them, and what comes twice is released uncounted (`queues/long_poll.py`).

What a reader could get wrong
    Everything here may be awaited where there is no task: it waits for futures and nothing else.
    A leader that dies, or changes, ends no receive: within the receive's own time its partition is asked again, at whoever leads it then. A short poll has
    none, so it asks again only where somebody else leads already.
    A receive with an id (ReceiveRequestAttemptId) first asks all partitions whether they gave something under it before. While one of them cannot be
    asked, nothing else is taken: it may be the one that did. One that nobody leads is passed over, since that may last.
    Where a partition could not be asked nobody knows whether it has anything, so that is an error and no empty answer.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.flow import Waiting
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import QUEUE_FAR_RECEIVE_MS_MAX, QUEUE_LOOK_AGAIN_MS
from ropewalk.broker.queues.asked_partition import AskedPartition
from ropewalk.broker.queues.long_poll import LEADERLESS, LongPoll, Taken
from ropewalk.broker.queues.queues import Queues
from ropewalk.metadata.queues import Queue
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Delivered


class Hold(Protocol):
    """Tells whoever waits when the client goes."""

    def begin_wait(self, waiting: Waiting) -> None: ...

    def end_wait(self, waiting: Waiting) -> None: ...


class QueueReceives:
    def __init__(
        self,
        queues: Queues,
        *,
        at: Callable[[Queue, int], AskedPartition],
        leader: Callable[[TopicPartition], NodeId | None],
        turns: Iterator[int],
    ) -> None:
        """`at` is the way to whoever leads a partition now; it raises `QueueNotReady` where nobody does."""
        self._queues = queues
        self._at = at
        self._leader = leader
        self._turns = turns

    async def receive(
        self, queue: Queue, command: Receive, partition_count: int, hold: Hold
    ) -> Sequence[Delivered]:
        """Empty where nothing came in time. What was taken for a client that has gone meanwhile is released."""
        deadline_ms = self._queues.now_ms() + command.wait_ms
        indexes: Sequence[int] = range(partition_count)
        if partition_count > 1 and command.request_id:
            again = Receive(0, command.visibility_ms, command.wait_ms, command.request_id)
            repeated = await self._at_all(queue, indexes, again, deadline_ms, hold)
            if repeated or repeated is None:
                return repeated or ()
            command = _within(command, deadline_ms - self._queues.now_ms())
        if partition_count > 1 or command.wait_ms <= 0:
            start = next(self._turns)
            indexes = [(start + number) % partition_count for number in range(partition_count)]
            delivered = await self._one_after_the_other(queue, indexes, command, hold)
            if delivered or delivered is None or command.wait_ms <= 0:
                return delivered or ()
            command = _within(command, deadline_ms - self._queues.now_ms())
        return await self._at_all(queue, indexes, command, deadline_ms, hold) or ()

    async def _one_after_the_other(
        self, queue: Queue, indexes: Sequence[int], command: Receive, hold: Hold
    ) -> Sequence[Delivered] | None:
        """None where the client has gone."""
        short, now_ms = _within(command, 0), self._queues.now_ms()
        failure: RopewalkError | None = None
        for index in indexes:
            for _ in range(2):
                leader = self._leader(TopicPartition(queue.topic, index))
                try:
                    delivered = await self._at_all(queue, (index,), short, now_ms, hold)
                except RopewalkError as error:  # the others may have something
                    if isinstance(error, LEADERLESS) and self._is_led_by_another(queue, index, leader):
                        continue
                    failure = error
                    break
                if delivered or delivered is None:
                    return delivered
                break
        if failure is not None and command.wait_ms <= 0:
            raise failure
        return ()

    def _is_led_by_another(self, queue: Queue, index: int, leader: NodeId | None) -> bool:
        latest = self._leader(TopicPartition(queue.topic, index))
        return latest is not None and latest != leader

    async def _at_all(
        self, queue: Queue, indexes: Iterable[int], command: Receive, deadline_ms: float, hold: Hold
    ) -> Sequence[Delivered] | None:
        """Wait at all of them, for the first that gives something. None where the client has gone."""
        poll = LongPoll()
        guard = self._ask(poll, queue, indexes, command, None)
        if poll.taken.done():
            return await self._delivered(poll, hold, poll.taken.result())
        asked_ms = self._queues.now_ms()
        hold.begin_wait(poll)
        try:
            while not poll.taken.done():
                if not poll.leaderless:
                    await poll.stirred()
                    continue
                await self._until_changed(poll, min(asked_ms + QUEUE_LOOK_AGAIN_MS, deadline_ms))
                asked_ms = self._queues.now_ms()
                if poll.taken.done():
                    break
                if asked_ms >= deadline_ms:
                    poll.give_up()
                else:
                    indexes, poll.leaderless = tuple(poll.leaderless), {}
                    guard = self._ask(poll, queue, indexes, _within(command, deadline_ms - asked_ms), guard)
        finally:
            hold.end_wait(poll)
            if guard is not None:
                guard.cancel()
        return await self._delivered(poll, hold, poll.taken.result())

    def _ask(
        self,
        poll: LongPoll,
        queue: Queue,
        indexes: Iterable[int],
        command: Receive,
        guard: asyncio.TimerHandle | None,
    ) -> asyncio.TimerHandle | None:
        """A leader on another node that hangs keeps nobody waiting for longer than was asked for: that is the guard."""
        are_far: list[bool] = []

        def ends() -> Iterator[tuple[int, AskedPartition]]:
            for index in indexes:
                if command.count_max <= 0 and self._leader(TopicPartition(queue.topic, index)) is None:
                    continue
                try:
                    end = self._at(queue, index)
                except RopewalkError as error:
                    poll.refuse(index, error)
                    continue
                are_far.append(end.is_far)
                yield index, end

        poll.wait_at(ends(), command)
        if guard is None and any(are_far) and not poll.taken.done():
            late_ms = command.wait_ms + QUEUE_FAR_RECEIVE_MS_MAX
            guard = asyncio.get_running_loop().call_later(late_ms / 1000, poll.end_unheard)
        return guard

    async def _until_changed(self, poll: LongPoll, within_ms: float) -> None:
        """Until then, or until something has changed that may bring a leader, or something is given."""
        rest_ms = within_ms - self._queues.now_ms()
        if rest_ms <= 0:
            return
        changed = poll.stirred(by_refusals=False)
        timer = asyncio.get_running_loop().call_later(rest_ms / 1000, _let_go, changed)
        self._queues.tell_when_changed(changed)
        try:
            await changed
        finally:
            timer.cancel()

    async def _delivered(self, poll: LongPoll, hold: Hold, taken: Taken | None) -> Sequence[Delivered] | None:
        if poll.has_gone():
            if taken is not None:
                taken.end.release(taken.received)
            return None
        if taken is None:
            return ()
        at_hand = taken.end.at_hand(taken.received)
        if at_hand is not None:
            return at_hand
        hold.begin_wait(poll)
        try:
            delivered = await taken.end.deliver(taken.received)
        except RopewalkError:
            taken.end.release(taken.received)
            raise
        finally:
            hold.end_wait(poll)
        if poll.has_gone():
            taken.end.release(taken.received)
            return None
        return delivered


def _within(command: Receive, rest_ms: float) -> Receive:
    return Receive(command.count_max, command.visibility_ms, max(int(rest_ms), 0), command.request_id)


def _let_go(changed: "asyncio.Future[None]") -> None:
    if not changed.done():
        changed.set_result(None)
