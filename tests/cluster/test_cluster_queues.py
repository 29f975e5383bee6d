"""Queues that are made, changed and deleted through any node, as facts that all nodes have."""

from collections.abc import Sequence

import pytest

from ropewalk.base.errors import (
    InvalidQueue,
    MoveTaskRunning,
    NotInForce,
    QueueDeletedRecently,
    QueueExists,
    TimedOut,
    UnknownMoveTask,
    UnknownQueue,
)
from ropewalk.base.levels import Software
from ropewalk.broker.topics.queues import QueueChanges
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.metadata.queues import Queue
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.sqs.engine import Facts
from ropewalk.wire.error_code import ErrorCode
from tests.cluster.nodes import Nodes, in_a_cluster

NODES = (0, 1, 2)
"""The first decides."""


def changes_at(nodes: Nodes, node_id: int) -> QueueChanges:
    return nodes[node_id].queue_changes


def facts_at(nodes: Nodes, node_id: int) -> Facts:
    return nodes[node_id].image.queues


async def make(nodes: Nodes, node_id: int, name: str, topic: str | None = None, **attributes: str) -> Queue:
    return await changes_at(nodes, node_id).create(
        name, attributes=attributes, tags={}, owner=None, topic=topic, from_latest=topic is not None
    )


def seen(nodes: Nodes, name: str) -> Sequence[Queue | None]:
    return [facts_at(nodes, node_id).get(name) for node_id in NODES]


@pytest.mark.parametrize("node_id", NODES)
def test_a_queue_is_made_changed_and_deleted_through_any_node_and_made_anew(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        changes, facts = changes_at(nodes, node_id), facts_at(nodes, node_id)
        dead = await make(nodes, node_id, "dead")
        made = await changes.create(
            "jobs",
            attributes={"VisibilityTimeout": "5"},
            tags={"team": "a"},
            owner="me",
            partition_count=3,
        )
        assert facts.get("jobs") is made
        image = nodes[node_id].image
        leaders = [partition.leader for partition in image.topic("jobs").partitions]
        assert len(leaders) == 3
        assert None not in leaders
        assert (made.attributes, made.tags, made.owner) == ({"VisibilityTimeout": "5"}, {"team": "a"}, "me")

        policy = '{"deadLetterTargetArn":"arn:aws:sqs:here:000000000000:dead","maxReceiveCount":3}'
        await changes.change("jobs", {"RedrivePolicy": policy, "VisibilityTimeout": None})
        await changes.tag("jobs", {"team": None, "cost": "low"})
        changed = facts.get("jobs")
        assert changed is not None
        assert (changed.attributes, changed.tags) == ({"RedrivePolicy": policy}, {"cost": "low"})
        assert (changed.queue_id, changed.topic_id) == (made.queue_id, made.topic_id)
        assert facts.sources_of("dead") == ("jobs",)
        assert facts.names() == ["dead", "jobs"]

        await changes.delete("jobs")
        assert facts.get("jobs") is None
        assert facts.sources_of("dead") == ()
        assert "jobs" not in image.topics
        again = await make(nodes, node_id, "jobs")
        assert again.queue_id != made.queue_id
        assert again.topic_id != made.topic_id
        await nodes.until(lambda: seen(nodes, "jobs") == [again] * 3)
        assert seen(nodes, "dead") == [dead] * 3

    in_a_cluster(story)


@pytest.mark.parametrize("node_id", NODES)
def test_refusals_are_the_same_through_any_node(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        changes = changes_at(nodes, node_id)
        made = await make(nodes, node_id, "jobs", DelaySeconds="1")
        assert await make(nodes, node_id, "jobs", DelaySeconds="1") is made
        with pytest.raises(QueueExists, match="different value for attribute DelaySeconds") as refused:
            await make(nodes, node_id, "jobs", DelaySeconds="2")
        assert refused.value.attribute == "DelaySeconds"
        with pytest.raises(InvalidQueue, match="no name for a queue"):
            await make(nodes, node_id, "no name")
        with pytest.raises(InvalidQueue, match="DelaySeconds of jobs must be 0 to 900"):
            await changes.change("jobs", {"DelaySeconds": "1000"})
        with pytest.raises(UnknownQueue, match="no queue 'mail'"):
            await changes.tag("mail", {"a": "b"})
        await changes.delete("jobs")
        with pytest.raises(UnknownQueue, match="no queue 'jobs'"):
            await changes.delete("jobs")
        with pytest.raises(QueueDeletedRecently, match="rests for 60000 ms"):
            await make(nodes, node_id, "jobs")

    in_a_cluster(story, "sqs.delete.wait.ms=60000")


@pytest.mark.parametrize("node_id", NODES)
def test_move_tasks_are_facts_too(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        changes = nodes[node_id].queue_changes
        dead = await make(nodes, node_id, "dead")
        policy = '{"deadLetterTargetArn":"arn:aws:sqs:here:000000000000:dead","maxReceiveCount":3}'
        await make(nodes, node_id, "jobs", RedrivePolicy=policy)
        task = await changes.start_move_task("dead", messages_per_second_max=9, to_move_count=2)
        assert (task.queue_id, task.target, task.status) == (dead.queue_id, None, "RUNNING")
        with pytest.raises(MoveTaskRunning):
            await changes.start_move_task("dead")
        with pytest.raises(UnknownMoveTask):
            await changes.end_move_task("dead", b"other", status="FAILED", moved_count=0)
        await changes.end_move_task("dead", task.task_id, status="COMPLETED", moved_count=2)
        (ended,) = nodes[node_id].image.queues.moves_of(dead.queue_id)
        assert (ended.task_id, ended.status, ended.moved_count) == (task.task_id, "COMPLETED", 2)

    in_a_cluster(story)


def test_deleting_the_topic_as_kafka_does_deletes_the_queue() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, 1, "jobs")
            await Admin(client).create_topics([NewTopic("orders", 1, 1)])
            await nodes.until_opened("orders")
            await make(nodes, 2, "adopted", topic="orders")
            assert await Admin(client).delete_topics(["jobs", "orders"]) == {"jobs": None, "orders": None}
            await nodes.until(lambda: seen(nodes, "jobs") == seen(nodes, "adopted") == [None] * 3)

    in_a_cluster(story)


def test_who_may_write_to_a_queues_topic() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 1, 1)])
            await make(nodes, 1, "jobs")
            await make(nodes, 1, "jobs.fifo")
            await make(nodes, 1, "orders.fifo", topic="orders")
            await produce(client, "jobs")
            await produce(client, "orders")
            with pytest.raises(RemoteError, match="FIFO queue") as refused:
                await produce(client, "jobs.fifo")
            assert refused.value.code == ErrorCode.POLICY_VIOLATION

    in_a_cluster(story)


