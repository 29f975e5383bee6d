"""Tables in Delta's format, by the `deltalake` wheel: no JVM, and no row passes through the driver.

What exactly once rests on
    Every commit carries, for each partition that it moves, the application transaction `ropewalk/<job>/<topic>/<partition>` whose
    version is the next offset. Delta keeps the last version of each for good, through checkpoints of its log, compaction and vacuum.
    Which topic a name meant is kept in the same way: its id in two halves, and how many topics of that name there were before it. Each but the
    first has transactions of its own, `ropewalk/<job>/<topic>+<count>/<partition>`, so that no offset of another is ever taken for its own.
    A commit that finds the same application transaction moved by another since the table was opened is refused by Delta itself,
    and so is one that finds rows deleted, or columns or properties changed. The table is then looked at again: whoever has not moved
    our offsets was no rival, and the commit is made again on what is there by now.
"""

import json
import re
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ropewalk.base.ids import TopicPartition, format_id, parse_id
from ropewalk.spark.columns import Column
from ropewalk.spark.lake.delta_forgotten import forgotten_files
from ropewalk.spark.lake.delta_history import OWNER, own_newest, restored_since
from ropewalk.spark.lake.places import Place, local_directory, sync
from ropewalk.spark.lake.put_back import PutBack
from ropewalk.spark.lake.reach import reach, reach_columns
from ropewalk.spark.lake.table import FIGURE, Commit, LiveFile, TableSpec, Target, Upkeep, WrittenFile
from ropewalk.spark.lake.terms import (
    check_layout,
    check_owner,
    grown_columns,
    refuse_missing,
    refuse_strange_files,
)
from ropewalk.spark.lake.upkeep import LEFTOVER_HOURS_MIN
from ropewalk.spark.ranges import Offsets, TopicIds
from ropewalk.spark.refusals import Overtaken, WrongUse
from ropewalk.spark.storage import is_object_store
from ropewalk.spark.store_words import said_by_store

