"""How a connection between nodes begins: each end proves to the other that it knows the cluster's secret.

Behaviour worth knowing
    Until then only ApiVersions, Hello and Prove are answered. Anything else is refused with CLUSTER_AUTHORIZATION_FAILED where its answer
    has a place for that, and the connection is closed.
    This end proves first. A caller that does not accept the proof sends an empty one, and is refused like any other.
    A connection has one try, and little time for it: whatever goes wrong closes it.
    A node says what it is, and is served what those with its roles may ask (`apis.py`). Where an authority vouches for nodes, its
    certificate must let it be that.
    The cluster's id is compared before anything is proved, so that a node that was sent to the wrong cluster is told that, and not
    that its secret is wrong.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import structlog
from msgspec import structs

from ropewalk.base.complaints import Complaints
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    PEER_CONNECT_MS_MAX,
    PEER_GREETING_BYTES_MAX,
    PEER_NONCE_BYTES,
    PEER_PLAIN_KEPT_MS,
    PEER_RENEWED_MS,
)
from ropewalk.base.ports import Clock, Rng
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.peer.apis import ASKERS, advertised
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.security.cluster_secret import (
    Channel,
    ClusterSecret,
    Handshake,
    Key,
    Side,
    is_nonce,
    offered_digest,
)
from ropewalk.security.identity import CertificateRefused
from ropewalk.security.peer_channels import IN_THE_CLEAR, PeerChannels
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.fetch import API as FETCH
from ropewalk.wire.messages.fetch import FetchResponse
from ropewalk.wire.peer import find_controller, hello, prove
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.peer.register_node import API as REGISTER_NODE
from ropewalk.wire.types import Message

_log = structlog.get_logger()

_ROLES: Final = frozenset(ALL_ROLES)
_NOT_OURS: Final = "its cluster.secret is not that of node {}"
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
        channels: PeerChannels = IN_THE_CLEAR,
    ) -> None:
        """`served` is what nodes are served once they have proved that they are, as far as their roles ask it."""
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.secret = secret
        self.channels = channels
        self.served = served
        self.offered = offered_digest(
            (each.api_key, each.min_version, each.max_version) for each in advertised()
        )
        self.frame_bytes_max = frame_bytes_max
        self.rng = rng
        self.refused_count = 0
        self._clock = clock
        self._complaints = Complaints()
        self._proved: dict[Connection, Key] = {}
        """Every connection that is let in, and the secret by which it was."""
        self._by_roles: dict[frozenset[str], dict[int, ServedApi]] = {}
        self.refusals = {
            key: _refused(api, _UNPROVED) for key, api in served.items() if key != API_VERSIONS.key
        }

    def admit(self, connection: Connection) -> None:
        """Let a new connection introduce itself, and nothing else."""
        introduction = _Introduction(self, connection)
        connection.serve(introduction.served(), frame_bytes_max=PEER_GREETING_BYTES_MAX)
        asyncio.get_running_loop().call_later(PEER_CONNECT_MS_MAX / 1000, self._give_up, connection)

    def remember(self, connection: Connection, key: Key) -> None:
        """It has proved itself by `key`, and is let go when that is not accepted any more."""
        self._proved[connection] = key
        connection.watch_end(lambda: self._forget(connection))

    async def run(self) -> None:
        """End connections whose secret or certificate was withdrawn, and after a while those without TLS where it is asked for."""
        seen_count, revoked, plain_ends_at_ms = self.secret.change_count, self.channels.revoked, None
        while True:
            await asyncio.sleep(PEER_RENEWED_MS / 1000)
            if self.secret.change_count != seen_count:
                seen_count = self.secret.change_count
                self._end_withdrawn()
            if self.channels.revoked is not revoked:
                revoked = self.channels.revoked
                self._end_revoked()
            now_ms = self._clock.monotonic_ms()
            if not self.channels.needs_tls:
                plain_ends_at_ms = now_ms + PEER_PLAIN_KEPT_MS
            elif plain_ends_at_ms is not None and now_ms >= plain_ends_at_ms:
                plain_ends_at_ms = None  # no other can be made
                self._end_plain()

    def _end_withdrawn(self) -> None:
        for connection, key in list(self._proved.items()):
            if not self.secret.knows(key):
                connection.close(f"the secret that node {connection.peer_id} proved is not accepted any more")

    def _end_revoked(self) -> None:
        for connection in list(self._proved):
            if self.channels.is_revoked(connection.tls):
                connection.close(f"the certificate of node {connection.peer_id} was revoked")

    def _end_plain(self) -> None:
        for connection in list(self._proved):
            if connection.tls is None:
                connection.close(
                    f"node {connection.peer_id} does not speak TLS, which peer.tls asks for here"
                )

    def _forget(self, connection: Connection) -> None:
        self._proved.pop(connection, None)

    def table(self, roles: frozenset[str] | None) -> dict[int, ServedApi]:
        """What a node is served that says to have these roles; None: it did not say any, as nodes of the release before."""
        if roles is None:
            return self.served
        table = self._by_roles.get(roles)
        if table is None:
            table = self._by_roles[roles] = {
                key: self._for_roles(api, roles) for key, api in self.served.items()
            }
        return table

    def check_other(self, connection: Connection, node_id: int, roles: frozenset[str] | None) -> float | None:
        """When the caller's certificate ends, if that counts. Raises `CertificateRefused` for one that is not its own."""
        tls = connection.tls
        if tls is None and self.channels.needs_tls:
            raise CertificateRefused("it does not speak TLS, which peer.tls asks for here")
        return self.channels.check_other(
            None if tls is None else tls.getpeercert(binary_form=True),
            node_id=node_id,
            roles=roles,
            now_ms=self._clock.now_ms(),
        )

    def _for_roles(self, api: ServedApi, roles: frozenset[str]) -> ServedApi:
        key = api.api.key
        if key not in ASKERS or not ASKERS[key].include(roles):
            return _refused(
                api,
                f"a node that is {' and '.join(sorted(roles)) or 'nothing'} may not ask {api.api.name}",
                self,
            )
        if key == REGISTER_NODE.key:
            handle: Callable[..., Coroutine[Any, None, Message | None]] = api.handle
            return structs.replace(api, handle=partial(handle, roles=roles))
        return api

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

    __slots__ = ("_admission", "_connection", "_ends_at_ms", "_handshake", "_roles")

    def __init__(self, admission: Admission, connection: Connection) -> None:
        self._admission = admission
        self._connection = connection
        self._handshake: Handshake | None = None
        self._roles: frozenset[str] | None = None
        self._ends_at_ms: float | None = None

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
        try:
            channel = self._channel(request, caller.version)
        except CertificateRefused as error:
            self._refuse(caller, request.node_id, str(error))
            return hello.HelloResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, str(error))
        nonce = admission.rng.randbytes(PEER_NONCE_BYTES)
        handshake = Handshake(bytes(request.nonce), nonce, request.node_id, admission.node_id, channel)
        self._handshake = handshake
        secret = admission.secret
        return hello.HelloResponse(
            ErrorCode.NONE,
            None,
            admission.node_id,
            ours,
            nonce,
            secret.prove(Side.ANSWERER, handshake),
            b"" if channel is None else secret.prove_former(Side.ANSWERER, handshake),
        )

    def _channel(self, request: hello.HelloRequest, version: int) -> Channel | None:
        """What the proofs are bound to. Raises `CertificateRefused`."""
        admission, tls = self._admission, self._connection.tls
        if version == 0 and tls is not None:
            raise CertificateRefused("it speaks TLS, and does not bind its proof to that")
        if version > 0:
            if not _ROLES.issuperset(request.roles):
                raise CertificateRefused(
                    f"it says that it is {', '.join(request.roles)}, which nobody can be"
                )
            self._roles = frozenset(request.roles)
        self._ends_at_ms = admission.check_other(self._connection, request.node_id, self._roles)
        if version == 0:
            return None
        return Channel(admission.channels.shown(tls), admission.offered, request.roles)

    async def _on_prove(self, request: prove.ProveRequest, caller: Caller) -> prove.ProveResponse:
        handshake = self._handshake
        if handshake is None:
            raise Disconnect("a node proved something before it said Hello")
        key = self._admission.secret.proved_by((bytes(request.proof),), Side.CALLER, handshake)
        if key is None:
            reason = _NOT_OURS.format(self._admission.node_id)
            if handshake.channel is not None and handshake.channel.certificate_hash is not None:
                reason += ", or somebody stands between"
            self._refuse(caller, handshake.caller_id, reason)
            return prove.ProveResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
        self._connection.peer_id = NodeId(handshake.caller_id)
        self._admission.remember(self._connection, key)
        table = self._admission.table(self._roles)
        self._connection.serve(table, frame_bytes_max=self._admission.frame_bytes_max)
        if self._ends_at_ms is not None:
            self._connection.end_at(self._ends_at_ms, f"node {handshake.caller_id}")
        return prove.ProveResponse(ErrorCode.NONE)

    def _refuse(self, caller: Caller, node_id: int, reason: str) -> None:
        self._admission.complain(caller.host, node_id, reason)
        caller.close_when_answered()


def _refused(served: ServedApi, reason: str, admission: Admission | None = None) -> ServedApi:
    """The same API for those who may not ask it; `admission` says so in the log."""
    api = served.api

    async def refuse(_: Message, caller: Caller) -> Message:
        caller.close_when_answered()
        if admission is not None:
            admission.complain(caller.host, caller.peer_id, reason)
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if issubclass(api.response, ControllerAnswer):
            return api.response(error_code=code, error_message=reason)
        if api is FETCH:
            return FetchResponse(throttle_ms=0, error_code=code)
        if api is find_controller.API:
            return find_controller.FindControllerResponse(code)
        raise Disconnect(f"{api.name}: {reason}")

    return ServedApi(api, served.version_min, served.version_max, refuse, tally=served.tally)
