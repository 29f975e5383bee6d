"""The judge of cores finds what it is there for: each rule is broken once, by hand."""

import random

import pytest

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerState,
    ChangeAbandoned,
    ChangeBegun,
    ChangeEnded,
    Endpoint,
    LossRecorded,
    MetadataRecord,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicSettingsChanged,
)
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.judge import Judge, Promises, Violation
from ropewalk.sim.runs.cores.machine import Key, Machine
from ropewalk.sim.runs.cores.replica_log import Entry, ReplicaLog
from ropewalk.sim.runs.cores.rest import check_rest
from ropewalk.sim.runs.cores.sometimes import EXPECTED

TOPIC = TopicId(b"t" * 16)
KEY: Key = (TOPIC, 0)
NODES = (NodeId(0), NodeId(1), NodeId(2))


class Stage:
    """Three machines in sync with two promised entries, led by node 0 in epoch 0."""

    def __init__(self) -> None:
        self.machines = {node_id: Machine(node_id, random.Random(node_id)) for node_id in NODES}
        self.judge = Judge(self.machines, Sometimes(EXPECTED))
        self.judge.promises_of = lambda _image, _key: self.promises
        self.promises = Promises(2, is_sturdy=True)
        self.image = Image()
        registrations = [
            BrokerRegistered(node_id, node_id, bytes([node_id]) * 16, (Endpoint("PEER", "", 1),))
            for node_id in NODES
        ]
        self.commit(
            *registrations,
            TopicCreated(TOPIC, "topic"),
            PartitionCreated(TOPIC, 0, NODES, NODES, NODES[0], LeaderEpoch(0), 0),
        )
        for machine in self.machines.values():
            machine.logs[KEY] = ReplicaLog(flushes=True)
        for value in (1, 2):
            self.write(value)
        self.judge.on_high_watermark(KEY, NODES[0], 0, self.log(0), 0, 2, partition_epoch=0)

    def commit(self, *records: MetadataRecord) -> None:
        self.judge.on_committed(records, self.image)

    def log(self, node: int) -> ReplicaLog:
        return self.machines[NodeId(node)].logs[KEY]

    def write(self, value: int, *, nodes: tuple[int, ...] = (0, 1, 2), epoch: int = 0) -> None:
        for node in nodes:
            offset = self.log(node).append(Entry(epoch, value))
            self.log(node).durable_end = self.log(node).end
            self.judge.on_written(KEY, offset, Entry(epoch, value))

    def changed(self, **fields: object) -> PartitionChanged:
        facts: dict[str, object] = {
            "replicas": NODES,
            "isr": NODES,
            "leader": NODES[0],
            "leader_epoch": 0,
            "partition_epoch": 1,
        }
        return PartitionChanged(TOPIC, 0, **(facts | fields))  # type: ignore[arg-type]

    def check_rest(self, images: list[tuple[NodeId, Image]]) -> None:
        check_rest(self.judge, self.machines, self.image, images)

    def expect(self, rule: str) -> "pytest.RaisesExc[Violation]":
        return pytest.raises(Violation, match=f"^{rule}:")


def test_a_sound_history_passes() -> None:
    stage = Stage()
    stage.commit(stage.changed(isr=NODES[1:], leader=NODES[1], leader_epoch=1))
    stage.judge.on_office(KEY, NODES[1], 1, stage.log(1))
    stage.write(3, nodes=(1, 2), epoch=1)
    stage.judge.on_high_watermark(KEY, NODES[1], 1, stage.log(1), 2, 3, partition_epoch=0)
    stage.judge.on_acknowledged(KEY, 2, 3, to_all=True)
    stage.judge.on_read(KEY, 0, [Entry(0, 1), Entry(0, 2), Entry(1, 3)])


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("M1", {"partition_epoch": 0}),
        ("M1", {"leader": NODES[1]}),
        ("M2", {"isr": NODES[1:], "partition_epoch": 1}),
        ("M3", {"replicas": NODES[:2]}),
        ("M3", {"eligible": NODES[2:]}),
    ],
)
def test_metadata_that_contradicts_itself(rule: str, fields: dict[str, object]) -> None:
    stage = Stage()
    with stage.expect(rule):
        stage.commit(stage.changed(**fields))


