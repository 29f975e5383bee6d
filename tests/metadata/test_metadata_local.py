"""The local metadata log: nothing acknowledged is lost, nothing damaged is believed."""

import asyncio
from collections.abc import Callable
from errno import EIO, ENOSPC
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import Buffer

from ropewalk.base.errors import CorruptMetadata, StorageFailed
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.base.ports import File
from ropewalk.metadata.local import LocalMetadataLog
from ropewalk.metadata.log import Committed, Holder, Raced, Snapshot
from ropewalk.metadata.records import ClusterCreated, MetadataRecord, ProducerIdsAllocated
from ropewalk.runtime.memory_disk import MemoryDisk, MemoryFile

T = TypeVar("T")
DIRECTORY = "/data/metadata"
LOG = f"{DIRECTORY}/log"


class InlinePool:
    """A pool that does the work at once."""

    async def drain(self) -> None:
        """Nothing is under way."""

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(function(*arguments))
        except OSError as error:
            future.set_exception(error)
        except StorageFailed as error:
            future.set_exception(error)
        return future


class FaultyFile(MemoryFile):
    """Takes only `room` bytes more, and then fails; `sync` fails when `sync_errno` is set."""

    __slots__ = ("room", "sync_errno", "synced_bytes", "writes_short")

    def __init__(self) -> None:
        super().__init__()
        self.room = 1 << 30
        self.writes_short = False
        self.sync_errno: int | None = None
        self.synced_bytes = 0

    def append(self, data: Buffer) -> int:
        view = memoryview(data)
        if len(view) > self.room:
            taken = super().append(view[: self.room])
            if self.writes_short:
                return taken
            raise OSError(ENOSPC, "No space left on device")
        return super().append(view)

    def sync(self) -> None:
        if self.sync_errno is not None:
            raise OSError(self.sync_errno, "Input/output error")
        self.synced_bytes = self.size()