def test_an_adopted_topic_is_a_queue_from_its_end_on() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 3, 1)])
            for _ in range(4):
                await produce(client, "orders", 1)
            await produce(client, "orders", 2)
            queue = await make(nodes, 2, "jobs", topic="orders")
            assert (queue.is_adopted, queue.starts) == (True, (0, 4, 1))
            whole = await changes_at(nodes, 1).create(
                "jobs", attributes={}, tags={}, owner=None, topic="orders"
            )
            assert whole == queue, "it is there already"
            await changes_at(nodes, 1).delete("jobs")
            assert "orders" in nodes[1].image.topics

    in_a_cluster(story)


def test_the_next_controller_has_the_queues() -> None:
    async def story(nodes: Nodes) -> None:
        first = nodes.controller()
        assert first is not None
        others = [node_id for node_id in NODES if node_id != first]
        made = await make(nodes, others[0], "jobs", DelaySeconds="3")
        nodes.members[first].kill()
        await nodes.until(lambda: nodes.controller() in others)
        assert facts_at(nodes, others[1]).get("jobs") == made
        await changes_at(nodes, others[0]).change("jobs", {"DelaySeconds": "4"})
        await changes_at(nodes, others[1]).delete("jobs")
        await nodes.until(lambda: facts_at(nodes, others[0]).get("jobs") is None)

    in_a_cluster(story, with_etcd=True)


def test_whoever_hears_nothing_of_a_queue_may_make_it_again() -> None:
    async def story(nodes: Nodes) -> None:
        await make(nodes, 1, "first")
        nodes.world.network.cut("node0", "node1")
        with pytest.raises(TimedOut, match="not known"):
            await make(nodes, 1, "jobs", DelaySeconds="2")
        made = facts_at(nodes, 0).get("jobs")
        assert made is not None
        assert facts_at(nodes, 1).get("jobs") is None
        nodes.world.network.mend("node0", "node1")
        await nodes.until(lambda: nodes.is_serving(1, seen_by=1))
        assert await make(nodes, 1, "jobs", DelaySeconds="2") == made

    in_a_cluster(story)


@pytest.mark.parametrize("node_id", NODES)
def test_there_are_no_queues_before_all_nodes_know_them(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        with pytest.raises(NotInForce, match="queues came with level 2, and level 1 is in force"):
            await make(nodes, node_id, "jobs")

    in_a_cluster(story, software=Software("0.1.0", 1, 1))


async def produce(client: Client, topic: str, partition: int = 0) -> None:
    await client.produce(topic, partition, build([Record(timestamp=EPOCH_MS, key=b"k", value=b"v")]))
