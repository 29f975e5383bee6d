"""Which broker looks after which group or transactional id: asked once, believed until a broker says otherwise."""

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Final, TypeVar

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.client.connections.cluster import Lane
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.session import Session
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import find_coordinator

T = TypeVar("T")

_MANY_KEYS_SINCE: Final = 4


class CoordinatorKind(IntEnum):
    """What a key of FindCoordinator names."""

    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    def __init__(
        self, session: Session, kind: CoordinatorKind = CoordinatorKind.GROUP, *, lane: Lane = Lane.CALLS
    ) -> None:
        self._session = session
        self._kind = kind
        self._lane = lane
        self._nodes: dict[str, NodeId] = {}

    async def ask(
        self,
        group: str,
        once: Callable[[Connection], Awaitable[T]],
        *,
        deadline_ms: float,
        repeatable: bool = True,
    ) -> T:
        """Call `once` with a connection to the group's coordinator, and again where that helps.

        A coordinator that has moved, is loading or has gone answers with an error that `once` raises; before the
        next attempt the cluster is asked where the group is looked after.
        """

        async def attempt() -> T:
            try:
                return await once(await self._connection(group, deadline_ms))
            except RopewalkError:
                self._nodes.pop(group, None)
                raise

        return await self._session.attempt((), attempt, deadline_ms=deadline_ms, repeatable=repeatable)

    async def _connection(self, group: str, deadline_ms: float) -> Connection:
        cluster = self._session.cluster
        node = self._nodes.get(group)
        if node is None:
            node = await self._find(group, deadline_ms)
            if not cluster.knows(node):
                await cluster.metadata([], deadline_ms=deadline_ms)
            self._nodes[group] = node
        return await cluster.connection(node, deadline_ms=deadline_ms, lane=self._lane)

    async def _find(self, group: str, deadline_ms: float) -> NodeId:
        connection = await self._session.cluster.any_connection(deadline_ms=deadline_ms)
        request = find_coordinator.FindCoordinatorRequest(
            key=group, key_type=self._kind, coordinator_keys=(group,)
        )
        api = find_coordinator.API
        version = connection.versions.choose(api)
        response = await connection.call(api, request, deadline_ms=deadline_ms)
        if version < _MANY_KEYS_SINCE:
            code, message, node_id = response.error_code, response.error_message, response.node_id
        else:
            answer = only_group(response.coordinators, api.name)
            code, message, node_id = answer.error_code, answer.error_message, answer.node_id
        if code != ErrorCode.NONE:
            raise RemoteError(code, message, about=group)
        return NodeId(node_id)


def only_group(answers: tuple[T, ...], api: str) -> T:
    """The answer to a question about one group; refuses any other number with `ProtocolError`."""
    if len(answers) != 1:
        raise ProtocolError(f"{api} answered for {len(answers)} groups, 1 was asked about")
    return answers[0]
