"""Users in a cluster: set at any node, known to all, and logged out everywhere when their credential goes."""

from functools import partial

import pytest

from ropewalk.security.scram import Mechanism, salted
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import create_topics, metadata
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_forwarding import Door
from tests.kafka.visitors import HERE, ITERATIONS, SALT, SASL_PORT, Closed, Visitor

LISTENERS = f"listeners=PLAINTEXT://:{KAFKA_PORT},SASL_PLAINTEXT://:{SASL_PORT}"
SHA_256 = Mechanism.SHA_256


async def change(door: Door, request: alter.AlterUserScramCredentialsRequest) -> list[int]:
    return [result.error_code for result in (await door.call(alter.API, request)).results]


def setting(name: str, password: str) -> alter.AlterUserScramCredentialsRequest:
    salted_password = salted(SHA_256, password.encode(), SALT, ITERATIONS)
    upsertion = alter.ScramCredentialUpsertion(name, SHA_256, ITERATIONS, SALT, salted_password)
    return alter.AlterUserScramCredentialsRequest((), (upsertion,))


def knows(nodes: Nodes, node_id: int, *, is_there: bool) -> bool:
    return ("alice" in nodes[node_id].image.users) is is_there


@pytest.mark.parametrize("asked", [0, 1], ids=["the controller", "another node"])
def test_a_user_is_set_and_removed_by_any_node_and_counts_at_all(asked: int) -> None:
    async def story(nodes: Nodes) -> None:
        nodes.world.machine(HERE)
        door = await Door.open(nodes, asked)
        assert await change(door, setting("alice", "secret")) == [ErrorCode.NONE]
        visitors = []
        for node_id in range(2):
            await nodes.until(partial(knows, nodes, node_id, is_there=True))
            visitor = await Visitor.come_to(nodes.world, f"node{node_id}")
            assert (await visitor.log_in("alice", "secret")).error_code == ErrorCode.NONE
            topic = create_topics.CreatableTopic(f"of-{node_id}", 1, 1)
            made = await visitor.ask(create_topics.API, 7, create_topics.CreateTopicsRequest((topic,)))
            assert made.topics[0].error_code == ErrorCode.NONE, "wherever it is decided"
            visitors.append(visitor)
        salts = {nodes[node_id].image.users.decoy_key for node_id in range(2)}
        assert len(salts) == 1, "a name that nobody has looks the same at every node"
        deletion = alter.ScramCredentialDeletion("alice", SHA_256)
        removing = alter.AlterUserScramCredentialsRequest((deletion,), ())
        assert await change(door, removing) == [ErrorCode.NONE]
        for node_id, visitor in enumerate(visitors):
            await nodes.until(partial(knows, nodes, node_id, is_there=False))
            with pytest.raises(Closed):
                await visitor.ask(metadata.API, 12, metadata.MetadataRequest(None))

    in_a_cluster(story, LISTENERS, nodes=2)
