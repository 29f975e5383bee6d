"""Calls that find their node: the leader of a partition, the coordinator of a group or a transaction, wherever that is by now.

As clients do, a call that comes too early, too late or to the wrong node is repeated until it is answered.
"""

import asyncio
from typing import Any, TypeVar

from ropewalk.base.errors import TimedOut
from ropewalk.base.ids import NodeId
from ropewalk.base.sharding import shard_of
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ropewalk.wire.api import Api
from ropewalk.wire.compile import compile_errors_of
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, produce
from ropewalk.wire.types import Message
from tests.cluster.nodes import KAFKA_PORT, Nodes

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

PASSING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


class Reach:
    def __init__(self, nodes: Nodes, *, through: int | None = None, patience_s: float = 60) -> None:
        """`through`: always by this node, which passes it on."""
        self._nodes = nodes
        self._through = through
        self._patience_s = patience_s
        self._connections: dict[int, Connection] = {}
        self.repeated_count = 0

    async def call(self, api: Api[Q, R], version: int, request: Q) -> R:
        deadline_s = self._nodes.world.now_s + self._patience_s
        while True:
            answer = await self._try(api, version, request)
            if answer is not None and not PASSING & set(compile_errors_of(type(answer))(answer)):
                return answer
            assert self._nodes.world.now_s < deadline_s, f"{api.name} came to nothing: {answer}"
            self.repeated_count += 1
            await asyncio.sleep(0.05)

    def coordinator(self, transactional_id: str) -> NodeId | None:
        return self._led(TRANSACTIONS_TOPIC, transactional_id)

    def leader(self, topic: str, index: int) -> NodeId | None:
        found = self._nodes[0].image.topics.get(topic)
        return None if found is None else found.partitions[index].leader

    async def _try(self, api: Api[Q, R], version: int, request: Q) -> R | None:
        node_id = self._through if self._through is not None else self._target(api.key, request)
        if node_id is None:
            return None
        try:
            connection = self._connections.get(node_id)
            if connection is None or not connection.is_open:
                connection = self._connections[node_id] = await self._connect(node_id)
            deadline_ms = self._nodes.world.now_s * 1000 + 20_000
            return await connection.send(api, version, request, deadline_ms=deadline_ms)
        except (ConnectionLost, Unreachable, TimedOut):
            return None

    async def _connect(self, node_id: int) -> Connection:
        return await Connection.open(
            self._nodes.world.network.host("client"),
            self._nodes.members[0].machine.clock,
            Address(f"node{node_id}", KAFKA_PORT),
            client_id="test",
            deadline_ms=self._nodes.world.now_s * 1000 + 2_000,
        )

    def _target(self, api_key: int, request: Any) -> int | None:
        if api_key in (produce.API.key, fetch.API.key):
            (topic,) = request.topics
            return self.leader(topic.name, topic.partitions[0].index)
        group_id = getattr(request, "group_id", None)
        if group_id is not None and not hasattr(request, "transactional_id"):
            return self._led(OFFSETS_TOPIC, group_id)
        if hasattr(request, "generation_id_or_member_epoch"):
            return self._led(OFFSETS_TOPIC, request.group_id)
        name = getattr(request, "transactional_id", None) or getattr(
            request, "v3_and_below_transactional_id", None
        )
        return 0 if name is None else self._led(TRANSACTIONS_TOPIC, name)

    def _led(self, topic: str, key: str) -> NodeId | None:
        found = self._nodes[0].image.topics.get(topic)
        if found is None:
            return None
        return found.partitions[shard_of(key, len(found.partitions))].leader
