"""What partitions take in the logs of those that hold them, in bytes, as brokers say (DescribeLogDirs).

What a reader could get wrong
    A broker knows only of its own copies, so all of them are asked, and the largest copy counts.
    The answer is an estimate of what a reader will get: it is as compressed as the log is, and has what was deleted a moment ago. So a broker
    that cannot be reached or does not answer this is passed over, and a partition that nobody speaks of is left out.
"""

from collections.abc import Iterable

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.together import together
from ropewalk.client.connections.session import Session
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_log_dirs as wire


async def log_sizes(
    session: Session, partitions: Iterable[TopicPartition], *, deadline_ms: float
) -> dict[TopicPartition, int]:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    request = wire.DescribeLogDirsRequest(
        tuple(wire.DescribableLogDirTopic(name, tuple(indexes)) for name, indexes in by_topic.items())
    )
    view = await session.cluster.metadata((), deadline_ms=deadline_ms)
    answers = await together(
        [_sizes_at(session, broker.node_id, request, deadline_ms) for broker in view.brokers]
    )
    sizes: dict[TopicPartition, int] = {}
    for answer in answers:
        for partition, size in answer.items():
            sizes[partition] = max(size, sizes.get(partition, 0))
    return sizes


async def _sizes_at(
    session: Session, node: NodeId, request: wire.DescribeLogDirsRequest, deadline_ms: float
) -> dict[TopicPartition, int]:
    try:
        connection = await session.cluster.connection(node, deadline_ms=deadline_ms)
        response = await connection.call(wire.API, request, deadline_ms=deadline_ms)
    except RopewalkError as error:
        session.on_retry(error)
        return {}
    return {
        TopicPartition(topic.name, partition.index): partition.partition_size
        for directory in response.results
        if directory.error_code == ErrorCode.NONE
        for topic in directory.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }
