"""A node that decides by rules, asked as whoever one likes: by a client's request, and by one that another node forwards."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

from msgspec import Struct

from ropewalk.base.flow import Waiting
from ropewalk.base.ids import NodeId
from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.forwarded import FORWARDED
from ropewalk.kafka.peer.handlers import forward
from ropewalk.kafka.proxy.routed import ROUTED
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.records import KAFKA_LISTENER
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.node.kafka_door import serve_here
from ropewalk.security.access import Filter, Operation, Pattern, Permission, ResourceType, Rule
from ropewalk.security.identity import ANONYMOUS, Identity
from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.forward import ForwardRequest
from ropewalk.wire.types import Message
from tests.kafka.door import Door, at_the_door

T = TypeVar("T")

ADMIN = "User:admin"
ALICE = "User:alice"
HOST = "10.0.0.1"
REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


def rule(
    resource_type: ResourceType,
    name: str,
    operation: Operation,
    *,
    permission: Permission = Permission.ALLOW,
    pattern: Pattern = Pattern.LITERAL,
    principal: str = ALICE,
) -> Rule:
    return Rule(resource_type, name, pattern, principal, "*", operation, permission)


class Line:
    """A connection that carries requests of whoever is named in them."""

    peer_id: NodeId | None = None

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass

    def begin_wait(self, waiting: Waiting) -> None:
        pass

    def end_wait(self, waiting: Waiting) -> None:
        pass

    def watch_end(self, on_end: Callable[[], None]) -> None:
        pass

    def unwatch_end(self, on_end: Callable[[], None]) -> None:
        pass

    def end_input(self) -> None:
        pass

    def report(self, reason: str) -> None:
        pass


class Answer(Struct, frozen=True):
    body: bytes
    response: Any

    @property
    def codes(self) -> set[int]:
        return set(codes_in(self.response))


class RightsWorld:
    def __init__(self, door: Door) -> None:
        self.door = door
        self.parts = door.node._parts
        self.served: dict[int, ServedApi] = serve_here(self.parts)
        self._changes = AclChanges(self.parts.cluster)

    async def allow(self, *rules: Rule) -> None:
        assert await self._changes.add(rules, None) == [None] * len(rules)

    async def forget(self, *filters: Filter) -> None:
        await self._changes.remove(filters or (Filter(principal=ALICE),), None)

    async def rule_by(self, rules: Iterable[Rule]) -> None:
        """These and no others."""
        await self.forget(Filter())
        await self.allow(*rules)

    async def ask(
        self,
        api: AnyApi,
        version: int,
        request: Message,
        *,
        principal: str = ALICE,
        line: Line | None = None,
        groups: tuple[str, ...] = (),
        method: str = ANONYMOUS,
    ) -> Answer:
        decoded = self._decoded(api, version, b"".join(api.encode_request(version, request)))
        caller = Caller(
            line or Line(),
            client_id="test",
            host=HOST,
            version=version,
            identity=Identity(principal, groups, method),
            listener=KAFKA_LISTENER,
        )
        answer = await self.served[api.key].handle(decoded, caller)
        assert answer is not None
        return self._answer(api, version, b"".join(api.encode_response(version, answer)))

    async def ask_elsewhere(
        self,
        api: AnyApi,
        version: int,
        request: Message,
        *,
        principal: str = ALICE,
        groups: tuple[str, ...] = (),
        method: str = ANONYMOUS,
    ) -> Answer:
        """Of a node to which another has forwarded the request, or a front end."""
        line = Line()
        line.peer_id = NodeId(9)
        node = Caller(line, client_id="node", host="10.9.9.9", version=0)
        wrapped = ForwardRequest(
            api.key,
            version,
            principal,
            "test",
            HOST,
            None,
            b"".join(api.encode_request(version, request)),
            groups,
            method,
        )
        answer = await forward.handle(
            wrapped,
            node,
            cluster=self.parts.cluster,
            forwarded={key: self.served[key] for key in FORWARDED},
            routed={key: self.served[key] for key in ROUTED},
        )
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        return self._answer(api, version, answer.body)

    async def host_group(self, group_id: str) -> None:
        await self.parts.groups.coordinator(group_id)

    async def host_transactional_id(self, transactional_id: str) -> None:
        await self.parts.transactions.coordinator(transactional_id)

    @staticmethod
    def is_taken_elsewhere(api: AnyApi) -> bool:
        return api.key in FORWARDED or api.key in ROUTED

    @property
    def state(self) -> tuple[object, ...]:
        """What a request that is refused must leave as it is: the cluster's facts, and every log."""
        image = self.parts.cluster.image
        ends = [
            (topic.name, partition.index, hosted.log.end_offset, hosted.log.start_offset)
            for topic in image.topics.values()
            for partition in topic.partitions
            if (hosted := self.parts.partitions.find(topic.name, partition.index)) is not None
        ]
        return (image.end_offset, *ends)

    def _decoded(self, api: AnyApi, version: int, body: bytes) -> Any:
        return api.decode_request(version, memoryview(bytearray(body)), 0, len(body))

    def _answer(self, api: AnyApi, version: int, body: bytes) -> Answer:
        return Answer(body, api.decode_response(version, memoryview(body), 0, len(body)))


def codes_in(value: Any) -> Iterator[int]:
    """All error codes of an answer, wherever they are."""
    if isinstance(value, Message):
        for field in value.__struct_fields__:
            inside = getattr(value, field)
            if field.endswith("error_code"):
                yield inside
            else:
                yield from codes_in(inside)
    elif isinstance(value, tuple):
        for each in value:
            yield from codes_in(each)


def in_a_world_of_rights(story: Callable[[RightsWorld], Awaitable[T]], *settings: str) -> T:
    async def main(door: Door) -> T:
        return await story(RightsWorld(door))

    return at_the_door(
        main,
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        f"super.users={ADMIN}",
        "sqs.listen=none",
        *settings,
    )