ATTEMPT: Final = "ropewalk.attempt"
"""Beside the note of a commit: a name that no other commit has."""
LOG: Final = "_delta_log"
STATISTICS: Final = "delta.dataSkippingStatsColumns"
"""Which columns have bounds in the log. It must be said: delta-rs takes a bound that is missing for one that no value is within, and
leaves out the file."""
_NOTE: Final = "ropewalk.note."
"""Before each name of a note, beside what Delta itself writes of a commit."""
_ID_HALVES: Final = ("id-high", "id-low")
_FORMER_COUNT: Final = "former-count"
"""In place of a partition's number: what is kept of the topic itself. A version is a number of 64 bits."""
COMMITS_MAX: Final = 8
"""Attempts at one commit while others change the table. Each takes as long as theirs, so whoever overtakes it that often never stops."""
UPKEEP: Final = "ropewalk.upkeep"
"""In commits that are not a batch's: what they did."""
_OF_A_VERSION: Final = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\.)")
DEBT: Final = "dead_letters"
"""The part of a note that must outlive the history."""
_OWED: Final = ("owed", "note")
"""As a topic and a partition, under which the number of the file is kept; no topic's partition is called so."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class DeltaLake:
    def __init__(self, spec: TableSpec, table: DeltaTable) -> None:
        self._spec = spec
        self._table = table

    @classmethod
    def open(cls, spec: TableSpec) -> "DeltaLake":
        directory = local_directory(spec.address)
        if directory is None or not (directory / LOG).exists():
            refuse_strange_files(spec, directory)
        try:
            table = DeltaTable(spec.address, storage_options=_storage_options(spec))
        except TableNotFoundError:
            table = _create(spec)
        metadata = table.metadata()
        check_owner(spec, metadata.configuration.get(OWNER))
        check_layout(spec, tuple(metadata.partition_columns))
        opened = cls(spec, table)
        grown_columns(spec, opened.schema, _as_delta(spec.schema))
        return opened

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self._table.schema().to_arrow())

    @property
    def target(self) -> Target:
        columns = tuple(self._table.metadata().partition_columns)
        return Target(self._spec.address, columns, keeps_partition_columns=False, storage=self._spec.storage)

    def next_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        stored = {each: self._table.transaction_version(self._app_id(each)) for each in partitions}
        return {each: version for each, version in stored.items() if version is not None}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        stored = {each: self._topic_id(each) for each in topics}
        return {name: format_id(id_) for name, id_ in stored.items() if id_ is not None}

    def widen(self, schema: pa.Schema) -> None:
        for _ in range(COMMITS_MAX):
            existing = self.schema
            grown = grown_columns(self._spec, existing, _as_delta(schema))
            if not grown.added:
                return
            changed = [field for field in grown.schema if field not in list(existing)]
            try:
                self._table.alter.add_columns([Field.from_arrow(each) for each in changed])
                return
            except CommitFailedError as error:
                self._table, failed = DeltaLake.open(self._spec)._table, error
        raise Overtaken(
            f"{self._spec.address} has changed {COMMITS_MAX} times while columns were added: {failed}. Let one run of"
            f" {self._spec.owner!r} go on alone"
        )

    def commit(self, commit: Commit) -> None:
        written, seen, name = self.schema, self._standing(commit), str(uuid4())
        for attempt in range(1, COMMITS_MAX + 1):
            version = self._table.version()
            try:
                self._append(commit, name)
                break
            except CommitFailedError as error:
                again = DeltaLake.open(self._spec)
                if again._has(name, version):
                    break
                is_rival = again._standing(commit) != seen or again.put_back(commit.next_offsets) is not None
                if is_rival or attempt == COMMITS_MAX or not _takes(again.schema, written):
                    raise Overtaken(
                        f"{self._spec.address} has changed since version {version}: {error}. Another archiver writes the same"
                        " partitions, or somebody has altered the table; nothing of this batch was committed. Let one run of"
                        f" {self._spec.owner!r} go on alone"
                    ) from None
                self._table = again._table
        self._sync_log(version)

    def _standing(self, commit: Commit) -> tuple[Offsets, TopicIds]:
        """What the batch was filtered by."""
        return self.next_offsets(commit.next_offsets), self.topic_ids(commit.topic_ids)

    def _offsets_at(self, version: int, partitions: list[TopicPartition]) -> Offsets | None:
        try:
            earlier = DeltaTable(
                self._spec.address, version=version, storage_options=_storage_options(self._spec)
            )
        except DeltaError:
            return None  # its log was cleaned up
        return DeltaLake(self._spec, earlier).next_offsets(partitions)

    def _append(self, commit: Commit, name: str) -> None:
        ids, formers = self._renamed(commit)
        moves = [
            Transaction(self._app_id(each, formers.get(each.topic)), offset)
            for each, offset in sorted(commit.next_offsets.items())
        ]
        moves += self._owing(commit)
        self._table.create_write_transaction(
            [_add_action(each, self._bounded()) for each in commit.files],
            "append",
            self._table.schema(),
            list(self.target.partition_columns),
            commit_properties=CommitProperties(
                custom_metadata={**self._noted(commit), ATTEMPT: name}, app_transactions=[*moves, *ids]
            ),
        )

    def _owing(self, commit: Commit) -> list[Transaction]:
        """What a commit owes to another table is in its note, and the history may be cleaned up before it is paid. So it is in a file as well, which
        an application transaction names: those are kept for good."""
        text = commit.note.get(DEBT)
        number = 0 if text is None else _number(text)
        if text is not None:
            place = Place(self._spec.address, self._spec.storage)
            with place.create(_debt_path(number)) as file:
                file.write(text.encode())
            place.seal(_debt_path(number))
        before = self._table.transaction_version(self._about(*_OWED)) or 0
        return [] if number == before else [Transaction(self._about(*_OWED), number)]

    def _owed(self) -> dict[str, str]:
        number = self._table.transaction_version(self._about(*_OWED)) or 0
        return (
            {DEBT: Place(self._spec.address, self._spec.storage).read(_debt_path(number)).decode()}
            if number
            else {}
        )

    def _sync_log(self, version: int) -> None:
        """What was committed since that version."""
        directory = local_directory(self._spec.address)
        if directory is not None:
            log = directory / LOG
            for entry in log.glob("*.json"):
                if entry.stem.isdecimal() and int(entry.stem) > version:
                    sync(entry)
            sync(log)

    def _has(self, name: str, since: int) -> bool:
        """Whether it is our own commit that is in the way: an object store was asked again, because its first answer was lost."""
        commits = self._table.history(self._table.version() - since or 1)
        return any(each.get(ATTEMPT) == name for each in commits)

    def last_note(self) -> dict[str, str]:
        entry = own_newest(self._table, self._spec.owner)
        if entry is None:
            return self._owed()
        return {name.removeprefix(_NOTE): text for name, text in entry.items() if name.startswith(_NOTE)}

    def put_back(self, partitions: Iterable[TopicPartition]) -> PutBack | None:
        asked = list(partitions)
        restored = restored_since(self._table, self._spec.owner)
        if restored is None:
            return None
        offsets = None if restored.to_version is None else self._offsets_at(restored.to_version, asked)
        if offsets == self.next_offsets(asked):
            return None
        how = f"RESTORE as version {restored.at_version}"
        if restored.to_version is not None:
            how += f", to version {restored.to_version}"
        return PutBack(self._spec.address, self._spec.owner, how, offsets)

    def reach(self, topic_ids: TopicIds) -> Offsets:
        columns = reach_columns(self.schema)
        return reach(self._table.to_pyarrow_dataset().scanner(columns=columns).to_batches(), topic_ids)

    def files(self) -> list[LiveFile]:
        actions = pa.table(self._table.get_add_actions(flatten=True))
        names = self.target.partition_columns
        values = [actions.column(f"partition.{name}").cast(pa.string()).to_pylist() for name in names]
        paths, sizes, counts = (
            actions.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")
        )
        plain = self._is_plain()
        return [
            LiveFile(
                path=path,
                size_bytes=size,
                row_count=count or 0,
                values=tuple(zip(names, each, strict=True)),
                may_be_joined=plain and count is not None,
            )
            for path, size, count, *each in zip(paths, sizes, counts, *values, strict=True)
        ]

    def exchange(self, removed: Sequence[LiveFile], added: Sequence[WrittenFile]) -> bool:
        gone = {each.path for each in removed}
        for _ in range(COMMITS_MAX):
            self._table.update_incremental()
            if not gone <= {each.path for each in self.files()}:
                return False
            version = self._table.version()
            try:
                self._exchange(removed, added)
            except CommitFailedError:
                continue
            self._sync_log(version)
            return True
        return False

    def _exchange(self, removed: Sequence[LiveFile], added: Sequence[WrittenFile]) -> None:
        changes_rows, now_ms = not added, int(time.time() * 1000)
        adds = [_add_action(each, self._bounded(), data_change=changes_rows) for each in added]
        removes = [
            RemoveAction(each.path, changes_rows, now_ms, each.size_bytes, dict(each.values))
            for each in removed
        ]
        what = "rows that are over" if changes_rows else "small files joined"
        # No retries by delta-rs: it would make the commit again on another state, and does not look whether the files are still there.
        self._table.create_write_transaction(
            [*adds, *removes],
            "append",
            self._table.schema(),
            list(self.target.partition_columns),
            commit_properties=CommitProperties(custom_metadata={UPKEEP: what}, max_commit_retries=0),
        )

    def tidy(self, upkeep: Upkeep, *, thorough: bool, now_ms: int) -> str:
        """Files of the table itself are as old as delta-rs says, which looks at the clock by itself."""
        self._table.update_incremental()
        try:
            self._keep_history_for(upkeep.keep_hours)
            deleted = self._vacuum(upkeep.keep_hours, full=False)
            if thorough:
                deleted += self._vacuum(max(upkeep.keep_hours, LEFTOVER_HOURS_MIN), full=True)
                deleted += self._delete_notes(now_ms / 1000 - LEFTOVER_HOURS_MIN * 3600)
        except CommitFailedError as error:
            return f"the rest is left for the next time, because another has changed the table: {error}"
        forgotten, unneeded = self._shorten_log(upkeep.keep_states)
        deleted += unneeded
        return f"{deleted} files that nobody needs deleted, {forgotten} earlier versions forgotten"

    def _is_plain(self) -> bool:
        """Whether a file has all the rows and the names that it seems to have."""
        configuration = self._table.metadata().configuration
        mapped = configuration.get("delta.columnMapping.mode", "none") != "none"
        features = self._table.protocol().reader_features or []
        return not mapped and "deletionVectors" not in features

    def _shorten_log(self, keep_states: int) -> tuple[int, int]:
        """By age as the table's properties say, and by number: versions are read from a checkpoint on, so those before the last checkpoint
        that is old enough go, and the files that only they have. Answers how many of both."""
        place = Place(f"{self._spec.address.rstrip('/')}/{LOG}", self._spec.storage)
        version = self._table.version()
        checkpoints = _checkpoints(place)
        if version - max(checkpoints, default=0) >= keep_states // 4:
            self._table.create_checkpoint()
            self._table.cleanup_metadata()
            checkpoints.add(version)
        first_kept = max((each for each in checkpoints if each <= version - keep_states), default=0)
        gone = [name for name, number in _numbered(place) if number < first_kept]
        # Files first: as long as the commits are there that removed them, it can be found out which they are.
        files = self._forget_files(place, first_kept) if gone else 0
        for name in gone:
            place.delete(name)
        return sum(name.endswith(".json") for name in gone), files

    def _forget_files(self, log: Place, first_kept: int) -> int:
        commits = sorted((number, name) for name, number in _numbered(log) if name.endswith(".json"))
        earliest = DeltaTable(
            self._spec.address, version=first_kept, storage_options=_storage_options(self._spec)
        )
        unneeded = forgotten_files(
            log,
            [name for number, name in commits if number < first_kept],
            [name for number, name in commits if number >= first_kept],
            [each.path for each in DeltaLake(self._spec, earliest).files()],
        )
        table = Place(self._spec.address, self._spec.storage)
        for path in unneeded:
            table.delete(path)
        return len(unneeded)

    def _bounded(self) -> list[str]:
        told = self._table.metadata().configuration.get(STATISTICS, "")
        return [name for name in told.split(",") if name]

    def _keep_history_for(self, hours: int) -> None:
        wanted = _history(hours) | _statistics(self.schema)
        if not wanted.items() <= self._table.metadata().configuration.items():
            self._table.alter.set_table_properties(wanted)

    def _vacuum(self, keep_hours: int, *, full: bool) -> int:
        """A vacuum is two commits even if it finds nothing, so it is asked first."""
        found = self._table.vacuum(keep_hours, dry_run=True, enforce_retention_duration=False, full=full)
        if found:
            self._table.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False, full=full)
        return len(found)

    def _delete_notes(self, before_s: float) -> int:
        """Those of debts that are paid: a vacuum passes over directories whose names begin with an underscore."""
        owed = self._table.transaction_version(self._about(*_OWED)) or 0
        directory, _, kept = _debt_path(owed).rpartition("/")
        notes = Place(f"{self._spec.address.rstrip('/')}/{directory}", self._spec.storage)
        gone = [name for name, at_s in notes.files() if at_s < before_s and name != kept]
        for name in gone:
            notes.delete(name)
        return len(gone)

    def _noted(self, commit: Commit) -> dict[str, str]:
        figures = {FIGURE + name: text for name, text in commit.figures.items()}
        note = {_NOTE + name: text for name, text in commit.note.items()}
        return {OWNER: self._spec.owner, **note, **figures}

    def _app_id(self, partition: TopicPartition, former_count: int | None = None) -> str:
        """`former_count`: how many topics of that name the table had before; as the table says, unless told."""
        if former_count is None:
            former_count = self._former_count(partition.topic)
        topic = f"{partition.topic}+{former_count}" if former_count else partition.topic
        return f"ropewalk/{self._spec.owner}/{topic}/{partition.partition}"

    def _about(self, topic: str, what: str) -> str:
        return f"ropewalk/{self._spec.owner}/{topic}/{what}"

    def _former_count(self, topic: str) -> int:
        return self._table.transaction_version(self._about(topic, _FORMER_COUNT)) or 0

    def _topic_id(self, topic: str) -> bytes | None:
        halves = [self._table.transaction_version(self._about(topic, each)) for each in _ID_HALVES]
        if None in halves:
            return None
        return b"".join(half.to_bytes(8, "big", signed=True) for half in halves if half is not None)

    def _renamed(self, commit: Commit) -> tuple[list[Transaction], dict[str, int]]:
        """What the commit says of topics that the table knows no id of, or another, and for those the count of their formers."""
        said: list[Transaction] = []
        formers: dict[str, int] = {}
        for topic, text in sorted(commit.topic_ids.items()):
            known, id_ = self._topic_id(topic), parse_id(text)
            if known == id_:
                continue
            if known is not None:
                formers[topic] = self._former_count(topic) + 1
                said.append(Transaction(self._about(topic, _FORMER_COUNT), formers[topic]))
            halves = zip(_ID_HALVES, (id_[:8], id_[8:]), strict=True)
            said += [
                Transaction(self._about(topic, name), int.from_bytes(half, "big", signed=True))
                for name, half in halves
            ]
        return said, formers


def _number(text: str) -> int:
    """The same for every attempt at one commit; never 0, which says that nothing is owed."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 2 or 1


