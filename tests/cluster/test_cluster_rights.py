"""Rules decide the same at every node: at the one that decides, at one that forwards, and behind a front end."""

import pytest

from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.security.access import Operation, Pattern, Permission, ResourceType, Rule
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_acls, fetch, find_coordinator, metadata, produce
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_forwarding import Door
from tests.kafka.door import batch_of, fetch_request

FRONT = 7
SETTINGS = (
    f"authorizer.class.name={STANDARD_AUTHORIZER}",
    "super.users=User:root",
    "sqs.listen=none",
    "offsets.topic.replication.factor=1",
)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def rule(resource_type: ResourceType, name: str, operation: Operation) -> Rule:
    return Rule(resource_type, name, Pattern.PREFIXED, "User:ANONYMOUS", "*", operation, Permission.ALLOW)


async def everywhere(nodes: Nodes, node_ids: tuple[int, ...], *rules: Rule) -> None:
    changes = AclChanges(nodes[0]._parts.cluster)
    assert await changes.add(rules, None) == [None] * len(rules)
    await nodes.until(lambda: all(set(rules) <= set(nodes[each].image.acls) for each in node_ids))


@pytest.mark.parametrize(
    "node_id",
    [
        pytest.param(0, id="the controller"),
        pytest.param(1, id="a node that forwards"),
        pytest.param(FRONT, id="a front end"),
    ],
)
def test_a_client_may_do_what_rules_allow_wherever_it_asks(node_id: int) -> None:
    async def story(nodes: Nodes) -> None:
        await nodes.add(FRONT, "kafka.route=proxy", roles=("frontend",)).start()
        topics = [Operation.CREATE, Operation.READ, Operation.WRITE]
        await everywhere(
            nodes,
            (0, 1, FRONT),
            *[rule(ResourceType.TOPIC, "mine", each) for each in topics],
            rule(ResourceType.GROUP, "mine", Operation.READ),
        )
        door = await Door.open(nodes, node_id)
        assert await door.create("theirs") == REFUSED
        assert "theirs" not in nodes[0].image.topics
        assert await door.create("mine") == ErrorCode.NONE
        demanded = await door.describe("mine-too", may_create=True)
        assert demanded.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
        assert (await door.describe("theirs", may_create=True)).error_code == REFUSED

        data = produce.PartitionProduceData(0, bytes(batch_of("a")))
        both = tuple(produce.TopicProduceData(name, partitions=(data,)) for name in ("mine", "theirs"))
        leader = nodes[0].image.topics["mine"].partitions[0].leader
        assert leader is not None
        at_leader = door if node_id == FRONT else await Door.open(nodes, leader)
        deadline_ms = nodes.world.now_s * 1000 + 60_000
        written = await at_leader.connection.send(
            produce.API, 9, produce.ProduceRequest(None, -1, 1000, both), deadline_ms=deadline_ms
        )
        outcome = {topic.name: topic.partitions[0].error_code for topic in written.topics}
        assert outcome == {"mine": ErrorCode.NONE, "theirs": REFUSED}
        for name, code in (("mine", ErrorCode.NONE), ("theirs", REFUSED)):
            read = await at_leader.connection.send(
                fetch.API, 12, fetch_request(name, 0), deadline_ms=deadline_ms
            )
            assert read.topics[0].partitions[0].error_code == code

        # The topic of groups is made by a node on its own account, whoever asks for a coordinator.
        asked = find_coordinator.FindCoordinatorRequest(coordinator_keys=("mine", "theirs"))
        found = (await door.call(find_coordinator.API, asked)).coordinators
        codes = {each.key: each.error_code for each in found}
        assert codes == {"mine": ErrorCode.NONE, "theirs": ErrorCode.GROUP_AUTHORIZATION_FAILED}
        creation = create_acls.AclCreation(2, "theirs", 3, "User:ANONYMOUS", "*", 3, 3)
        added = await door.call(create_acls.API, create_acls.CreateAclsRequest((creation,)))
        assert [each.error_code for each in added.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        listed = await door.call(metadata.API, metadata.MetadataRequest(None))
        assert {topic.name for topic in listed.topics} == {"mine", "mine-too"}

    in_a_cluster(story, *SETTINGS, nodes=2)
