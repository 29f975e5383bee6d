"""DescribeLogDirs: what partitions take on disk, and how much of it is left.

Behaviour worth knowing
    Partitions that are not here are left out of the answer, as in Kafka.
    Topics that live in memory are listed under a directory called `memory`.
"""

from collections.abc import Iterator

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import TopicPartition
from ropewalk.broker.administration.log_directories import LogDirectories, LogDirectory
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(
    request: DescribeLogDirsRequest, caller: Caller, *, directories: LogDirectories
) -> DescribeLogDirsResponse:
    del caller
    try:
        described = await directories.describe()
    except OSError as error:
        return DescribeLogDirsResponse(throttle_ms=0, error_code=code_for(StorageFailed(str(error))))
    return DescribeLogDirsResponse(
        throttle_ms=0, results=tuple(_result(directory, request) for directory in described)
    )


def _result(directory: LogDirectory, request: DescribeLogDirsRequest) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for name in _asked(directory, request):
        topics.setdefault(name.topic, []).append(
            DescribeLogDirsPartition(
                index=name.partition,
                partition_size=directory.sizes[name],
                offset_lag=0,
                is_future_key=False,
            )
        )
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(DescribeLogDirsTopic(topic, tuple(found)) for topic, found in topics.items()),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )


def _asked(directory: LogDirectory, request: DescribeLogDirsRequest) -> Iterator[TopicPartition]:
    if request.topics is None:
        yield from directory.sizes
        return
    for topic in request.topics:
        for index in topic.partitions:
            name = TopicPartition(topic.name, index)
            if name in directory.sizes:
                yield name
