"""The metadata is put back to an earlier state: whoever has followed more leaves service instead of going on in two histories."""

import asyncio
from collections.abc import Callable

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.records.record import Record, build
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_leaders import create

SESSION = "node.session.timeout.ms=1500"
BATCH = build([Record(timestamp=0, value=b"one")])


def copy_of_local(nodes: Nodes) -> Callable[[], None]:
    """The metadata directory of node 0, which must not run when it is put back."""
    platters = nodes.members[0].machine.platters
    copies = {path: bytes(file.data) for path, file in platters.files() if "/metadata/" in path}

    def put_back() -> None:
        for path, file in platters.files():
            if path in copies:
                file.data[:] = copies[path]

    return put_back


async def put_back_local(nodes: Nodes, *, made_count: int) -> None:
    """So many topics are made after the copy, and known to nobody afterwards but to those who followed."""
    put_back = copy_of_local(nodes)
    for number in range(made_count):
        await create(nodes, f"made-after-the-copy-{number}")
    await nodes.until(lambda: nodes[1].image.end_offset == nodes[0].image.end_offset)
    nodes.members[0].kill()
    put_back()
    await nodes.members[0].start()


def has_left(nodes: Nodes, node_id: int) -> bool:
    """By its own account."""
    return "has left service" in (nodes[node_id]._parts.membership.standing or "")


def test_brokers_that_followed_more_than_the_restored_metadata_leave_service() -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes, "kept")
        await put_back_local(nodes, made_count=4)
        await nodes.until(lambda: has_left(nodes, 1) and has_left(nodes, 2))
        await nodes.until(lambda: not nodes.is_serving(1, seen_by=0) and not nodes.is_serving(2, seen_by=0))
        ready = await nodes[1]._parts.instruments.health.ready()
        assert any("put back from a backup" in (check.problem or "") for check in ready)
        assert not any(partition for partition in nodes[1].partitions.all_led())
        assert not nodes[1].failed.done()
        nodes.members[1].kill()
        await nodes.members[1].start()
        await nodes.until(lambda: nodes.is_serving(1, seen_by=0))
        await nodes.until(lambda: list(nodes[1].image.facts()) == list(nodes[0].image.facts()))

    in_a_cluster(story, SESSION)


def test_a_broker_that_was_away_while_the_new_history_overtook_the_old_is_found_out() -> None:
    """Its offset is in the log again: what lies there is another record."""

    async def story(nodes: Nodes) -> None:
        machine = nodes.members[1].machine
        put_back = copy_of_local(nodes)
        await create(nodes, "made-after-the-copy")
        await nodes.until(lambda: nodes[1].image.end_offset == nodes[0].image.end_offset)
        machine.pause()
        nodes.members[0].kill()
        nodes.members[2].kill()
        put_back()
        await nodes.members[0].start()
        await nodes.members[2].start()
        for number in range(4):
            await create(nodes, f"another-{number}")
        assert nodes[0].image.end_offset > nodes[1].image.end_offset
        machine.resume()
        await nodes.until(lambda: has_left(nodes, 1))
        assert "another-0" not in nodes[1].image.topics

    in_a_cluster(story, SESSION)


def test_a_node_that_left_service_refuses_reads_and_writes() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 3, 3)])
            for index in range(3):
                await client.produce("orders", index, BATCH)
        await put_back_local(nodes, made_count=2)
        await nodes.until(lambda: has_left(nodes, 1))
        await nodes[1]._parts.facts.followed()
        for index in range(3):
            for find in (nodes[1].partitions.find, nodes[1].partitions.find_copy):
                with pytest.raises(RopewalkError):
                    find("orders", index)
        assert not list(nodes[1]._parts.groups._host._shards)
        fetchers = nodes[1]._parts.fetchers
        assert fetchers is not None
        assert not fetchers._leaders

    in_a_cluster(story, SESSION)


@pytest.mark.parametrize("is_overtaken", [False, True], ids=["at once", "overtaken"])
def test_nodes_that_knew_more_than_a_restored_etcd_leave_service(is_overtaken: bool) -> None:
    async def story(nodes: Nodes) -> None:
        state = nodes.etcd.state
        backup = state.copy()
        for number in range(3):
            await create(nodes, f"made-after-the-copy-{number}")
        ends = [nodes[node_id].image.end_offset for node_id in range(3)]
        if not is_overtaken:
            state.put_back(backup)
            await nodes.until(lambda: all(has_left(nodes, node_id) for node_id in range(3)))
            assert not any(nodes[node_id].decides for node_id in range(3))
            for node_id in range(3):
                nodes.members[node_id].kill()
            await asyncio.gather(*(nodes.members[node_id].start() for node_id in range(3)))
            await create(nodes, "made-in-the-new-history")
            return
        standby = next(node_id for node_id in range(3) if node_id != nodes.controller())
        machine = nodes.members[standby].machine
        machine.pause()
        others = [node_id for node_id in range(3) if node_id != standby]
        for node_id in others:
            nodes.members[node_id].kill()
        state.put_back(backup)
        await asyncio.gather(*(nodes.members[node_id].start() for node_id in others))
        for number in range(6):
            await create(nodes, f"another-{number}")
        assert nodes[others[0]].image.end_offset > max(ends)
        machine.resume()
        await nodes.until(lambda: has_left(nodes, standby))
        assert "another-0" not in nodes[standby].image.topics

    in_a_cluster(story, SESSION, with_etcd=True)
