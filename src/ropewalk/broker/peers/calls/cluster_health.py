"""ClusterHealth: a node asks the controller what is wrong in the cluster."""

from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.controller.health import Trouble
from ropewalk.wire.peer import cluster_health as wire


def cluster_health() -> ControllerCall[list[Trouble]]:
    return controller_call(
        wire.API,
        wire.ClusterHealthRequest(),
        lambda answer: [Trouble(each.what, each.where, each.why) for each in answer.troubles],
        refusals=Refusals(),
    )
