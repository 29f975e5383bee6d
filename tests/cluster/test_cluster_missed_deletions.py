"""A replica that was away while a deletion came and went: nobody can tell it of the deletion any more."""

import asyncio

from ropewalk.client.producer import Producer
from ropewalk.metadata.image import Partition
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import EPOCH_MS
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at
from tests.cluster.test_cluster_replication import copies, hosted

_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "delete.retention.ms": "0",
    "min.cleanable.dirty.ratio": "0.01",
}


def test_a_replica_that_was_away_does_not_keep_what_was_deleted_meanwhile() -> None:
    """The others have removed a value together with its deletion. Found by simulated clusters, seeds 226 and 287."""

    async def story(nodes: Nodes) -> None:
        def facts() -> Partition:
            return partition_at(nodes, 0)

        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings=_SETTINGS)
            producer = Producer(client, "orders")
            await producer.send([_keyed(b"gone", b"what was deleted")], partition=0)
            for number in range(8):
                await producer.send([_keyed(f"kept {number}".encode(), b"x" * 50)], partition=0)
            await nodes.until(lambda: hosted(nodes, 3).log.durable_offset == 9)
            victim = nodes.members[3]
            victim.kill()
            await nodes.until(lambda: set(facts().isr) == {1, 2})
            await producer.send([_keyed(b"gone", None)], partition=0)
            for number in range(20):
                await asyncio.sleep(1.5)
                await producer.send([_keyed(f"later {number}".encode(), b"x")], partition=0)
            (leading,) = await copies(nodes, facts().leader or 1)
            assert b"what was deleted" not in leading
            await victim.start()
            await nodes.until(lambda: set(facts().isr) == {1, 2, 3})
            (returned,) = await copies(nodes, 3)
            assert b"kept 7" in returned
            assert b"what was deleted" not in returned

    in_a_cluster(story, "node.session.timeout.ms=1500", "log.cleaner.backoff.ms=500", nodes=4)


def test_a_replica_that_missed_no_deletion_keeps_its_copy() -> None:
    """It comes back to the same log, and takes only what follows."""

    async def story(nodes: Nodes) -> None:
        def facts() -> Partition:
            return partition_at(nodes, 0)

        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings={"cleanup.policy": "compact"})
            producer = Producer(client, "orders")
            await _fill(producer, 0, 20)
            victim = nodes.members[3]
            victim.kill()
            await nodes.until(lambda: set(facts().isr) == {1, 2})
            await _fill(producer, 20, 30)
            await victim.start()
            await nodes.until(lambda: set(facts().isr) == {1, 2, 3})
            assert hosted(nodes, 3).appended_bytes < hosted(nodes, 3).log.size_bytes

    in_a_cluster(story, "node.session.timeout.ms=1500", nodes=4)


def _keyed(key: bytes, value: bytes | None) -> Record:
    return Record(timestamp=EPOCH_MS, key=key, value=value)


async def _fill(producer: Producer, first: int, end: int) -> None:
    for number in range(first, end):
        await producer.send([_keyed(f"kept {number}".encode(), b"x" * 50)], partition=0)
