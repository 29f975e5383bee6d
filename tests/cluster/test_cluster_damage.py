"""Damage that a node has found outlives it: the copy is made whole before anybody counts on it."""

import asyncio

import pytest

from ropewalk.base.errors import StorageFailed
from ropewalk.client.producer import Producer
from ropewalk.metadata.image import Partition
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import EPOCH_MS
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


def test_a_damaged_copy_of_a_compacted_topic_does_not_keep_what_was_deleted_meanwhile() -> None:
    """The others have removed a value together with its deletion, so nobody can tell of it. Found by a simulated cluster, seed 16."""

    async def story(nodes: Nodes) -> None:
        def facts() -> Partition:
            return partition_at(nodes, 0)

        settings = {
            "cleanup.policy": "compact",
            "segment.ms": "1000",
            "delete.retention.ms": "0",
            "min.cleanable.dirty.ratio": "0.01",
        }
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings=settings)
            producer = Producer(client, "orders")
            await producer.send([_keyed(b"gone", b"what was deleted")], partition=0)
            for number in range(8):
                await producer.send([_keyed(f"kept {number}".encode(), b"x" * 50)], partition=0)
            await producer.send([_keyed(b"gone", None)], partition=0)
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
            for number in range(20):
                await asyncio.sleep(1.5)
                await producer.send([_keyed(f"later {number}".encode(), b"x")], partition=0)
            (leading,) = await copies(nodes, facts().leader or 1)
            assert b"what was deleted" not in leading
            await victim.start()
            await nodes.until(lambda: set(facts().isr) == {1, 2, 3})
            with pytest.raises(StorageFailed, match="damaged"):
                await copies(nodes, 3)
            await nodes.until(lambda: set(facts().isr) == {1, 2})
            await nodes.until(lambda: set(facts().isr) == {1, 2, 3})
            (mended,) = await copies(nodes, 3)
            assert b"what was deleted" not in mended

    in_a_cluster(story, "node.session.timeout.ms=1500", "log.cleaner.backoff.ms=500", nodes=4)


def _keyed(key: bytes, value: bytes | None) -> Record:
    return Record(timestamp=EPOCH_MS, key=key, value=value)
