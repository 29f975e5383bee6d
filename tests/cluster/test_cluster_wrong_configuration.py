"""Nodes that were set up wrongly: each gets one clear line, and the cluster takes no harm."""

import asyncio

import pytest

from ropewalk.base.errors import DirectoryRefused, DuplicateBroker, InvalidRequest
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from tests.cluster.nodes import Nodes, in_a_cluster

HOUR_MS = 3_600_000


def test_a_node_with_the_data_of_another_cluster_is_refused() -> None:
    async def story(nodes: Nodes) -> None:
        stranger = nodes.add(3)
        alone = NodeOptions(
            node_id=3,
            kafka="node3:9092",
            http="none",
            data="/data",
            settings=(
                "telemetry.interval.ms=0",
                "audit.topic=false",
            ),
        )
        node = await stranger.machine.start(lambda ports: life.start(load(alone, {}), ports))
        await node.stop()
        stranger.machine.kill()
        with pytest.raises(DirectoryRefused, match="belongs to cluster"):
            await stranger.start()
        assert 3 not in nodes[0].image.brokers

    in_a_cluster(story)


def test_a_second_node_of_the_same_id_is_refused_while_the_first_is_alive() -> None:
    async def story(nodes: Nodes) -> None:
        epoch = nodes[0].image.brokers[nodes[1].node_id].epoch
        twin = nodes.add(1, machine="twin")
        with pytest.raises(DuplicateBroker, match="every node needs an id of its own"):
            await twin.start()
        assert nodes[0].image.brokers[nodes[1].node_id].epoch == epoch
        assert nodes.is_serving(1, seen_by=0)

    in_a_cluster(story)


def test_a_node_whose_clock_is_an_hour_off_is_refused() -> None:
    async def story(nodes: Nodes) -> None:
        late = nodes.add(3)
        late.machine.clock.offset_ms = -HOUR_MS
        with pytest.raises(InvalidRequest, match="the clock of node 3 is 3600 s behind"):
            await late.start()
        assert 3 not in nodes[0].image.brokers

    in_a_cluster(story)


def test_a_node_with_another_secret_waits_outside() -> None:
    async def story(nodes: Nodes) -> None:
        stranger = nodes.add(3, "cluster.secret=a secret of another one")
        starting = asyncio.ensure_future(stranger.start())
        await asyncio.sleep(5)
        assert not starting.done()
        assert 3 not in nodes[0].image.brokers
        stranger.kill()
        await asyncio.gather(starting, return_exceptions=True)

    in_a_cluster(story)


def test_a_node_that_was_wiped_comes_back_as_another_directory() -> None:
    async def story(nodes: Nodes) -> None:
        before = nodes[0].image.brokers[nodes[1].node_id]
        nodes.members[1].kill()
        nodes.members[1].machine.platters.remove("/data")
        await nodes.members[1].start()
        after = nodes[0].image.brokers[nodes[1].node_id]
        assert after.directory != before.directory
        assert after.epoch > before.epoch

    in_a_cluster(story)
