"""A catalog of one table of Iceberg, kept beside the table in an object store and nowhere else.

    <to>/metadata/v17.metadata.json    the table's state; the one with the highest number is the table's
    <to>/metadata/version-hint.text    that number, for readers that look for it (DuckDB, Hadoop's tables)

What a commit rests on
    It is the creation of the next number, which the store grants to one alone. Who comes second is told, and looks at the table again.

What a reader could get wrong
    The hint is written after the commit and may be behind; nothing here believes it. Numbers are listed, and lists of S3 are never behind.
    Old numbers are deleted in time. Who has slept since one of them could create it again; the list that follows shows that it is not the highest.
"""

import re
from typing import Final

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, CreateTableTransaction, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from ropewalk.spark.objects import Objects
from ropewalk.spark.storage import Storage

DIRECTORY: Final = "metadata"
HINT: Final = "version-hint.text"
_VERSION: Final = re.compile(r"v(\d+)\.metadata\.json")


class ObjectCatalog(NoopCatalog, MetastoreCatalog):
    """Knows one table, whatever it is called. What a table needs of a catalog is here; the rest is not offered."""

    def __init__(self, address: str, storage: Storage) -> None:
        super().__init__("ropewalk", **storage.for_iceberg())
        self._address = address.rstrip("/")
        self._objects = Objects(address, storage)

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """There is nothing to keep of one."""

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> CreateTableTransaction:
        return MetastoreCatalog.create_table_transaction(
            self, identifier, schema, location, partition_spec, sort_order, properties
        )

    def load_table(self, identifier: str | Identifier) -> Table:
        version = self._newest()
        if version is None:
            raise NoSuchTableError(f"there is no table in {self._address}")
        location = self._location(version)
        io = self._load_file_io(location=location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        return Table(
            identifier=self.identifier_to_tuple(identifier),
            metadata=metadata,
            metadata_location=location,
            io=self._load_file_io(metadata.properties, location),
            catalog=self,
        )

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        try:
            current = self.load_table(table.name())
        except NoSuchTableError:
            current = None
        staged = self._update_and_stage_table(current, table.name(), requirements, updates)
        if current is not None and staged.metadata == current.metadata:
            return _committed(current.metadata, current.metadata_location)
        version = 1 if current is None else self._version(current.metadata_location) + 1
        content = staged.metadata.model_dump_json(exclude_none=True).encode()
        if not self._objects.create(f"{DIRECTORY}/{_name(version)}", content):
            if current is None:
                raise TableAlreadyExistsError(f"there is a table in {self._address} by now")
            raise CommitFailedException(f"{self._address} has a version {version} by now")
        if not self._is_followed(version):
            raise CommitFailedException(f"{self._address} had gone on beyond version {version}")
        self._objects.replace(f"{DIRECTORY}/{HINT}", str(version).encode())
        if current is not None:
            self._delete_old_metadata(staged.io, current.metadata, staged.metadata)
        return _committed(staged.metadata, self._location(version))

    def _is_followed(self, version: int) -> bool:
        """Whether the newest is this one, or has come from it."""
        newest = self._newest()
        if newest == version:
            return True
        log = self.load_table("ropewalk.newest").metadata.metadata_log
        return self._location(version) in {each.metadata_file for each in log}

    def _newest(self) -> int | None:
        names = self._objects.names(DIRECTORY, after="v")
        return max(
            (int(found[1]) for found in map(_VERSION.fullmatch, names) if found is not None), default=None
        )

    def _location(self, version: int) -> str:
        return f"{self._address}/{DIRECTORY}/{_name(version)}"

    def _version(self, location: str) -> int:
        found = _VERSION.fullmatch(location.rpartition("/")[2])
        assert found is not None, "it was listed"
        return int(found[1])


def _committed(metadata: TableMetadata, location: str) -> CommitTableResponse:
    return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": location})


def _name(version: int) -> str:
    return f"v{version}.metadata.json"
