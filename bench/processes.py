"""CPU and memory of process trees, read from /proc.

A broker may be a wrapper around the process that works, so every figure is that of a process and all below it.
"""

import os
import time
from types import TracebackType
from typing import Final

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

# Positions in /proc/PID/stat, counted after the command name, which may itself hold spaces.
_PARENT, _CPU, _CPU_OF_CHILDREN, _RESIDENT_PAGES = 1, slice(11, 13), slice(13, 15), 21

_CPU_OF_PROCESS: Final = 2
"""In the number of a clock of another process (clock_getcpuclockid(3)): all that its threads ever used, to the nanosecond."""


def resident_mib(pid: int) -> float:
    """Resident memory; pages shared between processes of the tree count once for each."""
    return sum(int(fields[_RESIDENT_PAGES]) for fields in _tree(pid)) * PAGE_BYTES / 2**20


def cpu_seconds(pid: int) -> float:
    """User and system time, with that of children already gone.

    `stat` tells it in hundredths of a second, which is a tenth of what a short run takes.
    """
    return sum(_own_cpu_seconds(member, fields) for member, fields in _members(pid).items())


def _own_cpu_seconds(pid: int, fields: list[str]) -> float:
    gone = sum(map(int, fields[_CPU_OF_CHILDREN])) / TICKS_PER_SECOND
    try:
        return gone + time.clock_gettime(~pid << 3 | _CPU_OF_PROCESS)
    except OSError:  # it has ended since
        return gone + sum(map(int, fields[_CPU])) / TICKS_PER_SECOND


def descriptor_count(pid: int) -> int:
    """Open files, sockets included, of the process itself."""
    return len(os.listdir(f"/proc/{pid}/fd"))


class Meter:
    """`with Meter(pid) as meter:` measures a load on the broker `pid` by this process and its children.

    `foreign_cores` is what everyone else on the machine used meanwhile, in cores: above some 0.1 the run was
    disturbed.
    """

    def __init__(self, broker_pid: int) -> None:
        self._broker_pid = broker_pid
        self.began_at = 0.0
        self.seconds = 0.0
        self.broker_cpu_seconds = 0.0
        self.foreign_cores = 0.0

    def __enter__(self) -> "Meter":
        self._cpu_before = self._cpu()
        self.began_at = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self.began_at
        self.broker_cpu_seconds, own, machine = (
            late - early for early, late in zip(self._cpu_before, self._cpu(), strict=True)
        )
        self.foreign_cores = max(0.0, machine - own - self.broker_cpu_seconds) / self.seconds

    def _cpu(self) -> tuple[float, float, float]:
        """Of the broker, of this process with the children it has waited for, and of the machine."""
        return cpu_seconds(self._broker_pid), sum(os.times()[:4]), machine_cpu_seconds()


def machine_cpu_seconds() -> float:
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, hard, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + hard + soft) / TICKS_PER_SECOND


def descendants(pid: int) -> list[int]:
    """All living processes below one."""
    return [member for member in _members(pid) if member != pid]


def _tree(pid: int) -> list[list[str]]:
    """The stat fields of a process and of all its living descendants."""
    return list(_members(pid).values())


def _members(pid: int) -> dict[int, list[str]]:
    found = {int(name): fields for name in os.listdir("/proc") if name.isdigit() and (fields := _stat(name))}
    members = {pid}
    grown = True
    while grown:
        children = {child for child, fields in found.items() if int(fields[_PARENT]) in members}
        grown = not children <= members
        members |= children
    return {member: found[member] for member in members if member in found}


def _stat(name: str) -> list[str] | None:
    try:
        with open(f"/proc/{name}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:  # it ended while we looked
        return None
