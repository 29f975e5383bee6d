"""What the history of a Delta table says: our own newest commit, and whether somebody has restored an earlier version since.

What a reader could get wrong
    The log is cleaned up in time, also by others. What must not be forgotten is therefore not kept in the history alone.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from deltalake import DeltaTable

OWNER: Final = "ropewalk.owner"
_RESTORE: Final = "RESTORE"
_LOOKED_AT_FIRST: Final = 1
_GROWTH: Final = 8

Entry: TypeAlias = dict[str, Any]
"""One commit as deltalake tells it, with whatever its writer has noted."""


class Restored(NamedTuple):
    at_version: int
    """The version that the restore made."""
    to_version: int | None
    """The version whose rows are there by now; None if the restore was told a time, or one of the versions is forgotten."""


def own_newest(table: DeltaTable, owner: str) -> Entry | None:
    return next((each for each in _newest_first(table) if each.get(OWNER) == owner), None)


def restored_since(table: DeltaTable, owner: str) -> Restored | None:
    """The restore that nothing of ours came after, if there is one. The version that it went back to may itself have been restored."""
    made = _restore_before_ours(_newest_first(table), owner)
    if made is None:
        return None
    version: int | None = _told_version(made)
    while version is not None:
        earlier = (each for each in table.history() if each["version"] <= version)
        before = _restore_before_ours(earlier, owner)
        if before is None:
            break
        version = _told_version(before)
    return Restored(made["version"], version)


def _restore_before_ours(newest_first: Iterator[Entry], owner: str) -> Entry | None:
    for each in newest_first:
        if each.get(OWNER) == owner:
            return None
        if each.get("operation") == _RESTORE:
            return each
    return None


def _told_version(restore: Entry) -> int | None:
    told = restore.get("operationParameters", {}).get("version")
    return int(told) if told is not None and str(told).isdecimal() else None


def _newest_first(table: DeltaTable) -> Iterator[Entry]:
    """Few at first: ours is nearly always the newest."""
    count, given = _LOOKED_AT_FIRST, 0
    while True:
        history = table.history(count)
        yield from history[given:]
        if len(history) < count:
            return
        count, given = count * _GROWTH, len(history)
