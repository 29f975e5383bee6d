"""Bytes that rot on the disks of a cluster, one copy of one partition at a time, and whether anybody counts on what is known to be damaged.

What a reader could get wrong
    Most rot is found by nobody for a long time: a copy that is not read looks like any other. While there is some, no disk may be lost,
    or the sound copies could be (`ClusterNemesis.is_spare`).
    What a process knows is forgotten with it until it is written down. A process that has stopped in order has written it down; from then
    on the copy has to be made whole before it counts as in sync again (P11).
"""

import random
from collections.abc import Collection, Set

from msgspec import Struct

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.metadata.image import Image
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.durable_batches import durable_batches
from ropewalk.sim.machines.storage import StoredFile
from ropewalk.sim.runs.cluster.members import Member, Members


class Rotten(Struct):
    """One byte on the platter of one node."""

    node_id: NodeId
    partition: TopicPartition
    file: StoredFile
    position: int
    value: int
    """What stands there instead of what was written."""
    end_offset: int
    """Of the batch it belongs to: once the log begins there nobody can read it any more."""
    known_at_epoch: int | None = None
    """Of the broker, when it stopped in order and knew of the damage; None before."""


class Rot:
    def __init__(self, members: Members, image: Image) -> None:
        """`image` is the cluster as it is, whoever may know of it."""
        self._members = members
        self._image = image
        self._note = members.note
        self._found: list[Rotten] = []
        self.violations: list[Violation] = []
        for member in members.by_id.values():
            member.on_stopped = self._on_stopped

    def strike(self, member: Member, rng: random.Random, topics: Collection[str]) -> TopicPartition | None:
        """Flip a bit of what the node holds durably of these topics, and let the pages go cold; None if it holds nothing.

        Most of the time in a closed segment, which is what nodes look at by themselves.
        """
        batches = [
            batch for batch in durable_batches(member.machine.platters) if batch.partition.topic in topics
        ]
        newest = {batch.partition: batch.file for batch in batches}
        closed = [batch for batch in batches if batch.file is not newest[batch.partition]]
        if closed and rng.random() < 0.8:
            batches = closed
        if not batches:
            return None
        batch = rng.choice(batches)
        position = rng.randrange(batch.position, batch.position + batch.header.size_bytes)
        batch.file.rot(position, 1 << rng.randrange(8))
        value = batch.file.on_platter(position)
        member.machine.platters.evict()
        self._found.append(
            Rotten(member.node_id, batch.partition, batch.file, position, value, batch.header.end_offset)
        )
        self._note("stored bytes rotted")
        return batch.partition

    def unmended(self) -> Set[tuple[NodeId, TopicPartition]]:
        """Copies with bytes that are not what was written."""
        for rotten in list(self._found):
            if not self._is_rotten(rotten):
                self._found.remove(rotten)
                self._note("a rotten copy was made whole")
        return {(rotten.node_id, rotten.partition) for rotten in self._found}

    def look(self) -> None:
        self.unmended()
        for rotten in self._found:
            broker = self._image.brokers.get(rotten.node_id)
            topic = self._image.topics.get(rotten.partition.topic)
            if broker is None or topic is None or rotten.known_at_epoch is None:
                continue
            facts = topic.partitions[rotten.partition.partition]
            if (
                rotten.node_id in facts.isr
                and broker.epoch > rotten.known_at_epoch
                and len(self.violations) < 20
            ):
                text = f"{rotten.partition}: the copy of {rotten.node_id} counts, and was known to be damaged: {facts}"
                self.violations.append(Violation("P11", text))

    def _on_stopped(self, node_id: NodeId, damaged: Collection[TopicPartition]) -> None:
        broker = self._image.brokers.get(node_id)
        self.unmended()
        for rotten in self._found:
            if broker is not None and rotten.node_id == node_id and rotten.partition in damaged:
                rotten.known_at_epoch = broker.epoch
                self._note("a node that knew of damage was stopped in order")

    def _is_rotten(self, rotten: Rotten) -> bool:
        member = self._members.by_id[rotten.node_id]
        if member.serving is not None and any(
            each.name == rotten.partition and each.log.start_offset >= rotten.end_offset
            for each in member.serving.partitions
        ):
            return False  # it was deleted, and its file goes some time later
        platters = member.machine.platters
        is_there = any(file is rotten.file for _, file in platters.files())
        return (
            is_there
            and rotten.position < len(rotten.file.data)
            and rotten.file.on_platter(rotten.position) == rotten.value
        )
