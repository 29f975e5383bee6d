"""The HTTP door of a whole node on simulated ports: pages, and what becomes of bad, slow and greedy clients."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ropewalk.base import limits
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.listening import CannotListen
from ropewalk.node.options import NodeOptions
from ropewalk.sim.machines.world import Machine, World
from tests.http.client import Line, Page

T = TypeVar("T")


class Visit:
    def __init__(self, world: World, machine: Machine, node: Node) -> None:
        self.world = world
        self.machine = machine
        self.node = node
        self.network = world.network.host("visitor")

    async def line(self) -> Line:
        return await Line.open(self.network)

    async def get(self, path: str, *, method: str = "GET") -> Page:
        return await (await self.line()).get(path, method=method)


def visiting(story: Callable[[Visit], Awaitable[T]], *settings: str) -> T:
    async def main(world: World) -> T:
        machine = world.machine("node")
        options = NodeOptions(kafka="node:9092", http="node:9644", data="/data", settings=settings)
        node = await machine.start(lambda ports: life.start(load(options, {}), ports))
        return await story(Visit(world, machine, node))

    with World(0) as world:
        return world.run(main(world), limit_s=600)


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/", 200, "/metrics"),
        ("GET", "/livez", 200, "ok"),
        ("GET", "/readyz", 200, "ok"),
        ("GET", "/healthz", 200, "ok"),
        ("GET", "/healthz?verbose", 200, "disk ok"),
        ("GET", "/metrics", 200, "kafka_brokers 1"),
        ("GET", "/public_metrics", 200, "kafka_brokers 1"),
        ("GET", "http://node/livez", 200, "ok"),
        ("GET", "/live%7A", 200, "ok"),
        ("GET", "/nothing", 404, "no page '/nothing'"),
        ("GET", "/livez/", 404, "no page"),
        ("GET", "//livez", 404, "no page"),
        ("POST", "/metrics", 405, "GET, HEAD"),
        ("DELETE", "/", 405, "GET, HEAD"),
        ("OPTIONS", "*", 404, "no page"),
    ],
)
def test_every_address_has_its_answer(method: str, path: str, status: int, words: str) -> None:
    async def story(visit: Visit) -> Page:
        return await visit.get(path, method=method)

    page = visiting(story)
    assert page.status == status
    assert words in page.text
    assert page.headers["cache-control"] == "no-store"
    assert ("allow" in page.headers) == (status == 405)


@pytest.mark.parametrize("path", ["/livez", "/metrics", "/nothing"])
def test_head_says_what_get_would_say_without_its_body(path: str) -> None:
    async def story(visit: Visit) -> tuple[Page, Page, bytes]:
        line = await visit.line()
        head = await line.get(path, method="HEAD")
        return head, await line.get(path), bytes(line.received)

    head, got, rest = visiting(story)
    assert head.status == got.status
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.body == b""
    assert rest == b""


def test_one_connection_serves_many_requests_in_order() -> None:
    async def story(visit: Visit) -> list[int]:
        line = await visit.line()
        for path in ("/livez", "/nothing", "/metrics", "/readyz", "/"):
            line.send(f"GET {path} HTTP/1.1\r\nHost: node\r\n\r\n".encode())
        return [(await line.page()).status for _ in range(5)]

    assert visiting(story) == [200, 404, 200, 200, 200]


def test_more_requests_than_may_wait_are_all_answered() -> None:
    async def story(visit: Visit) -> list[int]:
        line = await visit.line()
        line.send(b"GET /livez HTTP/1.1\r\nHost: node\r\n\r\n" * 5000)
        return [(await line.page()).status for _ in range(5000)]

    assert set(visiting(story)) == {200}


@pytest.mark.parametrize(
    "head",
    ["GET /livez HTTP/1.0", "GET /livez HTTP/1.1\r\nHost: node\r\nConnection: close"],
    ids=["HTTP/1.0", "close"],
)
def test_a_connection_is_closed_for_who_does_not_keep_it(head: str) -> None:
    async def story(visit: Visit) -> Page:
        line = await visit.line()
        line.send(f"{head}\r\n\r\n".encode())
        page = await line.page()
        await line.closed
        return page

    page = visiting(story)
    assert page.status == 200
    assert page.headers["connection"] == "close"


def test_a_request_may_arrive_byte_by_byte() -> None:
    async def story(visit: Visit) -> int:
        line = await visit.line()
        for byte in b"GET /livez?a=b HTTP/1.1\r\nHost: node\r\nContent-Length: 3\r\n\r\nabc":
            line.send(bytes([byte]))
            await asyncio.sleep(0.01)
        return (await line.page()).status

    assert visiting(story) == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x00\x00\x1d\x00\x12\x00\x03\x00\x00\x00\x01", 400),
        (b"hello\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"BREW / HTTP/1.1\r\nHost: node\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: node\r\n\r\n", 400),
        (b"CONNECT n:1 HTTP/1.1\r\nHost: node\r\n\r\n", 501),
        (b"GET /" + b"a" * limits.HTTP_URL_BYTES_MAX + b" HTTP/1.1\r\nHost: node\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: node\r\nX: " + b"x" * limits.HTTP_HEAD_BYTES_MAX + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: node\r\nX: " + b"x" * 4 * limits.HTTP_HEAD_BYTES_MAX, 431),
        (b"GET / HTTP/1.1\r\nHost: node\r\n" + b"X: y\r\n" * 100_000, 431),
        (b"\r\n" * 100_000, 431),
        (b"POST / HTTP/1.1\r\nHost: node\r\nContent-Length: 99999999\r\n\r\n" + bytes(200_000), 413),
        (b"POST / HTTP/1.1\r\nHost: node\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused_and_ends_its_connection(sent: bytes, status: int) -> None:
    async def story(visit: Visit) -> tuple[int, int]:
        line = await visit.line()
        line.send(sent)
        page = await line.page()
        await line.closed
        return page.status, (await visit.get("/livez")).status

    assert visiting(story) == (status, 200)


def test_what_came_before_a_bad_request_is_still_answered() -> None:
    async def story(visit: Visit) -> list[int]:
        line = await visit.line()
        line.send(b"GET /livez HTTP/1.1\r\nHost: node\r\n\r\n" * 2 + b"nonsense\r\n\r\n")
        return [(await line.page()).status for _ in range(3)]

    assert visiting(story) == [200, 200, 400]


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTT", b"POST / HTTP/1.1\r\nHost: node\r\nContent-Length: 5\r\n\r\n"]
)
def test_whoever_sends_too_slowly_is_cut_off(sent: bytes) -> None:
    async def story(visit: Visit) -> float:
        line = await visit.line()
        line.send(sent)
        await line.closed
        return visit.world.now_s * 1000

    limit_ms = limits.HTTP_REQUEST_MS_MAX if sent else limits.HTTP_IDLE_MS_MAX
    assert limit_ms < visiting(story) < limit_ms + 10_000


def test_a_request_that_trickles_in_has_no_more_time_than_any_other() -> None:
    async def story(visit: Visit) -> float:
        line = await visit.line()
        for byte in b"GET / HTTP/1.1\r\n" * 2000:
            if line.closed.done():
                break
            line.send(bytes([byte]))
            await asyncio.sleep(1)
        return visit.world.now_s * 1000

    assert visiting(story) < limits.HTTP_REQUEST_MS_MAX + 10_000


def test_whoever_does_not_take_an_answer_is_cut_off_and_read_no_further() -> None:
    async def story(visit: Visit) -> float:
        line = await visit.line()
        line.transport.pause_reading()
        line.send(b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n" * 2000)
        before_s = visit.world.now_s
        other = await visit.line()
        while 'refused_total{door="http"} 0' in (await other.get("/public_metrics")).text:
            await asyncio.sleep(1)
        return (visit.world.now_s - before_s) * 1000

    assert limits.HTTP_ANSWER_MS_MAX < visiting(story) < limits.HTTP_ANSWER_MS_MAX + 10_000


def test_there_is_a_limit_to_connections() -> None:
    async def story(visit: Visit) -> tuple[int, bool]:
        lines = [await visit.line() for _ in range(limits.HTTP_CONNECTIONS_MAX)]
        beyond = await visit.line()
        await beyond.closed
        return (await lines[-1].get("/livez")).status, lines[0].closed.done()

    assert visiting(story) == (200, False)


def test_a_node_that_hangs_answers_when_it_goes_on() -> None:
    async def story(visit: Visit) -> tuple[bool, int]:
        line = await visit.line()
        visit.node.pause()
        answer = asyncio.ensure_future(line.get("/livez"))
        await asyncio.sleep(3)
        hung = not answer.done()
        visit.node.resume()
        return hung, (await answer).status

    assert visiting(story) == (True, 200)


def test_a_taken_address_that_was_chosen_is_refused_and_the_usual_one_is_replaced() -> None:
    async def main(world: World) -> tuple[int, int]:
        machine = world.machine("node")
        host = world.network.host("node")
        other = await host.listen(asyncio.Protocol, "127.0.0.1", 9644)

        async def start(http: str | None) -> Node:
            options = NodeOptions(kafka="node:0", http=http, data="/data")
            return await machine.start(lambda ports: life.start(load(options, {}), ports))

        with pytest.raises(CannotListen, match=r"9644 is taken .* --http"):
            await start("127.0.0.1:9644")
        node = await start(None)
        assert node.http_address is not None
        line = await Line.open(world.network.host("visitor"), "node", node.http_address[1])
        return (await line.get("/readyz")).status, other.address[1]

    with World(0) as world:
        assert world.run(main(world), limit_s=100) == (200, 9644)


def test_none_leaves_the_door_out() -> None:
    async def main(world: World) -> None:
        options = NodeOptions(kafka="node:9092", http="none", data="/data")
        node = await world.machine("node").start(lambda ports: life.start(load(options, {}), ports))
        assert node.http_address is None
        with pytest.raises(OSError):
            await Line.open(world.network.host("visitor"))

    with World(0) as world:
        world.run(main(world), limit_s=100)
