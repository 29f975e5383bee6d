"""Core: what keeps a table healthy, and when it is due. Files that are worth joining, states that nobody has to read any more, days that are over.

What a reader could get wrong
    Files are joined like the digits of a counter are carried: the smallest ones together, and a larger one with them only when they are half
    as much as it is. So each row is written anew a few times in all, however many batches a day has, and a directory keeps few files.
    Earlier states are kept by age and by number at once. Half of the number are the newest; of the rest there is one for each stretch of
    time, so that yesterday can still be read although a state is made every second.
    A day is deleted whole or not at all, and counts as over when its last moment is as old as was said.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from ropewalk.spark.lake.table import LiveFile, Upkeep, Values, WrittenFile

JOINED_FILES_MAX: Final = 1_000
"""Files that one task joins: it opens one after the other, some milliseconds each, and a batch may wait for its core."""

TINY_SHARE: Final = 1_024
"""A file below this share of what is aimed at costs more to keep than to write anew, whatever it is joined with."""

INTERVAL_MS: Final = 600_000
"""From one upkeep to the next while batches come, if nothing calls for one sooner."""

THOROUGH_INTERVAL_MS: Final = 3_600_000
"""From one look at everything that lies in the table's directories to the next: object stores charge for it, and leftovers wait a day anyway."""

LEFTOVER_HOURS_MIN: Final = 24
"""A file that no state names may be of a batch under way, of this process or of another. No batch takes a day."""

OVERDUE_MS: Final = 3_600_000
"""States that are too old are taken out together; the first of them waits no longer than this."""


class Join(Struct, frozen=True):
    """Files of one directory that become one."""

    values: Values
    files: tuple[LiveFile, ...]

    @property
    def row_count(self) -> int:
        return sum(each.row_count for each in self.files)


class State(Struct, frozen=True):
    """An earlier state of a table."""

    id: int
    at_ms: int


def joins(files: Iterable[LiveFile], upkeep: Upkeep) -> list[Join]:
    """A file is small below half of what is aimed at: two such make one. Few small ones are left until they are more."""
    if not upkeep.compact_at:
        return []
    directories: dict[Values, list[LiveFile]] = {}
    for each in files:
        if each.may_be_joined and each.size_bytes < upkeep.file_bytes_target // 2:
            directories.setdefault(each.values, []).append(each)
    found: list[Join] = []
    for values, small in sorted(directories.items(), key=lambda item: str(item[0])):
        rest = sorted(small, key=lambda each: (each.size_bytes, each.path))
        while len(rest) > 1 and len(small) >= upkeep.compact_at:
            count, is_full = _alike(rest, upkeep)
            if count >= upkeep.compact_at or (is_full and count > 1):
                found.append(Join(values, tuple(rest[:count])))
            rest = rest[count:]
    return found


def _alike(files: Sequence[LiveFile], upkeep: Upkeep) -> tuple[int, bool]:
    """How many of these, the smallest first, are worth joining with each other, and whether more would be too much for one file."""
    tiny = upkeep.file_bytes_target // TINY_SHARE
    total = 0
    for count, each in enumerate(files):
        if count and (total + each.size_bytes > upkeep.file_bytes_target or count == JOINED_FILES_MAX):
            return count, True
        if count and each.size_bytes > max(2 * total, tiny):
            return count, False
        total += each.size_bytes
    return len(files), False


def over(files: Iterable[LiveFile], day_column: str, upkeep: Upkeep, now_ms: int) -> list[LiveFile]:
    """Those of days whose rows are not kept any longer. Rows without a day are kept."""
    if not upkeep.keep_rows_days:
        return []
    today = date(1970, 1, 1) + timedelta(milliseconds=now_ms)
    first_kept = (today - timedelta(days=upkeep.keep_rows_days)).isoformat()
    found = []
    for each in files:
        day = dict(each.values)[day_column]
        if day is not None and day < first_kept:
            found.append(each)
    return found


def superseded(states: Iterable[State], upkeep: Upkeep, now_ms: int) -> list[State]:
    """Those that go, of all but the newest one: none until it is worth a commit. As long as the stretches of time have too few of them, more of the
    newest stay, so that a table has about as many states at any time: what is written with every commit grows with them."""
    older = sorted(states, key=lambda each: (each.at_ms, each.id), reverse=True)[1:]
    keep_ms = upkeep.keep_hours * 3_600_000
    first_kept_ms = now_ms - keep_ms
    recent = upkeep.keep_states // 2
    stretch_ms = max(1, keep_ms // max(1, upkeep.keep_states - recent))
    seen: set[int] = set()
    gone: list[State] = []
    kept_count = 0
    for place, each in enumerate(older, start=1):
        stretch = each.at_ms // stretch_ms
        is_kept = each.at_ms >= first_kept_ms and (place < recent or stretch not in seen)
        if place >= recent and is_kept:
            seen.add(stretch)
        if is_kept:
            kept_count += 1
        else:
            gone.append(each)
    room = max(0, upkeep.keep_states - kept_count)
    young_count = sum(each.at_ms >= first_kept_ms for each in gone)
    gone = gone[min(room, young_count) :]
    is_overdue = any(each.at_ms < first_kept_ms - min(keep_ms, OVERDUE_MS) for each in gone)
    is_crowded = len(older) >= upkeep.keep_states + upkeep.keep_states // 4
    return gone if is_overdue or is_crowded else []


class Due(Struct, frozen=True):
    thorough: bool
    """Also what no state has ever named."""


class Schedule:
    """When upkeep is due beside a query: at its first batch, when small files have crowded a directory, after so many batches, after a while."""

    __slots__ = ("_batches", "_batches_max", "_begun_at_ms", "_compact_at", "_new_files", "_thorough_at_ms")

    def __init__(self, *, batches_max: int, compact_at: int) -> None:
        self._batches_max = batches_max
        """0 for never."""
        self._compact_at = compact_at
        self._batches = 0
        self._new_files: Counter[Values] = Counter()
        self._begun_at_ms: int | None = None
        self._thorough_at_ms: int | None = None

    def on_batch(self, files: Iterable[WrittenFile], now_ms: int) -> Due | None:
        """What is due by now. Until `on_begun` it stays so."""
        self._batches += 1
        self._new_files.update(tuple(each.partition_values.items()) for each in files)
        if not self._batches_max or not self._is_due(now_ms):
            return None
        since = None if self._thorough_at_ms is None else now_ms - self._thorough_at_ms
        return Due(since is None or since >= THOROUGH_INTERVAL_MS)

    def on_begun(self, due: Due, now_ms: int) -> None:
        self._batches = 0
        self._new_files.clear()
        self._begun_at_ms = now_ms
        if due.thorough:
            self._thorough_at_ms = now_ms

    def _is_due(self, now_ms: int) -> bool:
        crowded = self._compact_at and max(self._new_files.values(), default=0) >= self._compact_at
        return bool(
            self._begun_at_ms is None
            or crowded
            or self._batches >= self._batches_max
            or now_ms - self._begun_at_ms >= INTERVAL_MS
        )
