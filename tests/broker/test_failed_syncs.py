"""A sync that fails: whoever acknowledges hears of it, nothing is acknowledged after it, and nobody takes it for want of room."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from ropewalk.base.ports import write_all_atomically
from ropewalk.base.syncs import SyncFailed
from ropewalk.broker.partitions.checkpoint_saving import CheckpointSaving
from ropewalk.broker.partitions.opening import Opening, open_logs
from ropewalk.log.directory import DataDirectory
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.sim.machines.storage import WriteBackErrors
from ropewalk.sim.machines.world import Machine, NodePorts, World
from tests.broker.partition_bench import Bench, at_the_bench
from tests.kafka.door import Door, at_the_door, batch_of

T = TypeVar("T")

REASONS = pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])


def in_a_life(story: Callable[[NodePorts, Machine], Awaitable[T]]) -> T:
    async def main(world: World) -> T:
        machine = world.machine("node")
        return await machine.start(lambda ports: story(ports, machine))  # type: ignore[arg-type, return-value]

    with World(0) as world:
        return world.run(main(world), limit_s=100)


@REASONS
@pytest.mark.parametrize("write_count", [1, 3], ids=["file by file", "all at once"])
def test_an_error_of_write_back_reaches_the_group_commit_though_another_has_heard_of_it(
    code: int, write_count: int
) -> None:
    """Both sync the whole file system; Linux tells each open description, once."""

    async def story(bench: Bench) -> bool:
        disk, pool = bench.ports.disk, bench.ports.pool
        for number in range(write_count):
            bench.append("x" * 600 + str(number))
        assert bench.platters.fail_write_back(code)
        with pytest.raises(SyncFailed):
            await pool.run(write_all_atomically, disk, [("/data/a", b"a"), ("/data/b", b"b")])
        disk.syncs.failure = None  # so that nothing but the description can tell
        with pytest.raises(SyncFailed):
            await bench.commits.commit()
        return bench.partition.high_watermark == 0

    assert at_the_bench(story)


@pytest.mark.parametrize("kernel_syncs", [False, True], ids=["in a thread", "by the kernel"])
def test_an_error_reaches_the_group_commit_though_the_file_had_to_be_closed_before_it_was_synced(
    kernel_syncs: bool,
) -> None:
    """The kernel has let go of the file meanwhile, and of its error: only the file system still has that."""

    async def story(bench: Bench) -> int:
        bench.append("first")
        await bench.commits.commit()
        bench.append("second")
        disk, pool, log = bench.ports.disk, bench.ports.pool, bench.partition.log
        await pool.run(lambda: disk.open("/data/other", create=True))
        log._storage.files.pin("/data/other")
        assert log.sync_targets().has_reopened
        assert bench.platters.fail_write_back(errno.EIO)
        for _, file in bench.platters.files():
            file.errors = WriteBackErrors()
        with pytest.raises(SyncFailed):
            await bench.commits.commit()
        return bench.partition.high_watermark

    assert at_the_bench(story, kernel_syncs=kernel_syncs, files_max=1) == 1


def test_two_who_sync_everything_both_hear_of_an_error_and_each_hears_it_once() -> None:
    async def story(ports: NodePorts, machine: Machine) -> list[str]:
        def work() -> list[str]:
            disk, heard = ports.disk, []
            disk.make_directory("/data")
            mine, other = disk.open_everything(), disk.open_everything()
            disk.open("/data/a", create=True).append(b"a")
            machine.platters.fail_write_back(errno.EIO)
            late = disk.open_everything()
            for _ in range(2):
                for name, everything in (("mine", mine), ("other", other), ("late", late)):
                    try:
                        everything.sync()
                    except SyncFailed:
                        heard.append(name)
                    disk.syncs.failure = None
            after = disk.open_everything()
            after.sync()
            return heard

        return await ports.pool.run(work)

    assert in_a_life(story) == ["mine", "other", "late"]


def test_nothing_is_acknowledged_after_a_sync_has_failed_anywhere() -> None:
    """The group commit's own sync went well. The other failed while it was under way."""

    async def story(bench: Bench) -> tuple[bool, int]:
        ticket = bench.append("x")
        committing = asyncio.ensure_future(bench.commits.commit())
        while not bench.platters.sync_count:
            await asyncio.sleep(0.0001)
        bench.ports.disk.syncs.fail(OSError(errno.EIO, "of another file"))
        with pytest.raises(SyncFailed, match="of another file"):
            await committing
        assert ticket.acknowledged is not None
        return ticket.acknowledged.done(), bench.partition.high_watermark

    assert at_the_bench(story) == (False, 0)


@REASONS
def test_a_sync_that_fails_is_not_tried_again(code: int) -> None:
    async def story(bench: Bench) -> int:
        bench.append("x")
        bench.platters.fail_syncs(1, code=code)
        for _ in range(2):
            with pytest.raises(SyncFailed):
                await bench.commits.commit()
        return bench.partition.high_watermark

    assert at_the_bench(story) == 0


@REASONS
def test_a_checkpoint_whose_sync_fails_is_not_put_off_for_want_of_room(code: int) -> None:
    async def story(ports: NodePorts, machine: Machine) -> str:
        directory = await ports.pool.run(_directory, ports)
        saving = CheckpointSaving(directory.take_log_starts, ports.pool)
        machine.platters.fail_syncs(1, code=code)
        asked = asyncio.ensure_future(saving.save())
        with pytest.raises(SyncFailed):
            await saving.run()
        with pytest.raises(RopewalkError) as refused:
            await asked
        return type(refused.value).__name__

    assert in_a_life(story) == "NodeStopping"


@REASONS
@pytest.mark.parametrize("partition_count", [1, 3])
def test_a_partition_whose_sync_fails_is_not_one_without_room(code: int, partition_count: int) -> None:
    async def story(ports: NodePorts, machine: Machine) -> None:
        directory = await ports.pool.run(_directory, ports)
        openings = [
            Opening(directory, TopicPartition("t", index), TopicId(b"t" * 16), LeaderEpoch(0), LogSettings())
            for index in range(partition_count)
        ]
        machine.platters.fail_syncs(1, code=code)
        with pytest.raises(SyncFailed):
            await open_logs(openings, ports.pool, now_ms=0)

    in_a_life(story)


@REASONS
def test_a_node_ends_although_the_error_went_to_somebody_who_was_cancelled(code: int) -> None:
    """Nobody writes, so nobody syncs: the next look at the clock ends it."""

    async def story(door: Door) -> bool:
        await door.create("t", 1)
        door.node._parts.ports.disk.syncs.fail(OSError(code, "heard by nobody"))
        await asyncio.sleep(2.5)
        return door.node.failed.done()

    assert at_the_door(story) is True


def test_files_of_topics_that_nobody_syncs_are_synced_when_too_many_are_open() -> None:
    async def story(door: Door) -> tuple[int, int]:
        await door.create("t", 6, flush="os")
        files = door.node._parts.disk.directory.storage.files
        files._count_max = 4
        for index in range(6):
            await door.produce("t", batch_of("x"), partition=index)
        assert len(files) <= 4
        assert files.is_crowded
        await asyncio.sleep(2.5)
        dirty = [each for each in door.node.partitions if each.log.dirty]
        return len(dirty), files.is_crowded

    assert at_the_door(story) == (0, False)


def _directory(ports: NodePorts) -> DataDirectory:
    return DataDirectory.open(Storage(ports.disk), "/data", node_id=NodeId(0), rng=ports.rng)
