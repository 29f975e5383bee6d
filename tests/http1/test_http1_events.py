"""Server-sent events over a door: what is true now, what must all arrive, readers that are slow, and readers that go."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import EVENTS_WAITING_BYTES_MAX, EVENTS_WAITING_MAX
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.events import BEAT, EventStream, encode_event
from ropewalk.http1.listener import HttpListener
from ropewalk.http1.message import Request, StreamedAnswer, Visitor
from ropewalk.sim.machines.world import World
from tests.http.client import Line

T = TypeVar("T")


class Newsroom:
    """A door at which every request is answered with a stream of events."""

    def __init__(self, world: World) -> None:
        self._world = world
        bounds = HttpBounds(connections_max=100, body_bytes_max=1000)
        self.connections = HttpConnections("test", world.machine("node").clock, bounds, ByteBudget(8 << 20))
        self.streams: list[EventStream] = []
        self.listener: HttpListener

    async def open(self) -> None:
        network = self._world.network.host("node")
        self.listener = await HttpListener.start(
            network, "node", 9644, connections=self.connections, answer=self._answer
        )

    async def reader(self) -> Line:
        line = await Line.open(self._world.network.host("visitor"))
        line.send(b"GET / HTTP/1.1\r\nHost: node\r\n\r\n")
        await asyncio.sleep(1)
        return line

    async def _answer(self, _request: Request, visitor: Visitor) -> StreamedAnswer:
        self.streams.append(EventStream())
        return self.streams[-1].answer(visitor)


def reading(story: Callable[[Newsroom], Awaitable[T]]) -> T:
    async def main(world: World) -> T:
        room = Newsroom(world)
        await room.open()
        return await story(room)

    with World(0) as world:
        return world.run(main(world), limit_s=600)


@pytest.mark.parametrize(
    ("data", "encoded"),
    [
        ("one", b"event: lag\ndata: one\n\n"),
        ("", b"event: lag\ndata: \n\n"),
        ("a\nb", b"event: lag\ndata: a\ndata: b\n\n"),
        ("a\r\nevent: x\rid: 7", b"event: lag\ndata: a\ndata: event: x\ndata: id: 7\n\n"),
        ("\ud800", b"event: lag\ndata: ?\n\n"),
    ],
)
def test_nothing_in_an_event_begins_another_field(data: str, encoded: bytes) -> None:
    assert encode_event("lag", data) == encoded


def test_events_come_in_their_order_and_the_stream_ends_when_it_is_closed() -> None:
    async def story(room: Newsroom) -> tuple[bytes, bool]:
        line = await room.reader()
        (stream,) = room.streams
        assert stream.add("lag", "1")
        assert stream.add("lag", "2")
        stream.beat()
        await asyncio.sleep(1)
        stream.beat()
        await asyncio.sleep(1)
        stream.close()
        assert not stream.add("lag", "3")
        page = await line.page()
        assert page.headers["content-type"].startswith("text/event-stream")
        return page.body, stream.ended.done()

    body, has_ended = reading(story)
    assert body == encode_event("lag", "1") + encode_event("lag", "2") + BEAT
    assert has_ended


def test_of_what_is_shown_a_slow_reader_gets_the_newest() -> None:
    async def story(room: Newsroom) -> tuple[bytes, int]:
        line = await room.reader()
        (stream,) = room.streams
        line.transport.pause_reading()
        for number in range(20_000):
            stream.show("lag", f"{number:0400}")
            if number % 100 == 0:
                await asyncio.sleep(0.01)
        held_bytes = room.connections.budget.held_bytes
        line.transport.resume_reading()
        stream.close()
        return (await line.page()).body, held_bytes

    body, held_bytes = reading(story)
    assert body.endswith(encode_event("lag", f"{19_999:0400}"))
    assert body.count(b"event:") < 20_000
    assert held_bytes < 4 << 20


def test_what_must_all_arrive_waits_for_room() -> None:
    async def story(room: Newsroom) -> tuple[bytes, int]:
        line = await room.reader()
        (stream,) = room.streams
        line.transport.pause_reading()
        refused_count = 0

        async def write() -> None:
            nonlocal refused_count
            for number in range(8 * EVENTS_WAITING_MAX):
                while not stream.add("row", f"{number:0300}"):
                    refused_count += 1
                    await stream.room()
            stream.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            await asyncio.sleep(5)
            line.transport.resume_reading()
        return (await line.page()).body, refused_count

    body, refused_count = reading(story)
    assert body == b"".join(encode_event("row", f"{number:0300}") for number in range(8 * EVENTS_WAITING_MAX))
    assert refused_count > 0


def test_large_events_wait_by_their_bytes() -> None:
    async def story(_: Newsroom) -> tuple[bool, bool]:
        stream = EventStream()
        return stream.add("row", "x" * EVENTS_WAITING_BYTES_MAX), stream.add("row", "x")

    assert reading(story) == (True, False)


@pytest.mark.parametrize("how", ["reader aborts", "reader closes", "door closes", "door leaves"])
def test_a_stream_ends_once_whoever_goes_first(how: str) -> None:
    async def story(room: Newsroom) -> bool:
        line = await room.reader()
        (stream,) = room.streams
        stream.add("row", "1")
        match how:
            case "reader aborts":
                line.transport.abort()
            case "reader closes":
                line.transport.close()
            case "door closes":
                room.listener.close()
            case _:
                await room.listener.hasten()
        await asyncio.sleep(5)
        stream.show("row", "2")
        await stream.room()
        return stream.ended.done()

    assert reading(story)
