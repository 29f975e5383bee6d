"""What this process takes of its machine, from the kernel's tables."""

import os
import resource
from collections.abc import Iterator
from typing import Final

from ropewalk.base.limits import DESCRIPTORS_WANTED
from ropewalk.base.ports import Usage

PYTHONS_TESTED: Final = ((3, 11), (3, 12), (3, 13))
"""The versions of Python that the tests have been run on."""


class SystemProcess:
    def usage(self) -> Usage:
        times = os.times()
        # The second field is the program's name in brackets, which may hold anything; the numbers begin behind it.
        fields = _read("/proc/self/stat").rpartition(b")")[2].split()
        disk = dict(_pairs("/proc/self/io"))
        return Usage(
            started_at_s=_started_at_s(int(fields[19])) if fields else 0.0,
            cpu_user_s=times.user,
            cpu_system_s=times.system,
            resident_bytes=int(fields[21]) * resource.getpagesize() if fields else 0,
            address_space_bytes=int(fields[20]) if fields else 0,
            descriptor_count=_descriptor_count(),
            descriptor_count_max=max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
            disk_read_bytes=disk.get(b"read_bytes", 0),
            disk_written_bytes=disk.get(b"write_bytes", 0),
        )


def is_tested_python(version: tuple[int, ...]) -> bool:
    return version in PYTHONS_TESTED


def raise_descriptor_limit() -> None:
    """Allow this process as many open files as it may have: shells and service managers often start with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _started_at_s(ticks_after_boot: int) -> float:
    for line in _read("/proc/stat").splitlines():
        if line.startswith(b"btime "):
            return float(int(line.split()[1]) + ticks_after_boot / os.sysconf("SC_CLK_TCK"))
    return 0.0


def _descriptor_count() -> int:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # one is the listing's own
    except OSError:
        return 0


def _pairs(path: str) -> Iterator[tuple[bytes, int]]:
    for line in _read(path).splitlines():
        name, _, value = line.partition(b": ")
        yield name, int(value)


def _read(path: str) -> bytes:
    """Empty where the machine has no such table, or does not let us see it."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
