"""A client's connection as small as can be: frames out in order, frames in, in order, and one error.

The simulator judges the node, so its clients share as little as possible with the client that ships.
"""

import asyncio
from collections import deque
from typing import Any, Final, TypeVar

from ropewalk.base.ports import Network
from ropewalk.wire.api import Api
from ropewalk.wire.frames import FrameReader, frame
from ropewalk.wire.headers import decode_response_header, encode_request_header
from ropewalk.wire.messages import api_versions
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

TIMEOUT_S: Final = 3.0
FRAME_BYTES_MAX: Final = 1 << 27


class LinkLost(Exception):
    """The connection is gone or too slow; whether a request on it took effect is not known."""


class Link(asyncio.Protocol):
    """Made by `open_link`. Any trouble ends it, and with it every request that waits."""

    def __init__(self, name: str) -> None:
        self.is_open = False
        self._name = name
        self._transport: asyncio.Transport
        self._frames = FrameReader(frame_bytes_max=FRAME_BYTES_MAX)
        self._waiting: deque[tuple[Api[Any, Any], int, int, asyncio.Future[Any], asyncio.TimerHandle]] = (
            deque()
        )
        self._request_count = 0
        self._newest: dict[int, int] = {}

    def send(self, api: Api[Q, R], version: int, request: Q) -> "asyncio.Future[R]":
        """Write the request at once; the future is its answer, or `LinkLost`."""
        correlation_id = self._write(api, version, request)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        timer = loop.call_later(TIMEOUT_S, self.close)
        self._waiting.append((api, version, correlation_id, answer, timer))
        return answer

    def send_unanswered(self, api: Api[Q, R], version: int, request: Q) -> None:
        """Produce with acks=0."""
        self._write(api, version, request)

    def offers(self, api: Api[Q, R]) -> bool:
        return api.key in self._newest

    def newest_version(self, api: Api[Q, R]) -> int:
        return min(self._newest[api.key], api.version_max)

    async def discover(self) -> None:
        api = api_versions.API
        request = api_versions.ApiVersionsRequest(client_software_name="sim", client_software_version="1")
        response = await self.send(api, api.version_max, request)
        self._newest = {offer.api_key: offer.max_version for offer in response.api_keys}

    def close(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._transport.abort()
        while self._waiting:
            *_, answer, timer = self._waiting.popleft()
            timer.cancel()
            if not answer.done():
                answer.set_exception(LinkLost(self._name))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True

    def connection_lost(self, _: Exception | None) -> None:
        self.close()

    def data_received(self, data: bytes) -> None:
        for payload in self._frames.feed(data):
            api, version, correlation_id, answer, timer = self._waiting.popleft()
            timer.cancel()
            answered_id, position = decode_response_header(api, version, payload, 0, len(payload))
            assert answered_id == correlation_id, "answers come in the order of their requests"
            response = api.decode_response(version, payload, position, len(payload))
            if not answer.done():
                answer.set_result(response)

    def _write(self, api: Api[Q, R], version: int, request: Q) -> int:
        if not self.is_open:
            raise LinkLost(self._name)
        self._request_count += 1
        header = encode_request_header(api, version, self._request_count, self._name)
        self._transport.writelines(frame([header, *api.encode_request(version, request)]))
        return self._request_count


async def open_link(network: Network, name: str, address: tuple[str, int]) -> Link:
    link = Link(name)
    try:
        async with asyncio.timeout(1.0):
            await network.connect(lambda: link, *address)
            await link.discover()
    except OSError as error:  # among them TimeoutError
        link.close()
        raise LinkLost(str(error)) from error
    except LinkLost:
        link.close()
        raise
    return link
