"""Tables in Iceberg's format, by pyiceberg: no JVM, and no row passes through the driver. Needs the extra `iceberg`.

    <to>/data/date=2026-11-16/part-….parquet      written by tasks
    <to>/metadata/                                Iceberg's own
    <to>/_ropewalk/catalog.db                     the catalog, unless the user has one; in an object store: `object_catalog.py`

What exactly once rests on
    The next offsets are a property of the table. A commit sets it and adds its files in one transaction of the catalog, which
    requires the snapshot that the files were meant for. Properties stay when snapshots expire.

What a reader could get wrong
    pyiceberg would make a commit that was overtaken again on the new state, without a look at our property. So it is told not to.
    Here it is made again only if the offsets are still those that the batch was filtered by: then whoever overtook us only tidied up.
    Columns in files carry the table's field numbers, so columns are added to the table before a task writes them. Files without numbers, which
    were written before, have theirs by the table's name mapping. Columns that the table is partitioned by are in the files.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.columns import Column
from ropewalk.spark.lake.joining import FIELD_ID
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
from ropewalk.spark.lake.upkeep import LEFTOVER_HOURS_MIN, State, superseded
from ropewalk.spark.ranges import Json, Offsets, Progress, TopicIds, progress_in
from ropewalk.spark.refusals import Overtaken, PipelineFailed, WrongUse
from ropewalk.spark.storage import is_object_store

try:
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.exceptions import (
        CommitFailedException,
        NamespaceAlreadyExistsError,
        NoSuchTableError,
        RESTError,
        TableAlreadyExistsError,
        ValidationException,
    )
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.table import Table
    from pyiceberg.transforms import IdentityTransform

    from ropewalk.spark.lake.iceberg_files import described, values_of
    from ropewalk.spark.lake.iceberg_upkeep import Replacement, alike, metadata_files, named_by
    from ropewalk.spark.lake.own_catalog import OwnCatalog
except ImportError as error:
    raise WrongUse(
        f"tables of Iceberg need the package pyiceberg: install ropewalk[iceberg] ({error})"
    ) from None

OWNER: Final = "ropewalk.owner"
OFFSETS: Final = "ropewalk.next-offsets"
NOTE: Final = "ropewalk.note"
RETRIES: Final = "commit.retry.num-retries"
COMMITS_MAX: Final = 8
"""Attempts at one commit while others change the table. Each takes as long as theirs, so whoever overtakes it that often never stops."""
EXPIRED_MAX: Final = 1_000
"""Snapshots that are forgotten at once: pyiceberg looks for each among all. A table that was never kept up takes several times."""
METADATA_VERSIONS_MAX: Final = 10
"""Earlier versions of the table's metadata: each has all snapshots in it, and whoever reads by one finds its files for minutes at least."""
_SETTLED: Final = {
    RETRIES: "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": str(METADATA_VERSIONS_MAX),
}
"""Properties that every table of ours has, also one that was made before they were."""
OWN_TABLE: Final = "ropewalk.archive"
"""The name of the one table in a catalog that is kept beside it."""
TABLE: Final = "table"
"""Among the settings of a catalog, the one that is ours: the table's name in it, with its namespace."""


