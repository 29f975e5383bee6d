"""What must be so when everything is healed and nobody writes: copies are equal, and so are images."""

from collections.abc import Iterable, Mapping, Sequence

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image, Partition
from ropewalk.sim.runs.cores.judge import Judge, Violation
from ropewalk.sim.runs.cores.machine import Key, Machine
from ropewalk.sim.runs.cores.replica_log import Entry


def check_rest(
    judge: Judge,
    machines: Mapping[NodeId, Machine],
    committed: Image,
    images: Iterable[tuple[NodeId, Image]],
) -> None:
    facts = list(committed.facts())
    for node_id, image in images:
        if image.end_offset != committed.end_offset or list(image.facts()) != facts:
            raise Violation("M5", f"the image of {node_id} is another than what is committed")
    for topic in committed.topics.values():
        for partition in topic.partitions:
            _check_partition(judge, machines, (topic.topic_id, partition.index), partition)


def _check_partition(
    judge: Judge, machines: Mapping[NodeId, Machine], key: Key, partition: Partition
) -> None:
    truth = judge.truth(key)
    if partition.leader is None:
        raise Violation("L1", f"{truth.name} has no leader: {partition}")
    if set(partition.isr) != set(partition.replicas) or partition.is_moving:
        raise Violation("L2", f"{truth.name} is not in step: {partition}")
    leading = machines[partition.leader].logs.get(key)
    if leading is None:
        raise Violation("L1", f"{truth.name} is led by {partition.leader}, which has no log of it")
    if len(truth.promised) != leading.end:
        raise Violation("L3", f"{truth.name}: {len(truth.promised)} of {leading.end} entries are promised")
    for member in partition.holders:
        log = machines[member].logs.get(key)
        if log is None or log.entries != truth.promised:
            raise Violation("L2", f"{truth.name}: the copy of {member} is another than the leader's")
        if log.epochs.entries() != derived_epochs(log.entries):
            raise Violation("P6", f"{truth.name}: the epochs of {member} do not follow from its log")


def derived_epochs(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for offset, entry in enumerate(entries):
        if not found or found[-1][0] != entry.epoch:
            found.append((entry.epoch, offset))
    return found