def test_a_fenced_broker_in_sync() -> None:
    stage = Stage()
    fenced = BrokerRegistered(NODES[2], 9, b"x" * 16, (Endpoint("PEER", "", 1),), state=BrokerState.FENCED)
    with stage.expect("M4"):
        stage.commit(fenced, stage.changed())


def test_somebody_in_sync_who_lacks_a_promised_entry() -> None:
    stage = Stage()
    stage.log(2).truncate(1)
    with stage.expect("P1"):
        stage.commit(stage.changed())


def test_a_broker_that_forgot_and_registers_as_whole() -> None:
    stage = Stage()
    stage.log(2).truncate(1)
    stage.machines[NODES[2]].amnesia.add(KEY)
    stage.commit(stage.changed())  # nobody can know yet
    with stage.expect("P1"):
        stage.commit(BrokerRegistered(NODES[2], 9, b"x" * 16, (Endpoint("PEER", "", 1),)))


def test_a_replica_that_is_counted_on_and_cut() -> None:
    stage = Stage()
    with stage.expect("P1"):
        stage.judge.on_truncated(KEY, NODES[1], 1)


def test_a_replica_that_is_counted_on_and_removed() -> None:
    stage = Stage()
    with stage.expect("P1"):
        stage.judge.on_dropped(KEY, NODES[1])


def test_a_leader_without_all_that_was_promised() -> None:
    stage = Stage()
    stage.machines[NODES[2]].amnesia.add(KEY)
    stage.log(2).truncate(1)
    stage.commit(stage.changed(leader=NODES[2], leader_epoch=1))
    with stage.expect("P2"):
        stage.judge.on_office(KEY, NODES[2], 1, stage.log(2))


def test_a_loss_of_what_two_disks_were_to_keep() -> None:
    stage = Stage()
    stage.machines[NODES[2]].amnesia.add(KEY)
    stage.log(2).truncate(1)
    with stage.expect("P2"):
        stage.commit(
            stage.changed(isr=NODES[2:], leader=NODES[2], leader_epoch=1),
            LossRecorded(TOPIC, 0, NODES[2], LeaderEpoch(1), 0, "the last leader"),
        )


def test_a_loss_that_is_recorded_is_none_that_is_hidden() -> None:
    stage = Stage()
    stage.promises = Promises(2, is_sturdy=False)
    stage.commit(TopicSettingsChanged(TOPIC, {"flush": "os"}))
    stage.promises = Promises(2, is_sturdy=True)
    stage.commit(TopicSettingsChanged(TOPIC, {"flush": "group"}))
    stage.machines[NODES[2]].amnesia.add(KEY)
    stage.log(2).truncate(1)
    stage.commit(
        stage.changed(isr=NODES[2:], leader=NODES[2], leader_epoch=1),
        LossRecorded(TOPIC, 0, NODES[2], LeaderEpoch(1), 0, "the last leader"),
    )
    stage.judge.on_office(KEY, NODES[2], 1, stage.log(2))
    assert [entry.value for entry in stage.judge.truth(KEY).promised] == [1]


def test_a_promise_above_what_is_durable() -> None:
    stage = Stage()
    stage.write(3)
    stage.log(0).durable_end = 2
    with stage.expect("P4"):
        stage.judge.on_high_watermark(KEY, NODES[0], 0, stage.log(0), 2, 3, partition_epoch=0)


def test_a_high_watermark_that_goes_back() -> None:
    stage = Stage()
    with stage.expect("P4"):
        stage.judge.on_high_watermark(KEY, NODES[0], 0, stage.log(0), 2, 1, partition_epoch=0)


