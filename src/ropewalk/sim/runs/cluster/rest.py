"""A cluster at rest: everything is led, in step, known to everybody, and equal on all disks."""

from collections.abc import Mapping, Set
from itertools import pairwise

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.metadata.image import Image, Partition
from ropewalk.records.batch import decode_header, iterate
from ropewalk.records.record import decode_records
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.world import Machine
from ropewalk.sim.runs.cluster.members import Members


def unrest(members: Members, image: Image) -> Violation | None:
    """The first thing that is not at rest; `image` is the cluster as it is."""
    facts = list(image.facts())
    for member in members.by_id.values():
        node = member.serving
        if node is None:
            return Violation("L1", f"node {member.node_id} is not in service")
        if list(node.image.facts()) != facts or node.image.end_offset != image.end_offset:
            return Violation(
                "M5", f"node {member.node_id} knows up to {node.image.end_offset} of {image.end_offset}"
            )
        broker = image.brokers.get(member.node_id)
        if broker is None or not broker.is_active:
            return Violation("L1", f"node {member.node_id} is not counted on: {broker}")
    for topic in image.topics.values():
        for partition in topic.partitions:
            complaint = _partition_unrest(members, TopicPartition(topic.name, partition.index), partition)
            if complaint is not None:
                return complaint
    return None


def _partition_unrest(members: Members, name: TopicPartition, facts: Partition) -> Violation | None:
    if facts.leader is None:
        return Violation("L1", f"{name} has no leader: {facts}")
    if {*facts.isr} != {*facts.replicas} or facts.is_moving:
        return Violation("L2", f"{name} is not in step: {facts}")
    leader = members.by_id[facts.leader].serving
    led = (
        None
        if leader is None
        else next((each for each in leader.partitions.all_led() if each.name == name), None)
    )
    if led is None:
        return Violation("L1", f"{name} is not led by {facts.leader}, which should")
    if led.high_watermark != led.log.end_offset:
        return Violation(
            "L3", f"{name} ends at {led.log.end_offset} and is committed to {led.high_watermark}"
        )
    for member in facts.holders:
        node = members.by_id[member].serving
        held = None if node is None else next((each for each in node.partitions if each.name == name), None)
        if held is None or held.log.end_offset != led.log.end_offset:
            return Violation("L2", f"{name}: the copy of {member} is not as long as the leader's")
        if held.log.damaged:
            return Violation("L2", f"{name}: the copy of {member} is known to be damaged: {held.log.damaged}")
    return None


def differences(
    members: Members, image: Image, damaged: Set[tuple[NodeId, TopicPartition]]
) -> list[Violation]:
    """Copies of one partition that are not the same, byte by byte, from the latest of their starts on.

    `damaged` are those that have rotted, which nobody has found yet.
    Each node compacts by itself: of a compacted topic the records must be the same that both still have, and no copy may
    have a value whose deletion it has not.
    """
    compacted = {
        led.name for node in members.serving for led in node.partitions.all_led() if led.log.settings.compacts
    }
    found: list[Violation] = []
    for topic in image.topics.values():
        for partition in topic.partitions:
            name = TopicPartition(topic.name, partition.index)
            copies = [
                (member, stored(members.by_id[member].machine, name))
                for member in partition.holders
                if (member, name) not in damaged
            ]
            start = _latest_start(members, name)
            for (one, former), (other, latter) in pairwise(copies):
                odd = _odd_record(former, latter) if name in compacted else _odd_batch(former, latter, start)
                if odd is not None:
                    text = f"{name}: the copies of {one} and {other} differ from {odd} on"
                    found.append(Violation("P5", text))
            if name in compacted:
                found += [
                    Violation("resurrected", f"{name}: {text}") for text in revived(dict(copies), start)
                ]
    return found


def revived(copies: Mapping[NodeId, dict[int, bytes]], start: int) -> list[str]:
    """Values in copies of a compacted partition which others know to be deleted, or replaced, by what that copy has not got.

    Of keys that were written in a transaction nothing is said: a copy may still have what was aborted.
    """
    transactional = {
        record.key
        for batches in copies.values()
        for batch in batches.values()
        if decode_header(batch).is_transactional
        for record in decode_records(batch)
    }
    last = {node_id: _last_records(batches, start) for node_id, batches in copies.items()}
    found: list[str] = []
    for node_id, ours in last.items():
        for key, (offset, value) in ours.items():
            if value is None or key in transactional:
                continue
            for other, theirs in last.items():
                known = theirs.get(key)
                if known is None or known[0] > offset:
                    text = f"the copy of {node_id} ends with a value of {key!r} at {offset}, that of {other} "
                    found.append(text + ("has none" if known is None else f"with one at {known[0]}"))
    return found


def _latest_start(members: Members, name: TopicPartition) -> int:
    """Each node removes what has expired by itself, so that a copy may be empty beside another that is not."""
    return max(
        (held.log.start_offset for node in members.serving for held in node.partitions if held.name == name),
        default=0,
    )


def _odd_batch(former: dict[int, bytes], latter: dict[int, bytes], start: int) -> int | None:
    offsets = {offset for offset in former.keys() | latter.keys() if offset >= start}
    return min((each for each in offsets if former.get(each) != latter.get(each)), default=None)


def _odd_record(former: dict[int, bytes], latter: dict[int, bytes]) -> int | None:
    ours, theirs = _records(former), _records(latter)
    return min((each for each in ours.keys() & theirs.keys() if ours[each] != theirs[each]), default=None)


def _last_records(batches: dict[int, bytes], start: int) -> dict[bytes | None, tuple[int, bytes | None]]:
    """By key: where its last record is, and the value."""
    records = sorted(_records(batches).items())
    return {key: (offset, value) for offset, (key, value) in records if offset >= start}


def _records(batches: dict[int, bytes]) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {
        record.offset: (record.key, record.value)
        for batch in batches.values()
        for record in decode_records(batch)
    }


def stored(machine: Machine, name: TopicPartition) -> dict[int, bytes]:
    """Every batch in the partition's files, by its offset."""
    found: dict[int, bytes] = {}
    directory = f"/data/{name.topic}-{name.partition}/"
    for path, file in machine.platters.files():
        if path.startswith(directory) and path.endswith(".log"):
            content = memoryview(bytes(file.data))
            for start, header in iterate(content):
                found[header.base_offset] = bytes(content[start : start + header.size_bytes])
    return found
