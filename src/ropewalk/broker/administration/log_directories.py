"""The places that hold this node's partitions: how full each is, and what each partition takes."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.partitions import Partitions

UNKNOWN_BYTES = -1


class LogDirectory(Struct, frozen=True):
    path: str
    sizes: Mapping[TopicPartition, int]
    """In bytes; records only, without indexes."""

    total_bytes: int
    usable_bytes: int
    """Both of the whole file system; -1 where there is none."""


class LogDirectories:
    def __init__(self, partitions: Partitions, disk: Home, memory: Home, pool: Pool) -> None:
        self._partitions = partitions
        self._disk = disk
        self._memory = memory
        self._pool = pool

    async def describe(self) -> Sequence[LogDirectory]:
        """The data directory; and memory, if there are topics in it."""
        sizes = self._sizes(self._disk)
        in_memory = self._sizes(self._memory)
        path = self._disk.directory.path
        disk = self._disk.directory.storage.disk
        total_bytes = await self._pool.run(disk.total_bytes, path)
        usable_bytes = await self._pool.run(disk.free_bytes, path)
        directories = [LogDirectory(path, sizes, total_bytes, usable_bytes)]
        if in_memory:
            directories.append(LogDirectory("memory", in_memory, UNKNOWN_BYTES, UNKNOWN_BYTES))
        return directories

    def has(self, path: str) -> bool:
        """Whether that is where this node keeps what is on disk."""
        return path == self._disk.directory.path

    def is_in(self, path: str, topic: str, index: int) -> bool:
        """Whether a partition that is held here is kept there. Raises where it is not held here, or is not there at all."""
        home = self._partitions.home_of(self._partitions.find_copy(topic, index))
        return home is self._disk and self.has(path)

    def _sizes(self, home: Home) -> dict[TopicPartition, int]:
        return {
            partition.name: partition.log.size_bytes
            for partition in self._partitions
            if self._partitions.home_of(partition) is home
        }
