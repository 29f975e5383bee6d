"""Syncs without a thread: nothing is reported early, every error is heard, and what cannot be done so goes another way."""

import asyncio
import errno
import os
import platform
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from ropewalk.base.limits import SYNC_FILES_AT_ONCE_MAX
from ropewalk.base.syncs import SyncFailed, Syncs
from ropewalk.runtime import aio
from ropewalk.runtime.aio import open_queue
from ropewalk.runtime.disk import OsDisk
from ropewalk.runtime.kernel_sync import KernelSync
from ropewalk.runtime.memory_disk import MemoryDisk


class Kernel:
    """Takes what it is told to take, and ends syncs when it is told to."""

    def __init__(self, *, takes: int = SYNC_FILES_AT_ONCE_MAX, refusal: int = 0) -> None:
        self.takes = takes
        self.refusal = refusal
        self._ended: list[int] = []

    def submit(self, files: Sequence[str]) -> int:
        if self.refusal:
            raise OSError(self.refusal, os.strerror(self.refusal))
        return min(self.takes, len(files))

    def end(self, *codes: int) -> None:
        self._ended += codes

    def ended(self) -> list[int]:
        ended, self._ended = self._ended, []
        return ended


Story = Callable[[Kernel, "KernelSync[str]", Syncs], Awaitable[None]]


def told(story: Story, kernel: Kernel | None = None) -> None:
    async def main() -> None:
        syncs = Syncs()
        queue = kernel or Kernel()
        await story(queue, KernelSync(queue, syncs), syncs)

    asyncio.run(main())


def test_a_sync_is_reported_when_the_last_file_is_on_disk() -> None:
    async def story(kernel: Kernel, sync: KernelSync[str], _: Syncs) -> None:
        done = sync.begin(["a", "b", "c"])
        assert done is not None
        for still_open in (True, True, False):
            assert not done.done()
            kernel.end(0)
            sync.on_ended()
            assert done.done() != still_open
        sync.on_ended()  # an eventfd may be readable although everything was fetched
        await done

    told(story)


def test_one_failed_file_of_several_fails_them_all_for_good() -> None:
    async def story(kernel: Kernel, sync: KernelSync[str], syncs: Syncs) -> None:
        done = sync.begin(["a", "b"])
        assert done is not None
        kernel.end(errno.ENOSPC)
        sync.on_ended()
        assert not done.done()
        kernel.end(0)
        sync.on_ended()
        with pytest.raises(SyncFailed, match="No space left"):
            await done
        with pytest.raises(SyncFailed):
            sync.begin(["c"])
        assert syncs.failure is not None

    told(story)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        pytest.param(Kernel(refusal=errno.EAGAIN), "Resource temporarily unavailable", id="none was taken"),
        pytest.param(Kernel(takes=1), "took 1 of 2", id="a part was taken"),
    ],
)
def test_a_submission_that_is_not_taken_whole_has_failed(kernel: Kernel, reason: str) -> None:
    async def story(_: Kernel, sync: KernelSync[str], syncs: Syncs) -> None:
        with pytest.raises(SyncFailed, match=reason):
            sync.begin(["a", "b"])
        assert syncs.failure is not None

    told(story, kernel)


def test_a_stop_waits_for_the_part_of_a_submission_that_was_taken() -> None:
    async def story(kernel: Kernel, sync: KernelSync[str], _: Syncs) -> None:
        with pytest.raises(SyncFailed):
            sync.begin(["a", "b"])
        drained = asyncio.ensure_future(sync.drain())
        await asyncio.sleep(0)
        assert not drained.done()
        kernel.end(0)
        sync.on_ended()
        await drained

    told(story, Kernel(takes=1))


def test_the_error_of_a_sync_that_nobody_waits_for_is_heard_by_whoever_drains() -> None:
    async def story(kernel: Kernel, sync: KernelSync[str], syncs: Syncs) -> None:
        done = sync.begin(["a"])
        assert done is not None
        done.cancel()
        drained = asyncio.ensure_future(sync.drain())
        await asyncio.sleep(0)
        assert not drained.done()
        kernel.end(errno.EIO)
        sync.on_ended()
        await drained
        with pytest.raises(SyncFailed):
            syncs.check()

    told(story)


def test_a_second_sync_waits_for_nobody_and_takes_another_way() -> None:
    async def story(kernel: Kernel, sync: KernelSync[str], _: Syncs) -> None:
        first = sync.begin(["a"])
        assert sync.begin(["b"]) is None
        kernel.end(0)
        sync.on_ended()
        assert first is not None
        await first
        assert sync.begin(["b"]) is not None

    told(story)


def test_real_files_are_synced_on_any_loop_and_after_a_close(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    files = [disk.open(f"{tmp_path}/{name}", create=True) for name in "abcd"]

    async def sync_often() -> int:
        count = 0
        for round_number in range(20):
            chosen = files[: 1 + round_number % SYNC_FILES_AT_ONCE_MAX]
            for file in chosen:
                file.append(b"x")
            done = disk.begin_sync(chosen)
            assert done is not None, "Linux on a known architecture syncs by itself"
            await done
            count += 1
        await disk.drain()
        return count

    assert asyncio.run(sync_often()) == 20
    assert asyncio.run(sync_often()) == 20  # the first loop is gone
    disk.close()
    assert asyncio.run(sync_often()) == 20
    disk.close()


def test_a_descriptor_that_is_none_fails_and_leaves_nothing_under_way() -> None:
    queue = open_queue()
    assert queue is not None
    good = os.memfd_create("good")
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            queue.submit([1 << 20])
        assert queue.submit([good, 1 << 20]) == 1, "the kernel stops at the first that it cannot take"
    finally:
        queue.close()
        queue.close()
        os.close(good)


def test_an_unknown_architecture_and_a_refused_call_take_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = OsDisk(str(tmp_path))
    file = disk.open(f"{tmp_path}/a", create=True)

    async def begin() -> object:
        return disk.begin_sync([file])

    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    assert asyncio.run(begin()) is None
    monkeypatch.undo()
    refused = aio._Calls(setup=-1, destroy=-1, submit=-1, getevents=-1)  # a number that no kernel knows
    monkeypatch.setitem(aio._CALLS, platform.machine(), refused)
    assert asyncio.run(begin()) is None
    monkeypatch.undo()
    assert asyncio.run(begin()) is not None
    disk.close()


def test_files_of_another_disk_take_the_pool(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    memory = MemoryDisk()
    memory.make_directory("/m")
    foreign = memory.open("/m/a", create=True)

    async def begin() -> object:
        return disk.begin_sync([foreign])

    assert asyncio.run(begin()) is None
    disk.close()
