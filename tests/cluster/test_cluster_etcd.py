"""Clusters whose metadata is at home in etcd: any node may be lost, the controller included."""

import asyncio

import pytest

from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_leaders import create, partitions_of


@pytest.mark.parametrize("seed", range(3))
def test_three_nodes_agree_on_one_controller(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        await nodes.until(
            lambda: all(
                nodes.is_serving(other, seen_by=node_id) for other in range(3) for node_id in range(3)
            )
        )
        assert [nodes[node_id].decides for node_id in range(3)].count(True) == 1
        assert len({nodes[node_id].cluster_id for node_id in range(3)}) == 1

    in_a_cluster(story, seed=seed, with_etcd=True)


@pytest.mark.parametrize("seed", range(5))
def test_when_the_controller_is_killed_another_decides_and_leads(seed: int) -> None:
    async def story(nodes: Nodes) -> float:
        await create(nodes, "t")
        killed = nodes.controller()
        assert killed is not None
        nodes.members[killed].kill()
        alive = [node_id for node_id in range(3) if node_id != killed]
        took_s = await nodes.until(
            lambda: (
                nodes.controller() is not None
                and all(
                    partition.leader in alive
                    for node_id in alive
                    for partition in partitions_of(nodes, "t", seen_by=node_id)
                )
            )
        )
        await create(nodes, "u")
        await nodes.members[killed].start()
        await nodes.until(lambda: all(nodes.is_serving(killed, seen_by=node_id) for node_id in alive))
        return took_s

    assert in_a_cluster(story, seed=seed, with_etcd=True) < 2.5


def test_a_controller_that_was_cut_off_changes_nothing_and_stands_by_afterwards() -> None:
    async def story(nodes: Nodes) -> None:
        former = nodes.controller()
        assert former is not None
        for machine in nodes.etcd.machines:
            nodes.world.network.partition(f"node{former}", machine.name)
        for node_id in range(3):
            if node_id != former:
                nodes.world.network.partition(f"node{former}", f"node{node_id}")
        await nodes.until(
            lambda: any(nodes[node_id].decides for node_id in range(3) if node_id != former), within_s=60
        )
        nodes.world.network.mend_all()
        await nodes.until(lambda: not nodes[former].decides, within_s=60)
        await nodes.until(
            lambda: all(nodes.is_serving(former, seen_by=node_id) for node_id in range(3)), within_s=60
        )
        facts = [list(nodes[node_id].image.facts()) for node_id in range(3)]
        assert facts[0] == facts[1] == facts[2]

    in_a_cluster(story, with_etcd=True)


@pytest.mark.parametrize("is_controller", [True, False], ids=["the controller", "a standby"])
def test_a_node_that_reaches_nothing_but_etcd_does_not_decide(is_controller: bool) -> None:
    """Nobody would hear it, and nothing could change any more."""

    async def story(nodes: Nodes) -> None:
        before = nodes.controller()
        assert before is not None
        cut_off = before if is_controller else (before + 1) % 3
        others = [node_id for node_id in range(3) if node_id != cut_off]
        for other in others:
            nodes.world.network.partition(f"node{cut_off}", f"node{other}")
        await nodes.until(
            lambda: (
                all(nodes[other].image.controller_id in others for other in others)
                and not any(nodes.is_serving(cut_off, seen_by=other) for other in others)
            ),
            within_s=15,
        )
        deciding = nodes[others[0]].image.controller_epoch
        await asyncio.sleep(20)
        assert nodes[others[0]].image.controller_epoch == deciding  # it stays that way
        nodes.world.network.mend_all()
        await nodes.until(lambda: all(nodes.is_serving(cut_off, seen_by=other) for other in others))

    in_a_cluster(story, with_etcd=True)


def test_with_all_of_etcd_down_the_cluster_goes_on_as_it_is_and_heals() -> None:
    async def story(nodes: Nodes) -> None:
        await create(nodes, "t")
        before = {p.index: p.leader for p in partitions_of(nodes, "t", seen_by=0)}
        for number in range(3):
            nodes.etcd.kill_member(number)
        await asyncio.sleep(60)
        assert {p.index: p.leader for p in partitions_of(nodes, "t", seen_by=0)} == before
        for number in range(3):
            await nodes.etcd.start_member(number)
        await nodes.until(lambda: nodes.controller() is not None)
        await create(nodes, "u")

    in_a_cluster(story, with_etcd=True)
