"""AlterReplicaLogDirs (key 34): put replicas into another directory of the same broker.

v2  flexible encoding
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message


class AlterReplicaLogDirTopic(Message, frozen=True):
    name: str
    partitions: tuple[Int32, ...]


class AlterReplicaLogDir(Message, frozen=True):
    path: str
    topics: tuple[AlterReplicaLogDirTopic, ...]


class AlterReplicaLogDirsRequest(Message, frozen=True):
    dirs: tuple[AlterReplicaLogDir, ...]


class AlterReplicaLogDirPartitionResult(Message, frozen=True):
    index: Int32
    error_code: Int16


class AlterReplicaLogDirTopicResult(Message, frozen=True):
    name: str
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...]


class AlterReplicaLogDirsResponse(Message, frozen=True):
    throttle_ms: Int32
    results: tuple[AlterReplicaLogDirTopicResult, ...]


API: Final = Api(
    key=34,
    name="AlterReplicaLogDirs",
    versions=range(1, 2 + 1),
    flexible_since=2,
    request=AlterReplicaLogDirsRequest,
    response=AlterReplicaLogDirsResponse,
)