def _debt_path(number: int) -> str:
    return f"_ropewalk/owed/{number}.json"


def _create(spec: TableSpec) -> DeltaTable:
    refuse_missing(spec)
    try:
        return DeltaTable.create(
            spec.address,
            schema=Schema.from_arrow(spec.schema),
            partition_by=list(spec.partition_columns),
            mode="error",
            name=spec.owner,
            description="Records of topics, archived by Ropewalk",
            configuration={OWNER: spec.owner, **_history(spec.keep_hours), **_statistics(spec.schema)},
            storage_options=_storage_options(spec),
            raise_if_key_not_exists=False,
        )
    except CommitFailedError as error:
        raise Overtaken(f"{spec.address} was made by another at the same time: {error}") from None
    except (DeltaError, OSError) as error:
        said = said_by_store(str(error)) or " ".join(str(error).split())
        raise WrongUse(f"no table can be made in {spec.address}: {said}") from None


def _storage_options(spec: TableSpec) -> dict[str, str] | None:
    return spec.storage.for_delta() if is_object_store(spec.address) else None


def _history(hours: int) -> dict[str, str]:
    """The properties that say how long earlier states can be read."""
    kept = f"interval {hours} hours"
    return {"delta.logRetentionDuration": kept, "delta.deletedFileRetentionDuration": kept}


