"""What no cluster may do, seen from above: in the metadata as it is applied, and on the disks when all is at rest.

What clients were told is judged by `sim/judges/checker.py`. Here are the rules that no client can see; their names are those of
`sim/runs/cores/judge.py`.
"""

from collections.abc import Callable, Sequence

from ropewalk.base.ids import NodeId, TopicId, TopicPartition
from ropewalk.base.levels import LEVEL_FIRST, Software
from ropewalk.broker.cluster.facts import Facts
from ropewalk.metadata.image import Image, Partition
from ropewalk.metadata.levels import level_of
from ropewalk.metadata.log import Snapshot
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerState,
    BrokerStateChanged,
    ChangeBegun,
    ControllerChanged,
    LevelChanged,
    LossRecorded,
    MetadataRecord,
    PartitionChanged,
    PartitionCreated,
)
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.judges.history import Journal, LossAdmitted
from ropewalk.sim.machines.sometimes import Sometimes

Key = tuple[TopicId, int]


class WatchedFacts(Facts):
    """A process's facts, with the judge looking on."""

    def __init__(self, judge: "MetadataJudge", software: Software) -> None:
        super().__init__(software)
        self._judge = judge

    def apply(self, records: Sequence[MetadataRecord], *, start_offset: int) -> None:
        self._judge.on_applied(records, start_offset)
        super().apply(records, start_offset=start_offset)

    def restart(self, snapshot: Snapshot) -> None:
        self._judge.on_restarted(snapshot)
        super().restart(snapshot)


