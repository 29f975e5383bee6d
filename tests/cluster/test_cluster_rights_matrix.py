"""Every API in every version, without each right that it needs, on every way to where it is carried out: at the node that decides, at one that
forwards, and at a front end that passes it on.

The cases are those of the matrix of one node (`tests/kafka/test_rights_matrix.py`), generated from what `kafka/apis.py` says that an API needs.
The rules are named for the client, and each node that stands between would be allowed everything in its own name.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.kafka.apis import SERVED, Serving
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.records import KAFKA_LISTENER
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.node.kafka_door import _with_others, serve_here
from ropewalk.node.life import Node
from ropewalk.security.access import Filter, ResourceType, Rule
from ropewalk.security.identity import Identity
from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import consumer_group_describe, find_coordinator
from ropewalk.wire.types import Message
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.kafka.rights_requests import REQUESTS, Asked
from tests.kafka.rights_world import ADMIN, ALICE, HOST, Answer, Line
from tests.kafka.test_rights_matrix import (
    SECRET,
    SEVERAL_RESOURCES,
    check_refused,
    join,
    plant,
    refused_cases,
)

OTHER, FRONT = 1, 7
WAYS: Final = {"direct": 0, "forwarded": OTHER, "proxied": FRONT}
PARTS: Final = 4
"""The APIs are dealt to so many clusters, so that they run side by side."""

SETTINGS: Final = (
    f"authorizer.class.name={STANDARD_AUTHORIZER}",
    f"super.users={ADMIN}",
    "sqs.listen=none",
    "offsets.topic.replication.factor=1",
    "transaction.state.log.replication.factor=1",
    "transaction.state.log.num.partitions=2",
)


class Way:
    """A client's connection to one node."""

    def __init__(self, node: Node) -> None:
        self._served: dict[int, ServedApi] = _with_others(node._parts, serve_here(node._parts))
        self._line = Line()

    async def ask(self, api: AnyApi, version: int, request: Message, *, principal: str = ALICE) -> Answer:
        body = b"".join(api.encode_request(version, request))
        asked: Any = api.decode_request(version, memoryview(bytearray(body)), 0, len(body))
        caller = Caller(
            self._line,
            client_id="test",
            host=HOST,
            version=version,
            identity=Identity(principal),
            listener=KAFKA_LISTENER,
        )
        answer = await self._served[api.key].handle(asked, caller)
        assert answer is not None
        told = b"".join(api.encode_response(version, answer))
        return Answer(told, api.decode_response(version, memoryview(told), 0, len(told)))


class ClusterWorld:
    """What `plant` takes for a world of one node, and three ways into it."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.ways = {name: Way(nodes[node_id]) for name, node_id in WAYS.items()}
        self._changes = AclChanges(nodes[0]._parts.cluster)

    async def rule_by(self, rules: list[Rule]) -> None:
        await self._changes.remove((Filter(),), None)
        await self._changes.add(rules, None)
        await self.nodes.until(
            lambda: all(set(self.nodes[each].image.acls) == set(rules) for each in WAYS.values())
        )

    async def ask(self, api: AnyApi, version: int, request: Message, *, principal: str = ALICE) -> Answer:
        """By the front end, which finds whoever leads; until that is somebody."""
        while True:
            answer = await self.ways["proxied"].ask(api, version, request, principal=principal)
            if not answer.codes & _NOT_YET:
                return answer
            await self.nodes.until(_later(self.nodes))

    async def host_group(self, group_id: str) -> None:
        await self._find(group_id, 0)

    async def host_transactional_id(self, transactional_id: str) -> None:
        await self._find(transactional_id, 1)

    async def _find(self, key: str, key_type: int) -> None:
        await self.ask(
            find_coordinator.API, 3, find_coordinator.FindCoordinatorRequest(key, key_type), principal=ADMIN
        )

    @property
    def state(self) -> tuple[object, ...]:
        ends = [
            (topic.name, partition.index, hosted.log.end_offset, hosted.log.start_offset)
            for topic in self.nodes[0].image.topics.values()
            for partition in topic.partitions
            if (hosted := self.nodes[0].partitions.led(topic.topic_id, partition.index)) is not None
        ]
        return (self.nodes[0].image.end_offset, *ends)


_NOT_YET: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


def _is_elsewhere(found: list[Answer]) -> bool:
    """Whether nothing was told but that another node leads or coordinates."""
    told = set().union(*[answer.codes for answer in found])
    assert not any(SECRET in answer.body for answer in found)
    told.discard(ErrorCode.NONE)
    return bool(told) and told <= {ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER}


def _later(nodes: Nodes) -> Callable[[], bool]:
    at_s = nodes.world.now_s + 0.1
    return lambda: nodes.world.now_s >= at_s


def with_three_ways(story: Callable[[ClusterWorld], Awaitable[None]]) -> None:
    async def begin(nodes: Nodes) -> None:
        await nodes.add(OTHER, roles=("frontend",)).start()
        await nodes.add(FRONT, "kafka.route=proxy", roles=("frontend",)).start()
        await story(ClusterWorld(nodes))

    in_a_cluster(begin, *SETTINGS, nodes=1, limit_s=100_000)


@pytest.mark.parametrize("part", range(PARTS))
def test_without_a_right_it_is_refused_on_every_way_in_every_version(part: int) -> None:
    async def story(world: ClusterWorld) -> None:
        asked = await plant(world)
        for serving in SERVED[part::PARTS]:
            await check(world, serving, asked)

    with_three_ways(story)


async def check(world: ClusterWorld, serving: Serving, asked: Asked) -> None:
    api = serving.api
    if api is consumer_group_describe.API:
        await join(world)
    for case in refused_cases(serving):
        await world.rule_by(case.rules)
        for version in api.versions:
            if api is find_coordinator.API and version == 0 and "TRANSACTIONAL" in case.name:
                continue  # it knows groups alone
            requests = REQUESTS[api.key](version, asked)
            if not requests:
                continue
            before = world.state
            for name, way in world.ways.items():
                found = [await way.ask(api, version, request) for request in requests]
                if name == "forwarded" and _is_elsewhere(found):
                    continue
                try:
                    check_refused(case, serving, version, found)
                except AssertionError as error:
                    raise AssertionError(f"{api.name} v{version} {name}: {error}") from error
            if api.key not in SEVERAL_RESOURCES or case.missing[0].resource_type is ResourceType.TOPIC:
                assert world.state == before, (api.name, version, case.name)


def test_the_matrix_of_ways_is_as_large_as_it_is_said_to_be() -> None:
    counts = [len(refused_cases(each)) * len(list(each.api.versions)) * len(WAYS) for each in SERVED]
    assert sum(counts) >= 3_000, sum(counts)
