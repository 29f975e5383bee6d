"""The data directory: identity, lock, partitions, checkpoints."""

import random
from errno import ENOSPC

import pytest

from ropewalk.base.errors import DirectoryInUse, DirectoryRefused, StorageFailed
from ropewalk.base.ids import NodeId, Offset, TopicId, TopicPartition
from ropewalk.base.ports import read_whole
from ropewalk.base.syncs import SyncFailed
from ropewalk.log.checkpoints import encode_checked, read_checked
from ropewalk.log.directory import DataDirectory, Held
from ropewalk.log.storage import Storage
from ropewalk.runtime.memory_disk import MemoryDisk, MemoryEverything
from ropewalk.runtime.reserve import FileReserve
from ropewalk.sim.machines.disk import SimulatedDisk
from ropewalk.sim.machines.loop import SimulatedLoop
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from tests.log.given import (
    TOPIC_ID,
    append,
    append_many,
    batch,
    close,
    read_all,
    settings,
    sync,
    truncate,
    values_of,
)

NAME = TopicPartition("orders", 0)
OTHER_ID = TopicId(bytes(16))


def open_directory(disk: MemoryDisk, *, node_id: int = 1, cluster_id: str | None = None) -> DataDirectory:
    disk.close()  # the process before is gone, and its locks with it
    return DataDirectory.open(
        Storage(disk), "/data", node_id=NodeId(node_id), rng=random.Random(1), cluster_id=cluster_id
    )


def test_the_first_start_gives_an_identity_that_stays() -> None:
    disk = MemoryDisk()
    first = open_directory(disk).identity
    assert (first.layout_version, first.node_id) == (1, 1)
    disk.close()
    again = DataDirectory.open(Storage(disk), "/data", node_id=NodeId(1), rng=random.Random(2))
    assert again.identity == first


def test_a_second_process_is_refused_by_name() -> None:
    disk = MemoryDisk()
    open_directory(disk)
    with pytest.raises(DirectoryInUse, match="/data"):
        DataDirectory.open(Storage(disk), "/data", node_id=NodeId(1), rng=random.Random(1))


def test_a_directory_of_another_node_cluster_or_layout_is_refused() -> None:
    disk = MemoryDisk()
    identity = open_directory(disk, cluster_id="cluster-a").identity
    with pytest.raises(DirectoryRefused, match="node 1, not to node 2"):
        open_directory(disk, node_id=2)
    with pytest.raises(DirectoryRefused, match="cluster-a"):
        open_directory(disk, cluster_id="cluster-b")
    assert open_directory(disk).identity.cluster_id == "cluster-a"
    newer = {**{name: getattr(identity, name) for name in identity.__struct_fields__}, "layout_version": 2}
    file = disk.open("/data/identity")
    file.truncate(0)
    file.append(encode_checked(newer))
    with pytest.raises(DirectoryRefused, match="layout 2"):
        open_directory(disk)


def test_partitions_are_made_found_and_deleted() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    dashed = TopicPartition("a-b.c_d", 12)
    for name in (NAME, dashed):
        directory.create_partition(name, TOPIC_ID)
        directory.create_partition(name, TOPIC_ID)
    assert directory.partitions() == [Held(dashed, TOPIC_ID), Held(NAME, TOPIC_ID)]
    with pytest.raises(StorageFailed):
        directory.delete_partitions([Held(NAME, OTHER_ID)])
    directory.delete_partitions([Held(NAME, TOPIC_ID)])
    directory.delete_partitions([Held(NAME, TOPIC_ID)])
    assert open_directory(disk).partitions() == [Held(dashed, TOPIC_ID)]
    assert not [name for name in disk.list("/data") if name.startswith("orders")]


class TightDisk(MemoryDisk):
    """Its file system has no block left for another name, before some is given up of what is kept back."""

    reserve: FileReserve | None = None

    def rename(self, source: str, target: str) -> None:
        if self.reserve is not None and self.reserve.is_whole:
            raise OSError(ENOSPC, "no room for a name")
        super().rename(source, target)


