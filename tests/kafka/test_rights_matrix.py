"""Every API in every version, without each right that it needs: the exact refusal, no name that was not asked for, and nothing changed.

The cases are generated from what `kafka/apis.py` says that an API needs.
"""

import asyncio
from typing import Protocol

import pytest
from msgspec import structs

from ropewalk.kafka.apis import SERVED, Serving
from ropewalk.kafka.rights.needs import Inside, Nothing, OnCluster, Right
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.security.access import CLUSTER_NAME, Operation, Permission, ResourceType, Rule
from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_partitions_to_txn,
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_topics,
    describe_log_dirs,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    offset_commit,
    produce,
    sasl_authenticate,
    sasl_handshake,
)
from ropewalk.wire.types import Message
from tests.kafka.door import Door, batch_of
from tests.kafka.rights_requests import GROUP, ID, REQUESTS, TOPIC, USER, Asked
from tests.kafka.rights_world import ADMIN, ALICE, REFUSALS, Answer, RightsWorld, in_a_world_of_rights, rule
from tests.kafka.visitors import Visitor, with_logins

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
TELLS_OF_ALL = ("DescribeLogDirs", "ListConfigResources")
"""To those who may describe the cluster."""
BEFORE_A_NAME = (api_versions.API, sasl_handshake.API, sasl_authenticate.API)
AUTHORIZED = (f"authorizer.class.name={STANDARD_AUTHORIZER}",)
SEVERAL_RESOURCES = frozenset({alter_configs.API.key, incremental_alter_configs.API.key})
"""What is asked of the others is done."""


class Ground(Protocol):
    """Where things are planted: a node, or several."""

    async def ask(self, api: AnyApi, version: int, request: Message, *, principal: str = ...) -> Answer: ...

    async def host_group(self, group_id: str) -> None:
        """Return when it has a coordinator."""

    async def host_transactional_id(self, transactional_id: str) -> None: ...


async def plant(world: Ground) -> Asked:
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
        await world.host_group(group_id)
        committed = offset_commit.OffsetCommitRequest(group_id, topics=topics)
        assert (await world.ask(offset_commit.API, 8, committed, principal=ADMIN)).codes == {0}
    for transactional_id in (ID, "secret-id"):
        await world.host_transactional_id(transactional_id)
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


async def join(world: Ground) -> None:
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


def denying_everybody(right: Right) -> Rule:
    """All operations on all resources of the kind: a wildcard that comes after the rules that allow."""
    name = CLUSTER_NAME if right.resource_type is ResourceType.CLUSTER else "*"
    return rule(right.resource_type, name, Operation.ALL, permission=Permission.DENY, principal="User:*")


def others_of(rights: tuple[Right, ...]) -> list[Rule]:
    """All that is needed, for somebody of another name that begins as the caller's does."""
    return [structs.replace(each, principal=f"{ALICE}-too") for each in allowing(rights)]


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
            Case("somebody else's", others_of(rights), rights),
            Case("everybody denied", [*allowing(rights), denying_everybody(rights[0])], rights),
        ]
    cases = (
        [Case("no right", [], rights[:1]), Case("somebody else's", others_of(rights), rights[:1])]
        if rights
        else []
    )
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
        cases.append(
            Case(
                f"everybody denied {right.operation.name} {right.resource_type.name}",
                [*allowing(rights), denying_everybody(right)],
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


every_api = pytest.mark.parametrize("serving", [pytest.param(each, id=each.api.name) for each in SERVED])


@every_api
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
                    if serving.api.name not in TELLS_OF_ALL:
                        assert SECRET not in answer.body, version

    in_a_world_of_rights(story)


@every_api
def test_who_loses_its_rights_under_a_request_is_told_nothing_foreign_and_refused_from_then_on(
    serving: Serving,
) -> None:
    async def story(world: RightsWorld) -> None:
        asked = await plant(world)
        if serving.api is consumer_group_describe.API:
            await join(world)
        rights, api = rights_of(serving), serving.api
        waited = set[int]()
        for version in api.versions:
            for request in REQUESTS[api.key](version, asked):
                await world.rule_by(allowing(rights))
                under_way = asyncio.ensure_future(world.ask(api, version, request))
                await asyncio.sleep(0)
                await world.forget()
                waits = not under_way.done()
                answer = await under_way
                if api.name not in TELLS_OF_ALL:
                    assert SECRET not in answer.body, version
                if waits and api is join_group.API:
                    assert answer.codes == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
                    waited.add(version)
            if not rights or not REQUESTS[api.key](version, asked):
                continue
            before = world.state
            for found in await answers(world, serving, version, asked):
                check_refused(refused_cases(serving)[0], serving, version, found)
            assert world.state == before, version
        assert waited or api is not join_group.API, "nobody has waited"

    in_a_world_of_rights(story)


def test_nobody_is_served_before_it_has_said_who_it_is() -> None:
    """Whatever may be done without a name: the connection ends, without a byte."""

    async def story(door: Door) -> int:
        world = RightsWorld(door)
        asked = await plant(world)
        before, count = world.state, 0
        for serving in SERVED:
            if serving.api in BEFORE_A_NAME:
                continue
            for version in serving.api.versions:
                for request in REQUESTS[serving.api.key](version, asked):
                    stranger = await Visitor.come(door)
                    stranger.send(serving.api, version, request)
                    assert await stranger.closes(), (serving.api.name, version)
                    count += 1
        assert world.state == before
        return count

    assert with_logins(story, *AUTHORIZED, "super.users=User:admin;User:ANONYMOUS", limit_s=10_000) > 250


def test_the_table_has_requests_for_every_api_that_is_served() -> None:
    assert {each.api.key for each in SERVED} == REQUESTS.keys()


def test_the_matrix_is_as_large_as_it_is_said_to_be() -> None:
    """Besides, there are those of `tests/cluster/test_cluster_rights_matrix.py`, on three ways."""
    count = 0
    for serving in SERVED:
        ways = 2 if RightsWorld.is_taken_elsewhere(serving.api) else 1
        count += (len(refused_cases(serving)) + 2) * len(list(serving.api.versions)) * ways
    assert count >= 2_500, count