def _statistics(schema: pa.Schema) -> dict[str, str]:
    """Those of `WrittenFile`, if the columns are a topic's and not some of a query's that are called so."""
    names = [
        each.value
        for each in (Column.OFFSET, Column.TIMESTAMP)
        if each.value in schema.names and schema.field(each.value).type == each.arrow_type
    ]
    return {STATISTICS: ",".join(names)} if names else {}


def _takes(table: pa.Schema, written: pa.Schema) -> bool:
    """Whether files with these columns still fit: each is there, and what has come since may be missing."""
    return all(
        field.nullable if index < 0 else field.type == written.field(index).type
        for field in table
        for index in (written.get_field_index(field.name),)
    ) and set(written.names) <= set(table.names)


def _as_delta(schema: pa.Schema) -> pa.Schema:
    """In the types that Delta has for them."""
    return pa.schema(Schema.from_arrow(schema).to_arrow())


def _checkpoints(place: Place) -> set[int]:
    return {number for name, number in _numbered(place) if ".checkpoint." in name}


def _numbered(place: Place) -> list[tuple[str, int]]:
    """Files of the log that belong to a version, with its number."""
    matches = ((name, _OF_A_VERSION.match(name)) for name, _ in place.files())
    return [(name, int(match[1])) for name, match in matches if match is not None]


def _add_action(file: WrittenFile, bounded: list[str], *, data_change: bool = True) -> AddAction:
    least: dict[str, object] = {}
    most: dict[str, object] = {}
    if file.offset_min is not None and file.offset_max is not None:
        least[Column.OFFSET.value], most[Column.OFFSET.value] = file.offset_min, file.offset_max
    if file.timestamp_min_ms is not None and file.timestamp_max_ms is not None:
        least[Column.TIMESTAMP.value] = _instant(file.timestamp_min_ms)
        most[Column.TIMESTAMP.value] = _instant(file.timestamp_max_ms)
    statistics: dict[str, object] = {"numRecords": file.row_count}
    if bounded and sorted(bounded) == sorted(least):  # all or none, as `STATISTICS` says
        statistics |= {"minValues": least, "maxValues": most, "nullCount": dict.fromkeys(least, 0)}
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values=file.partition_values,
        modification_time=file.modified_at_ms,
        data_change=data_change,
        stats=json.dumps(statistics),
    )


def _instant(milliseconds: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
