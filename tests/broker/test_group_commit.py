"""Which way the group commit takes to the disk, and that the way without a thread promises as much as the other."""

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

import pytest

from ropewalk.base.ids import Offset
from ropewalk.base.limits import SYNC_FILES_AT_ONCE_MAX
from ropewalk.base.ports import Pool
from ropewalk.base.syncs import SyncFailed
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.log.log import Log, SyncTargets
from tests.broker.partition_bench import Bench, at_the_bench

T = TypeVar("T")


class CountingPool:
    """Passes everything on, and counts what it was asked for."""

    def __init__(self, pool: Pool) -> None:
        self.count = 0
        self._pool = pool

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        self.count += 1
        return self._pool.run(function, *arguments)

    async def drain(self) -> None:
        await self._pool.drain()


class Dirty:
    """What the group commit is told of: some files, and maybe the directory that they are in."""

    is_over = False
    in_memory = False

    def __init__(self, log: Log, targets: SyncTargets) -> None:
        self.log = log
        self.durable_offset = 0
        self._targets = targets

    def begin_sync(self) -> SyncTargets:
        return self._targets

    def on_durable(self, end_offset: Offset) -> None:
        self.durable_offset = end_offset


@pytest.mark.parametrize(
    ("kernel_syncs", "file_count", "has_new_name", "pool_count"),
    [
        pytest.param(True, 1, False, 0, id="one file, by the kernel"),
        pytest.param(True, SYNC_FILES_AT_ONCE_MAX, False, 0, id="a few, by the kernel"),
        pytest.param(True, SYNC_FILES_AT_ONCE_MAX + 1, False, 1, id="many, in the pool"),
        pytest.param(True, 1, True, 1, id="a new name, in the pool"),
        pytest.param(False, 1, False, 1, id="a machine that cannot, in the pool"),
    ],
)
def test_a_few_files_are_synced_without_a_thread(
    kernel_syncs: bool, file_count: int, has_new_name: bool, pool_count: int
) -> None:
    async def story(bench: Bench) -> tuple[int, Offset]:
        disk = bench.ports.disk
        files = [disk.open(f"/data/{number}", create=True) for number in range(file_count)]
        for file in files:
            file.append(b"x")
        pool = CountingPool(bench.ports.pool)
        commits = GroupCommit(disk, pool, bench.ports.clock)
        directories = ("/data",) if has_new_name else ()
        dirty = Dirty(bench.partition.log, SyncTargets(Offset(7), tuple(files), directories))
        commits.note(dirty)  # type: ignore[arg-type]  # as much of a partition as is asked for
        await commits.commit()
        return pool.count, Offset(dirty.durable_offset)

    assert at_the_bench(story, kernel_syncs=kernel_syncs) == (pool_count, 7)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_nothing_is_acknowledged_after_a_failed_sync_by_the_kernel(code: int) -> None:
    async def story(bench: Bench) -> int:
        bench.append("x")
        await bench.commits.commit()
        bench.append("y")
        bench.platters.fail_write_back(code)
        for _ in range(2):
            with pytest.raises(SyncFailed):
                await bench.commits.commit()
        return bench.partition.high_watermark

    assert at_the_bench(story, kernel_syncs=True) == 1


def test_what_is_written_while_the_kernel_syncs_waits_for_the_next_sync() -> None:
    async def story(bench: Bench) -> tuple[int, int]:
        bench.append("x")
        await bench.commits.commit()
        bench.append("y")
        committing = asyncio.ensure_future(bench.commits.commit())
        await asyncio.sleep(0)
        bench.append("z")
        await committing
        first = bench.partition.high_watermark
        await bench.commits.commit()
        return first, bench.partition.high_watermark

    assert at_the_bench(story, kernel_syncs=True) == (2, 3)