class FaultyDisk(MemoryDisk):
    """A disk on which the metadata log is a `FaultyFile`."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__()
        self.make_directory(DIRECTORY)
        self.log = FaultyFile()
        self.log.append(content)
        self.put(LOG, self.log)

    def content(self) -> bytes:
        file: File = self.open(LOG)
        return file.read(0, file.size())


def fact(number: int) -> MetadataRecord:
    return ProducerIdsAllocated(NodeId(0), ProducerId(number))


def opened(disk: MemoryDisk) -> LocalMetadataLog:
    return LocalMetadataLog.open(disk, InlinePool(), DIRECTORY)


async def append(log: LocalMetadataLog, *records: MetadataRecord) -> None:
    outcome = await log.append(records, expected_epoch=log.epoch, expected_end_offset=log.end_offset)
    assert isinstance(outcome, Committed)


def facts_in(disk: MemoryDisk) -> list[MetadataRecord]:
    async def read() -> list[MetadataRecord]:
        log = opened(disk)
        snapshot = await log.snapshot()
        return [*snapshot.facts, *(await log.tail(snapshot.end_offset) or ())]

    return asyncio.run(read())


async def three_appends(disk: MemoryDisk) -> list[MetadataRecord]:
    log = opened(disk)
    written: list[list[MetadataRecord]] = [[ClusterCreated("c")], [fact(1), fact(2)], [fact(3)]]
    for records in written:
        await append(log, *records)
    return [record for records in written for record in records]


def test_what_was_committed_is_there_after_a_restart() -> None:
    disk = MemoryDisk()
    written = asyncio.run(three_appends(disk))
    assert facts_in(disk) == written


def test_everything_is_synced_before_it_is_called_committed() -> None:
    async def scenario() -> None:
        disk = FaultyDisk()
        log = opened(disk)
        await append(log, fact(1))
        size_of_mark = disk.log.size() - disk.log.synced_bytes
        await append(log, fact(2))
        assert disk.log.size() - disk.log.synced_bytes == size_of_mark

    asyncio.run(scenario())


def test_an_append_that_expects_another_log_is_told_so_and_writes_nothing() -> None:
    async def scenario() -> None:
        disk = FaultyDisk()
        log = opened(disk)
        await append(log, fact(1))
        before = disk.content()
        for epoch, end_offset in [(log.epoch, 0), (log.epoch, 2), (log.epoch - 1, 1)]:
            outcome = await log.append([fact(2)], expected_epoch=epoch, expected_end_offset=end_offset)
            assert outcome == Raced(log.epoch, 1)
        assert disk.content() == before

    asyncio.run(scenario())


def test_every_start_begins_a_larger_epoch() -> None:
    disk = MemoryDisk()
    assert [opened(disk).epoch for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("writes_short", [False, True], ids=["failed", "short"])
@given(room=st.integers(0, 40))
def test_a_failed_or_short_write_is_cut_back_and_the_log_goes_on(writes_short: bool, room: int) -> None:
    async def scenario() -> None:
        disk = FaultyDisk()
        log = opened(disk)
        await append(log, fact(1))
        before = disk.content()
        disk.log.room, disk.log.writes_short = room, writes_short
        with pytest.raises(StorageFailed):
            await append(log, fact(2))
        assert disk.content() == before
        disk.log.room = 1 << 30
        await append(log, fact(3))
        assert facts_in_content(disk.content()) == [fact(1), fact(3)]

    def facts_in_content(content: bytes) -> list[MetadataRecord]:
        return [*opened(FaultyDisk(content))._records]

    asyncio.run(scenario())


def test_a_failed_sync_is_no_operating_error_and_nothing_is_committed_after_it() -> None:
    async def scenario() -> None:
        disk = FaultyDisk()
        log = opened(disk)
        disk.log.sync_errno = EIO
        with pytest.raises(OSError, match="Input/output"):
            await append(log, fact(1))
        disk.log.sync_errno = None
        outcome = await log.append([fact(1)], expected_epoch=log.epoch, expected_end_offset=0)
        assert not isinstance(outcome, Committed)

    asyncio.run(scenario())


@given(st.data())
def test_a_torn_last_append_is_cut_and_everything_before_it_kept(data: st.DataObject) -> None:
    disk = FaultyDisk()
    written = asyncio.run(three_appends(disk))
    acknowledged = disk.content()

    async def one_more() -> None:
        await append(opened(disk), fact(4))

    asyncio.run(one_more())
    longer = disk.content()
    cut = data.draw(st.integers(len(acknowledged), len(longer)))
    garbage = data.draw(st.binary(max_size=50))
    kept = facts_in(FaultyDisk(longer[:cut] + garbage))
    assert kept[: len(written)] == written
    assert kept[len(written) :] in ([], [fact(4)])


@settings(max_examples=200)
@given(st.data())
def test_damage_to_any_byte_is_refused_or_harmless(data: st.DataObject) -> None:
    disk = FaultyDisk()
    written = asyncio.run(three_appends(disk))
    content = bytearray(disk.content())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    try:
        outcome: object = facts_in(FaultyDisk(bytes(content)))
    except CorruptMetadata as error:
        outcome = str(error)
    assert outcome == written or (isinstance(outcome, str) and f"{LOG} is damaged between bytes" in outcome)


def test_damage_in_the_last_acknowledged_append_is_not_taken_for_a_torn_one() -> None:
    disk = FaultyDisk()
    asyncio.run(three_appends(disk))
    content = bytearray(disk.content())
    content[-40] ^= 1  # The last 28 bytes are the commit mark.
    with pytest.raises(CorruptMetadata, match="records 3 to 3 are missing"):
        facts_in(FaultyDisk(bytes(content)))


def test_a_lost_commit_mark_in_the_middle_is_stepped_over() -> None:
    disk = FaultyDisk()

    async def scenario() -> bytes:
        log = opened(disk)
        await append(log, fact(1))
        before_next = disk.log.size()
        await append(log, fact(2))
        content = bytearray(disk.content())
        content[before_next - 28 : before_next] = bytes(28)
        return bytes(content)

    assert facts_in(FaultyDisk(asyncio.run(scenario()))) == [fact(1), fact(2)]


def test_a_snapshot_takes_the_place_of_the_log() -> None:
    async def scenario() -> MemoryDisk:
        disk = MemoryDisk()
        log = opened(disk)
        await append(log, fact(1), fact(2), fact(3))
        size_bytes = disk.open(LOG).size()
        await log.write_snapshot(Snapshot(log.epoch, 3, (fact(3),)))
        assert disk.open(LOG).size() < size_bytes
        await append(log, fact(4))
        assert await log.tail(3) == (fact(4),)
        assert await opened(disk).tail(2) is None
        return disk

    assert facts_in(asyncio.run(scenario())) == [fact(3), fact(4)]


def test_whoever_is_amid_the_records_when_a_snapshot_is_written_goes_on_with_them() -> None:
    async def scenario() -> None:
        log = opened(MemoryDisk())
        await append(log, fact(1), fact(2))
        await log.write_snapshot(Snapshot(log.epoch, 2, (fact(2),)))
        await append(log, fact(3))
        assert await log.tail(1) == (fact(2), fact(3))
        await log.write_snapshot(Snapshot(log.epoch, 3, (fact(3),)))
        assert await log.tail(1) is None
        assert await log.tail(2) == (fact(3),)
        await append(log, fact(4))
        assert await log.tail(3) == (fact(4),)

    asyncio.run(scenario())


def test_a_crash_between_snapshot_and_trimming_loses_and_repeats_nothing() -> None:
    async def scenario() -> MemoryDisk:
        disk = MemoryDisk()
        log = opened(disk)
        await append(log, fact(1), fact(2))
        untrimmed = disk.open(LOG)
        await log.write_snapshot(Snapshot(log.epoch, 2, (fact(2),)))
        disk.put(LOG, untrimmed)
        await append(opened(disk), fact(3))
        return disk

    assert facts_in(asyncio.run(scenario())) == [fact(2), fact(3)]


def test_a_full_disk_puts_a_snapshot_off() -> None:
    class FullDisk(MemoryDisk):
        def rename(self, source: str, target: str) -> None:
            raise OSError(ENOSPC, "No space left on device")

    async def scenario() -> None:
        disk = FullDisk()
        log = opened(disk)
        await append(log, fact(1))
        with pytest.raises(StorageFailed, match="no room for a snapshot"):
            await log.write_snapshot(Snapshot(log.epoch, 1, (fact(1),)))
        await append(log, fact(2))
        assert await log.tail(0) == (fact(1), fact(2))

    asyncio.run(scenario())


@pytest.mark.parametrize("position", [0, 9, 20])
def test_a_damaged_snapshot_refuses_to_start(position: int) -> None:
    disk = MemoryDisk()

    async def scenario() -> None:
        log = opened(disk)
        await append(log, fact(1))
        await log.write_snapshot(Snapshot(log.epoch, 1, (fact(1),)))

    asyncio.run(scenario())
    content = bytearray(disk.open(f"{DIRECTORY}/snapshot").read(0, 1000))
    content[position] ^= 1
    disk.remove(f"{DIRECTORY}/snapshot")
    disk.open(f"{DIRECTORY}/snapshot", create=True).append(content)
    with pytest.raises(CorruptMetadata, match="metadata/snapshot"):
        opened(disk)


def test_a_log_without_its_snapshot_refuses_to_start() -> None:
    disk = MemoryDisk()

    async def scenario() -> None:
        log = opened(disk)
        await append(log, fact(1))
        await log.write_snapshot(Snapshot(log.epoch, 1, (fact(1),)))

    asyncio.run(scenario())
    disk.remove(f"{DIRECTORY}/snapshot")
    with pytest.raises(CorruptMetadata, match="records 0 to 0 are missing"):
        opened(disk)


def test_each_take_over_begins_a_larger_epoch_and_the_former_holder_is_raced() -> None:
    async def scenario() -> None:
        log = opened(MemoryDisk())
        first = await log.take_over(NodeId(0), expected_epoch=0)
        assert first is not None
        assert await log.take_over(NodeId(0), expected_epoch=0) is None
        second = await log.take_over(NodeId(0), expected_epoch=first)
        assert second is not None
        assert second > first
        assert log.holder == Holder(NodeId(0), second)
        assert await log.append([fact(1)], expected_epoch=first, expected_end_offset=0) == Raced(second, 0)

    asyncio.run(scenario())
