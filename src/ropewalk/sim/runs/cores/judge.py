"""What no run may break, checked as it happens.

The judge sees what nobody in a real cluster can: every log, every belief and the committed metadata at one instant.
Names of rules are those of the list the project is held to: M1 to M6 are about metadata, P1 to P11 about partitions, S1 to
S3 about hosts. A rule that is broken is a `Violation`; a run ends with its first one, since the rest follows from it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image, Partition
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerSettingsChanged,
    BrokerState,
    BrokerStateChanged,
    ChangeAbandoned,
    ChangeBegun,
    ChangeEnded,
    ControllerChanged,
    Fact,
    LossRecorded,
    MetadataRecord,
    PartitionChanged,
    PartitionCreated,
    TopicSettingsChanged,
)
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.machine import Key, Machine
from ropewalk.sim.runs.cores.replica_log import NOBODY, Entry, ReplicaLog
from ropewalk.sim.runs.cores.truth import Truth


class Violation(Exception):
    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


class Promises(NamedTuple):
    """What the settings of a partition promise."""

    minimum: int
    is_sturdy: bool
    """Neither one lost disk or power supply nor an election costs what was promised."""


_SETTING: Final = (BrokerSettingsChanged, ControllerChanged, TopicSettingsChanged)


class Judge:
    def __init__(self, machines: Mapping[NodeId, Machine], sometimes: Sometimes) -> None:
        self._machines, self._sometimes = machines, sometimes
        self._truths: dict[Key, Truth] = {}
        self._refused: set[int] = set()
        self._image = Image()
        self.promises_of: Callable[[Image, Key], Promises] = lambda _image, _key: Promises(1, True)
        """What the settings promise of a partition; the run puts the real rule here."""
        self._change: list[Fact] | None = None

    def truth(self, key: Key) -> Truth:
        truth = self._truths.get(key)
        if truth is None:
            topic = self._image.topics_by_id.get(key[0])
            truth = self._truths[key] = Truth(f"{topic.name if topic else '?'}-{key[1]}")
        return truth

    # Metadata.

    def on_committed(self, records: Sequence[MetadataRecord], image: Image) -> None:
        """Apply the records to `image` (the truth) and look at what they made of it."""
        self._image = image
        touched: set[Key] = set()
        effective: list[Fact] = []
        for record in records:
            facts = self._taking_effect(record)
            effective += facts
            touched |= self._look_at(facts, image)
            try:
                image.apply(record)
            except AssertionError as error:
                raise Violation("M1", f"{record} does not fit what is committed: {error}") from error
        if any(isinstance(fact, _SETTING) for fact in effective):
            for topic in image.topics.values():
                touched |= {(topic.topic_id, partition.index) for partition in topic.partitions}
        for key in sorted(touched):
            self._check_partition(image, key)
            self._check_promises(image, key)
        if any(isinstance(fact, BrokerRegistered) for fact in effective):
            self._check_memory(image)

    def _taking_effect(self, record: MetadataRecord) -> list[Fact]:
        """What the record puts into effect: itself, or at its end all of a change."""
        match record:
            case ChangeBegun():
                self._change = []
                return []
            case ChangeAbandoned():
                self._change = None
                return []
            case ChangeEnded():
                change, self._change = self._change, None
                return change or []
            case ControllerChanged():
                self._change = None
        if self._change is not None:
            self._change.append(record)
            return []
        return [record]

    def _look_at(self, facts: Sequence[Fact], image: Image) -> set[Key]:
        """Judge facts that are about to take effect; answers the partitions that they touch."""
        touched: set[Key] = set()
        for fact in facts:
            match fact:
                case PartitionChanged(topic_id=topic_id, index=index):
                    before = image.topics_by_id[topic_id].partitions[index]
                    touched.add((topic_id, index))
                    self._check_epochs(before, fact)
                    self._count(before, fact)
                case PartitionCreated(topic_id=topic_id, index=index):
                    touched.add((topic_id, index))
                case BrokerRegistered():
                    self._on_registered(fact)
                case BrokerStateChanged(state=state):
                    if state is not BrokerState.STOPPING:
                        is_in = state is BrokerState.ACTIVE
                        self._sometimes.note("a broker was unfenced" if is_in else "a broker was fenced")
                case LossRecorded(topic_id=topic_id, index=index, leader=leader, leader_epoch=leader_epoch):
                    self._on_loss((topic_id, index), leader, leader_epoch)
                case _:
                    pass
        return touched

    def _check_promises(self, image: Image, key: Key) -> None:
        """M7: all who know a partition epoch mean the same minimum by it."""
        partition = self._partition(key)
        if partition is None:
            return
        truth, promises = self.truth(key), self.promises_of(image, key)
        truth.is_loose |= not promises.is_sturdy
        minimum = truth.minimums.setdefault(partition.partition_epoch, promises.minimum)
        if minimum != promises.minimum:
            raise Violation(
                "M7",
                f"{truth.name} needs {promises.minimum} in sync by partition epoch {partition.partition_epoch}, and {minimum} before",
            )

    def _on_loss(self, key: Key, leader: NodeId, leader_epoch: int) -> None:
        """P2: whoever waits for two disks loses nothing, since never two at a time are lost here."""
        self._sometimes.note("the last leader was elected, and a loss recorded")
        truth, log = self.truth(key), self._machines[leader].logs.get(key)
        # What it has not synced yet is promised by nobody any more; it may be again when the high watermark passes it.
        kept = log.entries[: log.vouched_end] if log is not None else []
        lost_count = truth.begin_after_loss(leader_epoch, kept)
        if lost_count and not truth.is_loose:
            raise Violation("P2", f"{truth.name} lost {lost_count} entries that were promised on two disks")

    def _check_epochs(self, before: Partition, after: PartitionChanged) -> None:
        if after.partition_epoch <= before.partition_epoch:
            raise Violation("M1", f"partition epoch {after.partition_epoch} after {before.partition_epoch}")
        if after.leader_epoch < before.leader_epoch:
            raise Violation("M1", f"leader epoch {after.leader_epoch} after {before.leader_epoch}")
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            raise Violation("M1", f"another leader in the same epoch: {before} became {after}")

    def _count(self, before: Partition, after: PartitionChanged) -> None:
        note = self._sometimes.note
        if after.leader is None:
            note("a partition was without a leader")
        elif after.leader != before.leader:
            if after.leader in before.isr:
                note("a leader was elected from the ISR")
            elif after.leader in before.eligible:
                note("a leader was elected from the eligible")
        if before.is_moving and not (after.adding or after.removing):
            note("a move was completed")
        for member in after.isr:
            machine = self._machines[member]
            if member not in before.isr and machine.is_emptied:
                machine.is_emptied = False
                note("an empty disk was filled again")

    def _on_registered(self, record: BrokerRegistered) -> None:
        """Each process puts its number into its port, which tells whether this registration is the present one's."""
        machine = self._machines[record.node_id]
        if record.endpoints[0].port <= machine.amnesia_life:
            return
        for key in sorted(machine.amnesia):
            partition = self._partition(key)
            if partition is None or partition.replication_factor > 1:
                continue
            if {*partition.isr, *partition.eligible} <= {record.node_id}:
                # A single replica leads whatever it has; nobody was promised more.
                log = machine.logs.get(key)
                self.truth(key).begin_after_loss(
                    partition.leader_epoch, log.entries if log is not None else []
                )
        machine.amnesia = set()

    def _check_partition(self, image: Image, key: Key) -> None:
        topic = image.topics_by_id.get(key[0])
        if topic is None:
            return
        partition = topic.partitions[key[1]]
        name = f"{topic.name}-{partition.index}"
        if partition.leader is not None and partition.leader not in partition.isr:
            raise Violation("M2", f"{name} is led by {partition.leader}, in sync are {partition.isr}")
        if not set(partition.isr) | set(partition.eligible) <= set(partition.replicas):
            raise Violation("M3", f"{name} has in sync or eligible whoever is no replica: {partition}")
        if set(partition.isr) & set(partition.eligible):
            raise Violation("M3", f"{name} has a replica both in sync and eligible: {partition}")
        if not partition.isr and partition.leader is not None:
            raise Violation("M3", f"{name} is led with nobody in sync")
        for member in partition.isr:
            broker = image.brokers.get(member)
            if broker is None or broker.state is BrokerState.FENCED:
                raise Violation("M4", f"{name} has {member} in sync, which is fenced or unknown")
        self._check_holders(key, partition)

    def _check_memory(self, image: Image) -> None:
        for topic in image.topics.values():
            for partition in topic.partitions:
                self._check_holders((topic.topic_id, partition.index), partition)

    def _check_holders(self, key: Key, partition: Partition, *, start: int = 0) -> None:
        """P1 and M4: whoever is in sync or eligible holds everything promised, and holds it durably."""
        truth = self.truth(key)
        promised = truth.promised
        for member in (*partition.isr, *partition.eligible):
            machine = self._machines[member]
            if key in machine.amnesia:
                continue  # its next registration will say so; until then nobody can know
            log = machine.logs.get(key)
            if log is None:
                if promised:
                    raise Violation("P1", f"{truth.name} counts on {member}, which has no log of it")
                continue
            if log.vouched_end < len(promised):
                raise Violation(
                    "P1",
                    f"{truth.name} counts on {member}, which has {log.vouched_end} of {len(promised)} "
                    f"promised entries: {partition}",
                )
            if log.entries[start : len(promised)] != promised[start:]:
                raise Violation("P1", f"{truth.name} counts on {member}, whose log is another: {partition}")

    # Partitions.

    def on_written(self, key: Key, offset: int, entry: Entry) -> None:
        """A leader wrote."""
        truth = self.truth(key)
        other = truth.written.setdefault((entry.epoch, offset), entry)
        if other != entry:
            raise Violation("P5", f"{truth.name} has two entries at {offset} of epoch {entry.epoch}")

    def on_copied(self, key: Key, node_id: NodeId, offset: int, entry: Entry) -> None:
        truth = self.truth(key)
        if truth.written.get((entry.epoch, offset)) != entry:
            raise Violation(
                "P5", f"{truth.name}: {node_id} copied {entry} to {offset}, where nobody wrote it"
            )

    def on_truncated(self, key: Key, node_id: NodeId, end: int) -> None:
        truth = self.truth(key)
        if end >= len(truth.promised):
            return
        partition = self._partition(key)
        if partition is None or key in self._machines[node_id].amnesia:
            return
        if node_id in partition.isr or node_id in partition.eligible:
            raise Violation(
                "P1", f"{truth.name}: {node_id} is counted on and cut to {end} of {len(truth.promised)}"
            )

    def on_office(self, key: Key, node_id: NodeId, leader_epoch: int, log: ReplicaLog) -> None:
        """A replica begins to lead. P2: it has all that was ever promised."""
        truth = self.truth(key)
        if leader_epoch < truth.loss_epoch:
            return
        partition = self._partition(key)
        if partition is None or partition.leader_epoch != leader_epoch:
            return  # it learns late of an office that it has lost already
        if log.entries[: len(truth.promised)] != truth.promised:
            raise Violation(
                "P2",
                f"{truth.name}: {node_id} leads epoch {leader_epoch} with {log.end} entries and lacks some of "
                f"{len(truth.promised)} promised",
            )

    def on_high_watermark(
        self,
        key: Key,
        node_id: NodeId,
        leader_epoch: int,
        log: ReplicaLog,
        before: int,
        after: int,
        *,
        partition_epoch: int,
    ) -> None:
        """A leader that knows that partition epoch moved its high watermark: everything below is promised from here on."""
        truth = self.truth(key)
        if after < before:
            raise Violation(
                "P4", f"{truth.name}: {node_id} moved its high watermark from {before} to {after}"
            )
        if after > log.vouched_end:
            raise Violation("P4", f"{truth.name}: {node_id} has {log.vouched_end} durable, promises {after}")
        other = truth.advancers.setdefault(leader_epoch, node_id)
        if other != node_id:
            raise Violation("P8", f"{truth.name}: {other} and {node_id} both lead epoch {leader_epoch}")
        partition = self._partition(key)
        if partition is None or leader_epoch < truth.loss_epoch:
            return
        promised = truth.promised
        if log.entries[before : min(after, len(promised))] != promised[before:after]:
            raise Violation("P2", f"{truth.name}: {node_id} promises something else below {after}")
        added = log.entries[len(promised) : after]
        if not added:
            return
        self._check_sequences(truth, added)
        start = len(promised)
        promised.extend(added)
        self._check_copies(truth, key, partition_epoch)
        self._check_holders(key, partition, start=start)

    def on_learnt(self, key: Key, node_id: NodeId, log: ReplicaLog, before: int, after: int) -> None:
        """A follower was told of a high watermark, and serves what is below it."""
        truth = self.truth(key)
        if truth.loss_epoch >= 0 or self._partition(key) is None:
            return
        if log.entries[before:after] != truth.promised[before:after]:
            raise Violation(
                "P3", f"{truth.name}: {node_id} would serve what was never promised below {after}"
            )

    def on_acknowledged(self, key: Key, offset: int, value: int, *, to_all: bool) -> None:
        truth = self.truth(key)
        if value in self._refused:
            raise Violation("S3", f"{truth.name}: {value} was refused for good and acknowledged")
        if not to_all or self._partition(key) is None or truth.loss_epoch >= 0:
            return
        if offset >= len(truth.promised) or truth.promised[offset].value != value:
            raise Violation("P2", f"{truth.name}: {value} is acknowledged at {offset} and not there")

    def on_refused(self, key: Key, value: int) -> None:
        """For good: whoever sent it was told that it is not written and never will be."""
        self._refused.add(value)
        if any(entry.value == value for entry in self.truth(key).promised[-50:]):
            raise Violation("S3", f"{self.truth(key).name}: {value} was refused for good and is there")

    def on_read(self, key: Key, offset: int, entries: Sequence[Entry]) -> None:
        truth = self.truth(key)
        if truth.loss_epoch >= 0 or self._partition(key) is None:
            return
        if truth.promised[offset : offset + len(entries)] != list(entries):
            promised = truth.promised[offset : offset + len(entries)]
            raise Violation(
                "P3", f"{truth.name}: a consumer read {entries} at {offset}, promised are {promised}"
            )

    def on_fetch(self, key: Key, node_id: NodeId, fetch_offset: int, log: ReplicaLog) -> None:
        """S1: a follower says only what is durable."""
        if fetch_offset > log.counted_end:
            raise Violation(
                "S1", f"{self.truth(key).name}: {node_id} says {fetch_offset}, durable is {log.counted_end}"
            )

    def on_dropped(self, key: Key, node_id: NodeId) -> None:
        """A node is about to remove a replica from its disk."""
        partition, truth = self._partition(key), self.truth(key)
        log = self._machines[node_id].logs.get(key)
        truth.dropped_ends[node_id] = 0 if log is None else log.vouched_end
        if partition is not None and node_id in (*partition.isr, *partition.eligible):
            raise Violation("P1", f"{truth.name}: {node_id} removed its replica and is counted on")

    def _check_sequences(self, truth: Truth, added: Sequence[Entry]) -> None:
        for entry in added:
            if entry.value in self._refused:
                raise Violation("S3", f"{truth.name}: {entry.value} was refused for good and is there")
            if entry.producer != NOBODY:
                last = truth.sequences.get(entry.producer, -1)
                if entry.sequence != last + 1:
                    raise Violation(
                        "P9", f"{truth.name}: producer {entry.producer} wrote {entry.sequence} after {last}"
                    )
                truth.sequences[entry.producer] = entry.sequence

    def _check_copies(self, truth: Truth, key: Key, partition_epoch: int) -> None:
        """P7: what is promised is, or has been, on as many disks as the minimum of that partition epoch says.

        Disks of those who are replicas no more count, too, and lost ones: a leader may not have heard of either yet.
        """
        end = len(truth.promised)
        count = 0
        for node_id, machine in self._machines.items():
            log = machine.logs.get(key)
            held_end = max(truth.dropped_ends.get(node_id, 0), machine.lost_ends.get(key, 0))
            count += held_end >= end or (log is not None and log.vouched_end >= end)
        minimum = truth.minimums.get(partition_epoch, 1)
        if count < minimum:
            raise Violation(
                "P7", f"{truth.name} promised {truth.promised[-1]} with {count} copies of {minimum}"
            )

    def _partition(self, key: Key) -> Partition | None:
        topic = self._image.topics_by_id.get(key[0])
        return None if topic is None else topic.partitions[key[1]]
