"""DescribeCluster (key 60): the brokers of the cluster and which of them is the controller.

v1  endpoint_type: brokers (1) or controllers (2)
v2  fenced brokers, on request

Ours, for those who ask: every node with its state, its roles and its doors, who decides, what was lost, how old the answer is, and what is wrong with the
node that gives it.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Int64, Message, since, tagged


class DescribeClusterRequest(Message, frozen=True):
    include_cluster_authorized_operations: bool
    endpoint_type: Annotated[Int8, since(1)] = 1
    include_fenced_brokers: Annotated[bool, since(2)] = False
    include_nodes: Annotated[bool, tagged(10_000)] = False


class DescribeClusterBroker(Message, frozen=True):
    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = None
    is_fenced: Annotated[bool, since(2)] = False


class NodeDoor(Message, frozen=True):
    name: str
    host: str
    port: Int32


class ClusterNode(Message, frozen=True):
    node_id: Int32
    epoch: Int64
    state: str
    roles: tuple[str, ...]
    rack: str | None
    doors: tuple[NodeDoor, ...]
    version: Annotated[str, tagged(10_000)] = ""
    """Of its software; empty where nobody knows."""
    level_min: Annotated[Int32, tagged(10_001)] = 0
    level_max: Annotated[Int32, tagged(10_002)] = 0
    """The levels that it works at; 0 where nobody knows."""
    in_maintenance: Annotated[bool, tagged(10_003)] = False


class NodeProblem(Message, frozen=True):
    """What the node that answers says is wrong with itself."""

    check: str
    problem: str


class AlertLabel(Message, frozen=True):
    name: str
    value: str


class NodeAlert(Message, frozen=True):
    """What the node that answers thinks should wake somebody."""

    name: str
    severity: str
    state: str
    summary: str
    labels: tuple[AlertLabel, ...]
    since_ms: Int64
    silenced_until_ms: Int64
    """-1 where it is not silenced."""


class ClusterLoss(Message, frozen=True):
    """A replica was made leader that may have lacked acknowledged records."""

    topic_name: str
    index: Int32
    leader_id: Int32
    leader_epoch: Int32
    at_ms: Int64
    reason: str


class DescribeClusterResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: str = ""
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: Int32 = -(2**31)
    nodes: Annotated[tuple[ClusterNode, ...], tagged(10_000)] = ()
    deciding_id: Annotated[Int32, tagged(10_001)] = -1
    """The node that decides, whether or not clients can reach it; -1 for none."""
    deciding_epoch: Annotated[Int32, tagged(10_002)] = -1
    metadata_offset: Annotated[Int64, tagged(10_003)] = -1
    losses: Annotated[tuple[ClusterLoss, ...], tagged(10_004)] = ()
    answering_id: Annotated[Int32, tagged(10_005)] = -1
    answering_version: Annotated[str, tagged(10_006)] = ""
    decides: Annotated[bool, tagged(10_007)] = False
    """Whether the node that answers decides, as far as it knows."""
    age_ms: Annotated[Int64, tagged(10_008)] = -1
    """How old its knowledge of the cluster is: since when it has not heard the controller, or the controller not the metadata's home."""
    controller_offset: Annotated[Int64, tagged(10_009)] = -1
    """Where the metadata ended when the controller was last heard."""
    session_timeout_ms: Annotated[Int64, tagged(10_010)] = -1
    """Knowledge that is older may be wrong about any node."""
    problems: Annotated[tuple[NodeProblem, ...], tagged(10_011)] = ()
    warnings: Annotated[tuple[str, ...], tagged(10_012)] = ()
    """What of the answering node's configuration could surprise."""
    level: Annotated[Int32, tagged(10_013)] = 0
    """The level that the cluster works at; 0 where nobody knows."""
    finalize: Annotated[str, tagged(10_014)] = ""
    """How it rises: auto or manual."""
    alerts: Annotated[tuple[NodeAlert, ...], tagged(10_015)] = ()


API: Final = Api(
    key=60,
    name="DescribeCluster",
    versions=range(0, 2 + 1),
    flexible_since=0,
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
)
