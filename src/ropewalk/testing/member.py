"""One node of a cluster for tests: its addresses, which stay its own, its disk, and the node itself while it runs."""

import asyncio
import random
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import DISK_THREADS
from ropewalk.base.ports import Clock, Disk, Network
from ropewalk.node import life
from ropewalk.node.config import Config
from ropewalk.node.life import Node
from ropewalk.runtime.disk import OsDisk
from ropewalk.runtime.memory_disk import MemoryDisk
from ropewalk.runtime.pool import ThreadPool
from ropewalk.runtime.ports import SystemPorts
from ropewalk.testing.reserved_port import ReservedPort


class NotRunning(RuntimeError):
    """The cluster has not been entered, or its node has been killed."""


class Member:
    def __init__(self, node_id: NodeId, data_path: str | None) -> None:
        """`data_path` None: the disk is memory, and belongs to the member, so that it outlives the node."""
        self.node_id: Final = node_id
        self.data_path: Final = data_path
        self.kafka, self.http, self.sqs, self.peer = (ReservedPort() for _ in range(4))
        self._memory = MemoryDisk()
        self._running: _Running | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def node(self) -> Node:
        return self._the_running().node

    async def start(self, config: Config, clock: Clock, network: Network) -> None:
        disk = self._memory if self.data_path is None else OsDisk(self.data_path)
        pool = ThreadPool(DISK_THREADS)
        try:
            node = await life.start(config, SystemPorts(clock, random.SystemRandom(), disk, pool, network))
        except BaseException:
            pool.stop()
            raise
        self._running = _Running(node, disk, pool)

    async def stop(self) -> None:
        """Nothing where it does not run. Raises what the node's background work failed with, if it did."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def kill(self) -> None:
        running, self._running = self._the_running(), None
        await running.kill()

    def release_ports(self) -> None:
        for port in (self.kafka, self.http, self.sqs, self.peer):
            port.release()

    def _the_running(self) -> "_Running":
        if self._running is None:
            raise NotRunning("there is no node: enter the cluster first, or restart() it after kill()")
        return self._running


class _Running:
    """A node, and what it was given that must be taken back."""

    def __init__(self, node: Node, disk: Disk, pool: ThreadPool) -> None:
        self.node = node
        self._disk = disk
        self._pool = pool

    async def stop(self) -> None:
        try:
            if self.node.failed.done():
                raise self.node.failed.result()
            await self.node.stop()
        except BaseException:
            await self.kill()
            raise
        await self.node.kill()  # a client that does not take its last answers holds nobody up
        self._pool.stop()
        await let_sockets_close()

    async def kill(self) -> None:
        await self.node.kill()
        self._pool.stop()
        self._disk.close()
        await let_sockets_close()


async def let_sockets_close() -> None:
    """A transport that was told to close does so in the next turns of the loop; two for asyncio, one more for uvloop."""
    for _ in range(3):
        await asyncio.sleep(0)
