"""Receives that front ends leave with a leader: what is told, what is kept until it is taken, and what goes back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ropewalk.base.errors import QueueNotReady, RopewalkError, UnknownQueue
from ropewalk.base.ids import NodeId, Offset, OwnerId, TopicId
from ropewalk.base.limits import QUEUE_SESSION_SILENCE_MS_MAX
from ropewalk.broker.queues.credits import Credits
from ropewalk.broker.queues.hosted_queue import Asked, HostedQueue
from ropewalk.metadata.queues import Queue
from ropewalk.queues.answers import Given, Received
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Credit, Delivered, Receipt
from ropewalk.queues.settings import QueueSettings
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import World

NODE = NodeId(7)
SESSION = b"s" * 16
QUEUE = Queue(queue_id=OwnerId(b"q" * 16), name="work", topic="work", topic_id=TopicId(b"t" * 16))
RECEIVE = Receive(10, 30_000, 20_000)


class FakeHosted:
    """A partition whose receives are answered when the test says so."""

    def __init__(self, *, is_fifo: bool = False) -> None:
        self.queue = QUEUE
        self.settings = QueueSettings(is_fifo=is_fifo)
        self.asked: dict[int, asyncio.Future[Received]] = {}
        self.released: list[int] = []
        self.forgotten: list[int] = []
        self.disk: asyncio.Future[None] | None = None
        """What is given has to be read, and is when this is done."""

    def receive(self, command: Receive) -> Asked[Received]:
        assert command == RECEIVE
        token = 100 + len(self.asked)
        self.asked[token] = asyncio.get_running_loop().create_future()
        return Asked(token, self.asked[token])

    def forget(self, token: int) -> None:
        self.forgotten.append(token)

    def release(self, received: Received) -> None:
        self.released += [each.offset for each in received.messages]

    async def deliver(self, received: Received) -> list[Delivered]:
        if self.disk is not None:
            await self.disk
        return [
            Delivered(
                Receipt(0, each.offset, received.attempt), Record(Offset(each.offset), value=b"x"), 1, 5
            )
            for each in received.messages
        ]

    async def give(self, number: int, *offsets: int) -> None:
        """To the receive of that number, the first being 0."""
        self.asked[100 + number].set_result(Received(3, tuple(Given(offset, 1, 5) for offset in offsets)))
        await asyncio.sleep(0)


def credit(token: int) -> Credit:
    return Credit(token, QUEUE.queue_id, 0, RECEIVE)


def credits_of(hosted: FakeHosted) -> Credits:
    def find(queue_id: OwnerId, partition: int) -> HostedQueue:
        if queue_id != QUEUE.queue_id or partition != 0:
            raise UnknownQueue("no such queue")
        return cast(HostedQueue, hosted)

    return Credits(find)


async def told(credits: Credits, *, taken: int, wait_ms: int = 0) -> list[tuple[int, Any]]:
    deliveries = await credits.poll(NODE, SESSION, taken=taken, wait_ms=wait_ms)
    return [
        (
            each.token,
            type(each.outcome).__name__
            if isinstance(each.outcome, RopewalkError)
            else [message.receipt.offset for message in each.outcome],
        )
        for each in deliveries
    ]


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def settled() -> None:
        await story()

    with World(0) as world:
        world.run(settled(), limit_s=600)


def test_what_is_given_is_told_until_it_is_taken() -> None:
    async def story() -> None:
        hosted = FakeHosted()
        credits = credits_of(hosted)
        credits.leave(NODE, SESSION, [credit(1), credit(2)])
        await hosted.give(1, 8, 9)
        assert await told(credits, taken=0) == [(2, [8, 9])]
        assert await told(credits, taken=0) == [(2, [8, 9])]
        assert await told(credits, taken=1) == []
        await hosted.give(0)
        assert await told(credits, taken=1) == [(1, [])]
        assert hosted.released == []

    play(story)


def test_a_poll_stands_until_something_is_given() -> None:
    async def story() -> None:
        hosted = FakeHosted()
        credits = credits_of(hosted)
        credits.leave(NODE, SESSION, [credit(1)])
        poll = asyncio.ensure_future(told(credits, taken=0, wait_ms=8_000))
        await asyncio.sleep(3)
        assert not poll.done()
        await hosted.give(0, 4)
        assert await poll == [(1, [4])]

    play(story)


def test_a_refusal_is_told_as_well() -> None:
    async def story() -> None:
        credits = credits_of(FakeHosted())
        credits.leave(NODE, SESSION, [Credit(1, OwnerId(b"z" * 16), 0, RECEIVE)])
        assert await told(credits, taken=0) == [(1, "UnknownQueue")]

    play(story)


def test_what_is_withdrawn_goes_back_unless_it_is_on_its_way() -> None:
    async def story() -> None:
        hosted = FakeHosted()
        credits = credits_of(hosted)
        credits.leave(NODE, SESSION, [credit(1), credit(2), credit(3)])
        await hosted.give(0, 4)
        assert await told(credits, taken=0) == [(1, [4])]
        await hosted.give(1, 5)
        credits.withdraw(SESSION, [1, 2, 3])
        assert (hosted.released, hosted.forgotten) == ([5], [102])
        await hosted.give(2, 6)  # it had been decided before the withdrawal came
        assert hosted.released == [5, 6]
        assert await told(credits, taken=1) == []

    play(story)


@pytest.mark.parametrize(("is_fifo", "released"), [(False, [4, 5]), (True, [])])
def test_what_a_lost_front_end_had_not_taken_is_free_at_once_on_standard_queues(
    is_fifo: bool, released: list[int]
) -> None:
    async def story() -> None:
        hosted = FakeHosted(is_fifo=is_fifo)
        credits = credits_of(hosted)
        credits.leave(NODE, SESSION, [credit(1), credit(2), credit(3)])
        await hosted.give(0, 4)
        assert await told(credits, taken=0) == [(1, [4])]
        await hosted.give(1, 5)
        await asyncio.sleep(QUEUE_SESSION_SILENCE_MS_MAX / 1000 + 1)
        assert (hosted.released, hosted.forgotten) == (released, [102])
        with pytest.raises(QueueNotReady):
            await told(credits, taken=1)

    play(story)


def test_a_front_end_that_polls_is_not_silent() -> None:
    async def story() -> None:
        hosted = FakeHosted()
        credits = credits_of(hosted)
        credits.leave(NODE, SESSION, [credit(1)])
        for _ in range(5):
            assert await told(credits, taken=0, wait_ms=8_000) == []
        await hosted.give(0, 4)
        assert await told(credits, taken=0) == [(1, [4])]

    play(story)


@pytest.mark.parametrize(("is_fifo", "released"), [(False, [4]), (True, [])])
def test_what_is_being_read_when_a_front_end_is_lost_is_not_forgotten(
    is_fifo: bool, released: list[int]
) -> None:
    async def story() -> None:
        hosted = FakeHosted(is_fifo=is_fifo)
        hosted.disk = asyncio.get_running_loop().create_future()
        credits = credits_of(hosted)
        credits.leave(NODE, SESSION, [credit(1)])
        await hosted.give(0, 4)
        credits.end(SESSION)
        hosted.disk.set_result(None)
        await asyncio.sleep(0)
        assert hosted.released == released

    play(story)
