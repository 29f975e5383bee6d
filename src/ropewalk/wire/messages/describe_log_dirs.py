"""DescribeLogDirs (key 35): data directories, how full they are, and what each partition takes.

v2  flexible encoding
v3  an error for the whole response
v4  total_bytes and usable_bytes
v5  is_cordoned
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since


class DescribableLogDirTopic(Message, frozen=True):
    name: str
    partitions: tuple[Int32, ...]


class DescribeLogDirsRequest(Message, frozen=True):
    topics: tuple[DescribableLogDirTopic, ...] | None
    """Null asks for all."""


class DescribeLogDirsPartition(Message, frozen=True):
    index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: bool


class DescribeLogDirsTopic(Message, frozen=True):
    name: str
    partitions: tuple[DescribeLogDirsPartition, ...]


class DescribeLogDirsResult(Message, frozen=True):
    error_code: Int16
    log_dir: str
    topics: tuple[DescribeLogDirsTopic, ...]
    total_bytes: Annotated[Int64, since(4)] = -1
    usable_bytes: Annotated[Int64, since(4)] = -1
    is_cordoned: Annotated[bool, since(5)] = False


class DescribeLogDirsResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Annotated[Int16, since(3)] = 0
    results: tuple[DescribeLogDirsResult, ...] = ()


API: Final = Api(
    key=35,
    name="DescribeLogDirs",
    versions=range(1, 5 + 1),
    flexible_since=2,
    request=DescribeLogDirsRequest,
    response=DescribeLogDirsResponse,
)