class IcebergTable:
    def __init__(self, spec: TableSpec, catalog: Catalog, table: Table) -> None:
        self._spec = spec
        self._catalog = catalog
        self._table = table
        self._reached = _reached(table)
        self._schema = _columns(table)

    @classmethod
    def open(cls, spec: TableSpec) -> "IcebergTable":
        catalog, name = _catalog(spec)
        try:
            table = catalog.load_table(name)
        except NoSuchTableError:
            refuse_strange_files(spec, local_directory(spec.address))
            table = _create(spec, catalog, name)
        check_owner(spec, table.properties.get(OWNER))
        check_layout(spec, tuple(field.name for field in table.spec().fields))
        if not _SETTLED.items() <= table.properties.items():
            with table.transaction() as change:
                change.set_properties(_SETTLED)
        opened = cls(spec, catalog, table)
        grown_columns(spec, opened.schema, spec.schema, widens=True)
        return opened

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def target(self) -> Target:
        columns = tuple(field.name for field in self._table.spec().fields)
        return Target(
            _data(self._spec.address), columns, keeps_partition_columns=True, storage=self._spec.storage
        )

    def next_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        stored = self._reached.offsets
        return {each: stored[each] for each in partitions if each in stored}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        return {each: self._reached.ids[each] for each in topics if each in self._reached.ids}

    def widen(self, schema: pa.Schema) -> None:
        """At once: files have to carry the numbers that the columns get."""
        for attempt in range(1, COMMITS_MAX + 1):
            grown = grown_columns(self._spec, self._schema, schema, widens=True)
            if not grown.added and not grown.widened:
                return
            try:
                with self._synced(), self._table.update_schema() as update:
                    update.union_by_name(grown.schema)
            except CommitFailedException as error:
                self._table = self._catalog.load_table(self._table.name())
                if attempt == COMMITS_MAX:
                    raise Overtaken(
                        f"{self._spec.address} has changed {attempt} times while columns were added: {error}. Let one run of"
                        f" {self._spec.owner!r} go on alone"
                    ) from None
            self._schema, self._reached = _columns(self._table), _reached(self._table)

    def commit(self, commit: Commit) -> None:
        moved = self._reached.moved(commit.next_offsets, commit.topic_ids).to_json()
        properties = {
            OFFSETS: msgspec.json.encode(moved).decode(),
            NOTE: msgspec.json.encode(commit.note).decode(),
        }
        for attempt in range(1, COMMITS_MAX + 1):
            try:
                if _reached(self._table) != self._reached:
                    raise CommitFailedException("its offsets have moved")
                with self._synced():
                    self._commit(commit, properties)
                break
            except CommitFailedException as error:
                # The table that failed is of no further use; what the catalog has by now decides.
                self._table = self._catalog.load_table(self._table.name())
                is_rival = (
                    _reached(self._table) != self._reached or self.put_back(self._reached.offsets) is not None
                )
                if is_rival or attempt == COMMITS_MAX:
                    raise Overtaken(
                        f"{self._spec.address} has changed since it was opened: {error}. Another archiver writes to it; nothing of"
                        f" this batch was committed. Let one run of {self._spec.owner!r} go on alone"
                    ) from None
        self._reached = _reached(self._table)

    @contextlib.contextmanager
    def _synced(self) -> Iterator[None]:
        """What a change of the table has written is safe from a loss of power afterwards, where that is ours to see to."""
        directory = local_directory(f"{self._spec.address.rstrip('/')}/metadata")
        before = _entries(directory)
        yield
        if directory is not None:
            for entry in sorted(_entries(directory) - before):
                with contextlib.suppress(FileNotFoundError):  # of somebody else's attempt that failed
                    sync(directory / entry)
            sync(directory)

    def _commit(self, commit: Commit, properties: dict[str, str]) -> None:
        figures = {FIGURE + name: text for name, text in commit.figures.items()}
        summary = {OWNER: self._spec.owner, OFFSETS: properties[OFFSETS], **figures}
        with self._table.transaction() as change:
            change.set_properties(properties)
            # Also for no file: an empty snapshot is what requires that nobody else was here.
            with change.update_snapshot(snapshot_properties=summary).fast_append() as snapshot:
                for file in commit.files:
                    snapshot.append_data_file(described(self._table, file, self._address_of(file.path)))

    def _address_of(self, path: str) -> str:
        return f"{_uri(self.target.root)}/{path}"

    def last_note(self) -> dict[str, str]:
        text = self._table.properties.get(NOTE)
        return {} if text is None else msgspec.json.decode(text, type=dict[str, str])

    def put_back(self, partitions: Iterable[TopicPartition]) -> PutBack | None:
        asked = list(partitions)
        found = self._said_by_snapshots()
        if found is None or _chosen(found, asked) == self.next_offsets(asked):
            return None
        current = self._table.current_snapshot()
        how = "it has no snapshot" if current is None else f"to snapshot {current.snapshot_id}"
        return PutBack(self._spec.address, self._spec.owner, how, _chosen(found, asked))

    def reach(self, topic_ids: TopicIds) -> Offsets:
        columns = tuple(reach_columns(self.schema))
        return reach(self._table.scan(selected_fields=columns).to_arrow_batch_reader(), topic_ids)

    def _said_by_snapshots(self) -> Progress | None:
        """What the newest commit of ours has said of itself that the rows of this moment come from; None if it has expired."""
        if OFFSETS not in self._table.properties:
            return None
        snapshot = self._table.current_snapshot()
        if snapshot is None:
            return Progress({})
        while snapshot is not None:
            summary = snapshot.summary
            text = None if summary is None else summary.additional_properties.get(OFFSETS)
            if text is not None:
                return progress_in(msgspec.json.decode(text, type=Json))
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.snapshot_by_id(parent)
        return None

    def files(self) -> list[LiveFile]:
        return [
            LiveFile(
                path=file.file_path.removeprefix(self._address_of("")),
                size_bytes=file.file_size_in_bytes,
                row_count=file.record_count,
                values=values_of(self._table, file) if is_laid_out else (),
                may_be_joined=is_laid_out
                and not task.delete_files
                and file.file_path.startswith(self._address_of("")),
            )
            for task in self._table.scan().plan_files()
            for file in (task.file,)
            for is_laid_out in (file.spec_id == self._table.spec().spec_id,)
        ]

    def exchange(self, removed: Sequence[LiveFile], added: Sequence[WrittenFile]) -> bool:
        with self._catalog_in_words():
            return self._exchange(removed, added)

    def _exchange(self, removed: Sequence[LiveFile], added: Sequence[WrittenFile]) -> bool:
        gone = {self._address_of(each.path) for each in removed}
        for _ in range(COMMITS_MAX):
            self._table = self._catalog.load_table(self._table.name())
            found = {task.file.file_path: task for task in self._table.scan().plan_files()}
            if any(path not in found or (added and found[path].delete_files) for path in gone):
                return False
            try:
                with (
                    self._synced(),
                    self._table.transaction() as change,
                    Replacement(
                        change, self._table.io, self._standing(), deletes_rows=bool(removed) and not added
                    ) as snapshot,
                ):
                    for path in sorted(gone):
                        snapshot.delete_data_file(found[path].file)
                    for file in added:
                        snapshot.append_data_file(described(self._table, file, self._address_of(file.path)))
            except (CommitFailedException, ValidationException):
                continue
            return True
        return False

    @contextlib.contextmanager
    def _catalog_in_words(self) -> Iterator[None]:
        """Upkeep is left for the next time by what a catalog cannot do now."""
        try:
            yield
        except RESTError as error:
            raise PipelineFailed(f"the catalog of {self._spec.address} says: {error}") from error

    def _standing(self) -> dict[str, str]:
        """For the summary of a snapshot that moves no offset: those that the rows of this moment come from, also where they were put back."""
        found = self._said_by_snapshots()
        return {} if found is None else {OFFSETS: msgspec.json.encode(found.to_json()).decode()}

    def tidy(self, upkeep: Upkeep, *, thorough: bool, now_ms: int) -> str:
        with self._catalog_in_words():
            current = self._table.refresh().current_snapshot()
            if current is not None and alike(current.manifests(self._table.io)):
                self._exchange((), ())
            expired, deleted = self._expire(upkeep, now_ms)
        if thorough:
            deleted += self._delete_leftovers(now_ms - max(upkeep.keep_hours, LEFTOVER_HOURS_MIN) * 3_600_000)
        return f"{expired} snapshots expired, {deleted} files that nobody needs deleted"

    def _expire(self, upkeep: Upkeep, now_ms: int) -> tuple[int, int]:
        """How many snapshots, and how many files."""
        self._table.refresh()
        protected = {each.snapshot_id for each in self._table.refs().values()}
        states = [State(each.snapshot_id, each.timestamp_ms) for each in self._table.snapshots()]
        gone = {each.id for each in superseded(states, upkeep, now_ms)[-EXPIRED_MAX:]} - protected
        if not gone:
            return 0, 0
        forgotten = [each for each in self._table.snapshots() if each.snapshot_id in gone]
        try:
            with self._synced():
                self._table.maintenance.expire_snapshots().by_ids(sorted(gone)).commit()
        except CommitFailedException:
            return 0, 0
        self._table.refresh()
        kept = named_by(self._table.snapshots(), self._table.io)
        once = named_by(forgotten, self._table.io, besides=kept)
        unneeded = (once.metadata - kept.metadata) | (once.data - kept.data)
        for path in sorted(unneeded):
            with contextlib.suppress(FileNotFoundError):
                self._table.io.delete(path)
        return len(gone), len(unneeded)

    def _delete_leftovers(self, before_ms: int) -> int:
        named = named_by(self._table.snapshots(), self._table.io)
        data, metadata = self.target.root, f"{self._spec.address.rstrip('/')}/metadata"
        kept = {
            data: (named.data, (".parquet",)),
            metadata: (named.metadata | metadata_files(self._table), (".avro", ".metadata.json")),
        }
        count = 0
        for directory, (needed, endings) in kept.items():
            place = Place(directory, self._spec.storage)
            # By what follows the directory's name, however the address of the store is written; the last one, since another above may be called so.
            mark = f"/{directory.rpartition('/')[2]}/"
            names = {path.rpartition(mark)[2] for path in needed}
            for path, at_s in place.files():
                if path not in names and path.endswith(endings) and at_s * 1000 < before_ms:
                    place.delete(path)
                    count += 1
        return count


