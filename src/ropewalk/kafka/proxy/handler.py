"""A request that is passed on in parts, and the answers put together.

Behaviour worth knowing
    What nobody leads, or whose leader cannot be reached, is answered by this node's own handler, which knows that it does not lead it
    either: NOT_LEADER_OR_FOLLOWER, NOT_COORDINATOR and so on, upon which clients ask again.
    Where a node is lost under a request that may have been carried out, the client's connection is closed: it sees what it would have seen had it
    been connected to that node.
"""

import asyncio
from typing import Any

from ropewalk.base.errors import TimedOut
from ropewalk.broker.peers.calls.forward import decoded
from ropewalk.client.errors import ConnectionLost
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.proxy.backends import Backends
from ropewalk.kafka.proxy.routed import Parts, Route
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.forward import ForwardResponse
from ropewalk.wire.types import Message

Sent = asyncio.Future[ForwardResponse] | None
"""None: there was nobody to send it to."""


class Passing:
    """The handler of one API."""

    def __init__(self, route: Route, served: ServedApi, backends: Backends, image: Image) -> None:
        self.route = route
        self._served = served
        self._backends = backends
        self._image = image

    async def handle(self, request: Any, caller: Caller) -> Message | None:
        parts = self.route.split(request, self._image)
        if not parts:
            return await self.answer_here(request, caller)
        sent = await self.send(parts, caller, self.route.wait_ms(request))
        answers = [
            await self.answer(each, part, caller) for each, part in zip(sent, parts.values(), strict=True)
        ]
        known = [answer for answer in answers if answer is not None]
        return self.route.merge(known) if known else None

    def split(self, request: Any) -> Parts:
        return self.route.split(request, self._image)

    async def send(self, parts: Parts, caller: Caller, wait_ms: int) -> list[Sent]:
        """One for each part. The client's next request is looked at when all of them are written, and not before."""
        node_ids = [node_id for node_id in parts if node_id is not None]
        connections = self._backends.ready(node_ids, caller)
        try:
            if connections is None:
                caller.keep_back()
                connections = await self._backends.connect(node_ids, caller)
            return [
                None
                if node_id is None or (connection := connections.get(node_id)) is None
                else self._backends.send(connection, self.route.api, part, caller, wait_ms=wait_ms)
                for node_id, part in parts.items()
            ]
        finally:
            caller.let_go()

    async def answer(self, sent: Sent, part: Message, caller: Caller) -> Message | None:
        if sent is None:
            return await self.answer_here(part, caller)
        try:
            answer = await sent
        except (ConnectionLost, TimedOut) as error:
            if not self.route.is_repeatable:
                raise Disconnect(f"{self.route.api.name} was passed on and not answered: {error}") from None
            return await self.answer_here(part, caller)
        if answer.error_code != ErrorCode.NONE:
            raise Disconnect(f"{self.route.api.name} was passed on and refused: {answer.error_message}")
        if not answer.body:
            return None  # a Produce with acks=0
        response: Message = decoded(self.route.api, caller.version, answer)
        return response

    async def answer_here(self, request: Message, caller: Caller) -> Message | None:
        return await self._served.handle(request, caller)
