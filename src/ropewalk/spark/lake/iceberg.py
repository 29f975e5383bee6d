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
    Files carry no field numbers; the table's name mapping gives them theirs. Columns that the table is partitioned by are in the files.
    Files are looked at by the driver for their statistics: a read of each footer, and of no row.
"""

import contextlib
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.columns import Column
from ropewalk.spark.lake.places import Place, local_directory, sync
from ropewalk.spark.lake.table import FIGURE, Commit, TableSpec, Target, Upkeep
from ropewalk.spark.lake.terms import check_layout, check_owner, grown_columns, refuse_strange_files
from ropewalk.spark.ranges import Json, Offsets, Progress, TopicIds, progress_in
from ropewalk.spark.refusals import Overtaken, WrongUse
from ropewalk.spark.storage import is_object_store

try:
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.exceptions import (
        CommitFailedException,
        NamespaceAlreadyExistsError,
        NoSuchTableError,
        TableAlreadyExistsError,
    )
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.table import Table
    from pyiceberg.transforms import IdentityTransform
except ImportError as error:
    raise WrongUse(
        f"tables of Iceberg need the package pyiceberg: install ropewalk[iceberg] ({error})"
    ) from None

OWNER: Final = "ropewalk.owner"
OFFSETS: Final = "ropewalk.next-offsets"
NOTE: Final = "ropewalk.note"
RETRIES: Final = "commit.retry.num-retries"
COMMITS_MAX: Final = 4
"""Attempts at one commit while others tidy up."""
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
        if table.properties.get(RETRIES) != "0":
            with table.transaction() as change:
                change.set_properties({RETRIES: "0"})
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
        """The next commit does it."""
        self._schema = grown_columns(self._spec, self._schema, schema, widens=True).schema

    def commit(self, commit: Commit) -> None:
        moved = self._reached.moved(commit.next_offsets, commit.topic_ids).to_json()
        properties = {
            OFFSETS: msgspec.json.encode(moved).decode(),
            NOTE: msgspec.json.encode(commit.note).decode(),
        }
        directory = local_directory(f"{self._spec.address.rstrip('/')}/metadata")
        before = _entries(directory)
        for attempt in range(1, COMMITS_MAX + 1):
            try:
                if _reached(self._table) != self._reached:
                    raise CommitFailedException("its offsets have moved")
                self._commit(commit, properties)
                break
            except CommitFailedException as error:
                # The table that failed is of no further use; what the catalog has by now decides.
                self._table = self._catalog.load_table(self._table.name())
                if attempt == COMMITS_MAX or _reached(self._table) != self._reached:
                    raise Overtaken(
                        f"{self._spec.address} has changed since it was opened: {error}. Another archiver writes to it; nothing of"
                        f" this batch was committed. Let one run of {self._spec.owner!r} go on alone"
                    ) from None
        self._reached = _reached(self._table)
        if directory is not None:
            for entry in sorted(_entries(directory) - before):
                sync(directory / entry)
            sync(directory)

    def _commit(self, commit: Commit, properties: dict[str, str]) -> None:
        figures = {FIGURE + name: text for name, text in commit.figures.items()}
        summary = {OWNER: self._spec.owner, OFFSETS: properties[OFFSETS], **figures}
        paths = [f"{_uri(self.target.root)}/{file.path}" for file in commit.files]
        with self._table.transaction() as change:
            if _columns(self._table) != self._schema:
                with change.update_schema() as update:
                    update.union_by_name(self._schema)
            change.set_properties(properties)
            if paths:
                # Their names were never used before, so nothing needs to look for them in the table.
                change.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
            else:
                # An empty snapshot: it is what requires that nobody else was here.
                with change.update_snapshot(snapshot_properties=summary).fast_append():
                    pass

    def last_note(self) -> dict[str, str]:
        text = self._table.properties.get(NOTE)
        return {} if text is None else msgspec.json.decode(text, type=dict[str, str])

    def maintain(self, upkeep: Upkeep) -> str:
        """Gives way to whoever else changes the table at the same time: it will be done the next time."""
        before = datetime.now(UTC) - timedelta(hours=upkeep.keep_hours)
        known = len(self._table.snapshots())
        try:
            self._table.maintenance.expire_snapshots().older_than(before.replace(tzinfo=None)).commit()
        except CommitFailedException as error:
            return (
                f"upkeep is left for the next time, because another has changed the table meanwhile: {error}"
            )
        self._table.refresh()
        expired = known - len(self._table.snapshots())
        place = Place(self.target.root, self._spec.storage)
        # The last one: a directory above the table may be called so, too.
        named = {path.rpartition("/data/")[2] for path in self._file_paths()}
        failed = [
            path
            for path, at in place.files()
            if path not in named and at < time.time() - upkeep.keep_hours * 3600
        ]
        for path in failed:
            place.delete(path)
        return f"{expired} snapshots expired, {len(failed)} files that nobody needs deleted"

    def _file_paths(self) -> set[str]:
        """Of all snapshots. A snapshot of no file, such as a batch of nothing leaves, has no manifest."""
        manifests = {
            manifest.manifest_path: manifest
            for snapshot in self._table.snapshots()
            for manifest in snapshot.manifests(self._table.io)
        }
        return {
            entry.data_file.file_path
            for manifest in manifests.values()
            for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
        }


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
    catalog = load_catalog(
        "ropewalk", type="sql", uri=f"sqlite:///{own}/catalog.db", warehouse=directory.as_uri()
    )
    return catalog, OWN_TABLE


def _create(spec: TableSpec, catalog: Catalog, name: str) -> Table:
    namespace = name.rpartition(".")[0]
    with contextlib.suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace(namespace)
    try:
        with (
            catalog.create_table_transaction(
                name,
                schema=spec.schema,
                location=_uri(spec.address),
                properties={OWNER: spec.owner, RETRIES: "0", "format-version": "2"} | _statistics(spec),
            ) as made,
            made.update_spec() as update,
        ):
            for column in spec.partition_columns:
                update.add_field(column, IdentityTransform(), column)
    except TableAlreadyExistsError as error:
        raise Overtaken(f"{spec.address} was made by another at the same time: {error}") from None
    return catalog.load_table(name)


def _statistics(spec: TableSpec) -> dict[str, str]:
    """Bounds are kept of what queries choose files by, and of nothing that producers choose freely: pyiceberg cannot take a
    timestamp beyond the year 9999 from a file's footer, and files are in directories by date anyway."""
    useful = (Column.TOPIC, Column.PARTITION, Column.OFFSET)
    names = [*(each.value for each in useful), *spec.partition_columns]
    kept = {f"write.metadata.metrics.column.{name}": "full" for name in names if name in spec.schema.names}
    return {"write.metadata.metrics.default": "none", **kept}


def _columns(table: Table) -> pa.Schema:
    """pyiceberg gives text and bytes in Arrow's large types; the files have the small ones, as all of them do here."""
    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    return pa.schema([_small_field(field) for field in schema])


def _small_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _small(field.type), field.nullable)


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
        return pa.map_(_small(type_.key_type), _small(type_.item_type))
    return type_


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
