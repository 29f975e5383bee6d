"""The internal listener: the Kafka door's machinery with a table of its own, behind an introduction."""

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import PEER_CONNECTIONS_MAX, PEER_ENVELOPE_BYTES
from ropewalk.base.ports import Clock, Network
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.peer.apis import PEER_APIS
from ropewalk.kafka.peer.introduction import Admission
from ropewalk.metadata.image import Image
from ropewalk.wire.messages.produce import API as PRODUCE
from ropewalk.wire.peer.forward import API as FORWARD


def peer_connections(clock: Clock, *, request_bytes_max: int, idle_ms_max: int) -> Connections:
    """`request_bytes_max` is what clients may send; nodes may wrap it once. No client quota applies between nodes."""
    return Connections(
        clock,
        ClientQuotas(Image()),
        flexible_since={api.key: api.flexible_since for api in PEER_APIS},
        frame_bytes_max=request_bytes_max + PEER_ENVELOPE_BYTES,
        count_max=PEER_CONNECTIONS_MAX,
        count_per_host_max=PEER_CONNECTIONS_MAX,
        idle_ms_max=idle_ms_max,
        large_api_keys=(PRODUCE.key, FORWARD.key),
    )


async def listen_to_peers(
    network: Network,
    host: str,
    port: int,
    *,
    connections: Connections,
    admission: Admission,
    budget: ByteBudget,
) -> KafkaListener:
    """Raises `OSError` where the address cannot be had."""
    channels = admission.channels

    def accept() -> Connection:
        connection = Connection(connections, {}, budget)
        admission.admit(connection)
        return connection

    listener = await network.listen(
        accept,
        host,
        port,
        tls=channels.listening if channels.speaks_tls else None,
        takes_plain=lambda: channels.takes_plain,
    )
    return KafkaListener((listener,), connections, budget)
