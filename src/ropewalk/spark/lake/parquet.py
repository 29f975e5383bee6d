"""Plain directories of Parquet files, for readers that know nothing but directories. On file systems of this machine or shared by all.

    <to>/date=2026-11-16/part-….parquet       what readers see
    <to>/_ropewalk/staged/date=…/part-….parquet   what tasks have written and no commit has named yet
    <to>/_ropewalk/log/00000000000000000007.json  one for each commit: owner, columns, next offsets, the files it added

What exactly once rests on
    A commit is the creation of the next file of the log, which fails if there is one: the link of a file that is complete and on disk.
    Its files are then moved from `staged` to where readers look. If the driver dies in between, whoever opens the table next moves
    the rest before it does anything else, so files of the last commit alone can ever be on their way.
    Every file of the log has all offsets, so the last one is all that is needed, and older ones are deleted in time.

What a reader could get wrong
    Directories have no snapshots: the files of a commit appear one after the other. Small files are not made into larger ones,
    because readers would meanwhile see rows twice or not at all. Delta has both.
"""

import base64
import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyarrow.dataset import dataset

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.places import local_directory, sync
from ropewalk.spark.lake.put_back import PutBack
from ropewalk.spark.lake.reach import reach, reach_columns
from ropewalk.spark.lake.table import Commit, LiveFile, TableSpec, Target, Upkeep, WrittenFile
from ropewalk.spark.lake.terms import (
    check_layout,
    check_owner,
    grown_columns,
    refuse_missing,
    refuse_strange_files,
)
from ropewalk.spark.lake.upkeep import LEFTOVER_HOURS_MIN
from ropewalk.spark.lake.writing import NULL_DIRECTORY
from ropewalk.spark.ranges import Json, Offsets, TopicIds, from_json, progress_in
from ropewalk.spark.refusals import Overtaken, WrongUse

OWN: Final = "_ropewalk"
"""Readers of directories pass over names that begin so."""
STAGED: Final = f"{OWN}/staged"
LOG: Final = f"{OWN}/log"


class Version(Struct, frozen=True):
    """One file of the log."""

    number: int
    owner: str
    schema: str
    """As Arrow writes it, in base64."""
    partition_columns: tuple[str, ...]
    next_offsets: Json
    files: tuple[WrittenFile, ...] = ()
    """Those that this commit added."""
    note: dict[str, str] = {}
    figures: dict[str, str] = {}
    """What the batch came to."""


