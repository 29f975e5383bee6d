"""Brokers without a door for clients, behind front ends: nobody but nodes of the cluster reaches them."""

from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.messages import list_offsets
from tests.cluster.nodes import KAFKA_PORT, PEER_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_proxy import FRONT, client


def listening(nodes: Nodes) -> set[tuple[str, int]]:
    return set(nodes.world.network._listeners)


def test_brokers_behind_front_ends_are_reached_by_nodes_alone() -> None:
    async def story(nodes: Nodes) -> None:
        await nodes.add(
            FRONT, f"kafka.listen=node{FRONT}:{KAFKA_PORT}", "kafka.route=proxy", roles=("frontend",)
        ).start()
        peers = {(f"node{node_id}", PEER_PORT) for node_id in (0, 1, 2, FRONT)}
        assert listening(nodes) == {*peers, (f"node{FRONT}", KAFKA_PORT)}
        async with client(nodes) as through:
            (outcome,) = (await Admin(through).create_topics([NewTopic("t", 3, 3)])).values()
            assert outcome is None
            for partition in range(3):
                records = build([Record(timestamp=EPOCH_MS, value=b"value")])
                produced = await through.produce("t", partition, bytes(records))
                assert produced.base_offset == 0
        assert {each.leader for each in nodes[0].image.topic("t").partitions} == {0, 1, 2}
        for node_id in range(3):
            assert await is_refused(nodes, node_id)

    in_a_cluster(story, "kafka.listen=none", "sqs.listen=none", "peer.tls=require")


async def is_refused(nodes: Nodes, node_id: int) -> bool:
    """Whether a client gets nothing there, whatever it speaks."""
    machine = nodes.members[node_id].machine
    try:
        connection = await Connection.open(
            nodes.world.network.host("client"),
            machine.clock,
            Address(machine.name, PEER_PORT),
            client_id="client",
            deadline_ms=nodes.world.now_s * 1000 + 5_000,
        )
        await connection.call(
            list_offsets.API,
            list_offsets.ListOffsetsRequest(-1),
            deadline_ms=nodes.world.now_s * 1000 + 5_000,
        )
    except (Unreachable, ConnectionLost):
        return True
    return False