def test_partitions_are_deleted_on_a_disk_that_has_no_room_for_a_name() -> None:
    disk = TightDisk()
    disk.make_directory("/data")
    reserve = FileReserve(disk, "/data", random.Random(1), bytes_min=1 << 16)
    storage = Storage(disk, reserve=reserve)
    directory = DataDirectory.open(storage, "/data", node_id=NodeId(1), rng=random.Random(1))
    directory.create_partition(NAME, TOPIC_ID)
    reserve.look(partition_count=1)
    disk.reserve = reserve
    directory.delete_partitions([Held(NAME, TOPIC_ID)])
    assert directory.partitions() == []
    assert not reserve.is_whole


def test_what_another_topic_has_left_under_a_name_is_set_aside() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    directory.create_partition(NAME, TOPIC_ID)
    (stray,) = directory.create_partitions([Held(NAME, OTHER_ID)])
    assert directory.create_partitions([Held(NAME, OTHER_ID)]) == []
    assert open_directory(disk).partitions() == [Held(NAME, OTHER_ID)]
    assert disk.exists(f"{stray}/partition")


@pytest.mark.parametrize("can_sync_everything", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_power_may_fail_at_every_operation_that_makes_partitions(
    can_sync_everything: bool, seed: int
) -> None:
    """Either a partition is not there, or it is whole; and once it is said to be made it stays."""
    wanted = [Held(TopicPartition("orders", index), TOPIC_ID) for index in range(4)]
    for operation_count in range(100):
        life = Life(seed, can_sync_everything=can_sync_everything)
        life.open().create_partitions(wanted[:1])
        directory = life.open()
        life.platters.cut_power_after(operation_count, life.cut_power)
        try:
            directory.create_partitions(wanted)
        except PowerCut:
            was_cut = True
        else:
            was_cut = False
            life.cut_power()
        directory = life.open()
        found = directory.partitions()
        assert wanted[0] in found
        assert set(found) <= set(wanted)
        if not was_cut:
            assert operation_count > 10
            assert found == wanted
            return
        directory.create_partitions(wanted)
        assert directory.partitions() == wanted
    raise AssertionError("making four partitions takes more than a hundred operations")


@pytest.mark.parametrize("seed", range(3))
def test_the_power_may_fail_at_every_operation_that_deletes_partitions(seed: int) -> None:
    held = [Held(TopicPartition("orders", index), TOPIC_ID) for index in range(4)]
    for operation_count in range(100):
        life = Life(seed, can_sync_everything=True)
        directory = life.open()
        directory.create_partitions(held)
        life.platters.cut_power_after(operation_count, life.cut_power)
        try:
            directory.delete_partitions(held[1:])
        except PowerCut:
            found = life.open().partitions()
            assert held[0] in found
            assert set(found) <= set(held)
        else:
            life.cut_power()
            assert life.open().partitions() == held[:1]
            assert operation_count > 6
            return
    raise AssertionError("deleting three partitions takes more than a hundred operations")


def test_a_burst_of_partitions_takes_few_syncs() -> None:
    disk = CountingDisk()
    directory = DataDirectory.open(Storage(disk), "/data", node_id=NodeId(1), rng=random.Random(1))
    disk.sync_count = 0
    directory.create_partitions([Held(TopicPartition("orders", index), TOPIC_ID) for index in range(500)])
    assert disk.sync_count == 3


class CountingDisk(MemoryDisk):
    def __init__(self) -> None:
        super().__init__()
        self.sync_count = 0

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.sync_count += 1

    def open_everything(self) -> MemoryEverything:
        disk = self

        class Counting(MemoryEverything):
            def sync(self) -> None:
                disk.sync_count += 1

        return Counting()


class Life:
    """A data directory on a disk that can lose power."""

    def __init__(self, seed: int, *, can_sync_everything: bool) -> None:
        self.rng = random.Random(seed)
        self.platters = Platters(self.rng, Trace(), Sometimes(), can_sync_everything=can_sync_everything)
        self.platters.is_waiting_allowed = True
        self.process = Process("host", 0)

    def open(self) -> DataDirectory:
        self.process.die("stopped")
        self.process = Process("host", self.process.life + 1)
        loop: SimulatedLoop = None  # type: ignore[assignment]  # it is told of faults that do not happen here
        storage = Storage(SimulatedDisk(self.platters, self.process, loop))
        return DataDirectory.open(storage, "/data", node_id=NodeId(1), rng=self.rng)

    def cut_power(self) -> None:
        self.process.die("power")
        self.platters.lose_power()


def test_what_a_crash_left_half_made_or_half_deleted_is_removed_at_the_start() -> None:
    disk = MemoryDisk()
    open_directory(disk)
    for name in ("orders-0.creating", "orders-1.AAAA.deleted"):
        disk.make_directory(f"/data/{name}")
        disk.open(f"/data/{name}/x", create=True)
    directory = open_directory(disk)
    assert directory.partitions() == []
    assert not [name for name in disk.list("/data") if name.startswith("orders")]


def test_recovery_points_and_log_starts_come_back() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    directory.create_partition(NAME, TOPIC_ID)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    append_many(log, 5)
    sync(log)
    append_many(log, 2)
    log.trimming.plan_start(Offset(3), limit_offset=log.durable_offset)
    directory.note(NAME, TOPIC_ID, log)
    write = directory.take_log_starts()
    assert (write.offset_of("orders-0"), write.offset_of("orders-1")) == (3, 0)
    write.run()
    directory.take_recovery_points().run()
    again = open_directory(disk).open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    assert (again.start_offset, again.durable_offset, again.end_offset) == (3, 10, 14)
    assert not again.recovered.is_clean


def test_a_topic_made_again_inherits_nothing() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    directory.create_partition(NAME, TOPIC_ID)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    append_many(log, 5)
    sync(log)
    directory.note(NAME, TOPIC_ID, log)
    directory.take_recovery_points().run()
    log.forget()
    directory.delete_partitions([Held(NAME, TOPIC_ID)])
    directory = open_directory(disk)  # the checkpoint still speaks of the deleted one
    directory.create_partition(NAME, OTHER_ID)
    log = directory.open_log(NAME, OTHER_ID, settings(), now_ms=0)
    assert (log.end_offset, log.damaged) == (0, ())


def test_an_orderly_stop_spares_the_scan_once() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    directory.create_partition(NAME, TOPIC_ID)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    append_many(log, 5)
    before = read_all(log)
    close(log)
    directory.note(NAME, TOPIC_ID, log)
    directory.mark_clean()
    again = open_directory(disk)
    assert again.was_clean
    log = again.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    assert (log.recovered.is_clean, log.recovered.scanned_bytes, read_all(log)) == (True, 0, before)
    assert not open_directory(disk).was_clean


def test_a_directory_that_was_only_claimed_is_as_it_was() -> None:
    disk = MemoryDisk()
    open_directory(disk).mark_clean()
    disk.close()
    claimed = DataDirectory.claim(Storage(disk), "/data", node_id=NodeId(1), rng=random.Random(1))
    assert claimed.was_clean
    assert disk.exists("/data/clean-shutdown")
    claimed.begin()
    assert not disk.exists("/data/clean-shutdown")
    assert claimed.was_clean


def test_truncation_lowers_the_recovery_point_first() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    directory.create_partition(NAME, TOPIC_ID)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    append_many(log, 5)
    sync(log)
    directory.note(NAME, TOPIC_ID, log)
    directory.take_recovery_points().run()
    assert log.trimming.boundary_at(Offset(7)) == 6
    log.trimming.plan_cut(log.trimming.boundary_at(Offset(7)))
    directory.note(NAME, TOPIC_ID, log)
    directory.take_recovery_points().run()
    truncate(log, 7)
    again = open_directory(disk).open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    assert (again.end_offset, again.damaged) == (6, ())


@pytest.mark.parametrize("position", [0, 4, 9, 20])
def test_a_checkpoint_survives_a_flipped_bit_and_is_refused_by_name_if_both_copies_are_hit(
    position: int,
) -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    content = {"orders-0": 1200, "orders-1": 7}
    data = bytearray(encode_checked(content))
    data[position] ^= 0x01
    disk.open("/data/one", create=True).append(data)
    assert read_checked(disk, "/data/one", dict[str, int]) == content
    data[len(data) // 2 + position] ^= 0x01
    disk.open("/data/both", create=True).append(data)
    with pytest.raises(StorageFailed, match="/data/both"):
        read_checked(disk, "/data/both", dict[str, int])
    assert read_checked(disk, "/data/none", dict[str, int]) is None
    assert len(read_whole(disk, "/data/both")) == len(data)


def test_a_checkpoint_survives_the_loss_of_a_lines_end() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    data = bytearray(encode_checked({"orders-0": 1200}))
    assert data[len(data) // 2 - 1 :][:1] == b"\n"
    data[len(data) // 2 - 1] ^= 0x01
    disk.open("/data/one", create=True).append(data)
    assert read_checked(disk, "/data/one", dict[str, int]) == {"orders-0": 1200}


def test_what_is_read_of_a_deleted_partition_is_not_taken_for_its_successor() -> None:
    """A read that began before the deletion ends after the name has been given to another (seed 772 of the simulator)."""
    directory = open_directory(MemoryDisk())
    directory.create_partition(NAME, TOPIC_ID)
    former = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=1)
    append(former, batch([b"former"]))
    sync(former)
    directory.storage.files.forget(f"/data/{NAME}/{0:020}.log")  # as if it had been evicted
    span = former.locate(Offset(0), limit_offset=former.end_offset, bytes_max=1000)
    assert span is not None
    span.read()
    former.forget()
    directory.delete_partitions([Held(NAME, TOPIC_ID)])
    directory.create_partition(NAME, OTHER_ID)
    latter = directory.open_log(NAME, OTHER_ID, settings(), now_ms=1)
    former.on_read(span)
    append(latter, batch([b"latter"]))
    sync(latter)
    assert values_of(b"".join(read_all(latter))) == [b"latter"]


def closed_with_damage(disk: MemoryDisk) -> DataDirectory:
    """A log of ten batches, the sixth of which rots while it is open, stopped in order: what its next life finds."""
    directory = open_directory(disk)
    directory.create_partition(NAME, TOPIC_ID)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    append_many(log, 10)
    sync(log)
    flip(disk)
    span = log.locate(Offset(10), limit_offset=log.end_offset, bytes_max=1000)
    assert span is not None
    log._segments.active.trust.withdraw(log.size_bytes)
    with pytest.raises(StorageFailed):
        span.read()
    assert log.damaged
    close(log)
    directory.note(NAME, TOPIC_ID, log)
    directory.known_damage.note(str(NAME), TOPIC_ID, log.damaged)
    directory.mark_clean()
    return open_directory(disk)


def flip(disk: MemoryDisk) -> None:
    """A bit of a record of the sixth batch of two records."""
    content = disk.open(f"/data/{NAME}/{0:020}.log")._content
    content[len(content) // 10 * 5 + 100] ^= 0x40


def test_a_log_that_is_known_to_be_damaged_is_never_taken_as_it_was_closed() -> None:
    disk = MemoryDisk()
    directory = closed_with_damage(disk)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    assert directory.was_clean
    assert not log.recovered.is_clean
    assert [(each.start_offset, each.end_offset) for each in log.damaged] == [(10, 12)]
    again = open_directory(disk)  # nor after a crash, although a snapshot lies behind the damage
    found = again.open_log(NAME, TOPIC_ID, settings(), now_ms=0).damaged
    assert [(each.start_offset, each.end_offset) for each in found] == [(10, 12)]


def test_damage_that_is_gone_at_the_next_look_is_forgotten() -> None:
    """A bad sector that could be read the second time, or a file that was brought back from a copy."""
    disk = MemoryDisk()
    directory = closed_with_damage(disk)
    flip(disk)
    log = directory.open_log(NAME, TOPIC_ID, settings(), now_ms=0)
    assert log.damaged == ()
    assert len(read_all(log)) == 10


def test_damage_is_not_inherited_by_a_topic_made_again() -> None:
    disk = MemoryDisk()
    directory = closed_with_damage(disk)
    directory.delete_partitions([Held(NAME, TOPIC_ID)])
    directory.create_partition(NAME, OTHER_ID)
    assert directory.open_log(NAME, OTHER_ID, settings(), now_ms=0).damaged == ()


def test_a_directory_of_which_a_sync_has_failed_is_not_marked_as_clean() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk)
    disk.syncs.fail(OSError(5, "of any file"))
    with pytest.raises(SyncFailed):
        directory.mark_clean()
    assert not disk.exists("/data/clean-shutdown")
