"""A client that says where it is reads from the copy there, and from the leader whenever that copy does not serve it.

Over whole nodes, in virtual time.
"""

import asyncio
from itertools import groupby

import pytest

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import CLIENT_LEADER_ONLY_MS
from ropewalk.client.calls import fetch as fetching
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.produce import Acks
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.nearby import Reading
from ropewalk.client.connections.settings import ClientSettings, settings_from
from ropewalk.records.batch import iterate
from tests.client.test_consuming_edges import in_racks, make
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import partition_at
from tests.kafka.door import batch_of

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NodeId]:
    """Whom the client has sent a Fetch, one after the other."""
    nodes: list[NodeId] = []
    ask = fetching._ask

    async def noting(session: object, reading: Reading, *arguments: object) -> object:
        nodes.append(reading.node)
        return await ask(session, reading, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fetching, "_ask", noting)
    return nodes


def client_in(rack: str, nodes: Nodes) -> Client:
    bootstrap = tuple(Address(member.machine.name, KAFKA_PORT) for member in nodes.members.values())
    settings = settings_from({"client.rack": rack}) if rack else ClientSettings()
    clock = nodes.members[0].machine.clock
    return Client(
        nodes.world.network.host("reader"), clock, nodes.world.rng_for("reader"), bootstrap, settings
    )


def in_turn(asked: list[NodeId]) -> list[NodeId]:
    """Without those that were asked once more: a copy hears a moment later how far it may serve."""
    return [node for node, _ in groupby(asked)]


async def read(client: Client, first: int, end: int) -> int:
    """Up to there, and answers how many rounds that took."""
    position, rounds = first, 0
    while position < end:
        for each in await client.fetch({ORDERS: position}):
            for _, header in iterate(each.records):
                position = max(position, header.end_offset)
        rounds += 1
        assert rounds < 100, "it asks in a circle"
    return rounds


@pytest.mark.parametrize(
    ("rack", "expected"),
    [
        pytest.param("rack-2", [1, 2], id="the copy in its rack"),
        pytest.param("rack-1", [1], id="the leader is in its rack"),
        pytest.param("elsewhere", [1], id="nobody is in its rack"),
        pytest.param("", [1], id="it says nothing"),
    ],
)
def test_a_client_reads_from_the_copy_nearby(
    monkeypatch: pytest.MonkeyPatch, asked: list[NodeId], rack: str, expected: list[int]
) -> None:
    in_racks(monkeypatch)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as writer, client_in(rack, nodes) as reader:
            await make(nodes, writer, (1, 2), min_insync_replicas="1")
            for number in range(5):
                await writer.produce("orders", 0, batch_of(str(number)))
            await read(reader, 0, 5)
            assert in_turn(asked) == expected

    in_a_cluster(story)


def test_a_copy_that_dies_or_falls_behind_is_left_for_the_leader(
    monkeypatch: pytest.MonkeyPatch, asked: list[NodeId]
) -> None:
    in_racks(monkeypatch)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as writer, client_in("rack-2", nodes) as reader:
            await make(nodes, writer, (1, 2), min_insync_replicas="1")
            await writer.produce("orders", 0, batch_of("0"))
            await read(reader, 0, 1)
            assert in_turn(asked) == [1, 2]
            nodes.world.network.partition("node1", "node2")
            await writer.produce("orders", 0, batch_of("1"), acks=Acks.LEADER)
            await nodes.until(lambda: partition_at(nodes, 0).isr == (1,), within_s=60)
            asked.clear()
            await read(reader, 1, 2)
            assert in_turn(asked) == [2, 1], "it has nothing to give"
            nodes.world.network.mend_all()
            await nodes.until(lambda: set(partition_at(nodes, 0).isr) == {1, 2}, within_s=60)
            await asyncio.sleep(CLIENT_LEADER_ONLY_MS / 1000)
            asked.clear()
            await read(reader, 0, 1)
            assert in_turn(asked) == [1, 2], "it serves again"
            nodes.members[2].kill()
            asked.clear()
            await read(reader, 0, 1)
            assert asked[-1] == 1
            assert 2 in asked

    in_a_cluster(story)
