"""A door that speaks HTTP, with handlers that echo, wait and stream, on the simulated network: what a door may count on."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

import pytest

from ropewalk.base import limits
from ropewalk.base.budget import ByteBudget
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connection import HttpConnection
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.http1.message import Answer, Request, StreamedAnswer, Visitor, text_answer
from ropewalk.sim.machines.world import World
from tests.http.client import Line

T = TypeVar("T")

BOUNDS = HttpBounds(connections_max=100, body_bytes_max=2 << 20)
PIECE = bytes(10_000)
STRANGER = b"GET /echo HTTP/1.1\r\nHost: n\r\n\r\n"


class Poll:
    """A long poll: waits until it is released, hurried or abandoned."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hurry(self) -> None:
        self.release("hurried")

    def abandon(self) -> None:
        self.release("abandoned")

    def release(self, why: str) -> None:
        self.heard.append(why)
        if not self.done.done():
            self.done.set_result(why)


class Pieces:
    """A stream of so many pieces, or of those that are put into it."""

    def __init__(self, count: int | None = None) -> None:
        self.asked_count = 0
        self.end_count = 0
        self._count = count
        self._events: list[bytes | None] = []
        self._more: asyncio.Future[None] | None = None

    async def next(self) -> bytes | None:
        self.asked_count += 1
        if self._count is not None:
            return PIECE if self.asked_count <= self._count else None
        while not self._events and not self.end_count:
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        return self._events.pop(0) if self._events else None

    def put(self, event: bytes | None) -> None:
        self._events.append(event)
        self._wake()

    def end(self) -> None:
        self.end_count += 1
        self._wake()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)


