"""RegisterNode: a node has started and asks the controller to be let in."""

from collections.abc import Iterable

from ropewalk.base.ids import TopicId
from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.controller.brokers import Registered, Registration
from ropewalk.wire.peer import register_node as wire


def register_node(registration: Registration) -> ControllerCall[Registered]:
    request = wire.RegisterNodeRequest(
        node_id=registration.node_id,
        cluster_id=registration.cluster_id,
        directory_id=registration.directory,
        endpoints=tuple(
            wire.ListenerEndpoint(each.listener, each.host, each.port) for each in registration.endpoints
        ),
        rack=registration.rack,
        roles=tuple(registration.roles),
        now_ms=registration.clock_ms,
        is_clean=registration.is_clean,
        damaged=_replicas(registration.damaged),
        unsynced=None if registration.unsynced is None else _replicas(registration.unsynced),
        life=registration.life,
        process=registration.process,
        version=registration.software.version,
        level_min=registration.software.level_min,
        level_max=registration.software.level_max,
    )
    return controller_call(
        wire.API, request, lambda answer: Registered(answer.broker_epoch, answer.cluster_id)
    )


def _replicas(named: Iterable[tuple[TopicId, int]]) -> tuple[wire.ReplicaOfPartition, ...]:
    return tuple(wire.ReplicaOfPartition(topic_id, index) for topic_id, index in sorted(named))
