"""Disks that are full, one at a time and all at once: nobody ends, nothing is lost, and all goes on when there is room."""

import asyncio

import pytest

from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.producer import Producer
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import EPOCH_MS
from tests.cluster.nodes import Nodes, in_a_cluster

TOPIC = "orders"
SOON = "replica.lag.time.max.ms=1500"


def fill(nodes: Nodes, *node_ids: int) -> None:
    for node_id in node_ids:
        platters = nodes.members[node_id].machine.platters
        platters.capacity_bytes = platters.used_bytes


def make_room(nodes: Nodes) -> None:
    for member in nodes.members.values():
        member.machine.platters.make_room()


def are_well(nodes: Nodes) -> bool:
    return all(
        member.machine.is_running and not member.node.failed.done() for member in nodes.members.values()
    )


def in_sync(nodes: Nodes, name: str = TOPIC) -> set[int]:
    topic = nodes[0].image.topics.get(name)
    return set() if topic is None else set(topic.partitions[0].isr)


async def send(client: Client, *values: str, topic: str = TOPIC) -> None:
    records = [Record(timestamp=EPOCH_MS, value=value.encode()) for value in values]
    await Producer(client, topic).send(records, partition=0)


async def create(nodes: Nodes, client: Client, *, led_by: int) -> None:
    """By the first replica; the others follow."""
    for _ in range(20):
        await Admin(client).create_topics([NewTopic(TOPIC, 1, 3)])
        await nodes.until(lambda: in_sync(nodes) == {0, 1, 2})
        if nodes[0].image.topics[TOPIC].partitions[0].leader == led_by:
            return
        await Admin(client).delete_topics([TOPIC])
        await nodes.until(lambda: TOPIC not in nodes[0].image.topics)
    raise AssertionError("another leads every time")


def test_a_follower_whose_disk_is_full_falls_out_of_sync_and_comes_back() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, led_by=0)
            await nodes.until_opened(TOPIC)
            fill(nodes, 2)
            began_s = nodes.world.now_s
            await send(client, "a")
            assert nodes.world.now_s - began_s < 5
            await nodes.until(lambda: in_sync(nodes) == {0, 1})
            asked_before = nodes[2].partitions.find_copy(TOPIC, 0).log.end_offset
            for number in range(20):
                await send(client, f"b{number}")
            assert nodes[2].partitions.find_copy(TOPIC, 0).log.end_offset == asked_before
            make_room(nodes)
            await nodes.until(lambda: in_sync(nodes) == {0, 1, 2})
            assert are_well(nodes)

    in_a_cluster(story, SOON)


def test_a_leader_whose_disk_is_full_refuses_and_takes_records_when_there_is_room() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, led_by=1)
            await send(client, "a")
            fill(nodes, 1)
            sending = asyncio.ensure_future(send(client, "b" * 10_000))
            await asyncio.sleep(10)
            assert not sending.done()
            make_room(nodes)
            await sending
            await nodes.until(lambda: in_sync(nodes) == {0, 1, 2})
            assert are_well(nodes)

    in_a_cluster(story, SOON)


@pytest.mark.parametrize("starts_again", [False, True])
def test_a_full_disk_under_the_metadata_ends_nobody(starts_again: bool) -> None:
    """The controller's, down to the last byte: others are fenced, come back, start and stop meanwhile."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, led_by=1)
            await send(client, "a")
            home = nodes.members[0].machine.platters
            home.capacity_bytes = 0  # the reserve, too, is of no use
            victim = nodes.members[2].machine
            if starts_again:
                victim.kill()
                await asyncio.sleep(4)
                starting = asyncio.ensure_future(nodes.members[2].start())
            else:
                victim.pause()
                await asyncio.sleep(4)
                victim.resume()
            await asyncio.sleep(20)
            assert nodes.members[0].machine.is_running
            assert nodes.members[1].machine.is_running
            assert victim.is_running
            assert "next" not in nodes[0].image.topics
            home.make_room()
            if starts_again:
                await starting
            await nodes.until(lambda: in_sync(nodes) == {0, 1, 2}, within_s=60)
            await send(client, "b")
            assert are_well(nodes)

    in_a_cluster(story, SOON, "node.session.timeout.ms=1500", limit_s=2000)


def test_a_cluster_whose_disks_are_all_full_is_emptied_by_deleting_a_topic() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await create(nodes, client, led_by=1)
            admin = Admin(client)
            await admin.create_topics([NewTopic("other", 1, 3)])
            for _ in range(6):
                await send(client, "v" * 50_000)
            await nodes.until(lambda: in_sync(nodes) == {0, 1, 2})
            await asyncio.sleep(3)
            fill(nodes, 0, 1, 2)
            sending = asyncio.ensure_future(send(client, "b" * 10_000, topic="other"))
            await asyncio.sleep(5)
            assert not sending.done()
            await admin.delete_topics([TOPIC])
            await sending
            await nodes.until(lambda: in_sync(nodes, "other") == {0, 1, 2})
            assert are_well(nodes)

    in_a_cluster(story, SOON)