class Hall:
    """The door under test and what its handlers have seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.machine("node").clock
        self.budget = ByteBudget(8 << 20)
        self.connections = HttpConnections("test", self.clock, BOUNDS, self.budget)
        self.polls: list[Poll] = []
        self.streams: list[Pieces] = []
        self.stream_count: int | None = None
        self.length_bytes: int | None = None
        self.requests: list[Request] = []
        self.listener: HttpListener

    async def open(self) -> None:
        network = self.world.network.host("node")
        self.listener = await HttpListener.start(
            network, "node", 9644, connections=self.connections, answer=self.answer
        )

    async def line(self) -> Line:
        return await Line.open(self.world.network.host("visitor"))

    async def settle(self, seconds: float = 1.0) -> None:
        await asyncio.sleep(seconds)

    async def sweep_for(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            await asyncio.sleep(1)
            self.listener.sweep()

    async def answer(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        self.requests.append(request)
        if request.path == "/poll":
            poll = Poll()
            self.polls.append(poll)
            with visitor.hold_while(poll):
                return text_answer(HTTPStatus.OK, await poll.done)
        if request.path == "/stream":
            self.streams.append(Pieces(self.stream_count))
            return StreamedAnswer(HTTPStatus.OK, self.streams[-1], length_bytes=self.length_bytes)
        if request.path == "/bug":
            raise ValueError("a bug")
        if request.path == "/nothing":
            return Answer(HTTPStatus.NO_CONTENT)
        return Answer(HTTPStatus.OK, (request.path.encode(), b" ", request.body))


def in_the_hall(story: Callable[[Hall], Awaitable[T]]) -> T:
    async def main(world: World) -> T:
        hall = Hall(world)
        await hall.open()
        return await story(hall)

    with World(0) as world:
        return world.run(main(world), limit_s=600)


def get(path: str, first: str = "GET", *headers: str, version: str = "1.1") -> bytes:
    return "\r\n".join([f"{first} {path} HTTP/{version}", "Host: n", *headers, "", ""]).encode()


def test_a_body_of_a_mebibyte_comes_to_its_handler() -> None:
    async def story(hall: Hall) -> bytes:
        line = await hall.line()
        body = bytes(range(256)) * 4096
        line.send(get("/echo", "POST", f"Content-Length: {len(body)}") + body)
        assert (await line.page()).body == b"/echo " + body
        line.send(get("/again", "POST", "Transfer-Encoding: chunked"))
        for start in range(0, len(body), 50_000):
            piece = body[start : start + 50_000]
            line.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
        line.send(b"0\r\n\r\n")
        return (await line.page()).body[len("/again ") :]

    assert in_the_hall(story) == bytes(range(256)) * 4096


def test_a_client_that_asks_before_it_sends_is_told_to_go_on() -> None:
    async def story(hall: Hall) -> tuple[bytes, bytes]:
        line = await hall.line()
        line.send(get("/first") + get("/echo", "POST", "Content-Length: 5", "Expect: 100-continue"))
        assert (await line.page()).body == b"/first "
        await hall.settle()
        told = bytes(line.received)
        line.received.clear()
        line.send(b"hello")
        return told, (await line.page()).body

    assert in_the_hall(story) == (b"HTTP/1.1 100 Continue\r\n\r\n", b"/echo hello")


def test_a_client_that_does_not_wait_is_not_told_to_go_on() -> None:
    async def story(hall: Hall) -> bytes:
        line = await hall.line()
        line.send(get("/echo", "POST", "Content-Length: 5", "Expect: 100-continue") + b"hello")
        return (await line.page()).body

    assert in_the_hall(story) == b"/echo hello"


def test_a_client_that_asks_to_send_too_much_hears_so_before_it_sends() -> None:
    async def story(hall: Hall) -> int:
        line = await hall.line()
        line.send(get("/echo", "POST", f"Content-Length: {1 << 30}", "Expect: 100-continue"))
        return (await line.page()).status

    assert in_the_hall(story) == 413


def test_a_client_that_is_refused_while_it_sends_reads_why() -> None:
    """Its bytes go on arriving for a while; if they were not read, the connection would be reset under the answer."""

    async def story(hall: Hall) -> tuple[int, bool]:
        line = await hall.line()
        line.send(get("/echo", "POST", f"Content-Length: {3 << 20}") + bytes(3 << 20))
        page = await line.page()
        await line.closed
        return page.status, line.lost is None

    assert in_the_hall(story) == (413, True)


@pytest.mark.parametrize("sent", [get("/echo", "GET", "Connection: close"), b"nonsense\r\n\r\n"])
def test_what_follows_the_last_answer_is_read_and_dropped_until_the_client_closes(sent: bytes) -> None:
    async def story(hall: Hall) -> tuple[int, int]:
        line = await hall.line()
        line.send(sent + bytes(100_000))
        line.send(bytes(500_000))
        status = (await line.page()).status
        await line.closed
        assert line.lost is None
        await hall.settle()
        assert hall.budget.held_bytes == 0
        return status, len(hall.connections)

    assert in_the_hall(story) in [(200, 0), (400, 0)]


def test_one_that_is_refused_and_goes_on_sending_is_cut_off() -> None:
    async def story(hall: Hall) -> float:
        line = await hall.line()
        line.keeps_open = True
        line.send(b"nonsense\r\n\r\n")
        assert (await line.page()).status == 400
        await hall.settle()
        before_s = hall.world.now_s
        sweeping = asyncio.ensure_future(hall.sweep_for(30))
        await line.closed
        sweeping.cancel()
        assert hall.requests == []
        return hall.world.now_s - before_s

    assert in_the_hall(story) < 10


def test_a_full_door_makes_room_by_ending_those_who_do_not_finish_their_request() -> None:
    """And nobody else: neither who waits for an answer, nor who is silent, nor who has only begun."""

    async def story(hall: Hall) -> None:
        waiting, silent = await hall.line(), await hall.line()
        waiting.send(get("/poll"))
        slow = [await hall.line() for _ in range(BOUNDS.connections_max - 3)]
        for line in slow:
            line.send(b"GET /slow HT")
        await hall.settle(limits.HTTP_CROWDED_REQUEST_MS_MAX / 1000 + 1)
        quick = await hall.line()
        quick.send(b"GET /quick HT")
        await hall.settle(0.1)
        assert len(hall.connections) == BOUNDS.connections_max
        another = await hall.line()
        another.send(get("/another"))
        assert (await another.page()).body == b"/another "
        for line in slow:
            await line.closed
        quick.send(b"TP/1.1\r\nHost: n\r\n\r\n")
        silent.send(get("/silent"))
        hall.polls[0].release("a message")
        assert [(await line.page()).body for line in (quick, silent, waiting)] == [
            b"/quick ",
            b"/silent ",
            b"a message\n",
        ]

    in_the_hall(story)


def test_a_full_door_refuses_whoever_comes_where_nobody_is_in_the_way() -> None:
    async def story(hall: Hall) -> None:
        lines = [await hall.line() for _ in range(BOUNDS.connections_max)]
        await hall.settle(limits.HTTP_CROWDED_REQUEST_MS_MAX / 1000 + 1)
        another = await hall.line()
        await another.closed
        lines[0].send(get("/first"))
        assert (await lines[0].page()).body == b"/first "

    in_the_hall(story)


def test_a_long_poll_is_answered_and_the_next_request_waits_for_it() -> None:
    async def story(hall: Hall) -> list[bytes]:
        line = await hall.line()
        line.send(get("/poll") + get("/next"))
        await hall.sweep_for(300)
        assert [request.path for request in hall.requests] == ["/poll"]
        hall.polls[0].release("a message")
        return [(await line.page()).body for _ in range(2)]

    assert in_the_hall(story) == [b"a message\n", b"/next "]


def test_a_long_poll_hears_when_its_client_goes() -> None:
    async def story(hall: Hall) -> list[str]:
        line = await hall.line()
        line.send(get("/poll"))
        await hall.settle()
        assert hall.budget.held_bytes > 0
        line.transport.abort()
        await hall.settle()
        assert hall.budget.held_bytes == 0
        return hall.polls[0].heard

    assert in_the_hall(story) == ["abandoned"]


def test_a_long_poll_hears_when_its_client_sends_no_more_and_is_answered_still() -> None:
    async def story(hall: Hall) -> bytes:
        line = await hall.line()
        line.send(get("/poll"))
        await hall.settle()
        line.transport.write_eof()
        page = await line.page()
        await line.closed
        return page.body

    assert in_the_hall(story) == b"hurried\n"


def test_a_door_that_leaves_answers_all_who_wait_and_keeps_nobody_waiting() -> None:
    """Every answer is the last of its connection; whoever asks meanwhile is answered at once."""

    async def story(hall: Hall) -> None:
        lines = [await hall.line() for _ in range(3)]
        for line in lines[:2]:
            line.send(get("/poll"))
        await hall.settle()
        answered = hall.listener.hasten()
        assert not answered.done()
        lines[2].send(get("/poll"))
        for line in lines:
            page = await line.page()
            assert (page.body, page.headers["connection"]) == (b"hurried\n", "close")
            await line.closed
        await answered

    in_the_hall(story)


def test_a_door_where_nobody_waits_leaves_at_once() -> None:
    async def story(hall: Hall) -> bool:
        line = await hall.line()
        line.send(get("/echo"))
        await line.page()
        return hall.listener.hasten().done()

    assert in_the_hall(story)


def test_many_may_wait_and_hold_little() -> None:
    async def story(hall: Hall) -> int:
        lines = [await hall.line() for _ in range(100)]
        for line in lines:
            line.send(get("/poll", "POST", "Content-Length: 100") + bytes(100))
        await hall.settle()
        held_bytes = hall.budget.held_bytes
        for poll in hall.polls:
            poll.release("done")
        assert {(await line.page()).body for line in lines} == {b"done\n"}
        assert hall.budget.held_bytes == 0
        return held_bytes

    assert 100 * 100 < in_the_hall(story) < 100 * 6000


@pytest.mark.parametrize("length_bytes", [None, 200 * len(PIECE)], ids=["chunked", "of known length"])
def test_a_stream_is_made_as_it_is_taken(length_bytes: int | None) -> None:
    async def story(hall: Hall) -> tuple[int, int]:
        hall.stream_count, hall.length_bytes = 200, length_bytes
        line = await hall.line()
        line.transport.pause_reading()
        line.send(get("/stream") + get("/next"))
        await hall.settle(10)
        asked_count, held_bytes = hall.streams[0].asked_count, hall.budget.held_bytes
        assert asked_count < 100, "what nobody takes is not made"
        assert 0 < held_bytes < 200_000
        line.transport.resume_reading()
        page = await line.page()
        assert page.body == 200 * PIECE
        assert (await line.page()).body == b"/next "
        return hall.streams[0].end_count, hall.budget.held_bytes

    assert in_the_hall(story) == (1, 0)


def test_events_are_sent_as_they_come() -> None:
    async def story(hall: Hall) -> tuple[bytes, int]:
        line = await hall.line()
        line.send(get("/stream"))
        await hall.sweep_for(300)
        hall.streams[0].put(b"data: 1\n\n")
        await hall.settle()
        assert b"transfer-encoding: chunked" in line.received
        assert line.received.endswith(b"\r\n\r\n9\r\ndata: 1\n\n\r\n")
        hall.streams[0].put(b"")
        hall.streams[0].put(b"data: 2\n\n")
        hall.streams[0].put(None)
        return (await line.page()).body, hall.streams[0].end_count

    assert in_the_hall(story) == (b"data: 1\n\ndata: 2\n\n", 1)


def test_a_client_of_http_1_0_gets_a_stream_to_the_end_of_the_connection() -> None:
    async def story(hall: Hall) -> bytes:
        hall.stream_count = 3
        line = await hall.line()
        line.send(get("/stream", "GET", "Connection: keep-alive", version="1.0"))
        await line.closed
        return bytes(line.received).partition(b"\r\n\r\n")[2]

    assert in_the_hall(story) == 3 * PIECE


@pytest.mark.parametrize("how", ["lost", "stopped", "asked for its head"])
def test_a_stream_is_ended_once_whatever_ends_it(how: str) -> None:
    async def story(hall: Hall) -> int:
        line = await hall.line()
        line.send(get("/stream", "HEAD" if how == "asked for its head" else "GET"))
        await hall.settle()
        if how == "lost":
            line.transport.abort()
        elif how == "stopped":
            hall.listener.close()
        await hall.settle()
        return hall.streams[0].end_count

    assert in_the_hall(story) == 1


def test_a_stream_that_nobody_will_take_is_asked_for_nothing_more() -> None:
    async def story(hall: Hall) -> int:
        hall.stream_count = 1_000_000
        line = await hall.line()
        line.transport.pause_reading()
        line.send(get("/stream"))
        await hall.settle(5)
        asked_count = hall.streams[0].asked_count
        hall.listener.close()
        await hall.settle(5)
        assert hall.streams[0].end_count == 1
        return hall.streams[0].asked_count - asked_count

    assert in_the_hall(story) <= 1


def test_a_stream_that_never_waits_gives_others_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the transport takes whatever it is given."""

    async def story(hall: Hall) -> int:
        counts: dict[int, int] = {}
        step = Pieces.next

        async def counted(pieces: Pieces) -> bytes | None:
            turn = hall.world.loop.step_count
            counts[turn] = counts.get(turn, 0) + 1
            return await step(pieces)

        monkeypatch.setattr(Pieces, "next", counted)
        monkeypatch.setattr(HttpConnection, "pause_writing", lambda _: None)
        hall.stream_count = 1000
        line = await hall.line()
        line.send(get("/stream"))
        assert len((await line.page()).body) == 1000 * len(PIECE)
        return max(counts.values())

    assert in_the_hall(story) <= limits.HTTP_STREAM_BYTES_PER_TURN // len(PIECE) + 2


