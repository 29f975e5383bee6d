"""At which level a record may be written, and whether a version can read it.

What a reader could get wrong
    A record of a later level is refused before it is written, on the one way that all records take. It is a guard: whoever decides asks
    for the level itself, and says what it is needed for.
    A change may have ten thousand records of a few kinds, so kinds are looked at before records are.
    Where bytes cannot be decoded nobody knows what they say, so nothing after them may be applied either.
"""

from collections.abc import Sequence
from typing import Final, get_args

import msgspec
from msgspec import Struct

from ropewalk.base.errors import NotInForce, UnreadableMetadata
from ropewalk.base.levels import LEVEL_FIRST, LEVELS, OURS, Software
from ropewalk.metadata.records import LevelChanged, MetadataRecord


class _Kind(Struct, frozen=True):
    level: int
    later: tuple[tuple[str, object, int], ...]
    """Fields that came after the record: name, default, level."""
    newest: int
    """The last level that had anything to do with it."""


def level_of(record: MetadataRecord) -> int:
    """The lowest at which it may be written, as it stands."""
    kind = _KINDS[type(record)]
    level = kind.level
    for name, default, brought_by in kind.later:
        if brought_by > level and getattr(record, name) != default:
            level = brought_by
    return level


def check_written(records: Sequence[MetadataRecord], level: int) -> None:
    """Raises `NotInForce` if one of them is of a later level than what is in force when it takes effect."""
    if not _may_exceed(records, level):
        return
    for record in records:
        needed = level_of(record)
        if needed > max(level, LEVEL_FIRST):
            raise NotInForce(
                f"{_name(type(record))} came with level {needed}, and level {max(level, LEVEL_FIRST)} is in force; "
                "`ropewalk cluster upgrade status` says what holds it back"
            )
        if isinstance(record, LevelChanged):
            level = record.level


def check_read(records: Sequence[MetadataRecord], software: Software) -> None:
    """Raises `UnreadableMetadata` for a level that `software` does not work at, and for what only a later one brought."""
    if not _may_exceed(records, software.level_max):
        return
    for record in records:
        if isinstance(record, LevelChanged) and not software.knows(record.level):
            raise unknown_level(record.level, software)
        needed = level_of(record)
        if needed > software.level_max:
            raise UnreadableMetadata(_unknown_record(_name(type(record)), software))


def unknown_level(level: int, software: Software) -> UnreadableMetadata:
    return UnreadableMetadata(
        f"the cluster is at level {level}, and version {software.version} works at {software.range}; "
        f"start {'a newer' if level > software.level_max else 'an older'} version"
    )


def unreadable(data: bytes, error: ValueError) -> UnreadableMetadata:
    """What to say of records, or of a snapshot, that cannot be decoded though they are as they were written."""
    records = _rough(data)
    for record in records:
        level = record.get("level") if record.get("type") == _name(LevelChanged) else None
        if isinstance(level, int) and not OURS.knows(level):
            return unknown_level(level, OURS)
    unknown = [str(record.get("type")) for record in records if record.get("type") not in _NAMES]
    if not unknown:
        return UnreadableMetadata(f"metadata that version {OURS.version} cannot read: {error}")
    return UnreadableMetadata(_unknown_record(unknown[0], OURS))


def _may_exceed(records: Sequence[MetadataRecord], level: int) -> bool:
    """Whether a kind among them says or needs a level; most never do."""
    kinds: set[type[MetadataRecord]] = set(map(type, records))
    return LevelChanged in kinds or any(_KINDS[kind].newest > max(level, LEVEL_FIRST) for kind in kinds)


def _rough(data: bytes) -> Sequence[dict[str, object]]:
    """The records as plain mappings, as far as they are any."""
    try:
        content = msgspec.msgpack.decode(data)
        records = content["facts"] if isinstance(content, dict) else content
        rough: Sequence[dict[str, object]] = msgspec.convert(records, type=Sequence[dict[str, object]])
    except (ValueError, KeyError):
        return ()
    return rough


def _unknown_record(name: str, software: Software) -> str:
    return (
        f"a record of the kind {name} is unknown to version {software.version}, which works at {software.range}; "
        "start a newer version"
    )


def _name(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _kind(record: type[Struct]) -> _Kind:
    name = _name(record)
    brought = {field: level.number for level in reversed(LEVELS) for field in level.records.get(name, ())}
    level = min(each.number for each in LEVELS if name in each.records)
    later = tuple(
        (field.name, field.default, brought[field.name])
        for field in msgspec.structs.fields(record)
        if brought[field.name] > level
    )
    return _Kind(level, later, max([level, *(each[2] for each in later)]))


_KINDS: Final = {record: _kind(record) for record in get_args(MetadataRecord)}
_NAMES: Final = frozenset(map(_name, _KINDS))
