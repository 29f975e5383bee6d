"""What `cluster upgrade status` and `cluster restart-check` say of a cluster, from what its nodes tell.

What a reader could get wrong
    A node of the version before tells no level and no versions of others, so the answer of one that does is preferred, and of each node its
    own word on its version counts where nobody else knows it.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.base.levels import PEER_TLS_LEVEL
from ropewalk.client.administration.membership import Membership, Node
from ropewalk.views.cluster_state import ClusterState


class NodeVersion(Struct, frozen=True):
    node: int
    state: str
    version: str
    levels: str
    """As 1 to 2; empty where nobody knows."""


class UpgradeState(Struct, frozen=True):
    level: int
    """In force; 0 where nobody knows."""
    newest: int
    """The newest that some node knows."""
    finalize: str
    nodes: tuple[NodeVersion, ...]
    held_back: tuple[str, ...]
    """What keeps the newest from coming into force; empty where nothing does."""
    waiting: tuple[str, ...] = ()
    """What nodes will not put up with any more once the newest is in force."""


def upgrade_state(state: ClusterState) -> UpgradeState:
    told = [state.membership, *(each for each in state.answers.values() if isinstance(each, Membership))]
    best = next((each for each in told if each.level), state.membership)
    newest = max((node.level_max for node in best.nodes), default=0)
    return UpgradeState(
        best.level,
        newest,
        best.finalize,
        tuple(_version(node, state) for node in best.nodes),
        tuple(_hindrance(node, state) for node in best.nodes if node.level_max < newest)
        if newest > best.level
        else (),
        _waiting(best.level, newest),
    )


def _waiting(level: int, newest: int) -> tuple[str, ...]:
    if not 0 < level < PEER_TLS_LEVEL <= newest:
        return ()
    return (
        f"until level {PEER_TLS_LEVEL} is in force nodes take connections of each other without TLS, where peer.listen is no loopback address and "
        "peer.tls is auto",
    )


def would_be_below(state: ClusterState, node_id: NodeId) -> Sequence[str]:
    """Partitions of which too few would be in sync, or that nobody could lead, if the node stopped now."""
    found: list[str] = []
    for topic in state.topics:
        for partition in topic.partitions:
            if node_id not in partition.isr:
                continue
            left = len(partition.isr) - 1
            if left < max(partition.minimum_in_sync, 1):
                found.append(
                    f"{topic.name}-{partition.index}: {left} would be in sync, {max(partition.minimum_in_sync, 1)} are needed"
                )
    return found


def _version(node: Node, state: ClusterState) -> NodeVersion:
    levels = f"{node.level_min} to {node.level_max}" if node.level_max else ""
    return NodeVersion(node.node_id, _state(node), _version_of(node, state) or "unknown", levels)


def _state(node: Node) -> str:
    return f"{node.state}, maintenance" if node.in_maintenance else node.state


def _hindrance(node: Node, state: ClusterState) -> str:
    away = "; it is away: start the new version there, or remove it" if node.state == "fenced" else ""
    version = _version_of(node, state) or "unknown"
    return f"node {node.node_id} is of version {version}, which works at level {node.level_max or 1} at most{away}"


def _version_of(node: Node, state: ClusterState) -> str:
    answer = state.answers.get(node.node_id)
    own = answer.answerer.version if isinstance(answer, Membership) and answer.answerer is not None else ""
    return node.version or own
