"""RegisterNode: a node has started and asks to be let in.

Behaviour worth knowing
    A node speaks for itself only: the id must be the one that was given when the connection began, and the roles among those.
"""

from collections.abc import Sequence
from typing import Protocol

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.levels import Software
from ropewalk.controller.brokers import Registration
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.metadata.records import Endpoint
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.register_node import RegisterNodeRequest, RegisterNodeResponse, ReplicaOfPartition


class Registered(Protocol):
    @property
    def broker_epoch(self) -> int: ...

    @property
    def cluster_id(self) -> str: ...


class Registrations(Protocol):
    async def register(self, registration: Registration) -> Registered:
        """Returns when the registration is committed. Raises `NotController` where another node decides."""


async def handle(
    request: RegisterNodeRequest,
    caller: Caller,
    *,
    registrations: Registrations,
    roles: frozenset[str] | None = None,
) -> RegisterNodeResponse:
    """`roles` are those of the caller's connection; None where it did not say any."""
    try:
        check_identity(caller, request.node_id)
        if roles is not None and not roles.issuperset(request.roles):
            raise InvalidRequest(
                f"node {request.node_id} registers as {', '.join(request.roles)}, and connected as {', '.join(sorted(roles))}"
            )
        registered = await registrations.register(_registration(request))
    except RopewalkError as error:
        return RegisterNodeResponse(code_for(error), str(error))
    return RegisterNodeResponse(ErrorCode.NONE, None, registered.broker_epoch, registered.cluster_id)


def _registration(request: RegisterNodeRequest) -> Registration:
    return Registration(
        node_id=NodeId(request.node_id),
        directory=bytes(request.directory_id),
        endpoints=tuple(
            Endpoint(endpoint.listener, endpoint.host, endpoint.port) for endpoint in request.endpoints
        ),
        rack=request.rack,
        roles=request.roles,
        cluster_id=request.cluster_id,
        clock_ms=request.now_ms,
        is_clean=request.is_clean,
        damaged=_replicas(request.damaged),
        unsynced=None if request.unsynced is None else _replicas(request.unsynced),
        life=request.life,
        process=bytes(request.process),
        software=Software(request.version, request.level_min, request.level_max),
    )


def _replicas(named: Sequence[ReplicaOfPartition]) -> frozenset[tuple[TopicId, int]]:
    return frozenset((TopicId(bytes(each.topic_id)), each.index) for each in named)
