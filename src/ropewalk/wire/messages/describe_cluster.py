"""DescribeCluster (key 60): the brokers of the cluster and which of them is the controller.

v1  endpoint_type: brokers (1) or controllers (2)
v2  fenced brokers, on request
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, since


class DescribeClusterRequest(Message, frozen=True):
    include_cluster_authorized_operations: bool
    endpoint_type: Annotated[Int8, since(1)] = 1
    include_fenced_brokers: Annotated[bool, since(2)] = False


class DescribeClusterBroker(Message, frozen=True):
    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = None
    is_fenced: Annotated[bool, since(2)] = False


class DescribeClusterResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: str = ""
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: Int32 = -(2**31)


API: Final = Api(
    key=60,
    name="DescribeCluster",
    versions=range(0, 2 + 1),
    flexible_since=0,
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
)
