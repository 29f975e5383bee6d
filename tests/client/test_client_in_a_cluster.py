"""The client over three whole nodes of which one after the other is killed, in virtual time: exactly once holds.

A writer sends numbers; two workers turn them into other numbers, each list in a transaction; a reader sees every one once. Whoever
meets an error that its page says to start over for starts over.
"""

import asyncio
import random
from collections import Counter

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.administration.for_applications import Admin
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.errors import OutcomeUnknown
from ropewalk.client.producing.producer import Producer
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster

NUMBERS = 150
PARTITIONS = 3


class HostPorts:
    """A machine of its own for each client."""

    def __init__(self, nodes: Nodes, name: str) -> None:
        self.network: Network = nodes.world.network.host(name)
        self.clock: Clock = nodes.members[0].machine.clock
        self.rng: Rng = nodes.world.rng_for(name)


class Story:
    def __init__(self, nodes: Nodes, protocol: str) -> None:
        self.nodes = nodes
        self.protocol = protocol
        self.bootstrap = ",".join(f"node{node_id}:{KAFKA_PORT}" for node_id in range(3))
        self.is_written = False
        self.is_over = False
        self.restarts = 0

    def producer(self, name: str, transactional_id: str | None = None) -> Producer:
        return Producer(
            self.bootstrap,
            ports=HostPorts(self.nodes, name),
            transactional_id=transactional_id,
            transaction_timeout_ms=10_000,
        )

    def consumer(self, name: str, group: str | None) -> Consumer:
        return Consumer(
            self.bootstrap,
            group=group,
            ports=HostPorts(self.nodes, name),
            group_protocol=self.protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=500,
            session_timeout_ms=6_000,
            max_poll_records=9,
        )

    async def write(self) -> None:
        async with self.producer("writer") as producer:
            for number in range(NUMBERS):
                await producer.send("numbers", b"%d" % number, partition=number % PARTITIONS)
                await asyncio.sleep(0.1)
        self.is_written = True

    async def work(self, name: str) -> None:
        while not self.is_over:
            try:
                await self._work(name)
            except RopewalkError:
                self.restarts += 1
                await asyncio.sleep(0.5)

    async def _work(self, name: str) -> None:
        async with self.producer(name, name) as producer, self.consumer(f"{name}-in", "workers") as consumer:
            consumer.subscribe("numbers")
            while not self.is_over:
                messages = await consumer.poll(timeout_ms=500)
                if not messages:
                    continue
                await producer.begin_transaction()
                for message in messages:
                    await producer.send("results", message.value)
                await producer.send_offsets_to_transaction(consumer.positions(), consumer.group_identity())
                await _committed(producer)

    async def kill_nodes(self, dice: random.Random) -> None:
        while not self.is_written:
            await asyncio.sleep(dice.uniform(1, 4))
            member = self.nodes.members[dice.randrange(3)]
            member.kill()
            await asyncio.sleep(dice.uniform(0.2, 3))
            await member.start()

    async def read(self) -> Counter[bytes]:
        """Until everything has been seen, and whatever may come too much has had time to come."""
        seen: Counter[bytes] = Counter()
        async with self.consumer("reader", None) as consumer:
            consumer.assign([TopicPartition("results", index) for index in range(PARTITIONS)])
            while len(seen) < NUMBERS:
                seen.update(message.value for message in await consumer.poll(timeout_ms=1000))
            for _ in range(20):
                seen.update(message.value for message in await consumer.poll(timeout_ms=1000))
        self.is_over = True
        return seen


async def _committed(producer: Producer) -> None:
    while True:
        try:
            await producer.commit_transaction()
            return
        except OutcomeUnknown:
            continue


@pytest.mark.parametrize(("seed", "protocol"), [(0, "classic"), (1, "consumer")])
def test_every_number_is_turned_once_while_nodes_are_killed(seed: int, protocol: str) -> None:
    async def story(nodes: Nodes) -> None:
        told = Story(nodes, protocol)
        async with Admin(told.bootstrap, ports=HostPorts(nodes, "admin")) as admin:
            for topic in ("numbers", "results"):
                await admin.create_topic(topic, partitions=PARTITIONS, replication_factor=3)
        async with asyncio.TaskGroup() as group:
            group.create_task(told.write())
            group.create_task(told.kill_nodes(nodes.world.rng_for("killer")))
            for name in ("worker-a", "worker-b"):
                group.create_task(told.work(name))
            seen = await told.read()
        assert seen == Counter(b"%d" % number for number in range(NUMBERS))

    in_a_cluster(story, "group.initial.rebalance.delay.ms=0", seed=seed, with_etcd=True)


def test_a_partition_with_much_to_read_does_not_wait_for_idle_ones() -> None:
    """Its leader is asked for the idle ones while enough of it lies ready; that question must not keep it from its turn."""

    async def story(nodes: Nodes) -> None:
        told = Story(nodes, "classic")
        async with Admin(told.bootstrap, ports=HostPorts(nodes, "admin")) as admin:
            await admin.create_topic("numbers", partitions=9, replication_factor=3)
        async with told.producer("writer") as producer:
            for number in range(40):
                await producer.send("numbers", b"%d" % number, partition=0)
                await producer.flush()
        clock = nodes.members[0].machine.clock
        async with Consumer(
            told.bootstrap,
            ports=HostPorts(nodes, "reader"),
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=1,  # one batch at a time
        ) as consumer:
            consumer.assign([TopicPartition("numbers", index) for index in range(9)])
            seen = [message.value for message in await consumer.poll(timeout_ms=10_000)]
            began_ms = clock.now_ms()
            while len(seen) < 40:
                await asyncio.sleep(0.05)  # who polls at once never has enough lying ready
                seen += [message.value for message in await consumer.poll(timeout_ms=10_000)]
            took_ms = clock.now_ms() - began_ms
        assert seen == [b"%d" % number for number in range(40)]
        assert took_ms < 4_000, "in virtual time: every second answer waited for half a second before"

    in_a_cluster(story, seed=3)
