"""The local metadata log through power cuts at any disk operation, with any part of the unsynced bytes and names kept."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import Buffer

from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.base.ports import Everything, File
from ropewalk.base.syncs import Syncs
from ropewalk.metadata.image import Image
from ropewalk.metadata.local import LocalMetadataLog
from ropewalk.metadata.log import Committed, Snapshot
from ropewalk.metadata.records import ProducerIdsAllocated
from tests.chaos.lossy_tree import File as TreeFile
from tests.chaos.lossy_tree import LossyTree

T = TypeVar("T")
DIRECTORY = "/data/metadata"


class PowerCut(Exception):
    """The machine is gone in the middle of what it was doing."""


class TreeDisk:
    """A `Disk` on a `LossyTree` that stops at the operation it was told to."""

    can_be_full = False
    can_sync_everything = False

    def __init__(self, tree: LossyTree) -> None:
        self.syncs = Syncs()
        self.tree = tree
        self.operations_left = 1 << 30

    def count(self) -> None:
        self.operations_left -= 1
        if self.operations_left < 0:
            raise PowerCut

    def open(self, path: str, *, create: bool = False) -> "OpenFile":
        self.count()
        file = self.tree.create(path) if create and not self.exists(path) else self.tree.file(path)
        return OpenFile(self, file)

    def exists(self, path: str) -> bool:
        try:
            self.tree.find(path)
        except OSError:
            return False
        return True

    def list(self, path: str) -> list[str]:
        return sorted(self.tree.directory(path).entries)

    def make_directory(self, path: str) -> None:
        self.count()
        parts = path.strip("/").split("/")
        for depth in range(len(parts)):
            prefix = "/" + "/".join(parts[: depth + 1])
            if not self.exists(prefix):
                self.tree.make_directory(prefix)

    def rename(self, source: str, target: str) -> None:
        self.count()
        self.tree.rename(source, target)

    def remove(self, path: str) -> None:
        self.count()
        if self.exists(path):
            self.tree.remove(path)

    def begin_sync(self, files: Sequence[File]) -> None:
        return None

    async def drain(self) -> None:
        pass

    def sync_directory(self, path: str) -> None:
        self.count()
        self.tree.directory(path or "/").sync()

    def open_everything(self) -> Everything:
        raise NotImplementedError

    def hear_former_errors(self) -> None:
        raise NotImplementedError

    def sync_everything(self) -> None:
        raise NotImplementedError

    def free_bytes(self, path: str) -> int:
        return 1 << 30

    def total_bytes(self, path: str) -> int:
        return 1 << 30

    def lock(self, path: str) -> None:
        pass

    def close(self) -> None:
        pass


class OpenFile:
    def __init__(self, disk: TreeDisk, file: TreeFile) -> None:
        self._disk = disk
        self._file = file

    def append(self, data: Buffer) -> int:
        self._disk.count()
        self._file.write(bytes(data), len(self._file.content))
        return len(memoryview(data))

    def read(self, position: int, size: int) -> bytes:
        return bytes(self._file.content[position : position + size])

    def read_cached(self, position: int, size: int) -> bytes:
        return self.read(position, size)

    def size(self) -> int:
        return len(self._file.content)

    def truncate(self, size: int) -> None:
        self._disk.count()
        self._file.truncate(size)

    def rewrite(self, position: int, data: Buffer) -> None:
        self._disk.count()
        assert self._file.content[position : position + len(memoryview(data))] == data

    def hear_former_errors(self) -> None:
        """Nothing fails here."""

    def drop_cached(self) -> None:
        """Nothing is cached here that the disk lacks, but what is not synced."""

    def sync(self) -> None:
        self._disk.count()
        self._file.sync()


class InlinePool:
    async def drain(self) -> None:
        """Nothing is under way."""

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(function(*arguments))
        except PowerCut as cut:
            future.set_exception(cut)
        return future


async def state_of(log: LocalMetadataLog) -> tuple[int, int]:
    """How many records there are, and the number that the last one states."""
    image = Image()
    snapshot = await log.snapshot()
    for record in snapshot.facts:
        image.apply(record)
    for record in await log.tail(snapshot.end_offset) or ():
        image.apply(record)
    return log.end_offset, image.end_producer_id


async def live(disk: TreeDisk, steps: list[str], acknowledged: list[tuple[int, int]]) -> None:
    """One life of a process: it finds what was acknowledged last or one append more, and adds what it acknowledges."""
    log = LocalMetadataLog.open(disk, InlinePool(), DIRECTORY)
    state, found = acknowledged[-1], await state_of(log)
    assert found in (state, (state[0] + 2, state[1] + 2)), f"{state} was acknowledged, {found} was found"
    acknowledged.append(found)
    for step in steps:
        end_offset, number = acknowledged[-1]
        if step == "append":
            records = [ProducerIdsAllocated(NodeId(0), ProducerId(number + more)) for more in (1, 2)]
            outcome = await log.append(records, expected_epoch=log.epoch, expected_end_offset=end_offset)
            assert outcome == Committed(end_offset + 2)
            acknowledged.append((end_offset + 2, number + 2))
        elif number:
            fact = ProducerIdsAllocated(NodeId(0), ProducerId(number))
            await log.write_snapshot(Snapshot(log.epoch, end_offset, (fact,)))


lives = st.tuples(
    st.lists(st.sampled_from(["append", "append", "snapshot"]), max_size=6),
    st.integers(0, 40),
    st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(lives, max_size=6), st.integers(0, 2**32))
def test_what_was_acknowledged_survives_and_an_append_is_whole_or_not_there(
    history: list[tuple[list[str], int, bool]], seed: int
) -> None:
    tree, rng = LossyTree(), Random(seed)
    tree.make_directory("/data")
    tree.root.sync()
    acknowledged = [(0, 0)]
    for steps, operations, is_torn in history:
        disk = TreeDisk(tree)
        disk.operations_left = operations
        with suppress(PowerCut):
            asyncio.run(live(disk, steps, acknowledged))
        tree.power_cut(rng if is_torn else None)
    asyncio.run(live(TreeDisk(tree), ["append"], acknowledged))
