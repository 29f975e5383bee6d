"""The disk in memory is used from the event loop and from the threads of the pool at the same time, as a real one is."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ropewalk.runtime.memory_disk import MemoryDisk

ROUNDS = 2_000


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


def at_once(*works: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()


def test_files_made_while_others_list_rename_and_remove_are_all_there() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")

    def make() -> None:
        for number in range(ROUNDS * 5):
            disk.open(f"/data/{number}", create=True)

    def list_() -> None:
        for _ in range(20):
            disk.list("/data")

    def come_and_go() -> None:
        for number in range(50):
            disk.make_directory(f"/data/d{number}")
            disk.open(f"/data/d{number}/file", create=True)
            disk.rename(f"/data/d{number}", "/data/gone")
            disk.remove("/data/gone")

    at_once(make, list_, come_and_go)
    assert sorted(map(int, disk.list("/data"))) == list(range(ROUNDS * 5))


def test_a_file_grows_while_it_is_read() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    file = disk.open("/data/file", create=True)

    def append() -> None:
        for number in range(ROUNDS * 10):
            file.append(number.to_bytes(4, "big"))

    def read() -> None:
        for _ in range(ROUNDS * 10):
            file.read(0, 1 << 12)

    at_once(append, read, read)
    assert file.size() == ROUNDS * 10 * 4
