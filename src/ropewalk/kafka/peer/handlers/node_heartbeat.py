"""NodeHeartbeat: a node is alive. The end of the connection it comes on says that it may not be any more.

Behaviour worth knowing
    Only the end of the connection that a node used last counts: one that was given up for another says nothing, however late its
    end is noticed.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.limits import COMPLAINTS_MAX
from ropewalk.controller.health import Complaint
from ropewalk.controller.load import NodeLoad, PartitionLoad
from ropewalk.controller.membership import Heartbeat
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.metadata.lineage import Position
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import node_heartbeat as wire
from ropewalk.wire.peer.node_heartbeat import NodeHeartbeatRequest, NodeHeartbeatResponse


class Pulse(Protocol):
    @property
    def is_fenced(self) -> bool: ...

    @property
    def may_stop(self) -> bool: ...

    @property
    def controller_id(self) -> NodeId: ...

    @property
    def metadata_end_offset(self) -> int: ...

    @property
    def clock_ms(self) -> int: ...

    @property
    def hindrance(self) -> str | None: ...


class Sessions(Protocol):
    async def heartbeat(self, heartbeat: Heartbeat, load: NodeLoad | None) -> Pulse:
        """Raises `NotController` where another node decides, `HistoryParted` for a node that has followed another history."""

    def on_disconnected(self, node_id: NodeId) -> None:
        """The connection that the node's heartbeats came on has ended."""


class Heartbeats:
    """The handler, and on which connection each node was heard last."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._last_callers: dict[int, Caller] = {}

    async def handle(self, request: NodeHeartbeatRequest, caller: Caller) -> NodeHeartbeatResponse:
        try:
            check_identity(caller, request.node_id)
            self._remember(request.node_id, caller)
            pulse = await self._sessions.heartbeat(_heartbeat(request), _load(request.load))
        except RopewalkError as error:
            return NodeHeartbeatResponse(code_for(error), str(error))
        return NodeHeartbeatResponse(
            ErrorCode.NONE,
            None,
            pulse.is_fenced,
            pulse.may_stop,
            pulse.controller_id,
            pulse.metadata_end_offset,
            pulse.clock_ms,
            pulse.hindrance,
        )

    def _remember(self, node_id: int, caller: Caller) -> None:
        last = self._last_callers.get(node_id)
        if last is not None and last.connection is caller.connection:
            return
        self._last_callers[node_id] = caller
        caller.watch_end(lambda: self._on_end(node_id, caller))

    def _on_end(self, node_id: int, caller: Caller) -> None:
        if self._last_callers.get(node_id) is caller:
            del self._last_callers[node_id]
            self._sessions.on_disconnected(NodeId(node_id))


def _heartbeat(request: NodeHeartbeatRequest) -> Heartbeat:
    return Heartbeat(
        node_id=NodeId(request.node_id),
        broker_epoch=request.broker_epoch,
        metadata_offset=request.metadata_offset,
        wants_to_stop=request.wants_to_stop,
        complaints=tuple(Complaint(each.check, each.problem) for each in request.complaints[:COMPLAINTS_MAX]),
        position=Position(request.applied_offset, request.applied_epoch, request.applied_reign),
    )


def _load(told: wire.NodeLoad | None) -> NodeLoad | None:
    if told is None:
        return None
    partitions = tuple(
        PartitionLoad(
            TopicId(bytes(each.topic_id)), each.index, each.bytes_in, each.bytes_out, each.records_in
        )
        for each in told.partitions
    )
    return NodeLoad(told.cpu_permille, told.disk_used_bytes, told.disk_total_bytes, partitions)
