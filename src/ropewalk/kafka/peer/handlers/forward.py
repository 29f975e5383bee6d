"""Forward: a client's request that another node received, carried out here in that client's name.

Behaviour worth knowing
    What changes the cluster is taken only by the node that decides; anybody else says NOT_CONTROLLER.
    What a front end passes on for a client is taken by everybody, on a connection that carries that client's requests and no others.
    The client's quotas are charged where it is connected: the answer says how much it has changed, and the request whether it may
    change anything more.
    Changes of one connection come from many clients, so none waits for the one before it; only their answers are in order.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ropewalk.base.errors import InvalidRequest, NotController, ProtocolError, RopewalkError, Throttled
from ropewalk.base.flow import Waiting
from ropewalk.base.ids import NodeId
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.image import Image
from ropewalk.security.identity import Identity
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.produce import API as PRODUCE
from ropewalk.wire.peer.forward import ForwardRequest, ForwardResponse
from ropewalk.wire.types import Message


class Deciding(Protocol):
    @property
    def decides(self) -> bool: ...

    @property
    def image(self) -> Image: ...


async def handle(
    request: ForwardRequest,
    caller: Caller,
    *,
    cluster: Deciding,
    forwarded: Mapping[int, ServedApi],
    routed: Mapping[int, ServedApi],
) -> ForwardResponse:
    try:
        if request.api_key in routed:
            return await _for_one_client(request, caller, routed[request.api_key])
        if not cluster.decides:
            raise NotController(f"node {cluster.image.controller_id} is the controller")
        if request.api_key not in forwarded:
            raise InvalidRequest(f"API key {request.api_key} is not forwarded")
        served = forwarded[request.api_key]
        asked = _decoded(request, served)
    except ProtocolError as error:
        return ForwardResponse(ErrorCode.INVALID_REQUEST, str(error))
    except RopewalkError as error:
        return ForwardResponse(code_for(error), str(error))
    meter = _RemoteMeter(request.throttled)
    client = Caller(
        _Elsewhere(caller.peer_id),
        client_id=request.client_id,
        host=request.host,
        version=request.api_version,
        meter=meter,
        identity=_identity(request),
        listener=request.listener,
    )
    answer = await served.handle(asked, client)
    assert answer is not None, f"{served.api.name} is always answered"
    return ForwardResponse(
        ErrorCode.NONE,
        None,
        cluster.image.settled_offset,
        meter.mutation_count,
        b"".join(served.api.encode_response(request.api_version, answer)),
    )


async def _for_one_client(request: ForwardRequest, caller: Caller, served: ServedApi) -> ForwardResponse:
    """The connection carries the requests of one client only, so they hold each other back as the client's own would."""
    asked = _decoded(request, served)
    client = caller.on_behalf(
        identity=_identity(request),
        listener=request.listener,
        client_id=request.client_id,
        host=request.host,
        version=request.api_version,
    )
    answer = await served.handle(asked, client)
    if answer is None:
        return ForwardResponse(ErrorCode.NONE)
    body = b"".join(served.api.encode_response(request.api_version, answer))
    return ForwardResponse(ErrorCode.NONE, body=body)


def _identity(request: ForwardRequest) -> Identity:
    """As the node found it that the client is connected to. When it ends is seen to there."""
    return Identity(request.principal, request.groups, request.method)


def _decoded(request: ForwardRequest, served: ServedApi) -> Message:
    if not served.version_min <= request.api_version <= served.version_max:
        raise InvalidRequest(f"{served.api.name} v{request.api_version} is not served")
    # Record batches are stamped in place, so they need bytes of their own that may be written to.
    body = memoryview(bytearray(request.body) if served.api is PRODUCE else request.body)
    decoded: Message = served.api.decode_request(request.api_version, body, 0, len(body))
    return decoded


class _RemoteMeter:
    """Quotas of a client that is connected elsewhere."""

    __slots__ = ("_throttled", "mutation_count")

    def __init__(self, throttled: str | None) -> None:
        self._throttled = throttled
        self.mutation_count = 0

    def fetch_bytes_max(self, bytes_max: int) -> int:
        return bytes_max

    def check_mutations(self) -> None:
        if self._throttled is not None:
            raise Throttled(self._throttled)

    def charge_mutations(self, partition_count: int) -> None:
        self.mutation_count += partition_count


class _Elsewhere:
    """The connection of a client that is connected elsewhere, where its next request is kept back."""

    def __init__(self, peer_id: NodeId | None) -> None:
        self.peer_id = peer_id

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass

    def begin_wait(self, waiting: Waiting) -> None:
        pass

    def end_wait(self, waiting: Waiting) -> None:
        pass

    def watch_end(self, on_end: Callable[[], None]) -> None:
        pass

    def unwatch_end(self, on_end: Callable[[], None]) -> None:
        pass

    def end_input(self) -> None:
        pass

    def report(self, reason: str) -> None:
        pass
