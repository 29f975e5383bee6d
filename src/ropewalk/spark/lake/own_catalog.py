"""The catalog in a file beside a table of Iceberg, which leaves nothing of commits that were overtaken.

What a reader could get wrong
    pyiceberg writes a version of the metadata before it asks whether it may be the next one. A version that another was faster than is named by
    nobody and holds every state of the table; it is deleted here, by who wrote it, since nobody can have read it.
    Where it is not known whether a commit went through, its version stays: upkeep deletes it when it is old.
    One catalog belongs to one thread.
"""

from contextlib import suppress

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier


class OwnCatalog(SqlCatalog):
    _staged: StagedTable | None = None
    """What the commit under way has made, or is about to."""

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        self._begin()
        try:
            return super().commit_table(table, requirements, updates)
        except CommitFailedException:
            if self._staged is not None:
                with suppress(FileNotFoundError):
                    self._staged.io.delete(self._staged.metadata_location)
            raise

    def _begin(self) -> None:
        self._staged = None

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        self._staged = super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        return self._staged
