"""Forward: a client's request, taken whole to another node and carried out there in the client's name.

What a reader could get wrong
    To the controller goes what changes the cluster (`forward`); to the leader or coordinator, on a connection that carries the requests of
    one client and no others, what a front end passes on (`pass_on`).
"""

import asyncio
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ropewalk.broker.access import NODE
from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.connections.connection import Connection
from ropewalk.wire.api import Api
from ropewalk.wire.peer import forward as wire
from ropewalk.wire.types import Message

T = TypeVar("T")
Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class Sender(Struct, frozen=True):
    """In whose name a request is carried out."""

    principal: str
    client_id: str | None
    host: str
    throttled: str | None = None
    """Why it may not change anything at present."""
    groups: tuple[str, ...] = ()
    method: str = "anonymous"
    """How the name came to be known."""
    listener: str = ""
    """By which of a node's addresses the client came."""


ITSELF: Final = Sender(NODE, None, "", method="node")
"""What a node asks for on its own account: the topics in which it keeps state."""


class Forwarded(Struct, Generic[T], frozen=True):
    response: T
    mutation_count: int
    metadata_offset: int
    """Where the metadata ended when the change was made: a node that has followed so far has seen it."""


def forward(api: Api[Q, R], version: int, request: Q, sender: Sender) -> ControllerCall[Forwarded[R]]:
    def understand(answer: wire.ForwardResponse) -> Forwarded[R]:
        return Forwarded(decoded(api, version, answer), answer.mutation_count, answer.metadata_offset)

    request_of_node = wrapped(api, version, request, sender)
    return controller_call(wire.API, request_of_node, understand, lane=Lane.FORWARDS, refusals=Refusals())


def pass_on(
    connection: Connection, api: Api[Q, R], version: int, request: Q, sender: Sender, *, deadline_ms: float
) -> "asyncio.Future[wire.ForwardResponse]":
    """Written before this returns; `decoded` makes an answer of what comes."""
    request_of_node = wrapped(api, version, request, sender)
    return connection.send(wire.API, wire.API.version_max, request_of_node, deadline_ms=deadline_ms)


def decoded(api: Api[Q, R], version: int, answer: wire.ForwardResponse) -> R:
    body = memoryview(answer.body)
    return api.decode_response(version, body, 0, len(body))


def wrapped(api: Api[Q, R], version: int, request: Q, sender: Sender) -> wire.ForwardRequest:
    """As it travels."""
    return wire.ForwardRequest(
        api_key=api.key,
        api_version=version,
        principal=sender.principal,
        client_id=sender.client_id,
        host=sender.host,
        throttled=sender.throttled,
        groups=sender.groups,
        method=sender.method,
        listener=sender.listener,
        body=b"".join(api.encode_request(version, request)),
    )
