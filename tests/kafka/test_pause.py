"""A paused listener: connections stay, requests wait, answers are held, and nothing is lost or reordered."""

import asyncio
from typing import TypeVar

from ropewalk.client.connections.connection import Connection
from ropewalk.wire.messages import fetch, produce
from ropewalk.wire.types import Buffer
from tests.kafka.door import NODE, PATIENCE_MS, Door, at_the_door, batch_of, fetch_request, produce_request

T = TypeVar("T")

LONG_S = 5


async def answered(*waiting: "asyncio.Future[T]") -> set["asyncio.Future[T]"]:
    """Those that were answered, though nobody should have been, in a time that is long for a node."""
    return (await asyncio.wait(waiting, timeout=LONG_S))[0]


def test_requests_wait_and_are_answered_in_order_after_it() -> None:
    async def story(door: Door) -> list[int]:
        await door.create("t")
        door.node.pause()
        writes = [
            door.send(produce.API, 9, produce_request("t", batch_of(value))) for value in ("a", "b", "c")
        ]
        assert await answered(*writes) == set()
        door.node.resume()
        return [(await write).topics[0].partitions[0].base_offset for write in writes]

    assert at_the_door(story) == [0, 1, 2]


def test_the_answer_to_a_request_that_was_under_way_is_held() -> None:
    async def story(door: Door) -> Buffer | None:
        await door.create("t")
        waiting = door.send(fetch.API, 12, fetch_request("t", 0, wait_ms=1000))
        await asyncio.sleep(0.1)
        door.node.pause()
        assert await answered(waiting) == set()
        door.node.resume()
        return (await waiting).topics[0].partitions[0].records

    assert not at_the_door(story)


def test_a_connection_made_meanwhile_waits_like_the_others() -> None:
    async def story(door: Door) -> bool:
        door.node.pause()
        client = door.world.machine("late")
        opening = asyncio.ensure_future(
            Connection.open(
                door.world.network.host("late"),
                client.clock,
                NODE,
                client_id="late",
                deadline_ms=door.world.now_s * 1000 + PATIENCE_MS,
            )
        )
        assert await answered(opening) == set()
        door.node.resume()
        return (await opening) is not None

    assert at_the_door(story)


def test_a_paused_node_stops_in_order() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        door.node.pause()
        unheard = door.send(produce.API, 9, produce_request("t", batch_of("a")))
        await door.node.stop()
        assert isinstance((await asyncio.gather(unheard, return_exceptions=True))[0], Exception)

    at_the_door(story)
