"""Whole clusters whose nodes speak TLS with each other."""

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from ropewalk.base.levels import OURS, PEER_TLS_LEVEL, Software
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import Unreachable
from ropewalk.node.between_nodes import MARK
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from tests.cluster.nodes import PEER_PORT, Nodes, in_a_cluster

BEFORE = Software("0.1.0", 1, 1)


async def write(nodes: Nodes, topic: str) -> None:
    """To a topic with three copies, all of which are in sync in the end."""
    records = build([Record(timestamp=EPOCH_MS, value=b"value")])
    async with nodes.client() as client:
        (outcome,) = (await Admin(client).create_topics([NewTopic(topic, 3, 3)])).values()
        assert outcome is None
        for partition in range(3):
            await client.produce(topic, partition, bytes(records))
        await nodes.until(lambda: all(len(each.isr) == 3 for each in nodes[0].image.topic(topic).partitions))


async def takes_plain(nodes: Nodes, node_id: int) -> bool:
    """Whether ApiVersions is answered without TLS."""
    machine = nodes.members[node_id].machine
    try:
        connection = await Connection.open(
            nodes.world.network.host("stranger"),
            machine.clock,
            Address(machine.name, PEER_PORT),
            client_id="stranger",
            deadline_ms=nodes.world.now_s * 1000 + 5_000,
        )
    except Unreachable:
        return False
    connection.close()
    return True


def plain_links(nodes: Nodes) -> list[str]:
    """Connections without TLS that nodes have to others, apart from those of clients."""
    links = [link for node_id in range(3) for link in nodes[node_id]._parts.place.links._links()]  # type: ignore[union-attr]
    return [
        link.name for link in links if link.connection is not None and link.connection.certificate is None
    ]


@pytest.mark.parametrize("mode", ["require", "auto"])
def test_a_cluster_works_whose_nodes_speak_tls(mode: str) -> None:
    async def story(nodes: Nodes) -> None:
        await write(nodes, "t")
        nodes.members[2].kill()
        await nodes.until(lambda: not nodes.is_serving(2, seen_by=0))
        await nodes.members[2].start()
        await nodes.until(lambda: nodes.is_serving(2, seen_by=1))
        await write(nodes, "another")
        assert [await takes_plain(nodes, node_id) for node_id in range(3)] == [False] * 3

    in_a_cluster(story, f"peer.tls={mode}", seed=1)


def test_a_cluster_goes_from_plain_to_tls_with_the_level() -> None:
    """Nodes that speak no TLS stand for those of the release before."""

    async def story(nodes: Nodes) -> None:
        assert nodes[0].image.level == 1
        await write(nodes, "before")
        for node_id in (2, 1, 0):
            member = nodes.members[node_id]
            await member.stop()
            member.software = OURS
            options = member._options
            settings = tuple("peer.tls=auto" if each == "peer.tls=off" else each for each in options.settings)
            member._options = structs.replace(options, settings=settings)
            with capture_logs() as logs:
                await member.start()
            said = [each["event"] for each in logs if "without TLS where they speak none" in each["event"]]
            assert said, "a directory older than the level is said to be"
            await nodes.until(lambda node_id=node_id: nodes.is_serving(node_id, seen_by=0))  # type: ignore[misc]
            if node_id:
                assert await takes_plain(nodes, node_id)
        await nodes.until(lambda: all(nodes[each].image.level >= PEER_TLS_LEVEL for each in range(3)))
        await write(nodes, "after")
        await nodes.until(lambda: not plain_links(nodes))  # those that there were are renewed
        assert [await takes_plain(nodes, node_id) for node_id in range(3)] == [False] * 3
        for node_id in range(3):
            disk = nodes[node_id]._parts.ports.disk
            await nodes.until(lambda disk=disk: disk.exists(f"/data/{MARK}"))  # type: ignore[misc]
        await nodes.members[2].stop()
        with capture_logs() as logs:
            await nodes.members[2].start()
        assert not [each for each in logs if "without TLS" in each["event"]], (
            "it remembers that the level was in force"
        )

    in_a_cluster(story, "peer.tls=off", software=BEFORE)
