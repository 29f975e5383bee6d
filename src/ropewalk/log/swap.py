"""Putting one compacted segment in the place of those it was made from, so that a crash at any moment leaves one or the other.

    <base>.log.cleaned          being written, of no value
    <base>-<end>.log.swap       whole and durable: it holds what is left of the offsets from base to end
    <base>.log                  in place

Renaming to `.swap` is the decision. From then on every start finishes what was begun: all that speaks of the
segments it replaces goes, durably, and only then the file takes its name. So no start ever sees it beside a segment
whose offsets it holds too.

What a reader could get wrong
    A snapshot remembers how long the last segment was when it was taken. If that segment was compacted since, the
    length means nothing, so such a snapshot goes as well. So does one that speaks of aborted transactions there: none of
    their records is left, nor, before long, their markers.
    Running it again is harmless: what is done is passed over.
"""

from typing import Final

from ropewalk.base.ports import Disk
from ropewalk.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    offsets_of,
    path_of,
)
from ropewalk.log.snapshot import read_snapshot

CLEANED_SUFFIX: Final = ".log.cleaned"
_SWAP_SUFFIX: Final = ".log.swap"


def commit(disk: Disk, directory: str, *, base_offset: int, end_offset: int) -> list[int]:
    """Put the cleaned file, which is synced, in its place; answers the offsets of the snapshots that are left. Blocks."""
    cleaned = path_of(directory, base_offset, CLEANED_SUFFIX)
    if disk.exists(cleaned):
        disk.rename(cleaned, _swap_path(directory, base_offset, end_offset))
    disk.sync_directory(directory)
    _finish(disk, directory, base_offset, end_offset)
    return offsets_of(disk.list(directory), SNAPSHOT_SUFFIX)


def settle(disk: Disk, directory: str) -> None:
    """Finish or undo whatever a crash interrupted in a directory. Blocks."""
    names = disk.list(directory)
    swaps = sorted(offsets for name in names if (offsets := _swap_offsets(name)) is not None)
    if swaps:
        # The name may have come through the crash by luck alone. It must stay while the rest goes.
        disk.sync_directory(directory)
    for base_offset, end_offset in swaps:
        _finish(disk, directory, base_offset, end_offset)
    for name in names:
        if name.endswith(CLEANED_SUFFIX):
            disk.remove(f"{directory}/{name}")


def _finish(disk: Disk, directory: str, base_offset: int, end_offset: int) -> None:
    names = disk.list(directory)
    for snapshot_offset in offsets_of(names, SNAPSHOT_SUFFIX):
        if snapshot_offset > base_offset and not _is_true_still(
            disk, directory, snapshot_offset, base_offset, end_offset
        ):
            disk.remove(path_of(directory, snapshot_offset, SNAPSHOT_SUFFIX))
    for index_offset in offsets_of(names, INDEX_SUFFIX):
        if base_offset <= index_offset < end_offset:
            disk.remove(path_of(directory, index_offset, INDEX_SUFFIX))
    for replaced_offset in offsets_of(names, LOG_SUFFIX):
        if base_offset < replaced_offset < end_offset:
            disk.remove(path_of(directory, replaced_offset, LOG_SUFFIX))
    disk.sync_directory(directory)
    swap = _swap_path(directory, base_offset, end_offset)
    if disk.exists(swap):
        disk.rename(swap, path_of(directory, base_offset, LOG_SUFFIX))
    disk.sync_directory(directory)


def _is_true_still(
    disk: Disk, directory: str, snapshot_offset: int, base_offset: int, end_offset: int
) -> bool:
    """Whether a snapshot's last segment lies behind those that are replaced, and nothing it says is about them."""
    snapshot = read_snapshot(disk, directory, snapshot_offset)
    return (
        snapshot is not None
        and snapshot.tail.base_offset >= end_offset
        and not snapshot.aborted.mentions(base_offset, end_offset)
    )


def _swap_path(directory: str, base_offset: int, end_offset: int) -> str:
    return f"{directory}/{base_offset:020d}-{end_offset:020d}{_SWAP_SUFFIX}"


def _swap_offsets(name: str) -> tuple[int, int] | None:
    if not name.endswith(_SWAP_SUFFIX):
        return None
    base, _, end = name.removesuffix(_SWAP_SUFFIX).partition("-")
    if len(base) != 20 or len(end) != 20 or not (base.isdigit() and end.isdigit()):
        return None
    return int(base), int(end)