def _catalog(spec: TableSpec) -> tuple[Catalog, str]:
    """The user's, or one in a file beside the table."""
    if spec.catalog:
        given = dict(spec.catalog)
        name = given.pop(TABLE, "")
        if not all(name.partition(".")):
            raise WrongUse(
                f"say which table of the catalog it is, with its namespace: {TABLE}=NAMESPACE.NAME"
            )
        known = spec.storage.for_iceberg() if is_object_store(spec.address) else {}
        try:
            return load_catalog(given.pop("name", "ropewalk"), **{**known, **given}), name
        except (ValueError, OSError) as error:
            raise WrongUse(f"the catalog of Iceberg cannot be used: {error}") from None
    if is_object_store(spec.address):
        from ropewalk.spark.lake.object_catalog import ObjectCatalog

        return ObjectCatalog(spec.address, spec.storage), OWN_TABLE
    directory = local_directory(spec.address)
    if directory is None:
        raise WrongUse(
            f"{spec.address} is where no catalog can be kept: name one, like --catalog type=rest --catalog uri=…"
        )
    own = directory / "_ropewalk"
    if not (own / "catalog.db").exists():
        # A table whose catalog is gone is in the way, too: its offsets are not to be guessed.
        refuse_strange_files(spec, directory)
    own.mkdir(parents=True, exist_ok=True)
    catalog = OwnCatalog("ropewalk", uri=f"sqlite:///{own}/catalog.db", warehouse=directory.as_uri())
    return catalog, OWN_TABLE


