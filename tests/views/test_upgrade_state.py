"""What `cluster upgrade status` says of what a level will change."""

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.base.levels import PEER_TLS_LEVEL
from ropewalk.client.administration.membership import Membership, Node
from ropewalk.views.cluster_state import ClusterState
from ropewalk.views.upgrade_state import upgrade_state


def state(level: int, *level_max: int) -> ClusterState:
    nodes = tuple(
        Node(NodeId(number), "active", None, None, version="0.2.0", level_min=1, level_max=newest)
        for number, newest in enumerate(level_max)
    )
    return ClusterState(Membership("c", NodeId(0), 1, 1, nodes, (), level=level, finalize="manual"), ())


@pytest.mark.parametrize(
    ("level", "level_max", "is_said"),
    [
        (PEER_TLS_LEVEL - 1, (PEER_TLS_LEVEL, PEER_TLS_LEVEL), True),
        (PEER_TLS_LEVEL - 1, (PEER_TLS_LEVEL - 1, PEER_TLS_LEVEL), True),
        (PEER_TLS_LEVEL - 1, (PEER_TLS_LEVEL - 1,), False),
        (PEER_TLS_LEVEL, (PEER_TLS_LEVEL,), False),
        (0, (0,), False),
    ],
)
def test_connections_without_tls_are_named_while_the_level_allows_them(
    level: int, level_max: tuple[int, ...], is_said: bool
) -> None:
    waiting = upgrade_state(state(level, *level_max)).waiting
    assert bool(waiting) == is_said
    assert all("without TLS" in line for line in waiting)