class ParquetDirectory:
    def __init__(self, spec: TableSpec, directory: Path, version: Version) -> None:
        self._spec = spec
        self._directory = directory
        self._version = version
        self._schema = _schema_of(version)

    @classmethod
    def open(cls, spec: TableSpec) -> "ParquetDirectory":
        directory = local_directory(spec.address)
        if directory is None:
            raise WrongUse(
                f"{spec.address}: plain Parquet needs a file system that renames files; use table=delta for object stores"
            )
        version = _last(directory)
        if version is None:
            version = _create(spec, directory)
        check_owner(spec, version.owner)
        check_layout(spec, version.partition_columns)
        opened = cls(spec, directory, version)
        grown_columns(spec, opened.schema, spec.schema)
        opened._publish()
        return opened

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def target(self) -> Target:
        root = str(self._directory / STAGED)
        return Target(root, self._version.partition_columns, keeps_partition_columns=False)

    def next_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        stored = from_json(self._version.next_offsets)
        return {each: stored[each] for each in partitions if each in stored}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        stored = progress_in(self._version.next_offsets).ids
        return {each: stored[each] for each in topics if each in stored}

    def widen(self, schema: pa.Schema) -> None:
        """The next commit says so; until then there is no row that has the column."""
        self._schema = grown_columns(self._spec, self._schema, schema).schema

    def commit(self, commit: Commit) -> None:
        version = Version(
            number=self._version.number + 1,
            owner=self._spec.owner,
            schema=_schema_text(self._schema),
            partition_columns=self._version.partition_columns,
            next_offsets=progress_in(self._version.next_offsets)
            .moved(commit.next_offsets, commit.topic_ids)
            .to_json(),
            files=commit.files,
            note=commit.note,
            figures=commit.figures,
        )
        _append(self._directory, version)
        self._version = version
        self._publish()

    def last_note(self) -> dict[str, str]:
        return self._version.note

    def put_back(self, _partitions: Iterable[TopicPartition]) -> PutBack | None:
        """Directories have no earlier states."""
        return None

    def reach(self, topic_ids: TopicIds) -> Offsets:
        rows = dataset(self._directory, schema=self.schema, partitioning="hive", format="parquet")
        return reach(rows.scanner(columns=reach_columns(self.schema)).to_batches(), topic_ids)

    def files(self) -> list[LiveFile]:
        """None may be joined: readers would meanwhile see rows twice or not at all."""
        names = self._version.partition_columns
        pattern = "/".join([*(f"{name}=*" for name in names), "*.parquet"])
        return [
            LiveFile(
                path=str(path.relative_to(self._directory)),
                size_bytes=path.stat().st_size,
                row_count=0,
                values=tuple(
                    (name, None if text == NULL_DIRECTORY else text)
                    for name, text in zip(names, _texts(path, len(names)), strict=True)
                ),
                may_be_joined=False,
            )
            for path in self._directory.glob(pattern)
        ]

    def exchange(self, removed: Sequence[LiveFile], added: Sequence[WrittenFile]) -> bool:
        """Files of the last commit may still be on their way, so they stay until the next one."""
        assert not added
        last = {each.path for each in self._version.files}
        for path in (self._directory / each.path for each in removed if each.path not in last):
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # other files are in it
                path.parent.rmdir()
        return True

    def tidy(self, upkeep: Upkeep, *, thorough: bool, now_ms: int) -> str:
        before_s = now_ms / 1000 - upkeep.keep_hours * 3600
        forgotten = [
            path
            for path in (self._directory / LOG).glob("*.json")
            if int(path.stem) < self._version.number
            and (
                path.stat().st_mtime < before_s or int(path.stem) < self._version.number - upkeep.keep_states
            )
        ]
        leftovers_s = now_ms / 1000 - max(upkeep.keep_hours, LEFTOVER_HOURS_MIN) * 3600
        staged = (self._directory / STAGED).rglob("*.parquet") if thorough else ()
        failed = [path for path in staged if path.stat().st_mtime < leftovers_s]
        for path in [*forgotten, *failed]:
            path.unlink(missing_ok=True)
        return (
            f"{len(failed)} files that nobody needs and {len(forgotten)} commits that are over were deleted"
        )

    def _publish(self) -> None:
        """May be done again by whoever opens the table next, and by two at once."""
        directories = set()
        for file in self._version.files:
            staged, visible = self._directory / STAGED / file.path, self._directory / file.path
            if visible.exists():
                continue
            visible.parent.mkdir(parents=True, exist_ok=True)
            try:
                staged.rename(visible)
            except FileNotFoundError:
                if not visible.exists():
                    raise
            directories.add(visible.parent)
        for directory in sorted(directories):
            sync(directory)


def _texts(path: Path, count: int) -> list[str]:
    return [part.partition("=")[2] for part in path.parts[-1 - count : -1]]


def _create(spec: TableSpec, directory: Path) -> Version:
    refuse_missing(spec)
    refuse_strange_files(spec, directory)
    version = Version(0, spec.owner, _schema_text(spec.schema), spec.partition_columns, {})
    _append(directory, version)
    return version


def _append(directory: Path, version: Version) -> None:
    log = directory / LOG
    log.mkdir(parents=True, exist_ok=True)
    written = log / f".{uuid4()}"
    written.write_bytes(msgspec.json.format(msgspec.json.encode(version)))
    sync(written)
    mine = log / f"{version.number:020}.json"
    try:
        os.link(written, mine)
    except FileExistsError:
        raise _overtaken(directory, version) from None
    finally:
        written.unlink()
    if max(_numbers(directory)) > version.number:
        # Others have been here and gone on, and upkeep has deleted what was in the way. Files of the last one alone are ever shown.
        mine.unlink(missing_ok=True)
        raise _overtaken(directory, version)
    sync(log)


def _overtaken(directory: Path, version: Version) -> Overtaken:
    return Overtaken(
        f"{directory} has a version {version.number} by now: another archiver writes to it; nothing of this batch was committed."
        f" Let one run of {version.owner!r} go on alone"
    )


def _numbers(directory: Path) -> list[int]:
    return [int(path.stem) for path in (directory / LOG).glob("*.json")]


def _last(directory: Path) -> Version | None:
    numbers = _numbers(directory)
    if not numbers:
        return None
    return msgspec.json.decode((directory / LOG / f"{max(numbers):020}.json").read_bytes(), type=Version)


def _schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _schema_of(version: Version) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(version.schema)))
