"""A connection to another node's internal listener, on which both ends have proved that they know the cluster's secret.

What a reader could get wrong
    The answerer proves first. Where its proof is wrong the caller keeps its own to itself, and sends an empty one instead, so that the
    other side can say in its log what happened.
    Under TLS the certificate proves nothing by itself, unless an authority vouches for nodes: the secret's proof covers it. A node of the
    release before cannot do that, and is spoken to in the clear, where that is allowed, or not at all.
"""

import hashlib
import ssl

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, TimedOut
from ropewalk.base.limits import PEER_NONCE_BYTES
from ropewalk.base.ports import Clock, Network, Rng, TlsContexts
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ApiNotOffered, ConnectionLost, NotAnswered, Unreachable
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
from ropewalk.wire.peer import hello, prove


class PeerRefused(Unreachable):
    """One of the two ends will not speak with the other. Trying again changes nothing until somebody changes a setting."""


class Credentials(Struct, frozen=True):
    """Who calls."""

    node_id: int
    cluster_id: str | None
    secret: ClusterSecret
    roles: tuple[str, ...] = ()
    channels: PeerChannels = IN_THE_CLEAR


class PeerConnection(Struct, frozen=True):
    connection: Connection
    node_id: int
    """Who answers, which is proved, not only claimed."""
    cluster_id: str | None
    ends_at_ms: float | None
    """When its certificate ends, where an authority vouches for nodes."""
    key: Key
    """The secret that both ends proved."""


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
    connection = await _connect(network, clock, address, credentials, deadline_ms)
    try:
        return await _introduce(connection, clock, rng, credentials, deadline_ms)
    except ApiNotOffered:
        connection.close()
        raise PeerRefused(address, "it is not the internal listener of a node") from None
    except CertificateRefused as error:
        connection.close()
        raise PeerRefused(address, str(error)) from None
    except (ConnectionLost, ProtocolError, TimedOut) as error:
        connection.close()
        raise Unreachable(address, f"it did not introduce itself: {error}") from None
    except BaseException:
        connection.close()
        raise


async def _connect(
    network: Network, clock: Clock, address: Address, credentials: Credentials, deadline_ms: float
) -> Connection:
    """By TLS if this node speaks it; in the clear if the other does not, and it need not."""
    channels = credentials.channels

    async def connect(tls: TlsContexts | None) -> Connection:
        return await Connection.open(
            network,
            clock,
            address,
            client_id=f"node-{credentials.node_id}",
            deadline_ms=deadline_ms,
            tls=tls,
        )

    now_ms = clock.monotonic_ms()
    if not channels.speaks_tls or (channels.takes_plain and channels.is_known_as_plain(str(address), now_ms)):
        return await connect(None)
    try:
        return await connect(channels.calling)
    except ssl.SSLError as error:
        if channels.needs_tls:
            raise PeerRefused(address, f"no TLS with it: {_said(error)}") from None
    except NotAnswered as error:
        if channels.needs_tls:
            raise PeerRefused(address, f"no TLS with it, which peer.tls asks for: {error.reason}") from None
    connection = await connect(None)
    channels.remember_as_plain(str(address), now_ms)
    return connection


async def _introduce(
    connection: Connection, clock: Clock, rng: Rng, credentials: Credentials, deadline_ms: float
) -> PeerConnection:
    nonce, certificate = rng.randbytes(PEER_NONCE_BYTES), connection.certificate
    greeting = hello.HelloRequest(credentials.node_id, credentials.cluster_id, nonce, credentials.roles)
    version = connection.versions.choose(hello.API)
    if version == 0 and certificate is not None:
        raise PeerRefused(connection.address, "it speaks TLS, and says that it cannot bind its proof to that")
    greeted = await connection.call(hello.API, greeting, deadline_ms=deadline_ms)
    if greeted.error_code != ErrorCode.NONE:
        raise PeerRefused(connection.address, greeted.error_message or ErrorCode(greeted.error_code).name)
    if not is_nonce(greeted.nonce):
        raise ProtocolError(f"a nonce of {len(greeted.nonce)} bytes, {PEER_NONCE_BYTES} were expected")
    channel = None
    if version > 0:
        shown = None if certificate is None else hashlib.sha256(certificate).digest()
        channel = Channel(shown, offered_digest(connection.versions.offered), credentials.roles)
    handshake = Handshake(nonce, bytes(greeted.nonce), credentials.node_id, greeted.node_id, channel)
    proofs = (bytes(greeted.proof), bytes(greeted.former_proof))
    key = credentials.secret.proved_by(proofs, Side.ANSWERER, handshake)
    proof = b"" if key is None else key.prove(Side.CALLER, handshake)
    proved = await connection.call(prove.API, prove.ProveRequest(proof), deadline_ms=deadline_ms)
    if key is None:
        raise PeerRefused(connection.address, _not_ours(channel))
    if proved.error_code != ErrorCode.NONE:
        raise PeerRefused(connection.address, proved.error_message or ErrorCode(proved.error_code).name)
    ends_at_ms = credentials.channels.check_other(
        certificate, node_id=greeted.node_id, roles=None, now_ms=clock.now_ms()
    )
    return PeerConnection(connection, greeted.node_id, greeted.cluster_id, ends_at_ms, key)


def _not_ours(channel: Channel | None) -> str:
    if channel is None or channel.certificate_hash is None:
        return "its cluster.secret is not ours"
    return "its cluster.secret is not ours, or somebody stands between who shows a certificate of his own"


def _said(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