class MetadataJudge:
    """Adds up what processes apply. Of each offset the first who applies it is believed, and all others must agree."""

    def __init__(self, journal: Journal, sometimes: Sometimes, may_lose: Callable[[str], bool]) -> None:
        self.image = Image()
        self.violations: list[Violation] = []
        self.lost: set[Key] = set()
        """Partitions of which a loss was ever recorded. The metadata itself forgets the older ones."""
        self._has_ended = False
        self._journal = journal
        self._note = sometimes.note
        self._may_lose = may_lose
        self._records: list[MetadataRecord | None] = []
        self._known: dict[Key, Partition] = {}
        self.emptied: dict[NodeId, bytes] = {}
        """Nodes whose disk was replaced, with the directory that was on it. A nemesis says so."""
        self._fragile: set[Key] = set()
        """Partitions that were made with nobody in sync but such nodes: whoever makes them cannot know, and nobody can write."""
        self._leaders: dict[tuple[Key, int], NodeId | None] = {}

    def on_applied(self, records: Sequence[MetadataRecord], start_offset: int) -> None:
        if self._has_ended:
            return
        touched: dict[Key, None] = {}
        for offset, record in enumerate(records, start_offset):
            if offset < len(self._records):
                known = self._records[offset]
                if known is not None and known != record:
                    self._report("M5", f"at {offset} one node applied {known}, another {record}")
                continue
            if offset > len(self._records):
                self._report("M5", f"{offset} was applied before anybody knew of {len(self._records)}")
                return
            self._records.append(record)
            if isinstance(record, ChangeBegun):
                self._note("a change was cut into several appends")
            self._check_level(record)
            for fact in self.image.apply(record):
                match fact:
                    case PartitionCreated(topic_id=topic_id, index=index, isr=isr):
                        touched[topic_id, index] = None
                        if all(map(self._is_emptied, isr)):
                            self._fragile.add((topic_id, index))
                    case PartitionChanged(topic_id=topic_id, index=index):
                        self._check_epochs((topic_id, index), fact)
                        touched[topic_id, index] = None
                    case LossRecorded():
                        self._on_loss(fact)
                    case BrokerStateChanged(state=BrokerState.FENCED):
                        self._note("a broker was fenced")
                    case ControllerChanged(epoch=epoch) if epoch > 1:
                        self._note("another controller decided")
                    case _:
                        pass
        for key in touched:
            self._check_partition(key)

    def _check_level(self, record: MetadataRecord) -> None:
        """Whatever a level brought comes after it, and it comes when all who are registered know it."""
        level = max(self.image.level, LEVEL_FIRST)
        if level_of(record) > level:
            self._report("V1", f"{record} came with level {level_of(record)}, and {level} is in force")
        if isinstance(record, LevelChanged) and self.image.level:
            self._note("the level was raised")
            older = [
                broker.node_id for broker in self.image.brokers.values() if broker.level_max < record.level
            ]
            if older:
                self._report("V2", f"level {record.level} came into force, and nodes {older} do not know it")
        if isinstance(record, BrokerRegistered) and record.level_max < level:
            self._report(
                "V3",
                f"node {record.node_id} works at level {record.level_max} at most, and was let in at {level}",
            )

    def end(self) -> None:
        """What is applied from here on is somebody else's to judge."""
        self._has_ended = True

    def on_restarted(self, snapshot: Snapshot) -> None:
        if self._has_ended:
            return
        if snapshot.end_offset:
            self._note("a snapshot of the metadata was followed")
        if snapshot.end_offset <= len(self._records):
            return
        if snapshot.end_offset and self._records:
            self._report("M5", f"a snapshot ends at {snapshot.end_offset}, beyond what anybody applied")
        self.image.replace(snapshot.facts, snapshot.end_offset)
        self._records += [None] * (snapshot.end_offset - len(self._records))

    def may_lose(self, topic_id: TopicId, index: int) -> bool:
        """Whether an election that may lose records of it breaks no promise."""
        topic = self.image.topics_by_id.get(topic_id)
        return topic is None or self._may_lose(topic.name) or (topic_id, index) in self._fragile

    def _is_emptied(self, node_id: NodeId) -> bool:
        broker = self.image.brokers.get(node_id)
        return broker is not None and self.emptied.get(node_id) == broker.directory

    def _check_epochs(self, key: Key, after: PartitionChanged) -> None:
        before = self._known.get(key)
        if before is None:
            return
        if after.partition_epoch <= before.partition_epoch or after.leader_epoch < before.leader_epoch:
            self._report("M1", f"an epoch did not rise: {before} became {after}")
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            self._report("M1", f"another leader in the same epoch: {before} became {after}")
        if after.start_offset < before.start_offset:
            self._report("P10", f"a start went back: {before} became {after}")

    def _check_partition(self, key: Key) -> None:
        topic = self.image.topics_by_id.get(key[0])
        if topic is None:
            return
        partition = topic.partitions[key[1]]
        name = f"{topic.name}-{partition.index}"
        if partition.leader is not None and partition.leader not in partition.isr:
            self._report("M2", f"{name} is led by {partition.leader}, in sync are {partition.isr}")
        if not {*partition.isr, *partition.eligible} <= {*partition.replicas}:
            self._report("M3", f"{name} has in sync or eligible whoever is no replica: {partition}")
        if {*partition.isr} & {*partition.eligible}:
            self._report("M3", f"{name} has a replica both in sync and eligible: {partition}")
        for member in partition.isr:
            broker = self.image.brokers.get(member)
            if broker is None or broker.state is BrokerState.FENCED:
                self._report("M4", f"{name} has {member} in sync, which is fenced or unknown")
        before = self._known.get(key)
        self._known[key] = partition
        if before is not None:
            self._count(before, partition)

    def _count(self, before: Partition, after: Partition) -> None:
        if after.start_offset > before.start_offset:
            self._note("a start was recorded")
        if after.leader is None:
            self._note("a partition was without a leader")
        elif after.leader != before.leader:
            self._note("another replica led")
        if {*before.isr} - {*after.isr}:
            self._note("a follower fell out of sync")
        if {*after.isr} - {*before.isr}:
            self._note("a follower came back in sync")
        if after.eligible:
            self._note("a replica was eligible and not in sync")
        if before.is_moving and not after.is_moving:
            self._note("a move was completed")

    def _on_loss(self, loss: LossRecorded) -> None:
        topic = self.image.topics_by_id.get(loss.topic_id)
        if topic is None:
            return
        self._note("a loss was recorded")
        self.lost.add((loss.topic_id, loss.index))
        if not self.may_lose(loss.topic_id, loss.index):
            self._report("P2", f"{topic.name}-{loss.index} may have lost records: {loss.reason}")
        self._journal.note(LossAdmitted(TopicPartition(topic.name, loss.index)))

    def _report(self, rule: str, text: str) -> None:
        if len(self.violations) < 20:
            self.violations.append(Violation(rule, text))
