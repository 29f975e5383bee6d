"""What is seen of a healed cluster from above: the batches on its disks, and transactions that nobody ends.

The cluster's own topics count as well: offsets that come with a transaction are batches in the topic of groups.
"""

from ropewalk.base.ids import TopicPartition
from ropewalk.metadata.image import Image
from ropewalk.records.batch import decode_header
from ropewalk.records.marker import read_marker
from ropewalk.sim.judges.eos.history import Batch, EosJournal, FinalLog
from ropewalk.sim.runs.cluster.members import Members
from ropewalk.sim.runs.cluster.rest import stored


def hanging(members: Members, image: Image) -> list[str]:
    """Partitions that are led and not stable to their ends."""
    return [
        f"{led.name} is stable to {led.last_stable_offset} of {led.log.end_offset}"
        for node in members.serving
        for led in node.partitions.all_led()
        if image.topics_by_id.get(led.topic_id) is not None and led.last_stable_offset < led.log.end_offset
    ]


def note_final_logs(journal: EosJournal, members: Members, image: Image) -> None:
    """Of each partition as its leader has it on disk. The cluster is at rest, so all copies are alike.

    Of a compacted topic the batches say nothing: any of them may be gone.
    """
    for topic in image.topics.values():
        for partition in topic.partitions:
            assert partition.leader is not None, "a cluster at rest"
            name = TopicPartition(topic.name, partition.index)
            member = members.by_id[partition.leader]
            assert member.serving is not None, "a cluster at rest"
            led = next(each for each in member.serving.partitions.all_led() if each.name == name)
            held = {} if led.log.settings.compacts else stored(member.machine, name)
            batches = tuple(_describe(content) for _, content in sorted(held.items()))
            journal.note(FinalLog(name, batches, led.last_stable_offset, led.log.end_offset))


def is_compacted(members: Members, image: Image) -> bool:
    """Whether compaction has taken anything from any copy."""
    return any(
        led.log.settings.compacts
        and led.log.end_offset
        > sum(map(_offset_count, stored(members.by_id[node.node_id].machine, led.name).values()))
        for node in members.serving
        for led in node.partitions.all_led()
        if led.topic_id in image.topics_by_id
    )


def _offset_count(batch: bytes) -> int:
    return decode_header(batch).record_count


def _describe(content: bytes) -> Batch:
    header = decode_header(content)
    marker = read_marker(content) if header.is_control and header.producer_id >= 0 else None
    return Batch(
        header.base_offset,
        header.end_offset,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        None if marker is None else marker.committed,
    )
