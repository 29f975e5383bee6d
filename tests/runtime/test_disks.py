"""What both disks promise, and what only the real one can."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ropewalk.base.ports import Disk, read_whole, write_atomically
from ropewalk.base.syncs import SyncFailed
from ropewalk.runtime.disk import OsDisk, file_system_of, kernel_reports_syncfs
from ropewalk.runtime.memory_disk import MemoryDisk

Place = tuple[Disk, str]


@pytest.fixture(params=["os", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    makers: dict[str, Callable[[], Disk]] = {"os": lambda: OsDisk(str(tmp_path)), "memory": MemoryDisk}
    disk = makers[request.param]()
    disk.make_directory(str(tmp_path))
    return disk, str(tmp_path)


def test_appends_are_read_back_from_any_position(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    assert file.append(b"hello ") + file.append(memoryview(b"world")) == 11
    assert (file.read(6, 5), file.read(6, 50), file.read(50, 5)) == (b"world", b"world", b"")
    cached = file.read_cached(0, 5)
    assert cached is not None
    assert bytes(cached) == b"hello"


def test_an_append_after_a_truncation_lands_at_the_new_end(place: Place) -> None:
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.append(b"0123456789")
    file.truncate(4)
    file.append(b"x")
    assert (file.read(0, 99), file.size()) == (b"0123x", 5)


def test_a_file_that_is_not_there_is_an_error(place: Place) -> None:
    disk, root = place
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/no/such/directory", create=True)


def test_directories_are_listed_renamed_and_removed_with_what_is_in_them(place: Place) -> None:
    disk, root = place
    disk.make_directory(f"{root}/d/e")
    disk.open(f"{root}/d/f", create=True).append(b"1")
    disk.open(f"{root}/d/e/g", create=True).append(b"2")
    assert disk.list(f"{root}/d") == ["e", "f"]
    disk.rename(f"{root}/d", f"{root}/h")
    assert (disk.list(root), read_whole(disk, f"{root}/h/e/g")) == (["h"], b"2")
    disk.remove(f"{root}/h")
    disk.remove(f"{root}/h")
    assert disk.list(root) == []


def test_an_atomic_write_replaces_and_leaves_nothing_behind(place: Place) -> None:
    disk, root = place
    write_atomically(disk, f"{root}/c", b"one")
    write_atomically(disk, f"{root}/c", b"two")
    assert (read_whole(disk, f"{root}/c"), disk.list(root)) == (b"two", ["c"])


def test_a_lock_is_held_until_the_disk_is_closed(tmp_path: Path) -> None:
    first, second = OsDisk(str(tmp_path)), OsDisk(str(tmp_path))
    first.lock(f"{tmp_path}/lock")
    with pytest.raises(BlockingIOError):
        second.lock(f"{tmp_path}/lock")
    first.close()
    second.lock(f"{tmp_path}/lock")


def test_a_recycled_buffer_is_never_one_that_is_still_looked_at(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"a" * 100 + b"b" * 100)
    held = file.read_cached(0, 100)
    others = [file.read_cached(100, 100) for _ in range(5)]
    assert held is not None
    assert bytes(held) == b"a" * 100
    assert all(other is not None and bytes(other) == b"b" * 100 for other in others)


def test_a_dropped_file_closes_its_descriptor(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    file = disk.open(f"{tmp_path}/a", create=True)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del file
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_file_system_is_named(tmp_path: Path) -> None:
    assert file_system_of("/proc") == "proc"
    disk = OsDisk(str(tmp_path))
    if disk.can_sync_everything:
        disk.sync_everything()


def test_rewriting_changes_nothing_and_does_not_append(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"0123456789")
    file.rewrite(2, b"2345")
    file.append(b"x")
    assert file.read(0, 99) == b"0123456789x"


@pytest.mark.parametrize(
    ("release", "reports"),
    [
        ("6.18.44-generic", True),
        ("5.8.0", True),
        ("5.10", True),
        ("5.7.19-arch1", False),
        ("4.19.0-27-amd64", False),
        ("?", False),
    ],
)
def test_syncfs_is_trusted_only_where_the_kernel_tells_of_errors(release: str, reports: bool) -> None:
    assert kernel_reports_syncfs(release) is reports


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_sync_that_failed_is_remembered_by_the_disk_whatever_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    disk = OsDisk(str(tmp_path))
    one, other = disk.open(f"{tmp_path}/a", create=True), disk.open(f"{tmp_path}/b", create=True)

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        with pytest.raises(SyncFailed, match=os.strerror(code)) as failed:
            one.sync()
    assert failed.value.errno == errno.EIO  # never that of a full disk, which means: go on
    for sync in (one.sync, other.sync, lambda: disk.sync_directory(str(tmp_path))):
        with pytest.raises(SyncFailed, match=os.strerror(code)):
            sync()