def test_a_stream_that_is_shorter_than_it_said_ends_the_connection() -> None:
    async def story(hall: Hall) -> str:
        errors: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(str(context["exception"]))
        )
        hall.stream_count, hall.length_bytes = 2, 100_000
        line = await hall.line()
        line.send(get("/stream"))
        with pytest.raises(EOFError):
            await line.page()
        assert hall.budget.held_bytes == 0
        return errors[0]

    assert "100000 bytes were announced" in in_the_hall(story)


def test_a_handler_that_fails_is_answered_and_told_of() -> None:
    async def story(hall: Hall) -> tuple[int, bytes, list[str]]:
        errors: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(str(context["exception"]))
        )
        line = await hall.line()
        line.send(get("/bug") + get("/next"))
        return (await line.page()).status, (await line.page()).body, errors

    assert in_the_hall(story) == (500, b"/next ", ["a bug"])


def test_an_answer_without_a_body_has_no_length() -> None:
    async def story(hall: Hall) -> dict[str, str]:
        line = await hall.line()
        line.send(get("/nothing"))
        page = await line.page(has_body=False)
        assert page.status == 204
        return page.headers

    headers = in_the_hall(story)
    assert "content-length" not in headers
    assert "content-type" not in headers
    assert headers["date"].endswith("GMT")