def test_two_entries_of_one_epoch_at_one_offset() -> None:
    stage = Stage()
    with stage.expect("P5"):
        stage.judge.on_written(KEY, 1, Entry(0, 9))
    with stage.expect("P5"):
        stage.judge.on_copied(KEY, NODES[1], 1, Entry(0, 9))


def test_a_promise_with_too_few_copies() -> None:
    stage = Stage()
    stage.commit(stage.changed(isr=NODES[:1]))
    stage.write(3, nodes=(0,))
    with stage.expect("P7"):
        stage.judge.on_high_watermark(KEY, NODES[0], 0, stage.log(0), 2, 3, partition_epoch=0)


def test_two_leaders_in_one_epoch() -> None:
    stage = Stage()
    stage.write(3)
    with stage.expect("P8"):
        stage.judge.on_high_watermark(KEY, NODES[1], 0, stage.log(1), 2, 3, partition_epoch=0)


def test_a_sequence_that_is_written_twice() -> None:
    stage = Stage()
    for sequence in (0, 0):
        entry = Entry(0, 5, 7, sequence)
        for node in NODES:
            stage.log(node).append(entry)
            stage.log(node).durable_end = stage.log(node).end
    with stage.expect("P9"):
        stage.judge.on_high_watermark(KEY, NODES[0], 0, stage.log(0), 2, 4, partition_epoch=0)


def test_a_follower_that_speaks_before_its_disk() -> None:
    stage = Stage()
    stage.log(1).durable_end = 1
    with stage.expect("S1"):
        stage.judge.on_fetch(KEY, NODES[1], 2, stage.log(1))


def test_a_write_that_was_refused_and_is_there() -> None:
    stage = Stage()
    with stage.expect("S3"):
        stage.judge.on_refused(KEY, 2)
    stage.judge.on_refused(KEY, 3)
    stage.write(3)
    with stage.expect("S3"):
        stage.judge.on_high_watermark(KEY, NODES[0], 0, stage.log(0), 2, 3, partition_epoch=0)


def test_what_must_be_so_when_everything_is_healed() -> None:
    stage = Stage()
    stage.check_rest([(NODES[0], stage.image)])
    with stage.expect("M5"):
        stage.check_rest([(NODES[0], Image())])
    stage.write(3)
    with stage.expect("L3"):
        stage.check_rest([])
    stage.commit(stage.changed(isr=NODES[:2]))
    with stage.expect("L2"):
        stage.check_rest([])
    stage.commit(stage.changed(isr=(), leader=None, leader_epoch=1, partition_epoch=2))
    with stage.expect("L1"):
        stage.check_rest([])


def test_a_minimum_that_changes_within_a_partition_epoch() -> None:
    stage = Stage()
    stage.promises = Promises(3, is_sturdy=True)
    with stage.expect("M7"):
        stage.commit(TopicSettingsChanged(TOPIC, {"min.insync.replicas": "3"}))


def test_a_change_is_judged_when_it_takes_effect() -> None:
    stage = Stage()
    stage.commit(ChangeBegun(), stage.changed(isr=NODES[1:], leader=NODES[1]))
    stage.commit(ChangeAbandoned())
    stage.commit(ChangeBegun(), stage.changed(isr=NODES[1:], leader=NODES[1]))
    with stage.expect("M1"):
        stage.commit(ChangeEnded())


def test_what_once_counted_from_the_page_cache_is_counted_on_under_group() -> None:
    stage = Stage()
    log = stage.log(1)
    log.count_all()
    offset = log.append(Entry(0, 3))
    log.flushes = True
    assert (offset, log.counted_end, log.vouched_end) == (2, 2, 3)
    machine = stage.machines[NODES[1]]
    for seed in range(20):
        if machine.lose_power(random.Random(seed)):
            break
    assert (log.end, KEY in machine.amnesia) == (2, True)
