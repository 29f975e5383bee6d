"""Every API in every version, without each right that it needs: the exact refusal, no name that was not asked for, and nothing changed.

The cases are generated from what `kafka/apis.py` says that an API needs.
"""

import pytest

from ropewalk.kafka.apis import SERVED, Serving
from ropewalk.kafka.rights.needs import Inside, Nothing, OnCluster, Right
from ropewalk.security.access import CLUSTER_NAME, Operation, Permission, ResourceType, Rule
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_partitions_to_txn,
    alter_configs,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_topics,
    describe_log_dirs,
    incremental_alter_configs,
    init_producer_id,
    offset_commit,
    produce,
)
from tests.kafka.door import batch_of
from tests.kafka.rights_requests import GROUP, ID, REQUESTS, TOPIC, USER, Asked
from tests.kafka.rights_world import ADMIN, REFUSALS, Answer, RightsWorld, in_a_world_of_rights, rule

SECRET = b"secret-"
NAMES = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: ID,
    ResourceType.CLUSTER: CLUSTER_NAME,
    ResourceType.USER: f"User:{USER}",
}
CODES = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
SEVERAL_RESOURCES = frozenset({alter_configs.API.key, incremental_alter_configs.API.key})
"""What is asked of the others is done."""


async def plant(world: RightsWorld) -> Asked:
    """Topics, groups and transactions, half of them secret, made by the administrator."""
    names = (TOPIC, "secret-topic")
    creatable = tuple(create_topics.CreatableTopic(name, 1, 1) for name in names)
    made = await world.ask(
        create_topics.API, 7, create_topics.CreateTopicsRequest(creatable), principal=ADMIN
    )
    for name in names:
        data = produce.PartitionProduceData(0, bytes(batch_of("a", "b", "c")))
        request = produce.ProduceRequest(
            None, -1, 1000, (produce.TopicProduceData(name, partitions=(data,)),)
        )
        assert (await world.ask(produce.API, 9, request, principal=ADMIN)).codes == {0}
    for group_id in (GROUP, "secret-group"):
        topics = tuple(
            offset_commit.OffsetCommitRequestTopic(
                name, partitions=(offset_commit.OffsetCommitRequestPartition(0, 1),)
            )
            for name in names
        )
        await world.parts.groups.coordinator(group_id)
        committed = offset_commit.OffsetCommitRequest(group_id, topics=topics)
        assert (await world.ask(offset_commit.API, 8, committed, principal=ADMIN)).codes == {0}
    for transactional_id in (ID, "secret-id"):
        await world.parts.transactions.coordinator(transactional_id)
        begun = await world.ask(
            init_producer_id.API,
            4,
            init_producer_id.InitProducerIdRequest(transactional_id, 60_000),
            principal=ADMIN,
        )
        added = add_partitions_to_txn.AddPartitionsToTxnRequest(
            (),
            transactional_id,
            begun.response.producer_id,
            begun.response.producer_epoch,
            tuple(add_partitions_to_txn.AddPartitionsToTxnTopic(name, (0,)) for name in names),
        )
        assert (await world.ask(add_partitions_to_txn.API, 3, added, principal=ADMIN)).codes == {0}
    return Asked(made.response.topics[0].topic_id)


async def join(world: RightsWorld) -> None:
    """Make the group one with server-side assignment, whose member has the topic."""
    beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        GROUP,
        "m",
        0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=(),
    )
    assert (await world.ask(consumer_group_heartbeat.API, 1, beat, principal=ADMIN)).codes == {0}


def rights_of(serving: Serving) -> tuple[Right, ...]:
    match serving.needs:
        case OnCluster(operations=operations):
            return tuple(Right(ResourceType.CLUSTER, operation) for operation in operations)
        case Inside(rights=rights):
            return rights
        case Nothing():
            return ()


def allowing(rights: tuple[Right, ...]) -> list[Rule]:
    return list({rule(each.resource_type, NAMES[each.resource_type], each.operation) for each in rights})


