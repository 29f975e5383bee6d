"""A queue's topic as Kafka's clients see it: its messages and nothing else, and what they write is received."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable

import pytest

from ropewalk.base.flow import Waiting
from ropewalk.metadata.queues import Queue
from ropewalk.node.life import Node
from ropewalk.queues.messages import Delivered, Outgoing, Sent
from ropewalk.testing import AsyncCluster
from tests.compat.clients import CLIENTS, Client, Kcat, Message

pytestmark = pytest.mark.compat


class Staying:
    """A client that does not go."""

    def begin_wait(self, waiting: Waiting) -> None:
        pass

    def end_wait(self, waiting: Waiting) -> None:
        pass


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def kind(request: pytest.FixtureRequest) -> type[Client]:
    if request.param is Kcat and shutil.which("kcat") is None:
        pytest.skip("kcat is missing (Debian: kcat)")
    kind: type[Client] = request.param
    return kind


def with_node(story: Callable[[Node, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with AsyncCluster() as cluster:
            await story(cluster._named(None).node, cluster.bootstrap)

    asyncio.run(main())


def outgoing(body: bytes) -> Outgoing:
    return Outgoing(body=body, sent_at_ms=time.time_ns() // 1_000_000)


async def receive(node: Node, queue: Queue, *, visibility_ms: int = 30_000) -> list[Delivered]:
    delivered = await node.to_queues.receive(
        queue, count_max=10, visibility_ms=visibility_ms, wait_ms=5000, hold=Staying()
    )
    return list(delivered)


def test_every_client_reads_the_messages_of_a_queue_that_is_used_and_nothing_else(kind: type[Client]) -> None:
    async def story(node: Node, bootstrap: str) -> None:
        queue = await node.queue_changes.create("jobs", attributes={}, tags={}, owner=None)
        bodies = [b"message %d" % number for number in range(100)]
        for start in range(0, 100, 5):
            outcomes = await node.to_queues.send(
                queue, [outgoing(body) for body in bodies[start : start + 5]]
            )
            assert all(isinstance(each, Sent) for each in outcomes)
            delivered = await receive(node, queue)
            kept = [each.receipt for each in delivered if each.record.value != bodies[0]]
            await node.to_queues.delete(queue, kept)
        log = node.partitions.find("jobs", 0).log
        assert log.end_offset >= 120, "there is state between the messages"
        assert log.start_offset <= 1, "the first message is not deleted"
        found = await asyncio.to_thread(kind(bootstrap).consume, "jobs", offset=1, count=100)
        assert [message.value for message in found] == bodies

    with_node(story)


def test_what_a_kafka_producer_writes_into_a_queues_topic_is_received(kind: type[Client]) -> None:
    async def story(node: Node, bootstrap: str) -> None:
        queue = await node.queue_changes.create("jobs", attributes={}, tags={}, owner=None)
        messages = [Message(b"from kafka %d" % number, b"group") for number in range(7)]
        await asyncio.to_thread(kind(bootstrap).produce, "jobs", messages)
        found: list[Delivered] = []
        while len(found) < 7:
            found += await receive(node, queue)
        assert [(each.record.key, each.record.value) for each in found] == [
            (message.key, message.value) for message in messages
        ]

    with_node(story)
