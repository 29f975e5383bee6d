"""The bundle of real ports that a node is built on."""

import random
from dataclasses import dataclass, field

from ropewalk.base.limits import DISK_THREADS
from ropewalk.base.ports import Clock, Disk, Network, OwnProcess, Pool, Rng
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.disk import OsDisk
from ropewalk.runtime.memory_disk import MemoryDisk
from ropewalk.runtime.network import TcpNetwork
from ropewalk.runtime.pool import ThreadPool
from ropewalk.runtime.process import SystemProcess


@dataclass(slots=True)
class SystemPorts:
    clock: Clock
    rng: Rng
    disk: Disk
    pool: Pool
    network: Network
    process: OwnProcess = field(default_factory=SystemProcess)


@dataclass(slots=True)
class SystemClientPorts:
    clock: Clock = field(default_factory=SystemClock)
    rng: Rng = field(default_factory=random.SystemRandom)
    network: Network = field(default_factory=TcpNetwork)


def on_disk(root: str) -> SystemPorts:
    """Ports whose data directory is `root`, which is made if it is not there."""
    return _with(OsDisk(root))


def in_memory() -> SystemPorts:
    return _with(MemoryDisk())


def _with(disk: Disk) -> SystemPorts:
    return SystemPorts(SystemClock(), random.SystemRandom(), disk, ThreadPool(DISK_THREADS), TcpNetwork())
