"""The data directory of one node is put back to a copy from before: what it lacks was acknowledged, so nobody counts on it."""

import asyncio

import pytest

from ropewalk.client.producer import Producer
from ropewalk.metadata.image import Partition
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at
from tests.cluster.test_cluster_replication import copies, send

SESSION = "node.session.timeout.ms=1500"


async def copy_then_write(nodes: Nodes, producer: Producer, *, taken: str) -> None:
    """Node 3 is put back to a copy from before it acknowledged ten records, and is not running."""
    victim = nodes.members[3]
    await send(producer, "before")
    if taken == "in order":
        await victim.stop()
    else:
        victim.kill()
    put_back = victim.machine.platters.copy()
    await victim.start()
    await nodes.until(lambda: set(facts_of(nodes).isr) == {1, 2, 3})
    await send(producer, *(f"record {number}" for number in range(10)))
    victim.kill()
    put_back()


def facts_of(nodes: Nodes) -> Partition:
    return partition_at(nodes, 0)


@pytest.mark.parametrize("taken", ["in order", "killed"])
def test_a_replica_put_back_to_an_earlier_copy_does_not_lead_with_what_it_has(taken: str) -> None:
    """It is the only one that is there, and by its id the one that was in sync."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3)
            await copy_then_write(nodes, Producer(client, "orders"), taken=taken)
            for other in (1, 2):
                nodes.members[other].kill()
            await nodes.until(lambda: facts_of(nodes).leader is None)
            await nodes.members[3].start()
            await nodes.until(lambda: nodes.is_serving(3, seen_by=0))
            await asyncio.sleep(3)
            assert facts_of(nodes).leader is None
            assert 3 not in (*facts_of(nodes).isr, *facts_of(nodes).eligible)
            for other in (1, 2):
                await nodes.members[other].start()
            await nodes.until(lambda: set(facts_of(nodes).isr) == {1, 2, 3})
            one, two, three = await copies(nodes, 1, 2, 3)
            assert one == two == three
            assert b"record 9" in three

    in_a_cluster(story, SESSION, nodes=4)


def test_a_replica_that_was_put_back_is_trusted_again_once_it_has_everything() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3)
            await copy_then_write(nodes, Producer(client, "orders"), taken="in order")
            directory = nodes[0].image.brokers[nodes[3].node_id].directory
            await nodes.members[3].start()
            await nodes.until(lambda: set(facts_of(nodes).isr) == {1, 2, 3})
            assert nodes[0].image.brokers[nodes[3].node_id].directory != directory
            directory = nodes[0].image.brokers[nodes[3].node_id].directory
            epoch = facts_of(nodes).leader_epoch
            for _ in range(2):
                nodes.members[3].kill()
                await nodes.members[3].start()
                await nodes.until(lambda: set(facts_of(nodes).isr) == {1, 2, 3})
            assert nodes[0].image.brokers[nodes[3].node_id].directory == directory
            assert facts_of(nodes).leader_epoch >= epoch

    in_a_cluster(story, SESSION, nodes=4)
