"""Fetch and ListOffsets as every simulated reader asks them: partitions by topic, and answers by partition."""

from collections.abc import Callable, Iterable

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.link import Link
from ropewalk.sim.clients.workload import TOPIC_BY_NAME_VERSION_MAX, Workload
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, list_offsets


def by_topic(wanted: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for partition in wanted:
        found.setdefault(partition.topic, []).append(partition)
    return found


def fetch_topics(
    workload: Workload,
    version: int,
    wanted: Iterable[TopicPartition],
    ask: Callable[[TopicPartition], fetch.FetchPartition],
) -> tuple[fetch.FetchTopic, ...]:
    """What is wanted, topic by topic, by name or by id as the version has it."""
    return tuple(
        fetch.FetchTopic(
            name=name if version <= TOPIC_BY_NAME_VERSION_MAX else "",
            topic_id=workload.topics.id_of(name),
            partitions=tuple(ask(partition) for partition in partitions),
        )
        for name, partitions in by_topic(wanted).items()
    )


def fetch_answers(
    workload: Workload, response: fetch.FetchResponse
) -> dict[TopicPartition, fetch.PartitionData]:
    return {
        TopicPartition(topic.name or workload.topics.name_of(bytes(topic.topic_id)), answer.index): answer
        for topic in response.topics
        for answer in topic.partitions
    }


async def ask_offset(workload: Workload, link: Link, partition: TopicPartition, timestamp: int) -> int | None:
    """ListOffsets for one partition; None where it is refused."""
    workload.operation_count += 1
    target = list_offsets.ListOffsetsPartition(index=partition.partition, timestamp=timestamp)
    topic = list_offsets.ListOffsetsTopic(name=partition.topic, partitions=(target,))
    response = await link.send(
        list_offsets.API,
        link.newest_version(list_offsets.API),
        list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,)),
    )
    (answer,) = response.topics[0].partitions
    return answer.offset if answer.error_code == ErrorCode.NONE else None
