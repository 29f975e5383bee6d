"""Damage that a node has found outlives it: the copy is made whole before anybody counts on it."""

import asyncio

import pytest

from ropewalk.client.producer import Producer
from ropewalk.metadata.image import Partition
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at
from tests.cluster.test_cluster_replication import copies, hosted, segment_of, send


@pytest.mark.parametrize("how", ["in order", "killed"])
def test_a_copy_known_to_be_damaged_is_made_whole_before_it_counts_however_its_node_is_restarted(
    how: str,
) -> None:
    """Nobody leads, so nothing can be mended; then the node is started again, and the others come back."""

    async def story(nodes: Nodes) -> None:
        def facts() -> Partition:
            return partition_at(nodes, 0)

        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3)
            await send(Producer(client, "orders"), *(f"record {number}" for number in range(10)))
            victim = nodes.members[3]
            points = nodes[3]._parts.disk.directory.recovery_points
            topic_id = hosted(nodes, 3).topic_id
            await nodes.until(lambda: points.get("orders-0", topic_id) == 10)
            await asyncio.sleep(3)  # until that is on disk
            victim.kill()
            await nodes.until(lambda: set(facts().isr) == {1, 2})
            segment = segment_of(nodes, 3)
            victim.machine.platters.evict()
            segment.rot(len(segment.data) // 10 * 5 + 7, 0x40)
            for other in (1, 2):
                nodes.members[other].kill()
            await nodes.until(lambda: facts().leader is None)
            await victim.start()
            await nodes.until(lambda: nodes.is_serving(3, seen_by=0))
            assert hosted(nodes, 3).log.damaged
            if how == "in order":
                await victim.stop()
            else:
                await asyncio.sleep(2)
                victim.kill()
            await victim.start()
            await nodes.until(lambda: nodes.is_serving(3, seen_by=0))
            assert hosted(nodes, 3).log.damaged
            for other in (1, 2):
                await nodes.members[other].start()
            await nodes.until(lambda: set(facts().isr) == {1, 2, 3})
            assert hosted(nodes, 3).log.damaged == ()
            one, two, three = await copies(nodes, 1, 2, 3)
            assert one == two == three

    in_a_cluster(story, "node.session.timeout.ms=1500", nodes=4)
