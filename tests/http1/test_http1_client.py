"""The client's side of HTTP against a door of our own: whole answers, lines of an answer without end, and what goes wrong."""

import asyncio

import pytest

from ropewalk.http1.client import ClientConnection
from tests.http1.test_http1_connection import PIECE, Hall, get, in_the_hall


async def client_of(hall: Hall, *, answer_bytes_max: int = 1 << 20) -> ClientConnection:
    network = hall.world.network.host("visitor")
    return await ClientConnection.open(network, "node", 9644, tls=None, answer_bytes_max=answer_bytes_max)


def test_an_answer_in_chunks_is_put_together() -> None:
    async def story(hall: Hall) -> bytes:
        hall.stream_count = 20
        return (await (await client_of(hall)).request(get("/stream"))).body

    assert in_the_hall(story) == 20 * PIECE


def test_an_answer_without_end_is_read_by_lines() -> None:
    async def story(hall: Hall) -> list[bytes | None]:
        client = await client_of(hall)
        client.begin(get("/stream"))
        await hall.settle()
        stream = hall.streams[0]
        first = asyncio.ensure_future(client.line())
        for piece in (b"fir", b"st\nsecond\nthi", b"rd", None):
            stream.put(piece)
            await hall.settle()
        return [await first, *[await client.line() for _ in range(3)]]

    assert in_the_hall(story) == [b"first", b"second", b"third", None]


def test_a_connection_that_the_server_ends_is_not_open() -> None:
    async def story(hall: Hall) -> tuple[int, bool]:
        client = await client_of(hall)
        answer = await client.request(get("/a", "GET", "Connection: close"))
        return answer.status, client.is_open

    assert in_the_hall(story) == (200, False)


def test_an_answer_that_is_too_large_is_an_error() -> None:
    async def story(hall: Hall) -> None:
        hall.stream_count = 20
        client = await client_of(hall, answer_bytes_max=1000)
        with pytest.raises(OSError, match="larger than 1000 bytes"):
            await client.request(get("/stream"))
        assert not client.is_open

    in_the_hall(story)


def test_a_server_that_goes_is_an_error() -> None:
    async def story(hall: Hall) -> None:
        client = await client_of(hall)
        answer = asyncio.ensure_future(client.request(get("/poll")))
        await hall.settle()
        hall.listener.abort()
        with pytest.raises(OSError, match="the connection was lost"):
            await answer

    in_the_hall(story)
