"""Nodes that form a cluster: they join, are missed, come back, and leave."""

import pytest

from tests.cluster.nodes import Nodes, in_a_cluster


def test_three_nodes_find_each_other_and_agree() -> None:
    async def story(nodes: Nodes) -> None:
        await nodes.until(
            lambda: all(
                nodes.is_serving(other, seen_by=node_id) for other in range(3) for node_id in range(3)
            )
        )
        assert [nodes[node_id].decides for node_id in range(3)] == [True, False, False]
        assert len({nodes[node_id].cluster_id for node_id in range(3)}) == 1
        facts = [list(nodes[node_id].image.facts()) for node_id in range(3)]
        assert facts[0] == facts[1] == facts[2]

    in_a_cluster(story)


def test_a_killed_node_is_fenced_within_a_second_and_taken_back() -> None:
    async def story(nodes: Nodes) -> float:
        nodes.members[1].kill()
        gone_s = await nodes.until(lambda: not nodes.is_serving(1, seen_by=2))
        await nodes.members[1].start()
        await nodes.until(lambda: nodes.is_serving(1, seen_by=2) and nodes.is_serving(1, seen_by=0))
        return gone_s

    assert in_a_cluster(story) < 1.0


def test_a_silent_node_is_fenced_when_its_session_ends() -> None:
    async def story(nodes: Nodes) -> tuple[float, float]:
        await nodes.until(lambda: nodes.is_serving(1, seen_by=2))
        for other in ("node0", "node2"):
            nodes.world.network.partition("node1", other)
        gone_s = await nodes.until(lambda: not nodes.is_serving(1, seen_by=2))
        nodes.world.network.mend_all()
        back_s = await nodes.until(lambda: nodes.is_serving(1, seen_by=2))
        return gone_s, back_s

    gone_s, back_s = in_a_cluster(story)
    assert 5 < gone_s < 7
    assert back_s < 20


@pytest.mark.parametrize("seed", range(3))
def test_the_controller_comes_back_and_nobody_has_to_join_again(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        epochs = {int(node_id): broker.epoch for node_id, broker in nodes[1].image.brokers.items()}
        nodes.members[0].machine.cut_power()
        await nodes.members[0].start()
        await nodes.until(lambda: nodes[1].image.end_offset == nodes[0].image.end_offset)
        after = {int(node_id): broker.epoch for node_id, broker in nodes[1].image.brokers.items()}
        assert {key: after[key] for key in (1, 2)} == {key: epochs[key] for key in (1, 2)}
        assert after[0] > epochs[0]

    in_a_cluster(story, seed=seed)


def test_a_name_with_several_addresses_is_a_seed() -> None:
    async def story(nodes: Nodes) -> None:
        nodes.world.network.names["everybody"] = ["nowhere", "node2", "node1"]
        await nodes.add(3, seeds=("everybody:9192",)).start()
        await nodes.until(lambda: nodes.is_serving(3, seen_by=0))

    in_a_cluster(story)


def test_nodes_live_on_while_their_controller_stops() -> None:
    """It answers until its doors are closed, however long the rest of its end takes."""

    async def story(nodes: Nodes) -> list[bool]:
        decisions = nodes[0]._parts.place.decisions
        assert decisions is not None
        decisions.stop()  # which is the first that it does
        await nodes.until(lambda: all(nodes[node_id]._parts.membership.trouble for node_id in (1, 2)))
        nodes.members[0].kill()
        await nodes.members[0].start()
        await nodes.until(lambda: all(nodes.is_serving(node_id, seen_by=0) for node_id in range(3)))
        return [nodes[node_id].failed.done() for node_id in (1, 2)]

    assert in_a_cluster(story) == [False, False]
