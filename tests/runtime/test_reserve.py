"""Room that is kept back: who may use it, how it is given up, and when it is whole again."""

import random
from errno import EDQUOT, EIO, ENOSPC

import pytest
from typing_extensions import Buffer

from ropewalk.base.ports import write_atomically
from ropewalk.base.reserve import Purpose
from ropewalk.runtime.memory_disk import MemoryDisk, MemoryFile
from ropewalk.runtime.reserve import FileReserve

WHOLE = 1 << 16
DIRECTORY = "/data"


class SmallFile(MemoryFile):
    __slots__ = ("disk",)
    disk: "SmallDisk"

    def append(self, data: Buffer) -> int:
        octets = bytes(data)[: self.disk.take(len(memoryview(data)))]
        return super().append(octets)


class SmallDisk(MemoryDisk):
    """A disk with an end, by the file system's own figures or by a quota, of which those say nothing."""

    def __init__(self, *, code: int = ENOSPC) -> None:
        super().__init__()
        self.capacity_bytes = 1 << 40
        self.code = code
        self.size_bytes = 1 << 40
        self.make_directory(DIRECTORY)

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        if create and not self.exists(path):
            file = SmallFile()
            file.disk = self
            self.put(path, file)
        return super().open(path)

    @property
    def used_bytes(self) -> int:
        return sum(self.open(f"{DIRECTORY}/{name}").size() for name in self.list(DIRECTORY))

    def take(self, size: int) -> int:
        left = max(0, self.capacity_bytes - self.used_bytes)
        if not left:
            raise OSError(self.code, "no room")
        return min(size, left)

    def total_bytes(self, path: str) -> int:
        return self.size_bytes

    def free_bytes(self, path: str) -> int:
        return super().free_bytes(path) if self.code == EDQUOT else self.capacity_bytes - self.used_bytes


def a_reserve(disk: SmallDisk) -> FileReserve:
    reserve = FileReserve(disk, DIRECTORY, random.Random(1), bytes_min=WHOLE)
    reserve.look(partition_count=0)
    return reserve


def fill(disk: SmallDisk) -> None:
    disk.capacity_bytes = disk.used_bytes


@pytest.mark.parametrize("code", [ENOSPC, EDQUOT])
def test_what_deletes_may_use_all_of_it_and_others_less(code: int) -> None:
    for purpose, left_bytes in (
        (Purpose.DELETING, 0),
        (Purpose.GOING_ON, WHOLE // 4),
        (Purpose.CHANGING, WHOLE // 2),
    ):
        disk = SmallDisk(code=code)
        reserve = a_reserve(disk)
        assert (reserve.size_bytes, reserve.is_full) == (WHOLE, False)
        fill(disk)
        file = reserve.disk_for(purpose).open(f"{DIRECTORY}/file", create=True)
        assert file.append(bytes(2 * WHOLE)) == WHOLE - left_bytes
        assert reserve.size_bytes == left_bytes
        assert reserve.is_full
        with pytest.raises(OSError, match="no room"):
            file.append(b"more")


def test_no_more_is_given_up_than_is_needed() -> None:
    disk = SmallDisk()
    reserve = a_reserve(disk)
    fill(disk)
    write_atomically(reserve.disk_for(Purpose.DELETING), f"{DIRECTORY}/small", b"a few bytes")
    assert reserve.size_bytes == WHOLE - WHOLE // 16


@pytest.mark.parametrize("code", [ENOSPC, EDQUOT])
def test_the_disk_is_full_until_there_is_room_beside_a_whole_reserve(code: int) -> None:
    disk = SmallDisk(code=code)
    reserve = a_reserve(disk)
    fill(disk)
    reserve.disk_for(Purpose.DELETING).open(f"{DIRECTORY}/file", create=True).append(bytes(WHOLE // 2))
    given_up_bytes = WHOLE - reserve.size_bytes
    disk.capacity_bytes += WHOLE // 4
    reserve.look(partition_count=0)
    assert (reserve.size_bytes, reserve.is_full) == (WHOLE - given_up_bytes + WHOLE // 4, True)
    disk.capacity_bytes += given_up_bytes
    reserve.look(partition_count=0)
    assert (reserve.size_bytes, reserve.is_full) == (WHOLE, True)
    disk.capacity_bytes += WHOLE
    reserve.look(partition_count=0)
    assert (reserve.size_bytes, reserve.is_full) == (WHOLE, False)
    assert disk.used_bytes == WHOLE + WHOLE // 2


def test_it_grows_with_what_the_node_holds() -> None:
    disk = SmallDisk()
    reserve = a_reserve(disk)
    reserve.look(partition_count=100)
    assert reserve.size_bytes == WHOLE + 100 * 1024


def test_of_a_small_file_system_it_takes_a_small_part() -> None:
    disk = SmallDisk()
    disk.size_bytes = 1 << 20
    assert a_reserve(disk).size_bytes == (1 << 20) // 32


def test_what_is_left_of_it_is_found_again() -> None:
    disk = SmallDisk()
    reserve = a_reserve(disk)
    fill(disk)
    reserve.disk_for(Purpose.DELETING).open(f"{DIRECTORY}/file", create=True).append(bytes(WHOLE // 2))
    again = a_reserve(disk)
    assert (again.size_bytes, again.is_full) == (reserve.size_bytes, True)


def test_an_error_that_is_no_matter_of_room_costs_nothing() -> None:
    disk = SmallDisk(code=EIO)
    reserve = a_reserve(disk)
    fill(disk)
    with pytest.raises(OSError, match="no room"):
        reserve.disk_for(Purpose.DELETING).open(f"{DIRECTORY}/file", create=True).append(b"x")
    assert (reserve.size_bytes, reserve.is_full) == (WHOLE, False)
