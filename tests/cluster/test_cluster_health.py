"""What is said of a cluster's health: by the command line, by /cluster/healthz, and by the controller's figures."""

import asyncio

from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.views.cluster_state import ClusterState, collect
from tests.cluster.nodes import HTTP_PORT, Nodes, in_a_cluster
from tests.http.client import Line, Page

SESSION_MS = 6_000


async def state(nodes: Nodes) -> ClusterState:
    async with nodes.client() as client:
        return await collect(client)


async def page(nodes: Nodes, node_id: int, path: str) -> Page:
    line = await Line.open(nodes.world.network.host("client"), f"node{node_id}", HTTP_PORT)
    return await line.get(path)


async def figures(nodes: Nodes, node_id: int) -> dict[str, float]:
    text = (await page(nodes, node_id, "/public_metrics")).text
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def what(state: ClusterState) -> set[str]:
    return {trouble.what for trouble in state.troubles()}


def test_with_the_controller_killed_nobody_is_told_that_all_is_well() -> None:
    async def story(nodes: Nodes) -> None:
        assert (await state(nodes)).troubles() == []
        nodes.members[0].kill()
        await asyncio.sleep(SESSION_MS / 1000 + 2)
        told = await state(nodes)
        assert told.summary()["health"] == "bad"
        assert {"knowledge is old", "does not answer"} <= what(told)
        assert not told.is_fresh
        assert (told.age_ms or 0) > SESSION_MS
        healthz = await page(nodes, 1, "/cluster/healthz")
        assert healthz.status == 503
        assert "no controller" in healthz.text
        assert "knowledge is old" in healthz.text
        assert (await figures(nodes, 1))["ropewalk_controller_heard_seconds"] > SESSION_MS / 1000
        await nodes.members[0].start()
        await nodes.until(lambda: nodes.is_serving(0, seen_by=1))
        await asyncio.sleep(5)
        assert (await state(nodes)).troubles() == []
        assert (await page(nodes, 1, "/cluster/healthz")).status == 200

    in_a_cluster(story, with_http=True)


def test_with_all_of_etcd_out_of_reach_nobody_is_told_that_all_is_well() -> None:
    async def story(nodes: Nodes) -> None:
        assert (await state(nodes)).troubles() == []
        for number in range(3):
            nodes.etcd.isolate(number)
        await asyncio.sleep(15)
        assert {"nothing can change", "knowledge is old"} <= what(await state(nodes))
        for node_id in range(3):
            assert (await page(nodes, node_id, "/cluster/healthz")).status == 503
        nodes.etcd.mend()
        await asyncio.sleep(15)
        assert (await state(nodes)).troubles() == []
        assert (await page(nodes, 0, "/cluster/healthz")).status == 200

    in_a_cluster(story, with_etcd=True, with_http=True)


def test_a_node_that_is_gone_is_told_by_all_and_counted_by_the_controller() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics(
                [
                    NewTopic("three", 4, 3, (("min.insync.replicas", "3"),)),
                    NewTopic("one", 3, 1, ()),
                ]
            )
        await asyncio.sleep(5)
        assert (await state(nodes)).troubles() == []
        counted = await figures(nodes, 0)
        assert counted["kafka_brokers"] == 3
        assert counted["ropewalk_partitions_without_leader"] == 0
        nodes.members[2].kill()
        await asyncio.sleep(5)
        told = await state(nodes)
        assert {"node is fenced", "nobody leads", "below its minimum"} <= what(told)
        for node_id in (0, 1):
            healthz = await page(nodes, node_id, "/cluster/healthz")
            assert healthz.status == 503
            assert "nobody leads one: 1 of 3 partitions" in healthz.text
            assert "below its minimum three: 4 of 4 partitions" in healthz.text
            assert "node is fenced node 2" in healthz.text
        counted = await figures(nodes, 0)
        assert counted["kafka_brokers"] == 2, "a broker that is out of service does not count"
        assert counted["ropewalk_partitions_without_leader"] == 1
        assert counted["ropewalk_partitions_below_minimum"] == 4
        assert counted['ropewalk_nodes{state="fenced"}'] == 1

    in_a_cluster(story, with_http=True)
