"""Two nodes of a cluster on real sockets: what the simulated network cannot show."""

import asyncio

import pytest

from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.peer_connection import Credentials, PeerRefused, open_peer
from ropewalk.client.errors import ConnectionLost
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.pool import ThreadPool
from ropewalk.runtime.ports import SystemPorts, in_memory
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.wire.messages import list_offsets

SECRET = "a secret of this cluster"
PATIENCE_MS = 30_000


async def start(node_id: int, seeds: tuple[str, ...]) -> tuple[Node, SystemPorts]:
    ports = in_memory()
    options = NodeOptions(
        node_id=node_id,
        kafka="127.0.0.1:0",
        http="none",
        peer="127.0.0.1:0",
        memory=True,
        roles=("broker", "frontend") if seeds else ("broker", "controller", "frontend"),
        seeds=seeds,
        settings=(f"cluster.secret={SECRET}", "telemetry.interval.ms=0", "audit.topic=false"),
    )
    return await life.start(load(options, {}), ports), ports


def test_a_second_node_joins_over_tcp_and_forwards() -> None:
    async def main() -> None:
        first, ports = await start(0, ())
        assert first.peer_address is not None
        peer = Address(*first.peer_address)
        second, other_ports = await start(1, (str(peer),))
        try:
            bootstrap = (Address(*second.kafka_address),)
            async with Client(ports.network, ports.clock, ports.rng, bootstrap) as client:
                (outcome,) = (await Admin(client).create_topics([NewTopic("t", 2)])).values()
                assert outcome is None
            assert second.image.topic("t") == first.image.topic("t")
            await _refuse_strangers(ports, peer)
        finally:
            for node, used in ((second, other_ports), (first, ports)):
                await node.kill()
                assert isinstance(used.pool, ThreadPool)
                used.pool.stop()

    asyncio.run(main())


async def _refuse_strangers(ports: SystemPorts, peer: Address) -> None:
    deadline_ms = ports.clock.monotonic_ms() + PATIENCE_MS
    stranger = await Connection.open(
        ports.network, ports.clock, peer, client_id="stranger", deadline_ms=deadline_ms
    )
    with pytest.raises(ConnectionLost):
        await stranger.call(list_offsets.API, list_offsets.ListOffsetsRequest(-1), deadline_ms=deadline_ms)
    credentials = Credentials(7, None, ClusterSecret("a secret of another cluster"))
    with pytest.raises(PeerRefused):
        await open_peer(
            ports.network, ports.clock, ports.rng, peer, credentials=credentials, deadline_ms=deadline_ms
        )
