"""What the brokers of a cluster carry, how that could be evened out, and how a broker is taken away.

What a reader could get wrong
    Only our brokers do this. Another answers as to a request that asks for nothing, and there is no plan.
    Each call of `balance` is a step. What `remove` begins goes on by itself; calling it again tells how far that is.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.client.calls.client import Client
from ropewalk.client.errors import ApiNotOffered, RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_partition_reassignments, unregister_broker


class Change(Struct, frozen=True, gc=False):
    """The replicas of one partition, the leader first."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def copies(self) -> bool:
        """Whether records have to be copied for it."""
        return set(self.before) != set(self.after)


class Share(Struct, frozen=True, gc=False):
    """What one broker carries, of everything."""

    node: int
    before: float
    after: float


class Busy(Struct, frozen=True, gc=False):
    """Bytes per second."""

    topic: str
    partition: int
    leader: int | None
    bytes_in: int
    bytes_out: int
    share: float


class Plan(Struct, frozen=True, gc=False):
    changes: tuple[Change, ...]
    shares: tuple[Share, ...]
    busiest: tuple[Busy, ...]
    nodes_wanted: tuple[str, ...]
    """Why the cluster wants another node."""


class Removal(Struct, frozen=True, gc=False):
    stage: str
    """draining, drained or removed."""
    held_count: int


class Balancing:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def balance(self, *, validate_only: bool, deadline_ms: float | None = None) -> Plan:
        """The plan; it is carried out, as far as one step goes, unless it is only to be seen."""
        until_ms = self._session.deadline_ms() if deadline_ms is None else deadline_ms

        async def once() -> Plan:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
                timeout_ms=self._session.remaining_ms(until_ms), balance=True, validate_only=validate_only
            )
            response = await connection.call(alter_partition_reassignments.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="balance")
            return _plan(response)

        return await self._session.attempt((), once, deadline_ms=until_ms, repeatable=validate_only)

    async def remove(self, node_id: NodeId, *, deadline_ms: float | None = None) -> Removal:
        """Begin to take a broker away, or see how far that is."""
        request = unregister_broker.UnregisterBrokerRequest(broker_id=node_id, drain=True)
        response = await self._unregister(request, deadline_ms)
        return Removal(response.stage or "removed", response.held_count)

    async def keep(self, node_id: NodeId, *, deadline_ms: float | None = None) -> None:
        """Take back a `remove`. Moves that have begun go on."""
        request = unregister_broker.UnregisterBrokerRequest(broker_id=node_id, keep=True)
        await self._unregister(request, deadline_ms)

    async def set_maintenance(
        self, node_id: NodeId, *, is_on: bool, deadline_ms: float | None = None
    ) -> None:
        """Let others lead what a broker leads, or let it lead again. Raises `ApiNotOffered` where the controller is older than that."""
        request = unregister_broker.UnregisterBrokerRequest(
            broker_id=node_id, keep=True, maintenance=int(is_on)
        )
        response = await self._unregister(request, deadline_ms)
        if response.stage != "maintenance":
            raise ApiNotOffered("the controller is of a version that knows no maintenance")

    async def _unregister(
        self, request: unregister_broker.UnregisterBrokerRequest, deadline_ms: float | None
    ) -> unregister_broker.UnregisterBrokerResponse:
        until_ms = self._session.deadline_ms() if deadline_ms is None else deadline_ms

        async def once() -> unregister_broker.UnregisterBrokerResponse:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(unregister_broker.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                about = f"node {request.broker_id}"
                raise RemoteError(response.error_code, response.error_message, about=about)
            return response

        return await self._session.attempt((), once, deadline_ms=until_ms)


def _plan(response: alter_partition_reassignments.AlterPartitionReassignmentsResponse) -> Plan:
    return Plan(
        tuple(Change(each.topic_name, each.index, each.before, each.after) for each in response.changes),
        tuple(Share(each.node_id, each.before, each.after) for each in response.shares),
        tuple(
            Busy(
                each.topic_name,
                each.index,
                each.leader_id if each.leader_id >= 0 else None,
                each.bytes_in,
                each.bytes_out,
                each.share,
            )
            for each in response.busiest
        ),
        response.nodes_wanted,
    )
