"""NodeHeartbeat: a node tells the controller that it lives, what it carries and what is wrong with it."""

from ropewalk.base.ids import NodeId
from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.broker.peers.peers import Lane
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import Heartbeat, Pulse
from ropewalk.wire.peer import node_heartbeat as wire


def node_heartbeat(heartbeat: Heartbeat, load: NodeLoad | None) -> ControllerCall[Pulse]:
    request = wire.NodeHeartbeatRequest(
        heartbeat.node_id,
        heartbeat.broker_epoch,
        heartbeat.metadata_offset,
        heartbeat.wants_to_stop,
        _load(load),
        tuple(wire.NodeComplaint(each.check, each.problem) for each in heartbeat.complaints),
        heartbeat.position.end_offset,
        heartbeat.position.epoch,
        heartbeat.position.reign,
    )
    return controller_call(wire.API, request, _pulse, lane=Lane.HEARTBEATS)


def _load(load: NodeLoad | None) -> wire.NodeLoad | None:
    if load is None:
        return None
    partitions = tuple(
        wire.PartitionLoad(each.topic_id, each.index, each.bytes_in, each.bytes_out, each.records_in)
        for each in load.partitions
    )
    return wire.NodeLoad(load.cpu_permille, load.disk_used_bytes, load.disk_total_bytes, partitions)


def _pulse(answer: wire.NodeHeartbeatResponse) -> Pulse:
    return Pulse(
        answer.is_fenced,
        answer.may_stop,
        NodeId(answer.controller_id),
        answer.metadata_end_offset,
        answer.clock_ms,
        answer.hindrance,
    )
