"""Compaction in the background: it goes on step by step while the partition lives, and leaves nothing behind when it cannot."""

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest

from ropewalk.base.errors import NotLeader
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.believed_clock import BelievedClock
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.upkeep.compactor import Compactor
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.rewrite import Replacement
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.records.batch import decode_header, iterate
from ropewalk.records.record import Record, build, decode_records
from ropewalk.records.validate import Rules
from ropewalk.runtime.steps import Pace
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.world import EPOCH_MS, NodePorts, World
from tests.broker.reading import read

NAME = TopicPartition("t", 0)
TOPIC_ID = TopicId(b"t" * 16)
SETTINGS = LogSettings(segment_bytes=2000, compacts=True)


class Bench:
    """A compacted partition with forty versions of one key in closed segments, on a simulated disk."""

    def __init__(self, ports: NodePorts, platters: Platters, log: Log) -> None:
        self.ports = ports
        self.platters = platters
        self.commits = GroupCommit(ports.disk, ports.pool, ports.clock)
        self.partition = Partition(
            NAME,
            TOPIC_ID,
            log,
            leader_epoch=LeaderEpoch(0),
            rules=Rules(bytes_max=1 << 20, keys_required=True),
            durable_first=True,
            in_memory=False,
            commits=self.commits,
            clock=ports.clock,
        )
        self.work = LogWork()
        self.compactor = Compactor(
            [self.partition], self.work, ports.pool, BelievedClock(ports.clock), Pace(1)
        )

    async def write(self, count: int) -> None:
        for _ in range(count):
            made = build([Record(timestamp=EPOCH_MS, key=b"k", value=bytes(300))])
            self.partition.append(self.partition.prepare(memoryview(made)), Acks.ALL, 1000)
        await self.commits.commit()

    async def offsets(self) -> list[int]:
        found: list[int] = []
        offset = self.partition.log.start_offset
        while offset < self.partition.high_watermark:
            view = await read(self.partition, offset, self.ports.pool)
            for start, header in iterate(view):
                found += [record.offset for record in decode_records(view[start : start + header.size_bytes])]
                offset = header.end_offset
        return found

    def files(self) -> list[str]:
        names = [path.rpartition("/")[2] for path, _ in self.platters.files()]
        return [name for name in names if name.endswith((".log", ".cleaned", ".swap"))]


def at_the_bench(story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")

        async def life(ports: NodePorts) -> None:
            log = await ports.pool.run(_open, ports)
            bench = Bench(ports, machine.platters, log)
            await bench.write(41)  # five to a segment, and one in the active
            await story(bench)

        await machine.start(life)

    with World(0) as world:
        world.run(main(world), limit_s=100)


def _open(ports: NodePorts) -> Log:
    directory = DataDirectory.open(Storage(ports.disk), "/data", node_id=NodeId(0), rng=ports.rng)
    directory.create_partition(NAME, TOPIC_ID)
    return directory.open_log(NAME, TOPIC_ID, SETTINGS, now_ms=ports.clock.now_ms())


def test_the_log_shrinks_and_then_there_is_nothing_to_do() -> None:
    async def story(bench: Bench) -> None:
        assert not await bench.compactor.step()
        assert await bench.offsets() == [39, 40]
        assert bench.files() == [f"{0:020d}.log", f"{40:020d}.log"]
        assert not await bench.compactor.step()

    at_the_bench(story)


def test_a_pass_takes_many_steps_if_the_budget_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropewalk.broker.upkeep.compactor.COMPACTION_BYTES_PER_TICK", 1500)

    async def story(bench: Bench) -> None:
        step_count = 0
        while await bench.compactor.step():
            step_count += 1
            await bench.write(1)
            offsets = await bench.offsets()
            assert offsets[-1] == 40 + step_count
            assert 39 in offsets
        assert step_count > 10

    at_the_bench(story)


def test_a_full_disk_puts_compaction_off_and_leaves_nothing_behind() -> None:
    async def story(bench: Bench) -> None:
        snapshot = bench.partition.log.maintenance.take_snapshot(EPOCH_MS, force=True)
        assert snapshot is not None
        await bench.ports.pool.run(snapshot.run)
        bench.partition.log.maintenance.on_snapshot(snapshot)
        bench.platters.capacity_bytes = bench.platters.used_bytes + 300  # less than what will be left
        before = bench.files()
        with pytest.raises(OSError, match=r"disk|space") as refused:
            await bench.compactor.step()
        assert refused.value.errno == errno.ENOSPC
        assert bench.files() == before
        bench.platters.make_room()
        assert not await bench.compactor.step()  # the round is over
        assert not await bench.compactor.step()
        assert await bench.offsets() == [39, 40]

    at_the_bench(story)


@pytest.mark.parametrize("step_count", range(0, 30, 3))
def test_a_topic_deleted_under_a_pass_ends_it(monkeypatch: pytest.MonkeyPatch, step_count: int) -> None:
    monkeypatch.setattr("ropewalk.broker.upkeep.compactor.COMPACTION_BYTES_PER_TICK", 1500)

    async def story(bench: Bench) -> None:
        for _ in range(step_count):
            await bench.compactor.step()
        bench.partition.log.forget()
        await bench.ports.pool.run(bench.ports.disk.remove, f"/data/{NAME}")
        while await bench.compactor.step():
            pass
        assert bench.files() == []

    at_the_bench(story)


def test_a_topic_deleted_before_a_pass_has_begun_ends_it() -> None:
    async def story(bench: Bench) -> None:
        stepping = asyncio.ensure_future(bench.compactor.step())
        await asyncio.sleep(0)  # the snapshot that comes first is on its way to the disk
        bench.partition.log.forget()
        bench.ports.disk.remove(f"/data/{NAME}")
        assert not await stepping
        assert bench.files() == []

    at_the_bench(story)


def test_who_has_let_go_of_a_log_does_not_say_how_far_it_may_be_compacted() -> None:
    """A round takes long. What was committed when it began may have been cut since, and others have come in its place."""

    async def story(bench: Bench) -> None:
        before = bench.files()
        bench.partition.end(NotLeader("led elsewhere"))
        assert not await bench.compactor.step()
        assert bench.files() == before

    at_the_bench(story)


def test_a_segment_that_finds_no_room_for_its_name_leaves_a_topic_of_the_same_name_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To name it is tried again. By then the topic may have been deleted, for room, and made anew."""

    def no_room(_: Replacement) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    async def story(bench: Bench) -> None:
        with monkeypatch.context() as full:
            full.setattr(Replacement, "run", no_room)
            with pytest.raises(OSError, match="space"):
                await bench.compactor.step()
        bench.partition.log.forget()
        await bench.ports.pool.run(bench.ports.disk.remove, f"/data/{NAME}")
        await bench.ports.pool.run(bench.ports.disk.make_directory, f"/data/{NAME}")
        log = await bench.ports.pool.run(_open_anew, bench.ports)
        for _ in range(12):
            made = build([Record(timestamp=EPOCH_MS, key=b"k", value=bytes(300))])
            log.append(memoryview(made), decode_header(made), leader_epoch=LeaderEpoch(0), now_ms=EPOCH_MS)
        while await bench.compactor.step():
            pass
        assert bench.files() == [f"{base:020d}.log" for base in (0, 5, 10)]

    at_the_bench(story)


def _open_anew(ports: NodePorts) -> Log:
    settings = LogSettings(segment_bytes=2000)
    return Log.open(
        Storage(ports.disk),
        f"/data/{NAME}",
        settings,
        recovery_point=Offset(0),
        start_offset=Offset(0),
        clean=False,
        now_ms=EPOCH_MS,
    )
