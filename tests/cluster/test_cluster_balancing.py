"""Plans, drains and removals on whole nodes; partitions without records move as fast as the metadata does."""

import pytest

from ropewalk.base.errors import NotController
from ropewalk.base.ids import NodeId
from ropewalk.broker.balancing import Removal, Stage
from ropewalk.client.admin import Admin, NewTopic
from ropewalk.controller.leadership import leaders_by_broker
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at


def test_leaders_are_evened_out_by_a_plan_that_is_shown_first() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 6, 3)])
            nodes.members[1].kill()
            await nodes.until(lambda: not nodes.is_serving(1, seen_by=0))
            before = leaders_by_broker(nodes[0].image)
            plan = nodes[0].balancing.plan()
            assert leaders_by_broker(nodes[0].image) == before, "showing it changes nothing"
            await nodes[0].balancing.balance(plan)
            after = leaders_by_broker(nodes[0].image)
            assert abs(after[NodeId(0)] - after[NodeId(2)]) <= 1
            assert nodes[0].balancing.plan().changes == ()

    in_a_cluster(story)


def test_only_the_node_that_decides_knows_the_load() -> None:
    async def story(nodes: Nodes) -> None:
        for ask in (lambda: nodes[1].balancing.plan(), lambda: nodes[1].balancing.hot_partitions(5)):
            with pytest.raises(NotController):
                ask()

    in_a_cluster(story)


def test_a_broker_that_holds_nothing_is_stopped_and_then_forgotten() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1)
        balancing = nodes[0].balancing
        assert await balancing.remove(NodeId(2)) == Removal(Stage.STOPPING, 0)
        assert await balancing.remove(NodeId(2)) == Removal(Stage.STOPPING, 0)
        await nodes.members[2].stop()
        await nodes.until(lambda: nodes[0].image.brokers[NodeId(2)].state.value == "fenced")
        assert await balancing.remove(NodeId(2)) == Removal(Stage.REMOVED, 0)
        assert NodeId(2) not in nodes[0].image.brokers

    in_a_cluster(story)


def test_what_a_broker_holds_begins_to_move_before_it_is_taken_away() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1)
        assert (await nodes[0].balancing.remove(NodeId(1))).stage is Stage.DRAINING
        partition = partition_at(nodes, 0)
        assert NodeId(2) in partition.replicas
        assert not partition.is_moving or partition.removing == (1,)

    in_a_cluster(story)
