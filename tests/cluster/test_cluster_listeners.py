"""Several listeners for Kafka's clients: each client is told the addresses of the one it came by, whatever it asks."""

from ropewalk.metadata.records import KAFKA_LISTENER
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_cluster, describe_configs, find_coordinator, metadata, produce
from tests.cluster.nodes import KAFKA_PORT, PEER_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_forwarding import Door
from tests.kafka.door import batch_of, produce_request

OUTSIDE_PORT = 9094
TWO = (
    f"listeners=PLAINTEXT://:{KAFKA_PORT},OUTSIDE://:{OUTSIDE_PORT}",
    "listener.security.protocol.map=OUTSIDE:PLAINTEXT",
)
BROKER = 4


def told_of(node_id: int) -> tuple[str, ...]:
    return (
        f"advertised.listeners=PLAINTEXT://node{node_id}:{KAFKA_PORT},OUTSIDE://out{node_id}:1909{node_id}",
    )


async def addresses(door: Door) -> dict[str, list[tuple[str, int]]]:
    """What each API that names brokers says of them."""
    known = await door.call(metadata.API, metadata.MetadataRequest(None))
    asking = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    (found,) = (await door.call(find_coordinator.API, asking)).coordinators
    assert found.error_code == ErrorCode.NONE, found.error_message
    described = await door.call(
        describe_cluster.API,
        describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False),
    )
    return {
        "metadata": sorted((each.host, each.port) for each in known.brokers),
        "cluster": sorted((each.host, each.port) for each in described.brokers),
        "coordinator": [(found.host, found.port)],
    }


def test_clients_are_told_the_addresses_of_the_listener_they_came_by() -> None:
    async def story(nodes: Nodes) -> None:
        inside = [(f"node{node_id}", KAFKA_PORT) for node_id in range(2)]
        outside = [(f"out{node_id}", 19090 + node_id) for node_id in range(2)]
        for node_id in range(2):
            for port, expected in ((KAFKA_PORT, inside), (OUTSIDE_PORT, outside)):
                told = await addresses(await Door.open(nodes, node_id, port=port))
                assert told["metadata"] == told["cluster"] == expected
                assert set(told["coordinator"]) <= set(expected)
        assert [
            (endpoint.listener, endpoint.host, endpoint.port)
            for endpoint in nodes[0].image.brokers[nodes[1].node_id].endpoints[:3]
        ] == [
            (KAFKA_LISTENER, "node1", KAFKA_PORT),
            ("OUTSIDE", "out1", 19091),
            ("PEER", "node1", PEER_PORT),
        ]
        door = await Door.open(nodes, 0)
        resource = describe_configs.DescribeConfigsResource(4, "0", ("listeners", "advertised.listeners"))
        (described,) = (
            await door.call(describe_configs.API, describe_configs.DescribeConfigsRequest((resource,)))
        ).results
        assert {each.name: each.value for each in described.configs} == {
            "listeners": f"PLAINTEXT://node0:{KAFKA_PORT},OUTSIDE://node0:{OUTSIDE_PORT}",
            "advertised.listeners": f"PLAINTEXT://node0:{KAFKA_PORT},OUTSIDE://out0:19090",
        }

    in_a_cluster(story, *TWO, nodes=2, differing={0: told_of(0), 1: told_of(1)})


def test_a_front_end_stands_at_each_listener_for_brokers_that_clients_cannot_reach() -> None:
    async def story(nodes: Nodes) -> None:
        front = nodes.add(BROKER, "kafka.route=proxy", *TWO, *told_of(BROKER), roles=("frontend",))
        await front.start()
        await nodes.until(lambda: nodes.is_serving(BROKER, seen_by=BROKER))
        for port, expected in (
            (KAFKA_PORT, (f"node{BROKER}", KAFKA_PORT)),
            (OUTSIDE_PORT, (f"out{BROKER}", 19090 + BROKER)),
        ):
            door = await Door.open(nodes, BROKER, port=port)
            told = await addresses(door)
            assert told == {"metadata": [expected], "cluster": [expected], "coordinator": [expected]}
        assert await door.create("t") == ErrorCode.NONE
        topic = await door.describe("t")
        request = produce_request("t", batch_of("value"), topic_id=topic.topic_id)
        (answered,) = (await door.call(produce.API, request)).topics
        assert answered.partitions[0].error_code == ErrorCode.NONE

    in_a_cluster(story, nodes=2, differing={0: ("kafka.listen=none",), 1: ("kafka.listen=none",)})
