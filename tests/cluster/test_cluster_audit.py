"""The audit of a cluster: whoever decides, leads or is killed, each change is in `__audit` once, in its order, and no other."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.metadata.internal_topics import AUDIT_TOPIC
from ropewalk.records.batch import iterate
from ropewalk.records.record import decode_records
from ropewalk.security.audit_chain import verify
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_full_disks import fill, make_room

ON = "audit.topic=true"
SOON = "replica.lag.time.max.ms=1500"
KILLS = 6


def leader_of_audit(nodes: Nodes) -> int | None:
    alive = [node_id for node_id, member in nodes.members.items() if member.machine.is_running]
    newest = max(alive, key=lambda node_id: nodes[node_id].image.end_offset)
    topic = nodes[newest].image.topics.get(AUDIT_TOPIC)
    return None if topic is None else topic.partitions[0].leader


def copied(nodes: Nodes) -> list[bytes]:
    """What readers see; nothing while nobody leads."""
    leader = leader_of_audit(nodes)
    if leader is None or not nodes.members[leader].machine.is_running:
        return []
    found: list[bytes] = []
    try:
        partition = nodes[leader].partitions.find(AUDIT_TOPIC, 0)
    except RopewalkError:
        return []
    offset = partition.log.start_offset
    while (
        span := partition.log.locate(offset, limit_offset=partition.high_watermark, bytes_max=1 << 20)
    ) is not None:
        data = bytes(span.read())
        for position, header in iterate(data):
            records = decode_records(data[position : position + header.size_bytes])
            found += [record.value or b"" for record in records]
            offset = Offset(header.end_offset)
    return found


def numbers(values: list[bytes]) -> list[int]:
    return [msgspec.json.decode(value)["metadata"]["sequence"] for value in values]


def is_copied(nodes: Nodes) -> bool:
    newest = max(nodes[node_id].image.audit.newest_number for node_id in nodes.members)
    values = copied(nodes)
    return bool(values) and numbers(values)[-1] == newest


async def change_on(nodes: Nodes, stopping: asyncio.Event) -> None:
    """Make topics, one after the other, and delete every third, whatever becomes of it."""
    number = 0
    while not stopping.is_set():
        number += 1
        async with nodes.client() as client:
            admin = Admin(client)
            try:
                async with asyncio.timeout(5):
                    await admin.create_topics([NewTopic(f"t{number}", 1, 3)])
                    if number % 3 == 0:
                        await admin.delete_topics([f"t{number}"])
            except (RopewalkError, TimeoutError):
                pass
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("seed", range(2))
def test_whoever_is_killed_each_change_is_copied_once(seed: int) -> None:
    async def story(nodes: Nodes) -> tuple[list[bytes], set[str]]:
        stopping = asyncio.Event()
        changing = asyncio.create_task(change_on(nodes, stopping))
        await nodes.until(lambda: leader_of_audit(nodes) is not None)
        for kill in range(KILLS):
            await asyncio.sleep(1 + kill % 3)
            victim = nodes.controller() if kill % 2 else leader_of_audit(nodes)
            if victim is None or not nodes.members[victim].machine.is_running:
                continue
            nodes.members[victim].kill()
            await asyncio.sleep(2)
            await nodes.members[victim].start()
            await nodes.until(
                lambda victim=victim: all(nodes.is_serving(victim, seen_by=each) for each in range(3))  # type: ignore[misc]
            )
        stopping.set()
        await changing
        await nodes.until(lambda: is_copied(nodes))
        return copied(nodes), set(nodes[0].image.topics) - {AUDIT_TOPIC}

    values, topics = in_a_cluster(story, ON, SOON, seed=seed, with_etcd=True)
    told = [msgspec.json.decode(value) for value in values]
    assert numbers(values) == list(range(1, len(values) + 1))
    assert list(verify(enumerate(values))) == []
    made = Counter(_names(told, "topic.created"))
    assert set(made.values()) == {1}
    assert set(made) - set(_names(told, "topic.deleted")) == {f"Topic:{name}" for name in topics}
    assert len(values) > 2 * KILLS
    assert {each["actor"]["user"]["name"] for each in told} == {"ANONYMOUS"}
    assert {each["unmapped"]["forwarded_by"] is None for each in told} == {True, False}


def _names(told: list[dict[str, Any]], kind: str) -> list[str]:
    return [each["name"] for event in told for each in event["resources"] if each["type"] == kind]


def test_with_the_disk_of_its_leader_full_all_goes_on_and_the_gap_is_closed_later() -> None:
    async def story(nodes: Nodes) -> list[bytes]:
        async with nodes.client() as client:
            admin = Admin(client)
            await admin.create_topics([NewTopic("first", 1, 1)])
            await nodes.until(lambda: is_copied(nodes))
            leader = leader_of_audit(nodes)
            assert leader is not None
            fill(nodes, *(each for each in range(3) if each != nodes.controller()))
            if leader == nodes.controller():
                nodes.members[leader].kill()
                await nodes.members[leader].start()
                await nodes.until(lambda: leader_of_audit(nodes) not in (leader, None))
            before = numbers(copied(nodes))
            for number in range(4):
                outcomes = await admin.create_topics([NewTopic(f"t{number}", 1, 1)])
                assert set(outcomes.values()) == {None}
            await asyncio.sleep(3)
            assert numbers(copied(nodes)) == before
            make_room(nodes)
            await nodes.until(lambda: is_copied(nodes), within_s=60)
        return copied(nodes)

    values = in_a_cluster(story, ON, SOON)
    assert numbers(values) == list(range(1, len(values) + 1))
    assert len(values) == 5