def test_a_door_that_is_paused_keeps_its_answers_back() -> None:
    async def story(hall: Hall) -> list[bytes]:
        polling, streaming = await hall.line(), await hall.line()
        polling.send(get("/poll"))
        streaming.send(get("/stream"))
        await hall.settle()
        streaming.received.clear()
        hall.listener.pause()
        hall.polls[0].release("a message")
        hall.streams[0].put(b"an event")
        await hall.settle(5)
        assert bytes(polling.received + streaming.received) == b""
        hall.listener.resume()
        await hall.settle()
        return [(await polling.page()).body, bytes(streaming.received)]

    assert in_the_hall(story) == [b"a message\n", b"8\r\nan event\r\n"]


def test_a_slow_body_has_time_by_its_size_and_no_more() -> None:
    """A mebibyte at thirty-two kibibytes a second is no attack; a byte a second is."""

    async def story(hall: Hall) -> tuple[bool, bool]:
        patient, greedy = await hall.line(), await hall.line()
        for line in (patient, greedy):
            line.send(get("/echo", "POST", f"Content-Length: {1 << 20}"))
        for _ in range(31):
            patient.send(bytes(1 << 15))
            greedy.send(b"x")
            await hall.sweep_for(1)
        patient.send(bytes(1 << 15))
        return len((await patient.page()).body) > 1 << 20, greedy.closed.done()

    assert in_the_hall(story) == (True, True)


