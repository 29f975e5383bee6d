"""Settings that change while nodes are down, or differ between them: what was acknowledged stays, and all mean the same."""

import pytest
import structlog

from ropewalk.base.ids import NodeId
from ropewalk.broker.partitions.partition import Partition
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.administration.membership import Membership
from ropewalk.client.calls.client import Client
from ropewalk.views.asking import ask_everyone
from ropewalk.views.diagnosis.facts import Facts, NodeFacts
from ropewalk.views.diagnosis.rule import findings
from ropewalk.views.diagnosis.table import RULES
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at
from tests.kafka.door import batch_of

SETTLED = "node.session.timeout.ms=1500"
COUNT = 5


async def produce_some(client: Client) -> None:
    for number in range(COUNT):
        await client.produce("orders", 0, batch_of(f"acknowledged {number}"))


async def lose_the_leader_and_bring_back(nodes: Nodes, back: int) -> None:
    """Node 1 goes, the other comes: it leads only if it holds all that was acknowledged. Then all come back."""
    nodes.members[1].kill()
    await nodes.until(lambda: partition_at(nodes, 0).leader is None)
    await nodes.members[back].start()
    await nodes.until(lambda: nodes.is_serving(back, seen_by=0))
    for node_id in {1, 2, 3} - {back}:
        await nodes.members[node_id].start()
    await nodes.until(lambda: set(partition_at(nodes, 0).isr) == {1, 2, 3})


def end_at(nodes: Nodes, node_id: int) -> int:
    return next(each for each in nodes[node_id].partitions if each.name.topic == "orders").log.end_offset


async def is_whole(nodes: Nodes) -> bool:
    await nodes.until(lambda: len({end_at(nodes, node_id) for node_id in (1, 2, 3)}) == 1)
    return end_at(nodes, 1) == COUNT


@pytest.mark.parametrize("after", ["os", "group"], ids=["left as it was", "set to group while they are down"])
def test_what_was_acknowledged_from_the_page_cache_is_doubted_whatever_flush_says_later(after: str) -> None:
    async def story(nodes: Nodes) -> bool:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings={"flush": "os", "min.insync.replicas": "2"})
            await produce_some(client)
            for dead in (2, 3):
                nodes.members[dead].machine.cut_power()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (1,))
            (back,) = partition_at(nodes, 0).eligible
            await Admin(client).alter_settings(ResourceKind.TOPIC, "orders", {"flush": after})
            await lose_the_leader_and_bring_back(nodes, back)
            return await is_whole(nodes)

    assert in_a_cluster(story, SETTLED, nodes=4)


def test_what_is_on_disk_is_not_doubted_because_flush_was_set_to_os_while_its_node_was_down() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings={"min.insync.replicas": "2"})
            await produce_some(client)
            for dead in (2, 3):
                nodes.members[dead].machine.cut_power()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (1,))
            (back,) = partition_at(nodes, 0).eligible
            await Admin(client).alter_settings(ResourceKind.TOPIC, "orders", {"flush": "os"})
            nodes.members[1].kill()
            await nodes.until(lambda: partition_at(nodes, 0).leader is None)
            await nodes.members[back].start()
            await nodes.until(lambda: partition_at(nodes, 0).leader == back)
            assert end_at(nodes, back) == COUNT

    in_a_cluster(story, SETTLED, nodes=4)


def test_a_log_that_was_synced_under_group_is_trusted_again() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings={"flush": "os", "min.insync.replicas": "2"})
            await produce_some(client)
            await Admin(client).alter_settings(ResourceKind.TOPIC, "orders", {"flush": "group"})
            await nodes.until(
                lambda: all(not nodes[node_id].partitions.marks.marked for node_id in (1, 2, 3)), within_s=60
            )
            for dead in (2, 3):
                nodes.members[dead].machine.cut_power()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (1,))
            (back,) = partition_at(nodes, 0).eligible
            nodes.members[1].kill()
            await nodes.until(lambda: partition_at(nodes, 0).leader is None)
            await nodes.members[back].start()
            await nodes.until(lambda: partition_at(nodes, 0).leader == back)
            assert end_at(nodes, back) == COUNT

    in_a_cluster(story, SETTLED, nodes=4)