def denying(right: Right) -> Rule:
    return rule(right.resource_type, NAMES[right.resource_type], right.operation, permission=Permission.DENY)


class Case:
    """What the user is allowed, and what he must not get."""

    def __init__(self, name: str, rules: list[Rule], missing: tuple[Right, ...]) -> None:
        self.name, self.rules, self.missing = name, rules, missing


def refused_cases(serving: Serving) -> list[Case]:
    rights = rights_of(serving)
    if isinstance(serving.needs, OnCluster):  # one of the operations is enough
        return [
            Case("no right", [], rights),
            Case("denied", [*allowing(rights), *map(denying, rights)], rights),
        ]
    cases = [Case("no right", [], rights[:1])] if rights else []
    for right in rights:
        others = tuple(each for each in rights if each != right)
        if right.operation is Operation.DESCRIBE:  # others on the same resource would imply it
            others = tuple(each for each in others if each.resource_type is not right.resource_type)
        cases.append(
            Case(f"without {right.operation.name} {right.resource_type.name}", allowing(others), (right,))
        )
        cases.append(
            Case(
                f"denied {right.operation.name} {right.resource_type.name}",
                [*allowing(rights), denying(right)],
                (right,),
            )
        )
    return cases


async def answers(world: RightsWorld, serving: Serving, version: int, asked: Asked) -> list[list[Answer]]:
    """Of all requests, each way on which they may come."""
    api = serving.api
    requests = REQUESTS[api.key](version, asked)
    ways = [world.ask, world.ask_elsewhere] if world.is_taken_elsewhere(api) else [world.ask]
    return [[await way(api, version, request) for request in requests] for way in ways]


def check_refused(case: Case, serving: Serving, version: int, found: list[Answer]) -> None:
    told = set().union(*[answer.codes for answer in found])
    is_silent = serving.api is describe_log_dirs.API and version < 3
    for right in case.missing:
        name, code = NAMES[right.resource_type], CODES[right.resource_type]
        if right.is_hidden:
            assert not any(name.encode() in answer.body for answer in found), case.name
        elif not is_silent:
            assert code in told, (case.name, told)
    for answer in found:
        assert SECRET not in answer.body, case.name


@pytest.mark.parametrize("serving", [pytest.param(each, id=each.api.name) for each in SERVED])
def test_without_a_right_it_is_refused_in_every_version_and_with_all_it_is_not(serving: Serving) -> None:
    async def story(world: RightsWorld) -> None:
        asked = await plant(world)
        if serving.api is consumer_group_describe.API:
            await join(world)
        for case in refused_cases(serving):
            await world.rule_by(case.rules)
            for version in serving.api.versions:
                if not REQUESTS[serving.api.key](version, asked):
                    continue
                if serving.api.name == "FindCoordinator" and version == 0 and "TRANSACTIONAL" in case.name:
                    continue  # it knows groups alone
                before = world.state
                for found in await answers(world, serving, version, asked):
                    check_refused(case, serving, version, found)
                if (
                    serving.api.key not in SEVERAL_RESOURCES
                    or case.missing[0].resource_type is ResourceType.TOPIC
                ):
                    assert world.state == before, (case.name, version)
        await world.rule_by(allowing(rights_of(serving)))
        for version in serving.api.versions:
            for found in await answers(world, serving, version, asked):
                for answer in found:
                    assert not answer.codes & REFUSALS, (version, answer.response)
                    if serving.api.name not in ("DescribeLogDirs", "ListConfigResources"):
                        assert SECRET not in answer.body, version

    in_a_world_of_rights(story)


def test_the_table_has_requests_for_every_api_that_is_served() -> None:
    assert {each.api.key for each in SERVED} == REQUESTS.keys()


def test_the_matrix_is_as_large_as_it_is_said_to_be() -> None:
    count = 0
    for serving in SERVED:
        ways = 2 if RightsWorld.is_taken_elsewhere(serving.api) else 1
        count += (len(refused_cases(serving)) + 1) * len(list(serving.api.versions)) * ways
    assert count >= 1_000, count