def test_line_ends_between_requests_keep_no_connection() -> None:
    async def story(hall: Hall) -> bool:
        line = await hall.line()
        for _ in range(int(limits.HTTP_IDLE_MS_MAX / 1000) + 10):
            line.send(b"\r\n")
            await hall.sweep_for(1)
        return line.closed.done()

    assert in_the_hall(story)


def test_a_request_that_was_kept_waiting_is_not_late() -> None:
    async def story(hall: Hall) -> bytes:
        line = await hall.line()
        line.send(get("/poll") + b"GET /next HT")
        await hall.sweep_for(3 * limits.HTTP_REQUEST_MS_MAX / 1000)
        hall.polls[0].release("done")
        assert (await line.page()).body == b"done\n"
        await hall.sweep_for(3)
        line.send(b"TP/1.1\r\nHost: n\r\n\r\n")
        return (await line.page()).body

    assert in_the_hall(story) == b"/next "


def test_what_is_being_received_counts_and_small_requests_pass_a_spent_budget() -> None:
    async def story(hall: Hall) -> bytes:
        large, small = await hall.line(), await hall.line()
        large.send(get("/echo", "POST", f"Content-Length: {1 << 20}") + bytes(900_000))
        await hall.settle()
        assert hall.budget.held_bytes >= 900_000
        hall.budget.take(hall.budget.bytes_max)
        small.send(STRANGER)
        assert (await small.page()).body == b"/echo "
        large.send(bytes((1 << 20) - 900_000))
        return (await large.page()).body[:6]

    assert in_the_hall(story) == b"/echo "


def test_one_that_holds_a_spent_budget_and_does_not_move_is_closed() -> None:
    async def story(hall: Hall) -> bool:
        line = await hall.line()
        line.send(get("/echo", "POST", f"Content-Length: {1 << 20}") + bytes(900_000))
        await hall.settle()
        hall.budget.take(hall.budget.bytes_max)
        await hall.sweep_for(5)
        return line.closed.done()

    assert in_the_hall(story)