def _create(spec: TableSpec, catalog: Catalog, name: str) -> Table:
    refuse_missing(spec)
    namespace = name.rpartition(".")[0]
    with contextlib.suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace(namespace)
    try:
        with (
            catalog.create_table_transaction(
                name,
                schema=spec.schema,
                location=_uri(spec.address),
                properties={OWNER: spec.owner, "format-version": "2"} | _SETTLED | _statistics(spec),
            ) as made,
            made.update_spec() as update,
        ):
            for column in spec.partition_columns:
                update.add_field(column, IdentityTransform(), column)
    except TableAlreadyExistsError as error:
        raise Overtaken(f"{spec.address} was made by another at the same time: {error}") from None
    return catalog.load_table(name)


def _statistics(spec: TableSpec) -> dict[str, str]:
    """Bounds are kept of what queries choose files by. It is said for others that write to the table; ours are in `iceberg_files.py`."""
    useful = (Column.TOPIC, Column.PARTITION, Column.OFFSET, Column.TIMESTAMP)
    names = [*(each.value for each in useful), *spec.partition_columns]
    kept = {f"write.metadata.metrics.column.{name}": "full" for name in names if name in spec.schema.names}
    return {"write.metadata.metrics.default": "none", **kept}


def _columns(table: Table) -> pa.Schema:
    """With the numbers that they have in files. pyiceberg gives text and bytes in Arrow's large types; the files have the small ones, as all of
    them do here."""
    return pa.schema([_small_field(field) for field in schema_to_pyarrow(table.schema())])


def _small_field(field: pa.Field) -> pa.Field:
    numbered = {FIELD_ID: (field.metadata or {})[FIELD_ID]}
    return pa.field(field.name, _small(field.type), field.nullable, metadata=numbered)


def _small(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_struct(type_):
        return pa.struct([_small_field(field) for field in type_])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_small_field(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(_small_field(type_.key_field), _small_field(type_.item_field))
    return type_


def _chosen(progress: Progress, partitions: list[TopicPartition]) -> Offsets:
    return {each: progress.offsets[each] for each in partitions if each in progress.offsets}


def _reached(table: Table) -> Progress:
    text = table.properties.get(OFFSETS)
    return Progress({}) if text is None else progress_in(msgspec.json.decode(text, type=Json))


def _entries(directory: Path | None) -> set[str]:
    return set() if directory is None or not directory.exists() else set(os.listdir(directory))


def _data(address: str) -> str:
    directory = local_directory(address)
    return f"{address if directory is None else directory}".rstrip("/") + "/data"


def _uri(address: str) -> str:
    directory = local_directory(address)
    return address.rstrip("/") if directory is None else directory.as_uri()
