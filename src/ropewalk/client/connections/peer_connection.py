"""A connection to another node's internal listener, on which both ends have proved that they know the cluster's secret.

What a reader could get wrong
    The answerer proves first. Where its proof is wrong the caller keeps its own to itself, and sends an empty one instead, so that the
    other side can say in its log what happened.
"""

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, TimedOut
from ropewalk.base.limits import PEER_NONCE_BYTES
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ApiNotOffered, ConnectionLost, Unreachable
from ropewalk.security.cluster_secret import ClusterSecret, Handshake, Side, is_nonce
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import hello, prove


class PeerRefused(Unreachable):
    """One of the two ends will not speak with the other. Trying again changes nothing until somebody changes a setting."""


class Credentials(Struct, frozen=True):
    """Who calls."""

    node_id: int
    cluster_id: str | None
    secret: ClusterSecret


class PeerConnection(Struct, frozen=True):
    connection: Connection
    node_id: int
    """Who answers, which is proved, not only claimed."""
    cluster_id: str | None


async def open_peer(
    network: Network,
    clock: Clock,
    rng: Rng,
    address: Address,
    *,
    credentials: Credentials,
    deadline_ms: float,
) -> PeerConnection:
    """Raises `Unreachable`; `PeerRefused` where the other end is there, but not one of us."""
    client_id = f"node-{credentials.node_id}"
    connection = await Connection.open(network, clock, address, client_id=client_id, deadline_ms=deadline_ms)
    try:
        return await _introduce(connection, rng, credentials, deadline_ms)
    except ApiNotOffered:
        connection.close()
        raise PeerRefused(address, "it is not the internal listener of a node") from None
    except (ConnectionLost, ProtocolError, TimedOut) as error:
        connection.close()
        raise Unreachable(address, f"it did not introduce itself: {error}") from None
    except BaseException:
        connection.close()
        raise


async def _introduce(
    connection: Connection, rng: Rng, credentials: Credentials, deadline_ms: float
) -> PeerConnection:
    nonce = rng.randbytes(PEER_NONCE_BYTES)
    greeting = hello.HelloRequest(credentials.node_id, credentials.cluster_id, nonce)
    greeted = await connection.call(hello.API, greeting, deadline_ms=deadline_ms)
    if greeted.error_code != ErrorCode.NONE:
        raise PeerRefused(connection.address, greeted.error_message or ErrorCode(greeted.error_code).name)
    if not is_nonce(greeted.nonce):
        raise ProtocolError(f"a nonce of {len(greeted.nonce)} bytes, {PEER_NONCE_BYTES} were expected")
    handshake = Handshake(nonce, bytes(greeted.nonce), credentials.node_id, greeted.node_id)
    is_ours = credentials.secret.accepts(bytes(greeted.proof), Side.ANSWERER, handshake)
    proof = credentials.secret.prove(Side.CALLER, handshake) if is_ours else b""
    proved = await connection.call(prove.API, prove.ProveRequest(proof), deadline_ms=deadline_ms)
    if not is_ours:
        raise PeerRefused(connection.address, "its cluster.secret is not ours")
    if proved.error_code != ErrorCode.NONE:
        raise PeerRefused(connection.address, proved.error_message or ErrorCode(proved.error_code).name)
    return PeerConnection(connection, greeted.node_id, greeted.cluster_id)
