"""AlterReplicaLogDirs: a node has one directory, so a replica is there already, or cannot be.

Behaviour worth knowing
    The answers are Kafka's: LOG_DIR_NOT_FOUND for a directory that is not the node's, nothing to complain of for a replica that
    is in the one that was asked for. Topics that live in memory stay there: KAFKA_STORAGE_ERROR.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.administration.log_directories import LogDirectories
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(
    request: AlterReplicaLogDirsRequest, caller: Caller, *, directories: LogDirectories
) -> AlterReplicaLogDirsResponse:
    del caller
    results: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                results.setdefault(topic.name, {})[index] = _outcome(
                    directories, directory.path, topic.name, index
                )
    return AlterReplicaLogDirsResponse(
        throttle_ms=0,
        results=tuple(
            AlterReplicaLogDirTopicResult(
                name, tuple(AlterReplicaLogDirPartitionResult(*each) for each in outcomes.items())
            )
            for name, outcomes in results.items()
        ),
    )


def _outcome(directories: LogDirectories, path: str, topic: str, index: int) -> ErrorCode:
    if not directories.has(path):
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        is_there = directories.is_in(path, topic, index)
    except RopewalkError as error:
        return code_for(error)
    return ErrorCode.NONE if is_there else ErrorCode.KAFKA_STORAGE_ERROR
