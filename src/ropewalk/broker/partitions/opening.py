"""Partitions that are to be opened: many at a time, so that thousands need few trips to the disk.

What a reader could get wrong
    A log that finds no room is answered as that error, beside the others of its burst, which are opened. So is a partition that is
    not there and cannot be made: those that are there are read, however full the disk is. Whatever else goes wrong is raised: the
    disk cannot be trusted.
"""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, TopicId, TopicPartition
from ropewalk.base.limits import PARTITIONS_OPENED_TOGETHER, TROUBLES_NAMED_MAX
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.checkpoint_saving import NO_ROOM
from ropewalk.log.directory import DataDirectory, Held
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings

_log = structlog.get_logger()


class Opening(Struct, frozen=True):
    """A partition that is to be opened, and made first if it is not there."""

    directory: DataDirectory
    name: TopicPartition
    topic_id: TopicId
    leader_epoch: LeaderEpoch
    settings: LogSettings

    @property
    def held(self) -> Held:
        return Held(self.name, self.topic_id)


async def open_logs(openings: Sequence[Opening], pool: Pool, *, now_ms: int) -> list[Log | OSError]:
    """A log for each, in their order, or the error that says that there is no room for it."""
    bursts = [
        openings[start : start + PARTITIONS_OPENED_TOGETHER]
        for start in range(0, len(openings), PARTITIONS_OPENED_TOGETHER)
    ]
    opened = await asyncio.gather(*(pool.run(_open_burst, burst, now_ms) for burst in bursts))
    return [outcome for outcomes in opened for outcome in outcomes]


def _open_burst(burst: Sequence[Opening], now_ms: int) -> list[Log | OSError]:
    """Runs in the disk pool."""
    refusals: dict[int, OSError] = {}
    for directory in {id(opening.directory): opening.directory for opening in burst}.values():
        try:
            set_aside = directory.create_partitions(
                [each.held for each in burst if each.directory is directory]
            )
        except OSError as error:
            refusals[id(directory)] = _no_room(error)
            continue
        for path in set_aside:
            _log.error(
                "a partition of a topic that the metadata has never heard of was set aside: another has its name",
                directory=path,
            )
    return [_open(opening, now_ms, refusals.get(id(opening.directory))) for opening in burst]


def _open(opening: Opening, now_ms: int, refusal: OSError | None) -> Log | OSError:
    """`refusal`: why what is not there could not be made."""
    if refusal is not None and not opening.directory.holds(opening.held):
        return refusal
    try:
        return opening.directory.open_log(
            opening.name,
            opening.topic_id,
            opening.settings,
            now_ms=now_ms,
            leader_epoch_max=opening.leader_epoch,
        )
    except OSError as error:
        return _no_room(error)


def _no_room(error: OSError) -> OSError:
    if error.errno not in NO_ROOM:
        raise error
    return error


class Recoveries:
    """What recovery found in many logs, told in one line with counts; a range that is damaged has a line of its own."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._opened_count = 0
        self._recovered_count = 0
        self._scanned_bytes = 0
        self._cut_bytes = 0
        self._cut: list[str] = []
        self._cut_unsynced_bytes = 0
        self._cut_unsynced: list[str] = []

    def add(self, name: TopicPartition, log: Log, *, was_unsynced: bool) -> None:
        """`was_unsynced`: a former process had acknowledged records from the page cache, or nobody knows."""
        found = log.recovered
        self._opened_count += 1
        self._recovered_count += not found.is_clean and found.scanned_bytes > 0
        self._scanned_bytes += found.scanned_bytes
        if found.cut_bytes:
            if was_unsynced:
                self._cut_unsynced_bytes += found.cut_bytes
                self._cut_unsynced.append(str(name))
            else:
                self._cut_bytes += found.cut_bytes
                self._cut.append(str(name))
            _log.debug(
                "the end of a log was cut",
                partition=str(name),
                end_offset=found.end_offset,
                cut_bytes=found.cut_bytes,
                reason=found.cut_reason,
            )
        for damaged in found.damaged:
            _log.error(
                "partition is damaged: reads of this range are refused",
                partition=str(name),
                start_offset=damaged.start_offset,
                end_offset=damaged.end_offset,
            )

    def tell(self) -> None:
        """Nothing where every log was closed in order. Call when all of them are open."""
        if self._cut_unsynced:
            _log.warning(
                "ends of logs were cut that may have been acknowledged from the page cache",
                cut=len(self._cut_unsynced),
                cut_bytes=self._cut_unsynced_bytes,
                cut_in=self._cut_unsynced[:TROUBLES_NAMED_MAX],
            )
        if self._recovered_count or self._cut:
            _log.info(
                "logs that were not closed in order are recovered; what was cut had been acknowledged to nobody",
                opened=self._opened_count,
                recovered=self._recovered_count,
                scanned_bytes=self._scanned_bytes,
                cut=len(self._cut),
                cut_bytes=self._cut_bytes,
                cut_in=self._cut[:TROUBLES_NAMED_MAX],
            )
        self._clear()
