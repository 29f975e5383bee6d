"""The node's byte budget at the door: what counts, who stops first when it is spent, and how it comes free again."""

import asyncio
from typing import TypeVar

import pytest

from ropewalk.base.limits import CONNECTION_ANSWER_BYTES_MAX
from ropewalk.client.errors import ConnectionLost
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, metadata
from tests.kafka.door import Door, at_the_door, batch_of, fetch_request
from tests.kafka.session_client import SessionClient

T = TypeVar("T")

LARGE = "x" * 600_000
"""A record whose request takes more than what a connection may hold while the budget is spent."""

SWEEPS_S = 15
"""By then a client that does not move has been noticed."""


def spend(door: Door, times: float = 1.0) -> int:
    """Somebody else holds the whole budget."""
    taken = int(door.node.budget.bytes_max * times)
    door.node.budget.take(taken)
    return taken


async def nobody_answers(*sent: "asyncio.Future[T]") -> bool:
    return not (await asyncio.wait(sent, timeout=1))[0]


def test_a_request_that_waits_counts_until_it_is_answered() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t", 100)
        at_rest_bytes = door.node.budget.held_bytes
        client = SessionClient()
        for index in range(100):
            client.follow(topic_id, index)
        answer = door.send(fetch.API, client.version, client.request(wait_ms=10_000))
        await asyncio.sleep(1)
        assert door.node.budget.held_bytes > at_rest_bytes + 10_000
        client.apply(await answer)
        assert door.node.budget.held_bytes == at_rest_bytes

    at_the_door(story)


def test_clients_that_have_gone_hold_nothing() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        other = await door.another()
        unheard = other.send(fetch.API, 12, fetch_request("t", 0, wait_ms=30_000))
        await asyncio.sleep(1)
        held_bytes = door.node.budget.held_bytes
        other.connection.close()
        with pytest.raises(ConnectionLost):
            await unheard
        await asyncio.sleep(1)
        assert door.node.budget.held_bytes < held_bytes
        door.connection.close()
        await asyncio.sleep(1)
        assert door.node.budget.held_bytes == 0

    at_the_door(story)


def test_while_it_is_spent_small_requests_are_answered() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        spend(door)
        assert (await door.produce("t", batch_of("a"))).error_code == ErrorCode.NONE
        assert "t" in await door.topics()

    at_the_door(story)


def test_while_it_is_spent_large_requests_are_read_one_after_the_other() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        spend(door)
        doors = [await door.another() for _ in range(5)]
        answers = await asyncio.gather(*(each.produce("t", batch_of(LARGE)) for each in doors))
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 5
        assert sorted(answer.base_offset for answer in answers) == list(range(5))

    at_the_door(story)


def test_when_it_is_overdrawn_everybody_waits_for_room() -> None:
    async def story(door: Door) -> None:
        taken = spend(door, 1.6)
        answer = door.send(metadata.API, 12, metadata.MetadataRequest(None))
        assert await nobody_answers(answer)
        door.node.budget.give_back(taken // 2)
        assert (await answer).controller_id == 0

    at_the_door(story)


def test_fetches_wait_for_room() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await door.produce("t", batch_of("a"))
        doors = [await door.another() for _ in range(3)]
        budget = door.node.budget
        at_rest_bytes, taken = budget.held_bytes, spend(door)
        waiting = [each.send(fetch.API, 12, fetch_request("t", 0)) for each in doors]
        assert await nobody_answers(*waiting)
        assert budget.waiting_count == 3
        door.world.network.reset(door.world.network.connections()[-1])
        with pytest.raises(ConnectionLost):
            await waiting.pop()
        assert budget.waiting_count == 2
        budget.give_back(taken)
        for answer in waiting:
            assert (await answer).topics[0].partitions[0].records
        assert budget.held_bytes == at_rest_bytes

    at_the_door(story)


def test_a_fetch_that_finds_nothing_needs_no_room() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        spend(door)
        assert (await door.fetch("t", 0)).error_code == ErrorCode.NONE

    at_the_door(story)


def test_whoever_holds_much_and_does_not_move_is_closed_when_it_is_spent() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        for _ in range(4):
            await door.produce("t", batch_of(LARGE))
        idle = await door.another()
        greedy = await door.another()
        request = fetch_request("t", 0, max_bytes=1 << 25, min_bytes=1 << 24, wait_ms=2000)
        unread = greedy.send(fetch.API, 12, request)
        await asyncio.sleep(1)
        end = door.world.network.connections()[-1]
        door.world.network.blacken(end)
        await asyncio.sleep(SWEEPS_S)
        held_bytes = door.node.budget.held_bytes
        assert held_bytes > 1_000_000, "answers that are not taken count"
        spend(door)
        await asyncio.sleep(SWEEPS_S)
        assert door.node.budget.held_bytes < door.node.budget.bytes_max + held_bytes - 1_000_000
        door.world.network.mend_all()
        with pytest.raises(ConnectionLost):
            await unread
        assert await idle.topics(), "who holds nothing is left alone"

    at_the_door(story)


def test_a_client_that_asks_much_and_takes_nothing_is_not_answered_into_memory() -> None:
    async def story(door: Door) -> None:
        await door.create("t", 500)
        greedy = await door.another()
        waiting = greedy.send(fetch.API, 12, fetch_request("t", 0, wait_ms=2000))
        asked = [greedy.send(metadata.API, 12, metadata.MetadataRequest(None)) for _ in range(1000)]
        await asyncio.sleep(1)
        door.world.network.blacken(door.world.network.connections()[-1])
        await asyncio.sleep(10)
        assert door.node.budget.held_bytes < 2 * CONNECTION_ANSWER_BYTES_MAX
        door.world.network.mend_all()
        await waiting
        answers = await asyncio.gather(*asked)
        assert {len(answer.topics[0].partitions) for answer in answers} == {500}, "nothing is dropped"

    at_the_door(story)
