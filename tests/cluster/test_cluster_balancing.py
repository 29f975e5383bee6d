"""Plans, drains and removals on whole nodes."""

import asyncio

import pytest

from ropewalk.base.errors import NotController
from ropewalk.base.ids import NodeId
from ropewalk.broker.administration.balancing import Removal, Stage
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.administration.balancing import Balancing
from ropewalk.client.administration.membership import ClusterViewer
from ropewalk.controller.leadership import leaders_by_broker
from ropewalk.controller.reassignment import moves
from ropewalk.controller.relocation import held_count
from ropewalk.metadata.records import BrokerState
from ropewalk.views.cluster_state import collect
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at
from tests.cluster.test_cluster_upkeep import make
from tests.kafka.door import batch_of


def test_leaders_are_evened_out_by_a_plan_that_is_shown_first() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 6, 3)])
            nodes.members[1].kill()
            await nodes.until(lambda: not nodes.is_serving(1, seen_by=0))
            before = leaders_by_broker(nodes[0].image)
            plan = nodes[0].balancing.plan()
            assert leaders_by_broker(nodes[0].image) == before, "showing it changes nothing"
            await nodes[0].balancing.balance(plan, None)
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
        assert await balancing.remove(NodeId(2), None) == Removal(Stage.DRAINED, 0)
        assert await balancing.remove(NodeId(2), None) == Removal(Stage.DRAINED, 0)
        await nodes.members[2].stop()
        await nodes.until(lambda: nodes[0].image.brokers[NodeId(2)].state.value == "fenced")
        assert await balancing.remove(NodeId(2), None) == Removal(Stage.REMOVED, 0)
        assert NodeId(2) not in nodes[0].image.brokers

    in_a_cluster(story)


def test_a_broker_is_drained_to_nothing_before_it_is_taken_away() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1)
            for number in range(20):
                await client.produce("orders", 0, batch_of(str(number)))
            stages: list[Stage] = []
            while not stages or stages[-1] is Stage.DRAINING:
                stages.append((await nodes[0].balancing.remove(NodeId(1), None)).stage)
                await asyncio.sleep(0.2)
            assert stages[0] is Stage.DRAINING
            assert stages[-1] is Stage.DRAINED
            partition = partition_at(nodes, 0)
            assert (set(partition.replicas), set(partition.isr)) == ({0, 2}, {0, 2})
            assert partition.leader == 0

    in_a_cluster(story)


def test_a_broker_is_drained_without_being_asked_again_and_through_its_own_restart() -> None:
    async def story(nodes: Nodes) -> None:
        leaver = NodeId(1)
        async with nodes.client() as client:
            await make_orders(nodes, client, 0, 1)
            nodes.members[1].kill()
            await nodes.until(lambda: not nodes.is_serving(1, seen_by=0))
            assert await nodes[0].balancing.remove(leaver, None) == Removal(Stage.DRAINING, 1)
            await nodes.members[1].start()
            assert nodes[0].image.brokers[leaver].is_leaving
            await nodes.until(lambda: held_count(nodes[0].image, leaver) == 0)
            await Admin(client).create_topics([NewTopic("others", 12, 2)])
            assert held_count(nodes[0].image, leaver) == 0, "whoever leaves is given nothing more"
            await nodes.members[1].stop()
            await nodes.until(lambda: nodes[0].image.brokers[leaver].state is BrokerState.FENCED)
            assert not (await collect(client)).troubles(), "it is gone as it should be"
            await nodes.until(lambda: leaver not in nodes[0].image.brokers, within_s=100)

    in_a_cluster(story)


def test_whoever_decides_next_goes_on_draining() -> None:
    async def story(nodes: Nodes) -> None:
        decided = nodes.controller()
        assert decided is not None
        leaver, other, spare = (number for number in range(4) if number != decided)
        async with nodes.client() as client:
            await make(client, "orders", leaver, other)
            await nodes.until(lambda: all("orders" in nodes[number].image.topics for number in range(4)))
            nodes.members[spare].kill()  # so that whoever is asked can only put it on itself
            await nodes.until(lambda: not nodes.is_serving(spare, seen_by=decided))
            await nodes[decided].balancing.remove(NodeId(leaver), None)
            nodes.members[decided].kill()
            await nodes.until(lambda: nodes.controller() not in (None, decided))
            await nodes.members[spare].start()
            now = nodes.controller()
            assert now is not None
            assert nodes[now].image.brokers[NodeId(leaver)].is_leaving
            await nodes.members[decided].start()
            await nodes.until(lambda: held_count(nodes[other].image, NodeId(leaver)) == 0, within_s=60)
            await nodes.members[leaver].stop()
            await nodes.until(lambda: NodeId(leaver) not in nodes[other].image.brokers, within_s=120)

    in_a_cluster(story, nodes=4, with_etcd=True)


def test_a_broker_that_is_to_stay_after_all_is_given_replicas_again() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            assert (await nodes[0].balancing.remove(NodeId(2), None)).stage is Stage.DRAINED
            viewer = ClusterViewer(client)
            assert [node.state for node in (await viewer.describe()).nodes] == ["active", "active", "leaving"]
            await Balancing(client).keep(NodeId(2))
            assert [node.state for node in (await viewer.describe()).nodes] == ["active"] * 3
            await Admin(client).create_topics([NewTopic("orders", 1, 3)])
            assert held_count(nodes[0].image, NodeId(2)) == 1

    in_a_cluster(story)


def test_a_node_that_joined_takes_its_share_of_replicas() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 8, 1)])
            for index in range(8):
                await client.produce("orders", index, batch_of("a"))
            await nodes.add(2).start()
            await nodes.until(lambda: nodes.is_serving(2, seen_by=0))
            await nodes[0].balancing.balance(nodes[0].balancing.plan(), None)
            await nodes.until(lambda: not any(moves(nodes[0].image)))
            assert sorted(leaders_by_broker(nodes[0].image).values()) == [2, 3, 3]
            for index in range(8):
                produced = await client.produce("orders", index, batch_of("b"))
                assert produced.base_offset == 1

    in_a_cluster(story, nodes=2)
