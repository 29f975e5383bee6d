"""How a connection between nodes begins: each end proves to the other that it knows the cluster's secret.

Behaviour worth knowing
    Until then only ApiVersions, Hello and Prove are answered. Anything else is refused with CLUSTER_AUTHORIZATION_FAILED where its answer
    has a place for that, and the connection is closed.
    This end proves first. A caller that does not accept the proof sends an empty one, and is refused like any other.
    A connection has one try, and little time for it: whatever goes wrong closes it.
    The cluster's id is compared before anything is proved, so that a node that was sent to the wrong cluster is told that, and not
    that its secret is wrong.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from ropewalk.base.complaints import Complaints
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import PEER_CONNECT_MS_MAX, PEER_GREETING_BYTES_MAX, PEER_NONCE_BYTES
from ropewalk.base.ports import Clock, Rng
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.served import Handle, ServedApi
from ropewalk.security.cluster_secret import ClusterSecret, Handshake, Side, is_nonce
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.fetch import API as FETCH
from ropewalk.wire.messages.fetch import FetchResponse
from ropewalk.wire.peer import find_controller, hello, prove
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Message

_log = structlog.get_logger()

_UNPROVED: Final = "this connection has not proved that it knows the cluster's secret"


class Admission:
    """What all connections of the internal listener have in common."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        cluster_id: Callable[[], str | None],
        secret: ClusterSecret,
        served: dict[int, ServedApi],
        frame_bytes_max: int,
        rng: Rng,
        clock: Clock,
    ) -> None:
        """`served` is what nodes are served once they have proved that they are."""
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.secret = secret
        self.served = served
        self.frame_bytes_max = frame_bytes_max
        self.rng = rng
        self.refused_count = 0
        self._clock = clock
        self._complaints = Complaints()
        self.refusals = {
            key: ServedApi(api.api, api.version_min, api.version_max, _refusing(api), tally=api.tally)
            for key, api in served.items()
            if key != API_VERSIONS.key
        }

    def admit(self, connection: Connection) -> None:
        """Let a new connection introduce itself, and nothing else."""
        introduction = _Introduction(self, connection)
        connection.serve(introduction.served(), frame_bytes_max=PEER_GREETING_BYTES_MAX)
        asyncio.get_running_loop().call_later(PEER_CONNECT_MS_MAX / 1000, self._give_up, connection)

    def _give_up(self, connection: Connection) -> None:
        """Whoever does not say who it is takes the place of a node."""
        if connection.is_open and connection.peer_id is None:
            self.complain(
                connection.host, None, f"it did not introduce itself within {PEER_CONNECT_MS_MAX} ms"
            )
            connection.close()

    def complain(self, host: str, node_id: int | None, reason: str) -> None:
        """Once in a while: a node with a wrong setting tries again every second."""
        self.refused_count += 1
        if self._complaints.is_due(f"{host} {node_id} {reason}", self._clock.monotonic_ms()):
            _log.warning("a node was refused", client=host, node_id=node_id, reason=reason)


class _Introduction:
    """Of one connection."""

    __slots__ = ("_admission", "_connection", "_handshake")

    def __init__(self, admission: Admission, connection: Connection) -> None:
        self._admission = admission
        self._connection = connection
        self._handshake: Handshake | None = None

    def served(self) -> dict[int, ServedApi]:
        first: Mapping[int, ServedApi] = {
            API_VERSIONS.key: self._admission.served[API_VERSIONS.key],
            hello.API.key: ServedApi(hello.API, 0, hello.API.version_max, self._on_hello),
            prove.API.key: ServedApi(prove.API, 0, prove.API.version_max, self._on_prove),
        }
        return {**self._admission.refusals, **first}

    async def _on_hello(self, request: hello.HelloRequest, caller: Caller) -> hello.HelloResponse:
        admission = self._admission
        ours = admission.cluster_id()
        if not is_nonce(request.nonce) or self._handshake is not None:
            raise Disconnect("a node did not introduce itself as nodes do")
        if request.cluster_id is not None and ours is not None and request.cluster_id != ours:
            reason = f"this is cluster {ours}, the caller belongs to {request.cluster_id}"
            self._refuse(caller, request.node_id, reason)
            return hello.HelloResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)
        nonce = admission.rng.randbytes(PEER_NONCE_BYTES)
        handshake = Handshake(bytes(request.nonce), nonce, request.node_id, admission.node_id)
        self._handshake = handshake
        proof = admission.secret.prove(Side.ANSWERER, handshake)
        return hello.HelloResponse(ErrorCode.NONE, None, admission.node_id, ours, nonce, proof)

    async def _on_prove(self, request: prove.ProveRequest, caller: Caller) -> prove.ProveResponse:
        handshake = self._handshake
        if handshake is None:
            raise Disconnect("a node proved something before it said Hello")
        if not self._admission.secret.accepts(bytes(request.proof), Side.CALLER, handshake):
            reason = f"its cluster.secret is not that of node {self._admission.node_id}"
            self._refuse(caller, handshake.caller_id, reason)
            return prove.ProveResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
        self._connection.peer_id = NodeId(handshake.caller_id)
        self._connection.serve(self._admission.served, frame_bytes_max=self._admission.frame_bytes_max)
        return prove.ProveResponse(ErrorCode.NONE)

    def _refuse(self, caller: Caller, node_id: int, reason: str) -> None:
        self._admission.complain(caller.host, node_id, reason)
        caller.close_when_answered()


def _refusing(served: ServedApi) -> Handle:
    api = served.api

    async def refuse(_: Message, caller: Caller) -> Message:
        caller.close_when_answered()
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if issubclass(api.response, ControllerAnswer):
            return api.response(error_code=code, error_message=_UNPROVED)
        if api is FETCH:
            return FetchResponse(throttle_ms=0, error_code=code)
        if api is find_controller.API:
            return find_controller.FindControllerResponse(code)
        raise Disconnect(f"{api.name}: {_UNPROVED}")

    return refuse