def test_a_leader_commits_by_the_clusters_minimum_whatever_its_own_file_says() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3)
            led = next(each for each in nodes[1].partitions if each.name.topic == "orders")
            assert isinstance(led, Partition)
            assert led.followers is not None
            assert led.followers.core.settings.isr_count_min == 2

    in_a_cluster(story, SETTLED, nodes=4, differing={1: ("min.insync.replicas=1",)})


def test_a_follower_acknowledges_by_the_clusters_flush_whatever_its_own_file_says() -> None:
    async def story(nodes: Nodes) -> bool:
        async with nodes.client() as client:
            await make_orders(nodes, client, 1, 2, 3, settings={"min.insync.replicas": "2"})
            nodes.members[2].kill()
            await nodes.until(lambda: set(partition_at(nodes, 0).isr) == {1, 3})
            await produce_some(client)
            nodes.members[3].machine.cut_power()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (1,))
            await lose_the_leader_and_bring_back(nodes, 3)
            return await is_whole(nodes)

    assert in_a_cluster(story, SETTLED, nodes=4, differing={3: ("flush=os",)})


def test_a_node_says_at_its_start_which_of_its_settings_the_cluster_has_otherwise() -> None:
    with structlog.testing.capture_logs() as logs:
        in_a_cluster(_nothing, differing={2: ("flush=os", "log.retention.hours=1")})
    told = [entry for entry in logs if "cluster's value counts" in entry["event"]]
    assert [(entry["setting"], entry["here"], entry["cluster"]) for entry in told] == [
        ("flush", "os", "group")
    ]


def test_the_doctor_says_of_every_node_which_of_its_settings_the_cluster_has_otherwise() -> None:
    async def story(nodes: Nodes) -> tuple[list[str], list[str]]:
        async with nodes.client() as client:
            before = await said_of_flush(client)
            await Admin(client).alter_settings(ResourceKind.BROKER, "", {"flush": "os"})
            await nodes.until(lambda: all(nodes[each].image.broker_settings(None) for each in (0, 1, 2)))
            return before, await said_of_flush(client)

    async def said_of_flush(client: Client) -> list[str]:
        answers = await ask_everyone(client)
        asked = [
            NodeFacts(node=node, answer=answer)
            for node in answers.best.nodes
            if isinstance(answer := answers.by_node[node.node_id], Membership)
        ]
        found = findings(RULES, Facts(membership=answers.best, nodes=tuple(asked)))
        return [f"{each.check}: {each.detail}" for each in found if "flush" in each.detail]

    (before,), after = in_a_cluster(story, differing={2: ("flush=os", "log.retention.hours=1")})
    assert before.startswith(
        "node 2 settings: flush is os in this node's configuration and group in the cluster"
    )
    assert after == []


async def _nothing(_nodes: Nodes) -> None:
    """They have started."""


def test_a_change_by_a_record_counts_on_every_node_at_once_and_through_another_controller() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1, 2)
            await Admin(client).alter_settings(ResourceKind.BROKER, "", {"min.insync.replicas": "3"})
            first = nodes.controller()
            assert first is not None
            nodes.members[first].kill()
            await nodes.until(lambda: nodes.controller() not in (None, first))
            left = {0, 1, 2} - {first}
            image = nodes[min(left)].image
            assert {name: image.agreed_settings[name] for name in ("min.insync.replicas", "flush")} == {
                "min.insync.replicas": None,
                "flush": None,
            }
            leader = image.partition("orders", 0).leader
            await nodes.until(lambda: image.partition("orders", 0).leader not in (None, NodeId(first)))
            leader = image.partition("orders", 0).leader
            assert leader is not None
            led = next(each for each in nodes[leader].partitions if each.name.topic == "orders")
            assert isinstance(led, Partition)
            assert led.followers is not None
            assert led.followers.core.settings.isr_count_min == 3

    in_a_cluster(story, with_etcd=True)
