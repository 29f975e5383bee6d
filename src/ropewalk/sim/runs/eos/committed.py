"""Asking for a group's committed offsets, and writing down what was told."""

from collections.abc import Sequence
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.judges.eos.history import FORGED_COMMIT, NO_COMMIT, OffsetSeen
from ropewalk.sim.runs.eos.guide import Coordinated, EosGuide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import offset_fetch

_GROUPS_SINCE: Final = 8
_BY_ID_SINCE: Final = 10


async def read_committed_offsets(
    guide: EosGuide, group: str, partitions: Sequence[TopicPartition], *, is_stable: bool
) -> dict[TopicPartition, int] | None:
    """By partition, −1 for none; None if the coordinator would not say."""
    try:
        link = await guide.connect_to_coordinator(Coordinated.GROUP, group)
        version = max(_GROUPS_SINCE, guide.draw_version(link, offset_fetch.API))
        wanted = offset_fetch.OffsetFetchRequestGroup(
            group,
            topics=tuple(
                offset_fetch.OffsetFetchRequestTopics(
                    name=partition.topic if version < _BY_ID_SINCE else "",
                    topic_id=guide.workload.topics.id_of(partition.topic),
                    partition_indexes=(partition.partition,),
                )
                for partition in partitions
            ),
        )
        began = guide.journal.now
        guide.workload.operation_count += 1
        response = await link.send(
            offset_fetch.API,
            version,
            offset_fetch.OffsetFetchRequest(groups=(wanted,), require_stable=is_stable),
        )
    except LinkLost:
        guide.doubt_coordinator(Coordinated.GROUP, group)
        return None
    (answer,) = response.groups
    told = [
        (TopicPartition(topic.name or guide.workload.topics.name_of(bytes(topic.topic_id)), each.index), each)
        for topic in answer.topics
        for each in topic.partitions
    ]
    codes = {ErrorCode(answer.error_code), *(ErrorCode(each.error_code) for _, each in told)}
    if ErrorCode.UNSTABLE_OFFSET_COMMIT in codes:
        guide.workload.sometimes.note("offsets were not stable yet")
    if codes != {ErrorCode.NONE}:
        if ErrorCode.NOT_COORDINATOR in codes:
            guide.doubt_coordinator(Coordinated.GROUP, group)
        return None
    for partition, each in told:
        commit = _commit_of(each.metadata or "", each.committed_offset)
        guide.journal.note(OffsetSeen(began, group, partition, each.committed_offset, commit, is_stable))
    return {partition: each.committed_offset for partition, each in told}


def _commit_of(metadata: str, offset: int) -> int:
    if not metadata:
        return NO_COMMIT
    return int(metadata) if metadata.isdigit() and offset >= 0 else FORGED_COMMIT
