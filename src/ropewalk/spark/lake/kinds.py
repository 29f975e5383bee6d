"""The kinds of tables. One is imported when it is asked for: some need packages that others do not."""

from importlib import import_module
from typing import Final, Literal, Protocol, TypeAlias, cast

from ropewalk.spark.lake.table import LakeTable, TableSpec

Kind: TypeAlias = Literal["delta", "iceberg", "parquet"]

_KINDS: Final[dict[Kind, str]] = {
    "delta": "ropewalk.spark.lake.delta:DeltaLake",
    "iceberg": "ropewalk.spark.lake.iceberg:IcebergTable",
    "parquet": "ropewalk.spark.lake.parquet:ParquetDirectory",
}


class _Openable(Protocol):
    @classmethod
    def open(cls, spec: TableSpec) -> LakeTable: ...


def open_table(kind: Kind, spec: TableSpec) -> LakeTable:
    """Makes the table where there is none. Raises `NotOurs` or `WrongUse` if it is not one that this job may write to."""
    module, _, name = _KINDS[kind].partition(":")
    # The class is named in the table above, and a test opens every one of them.
    return cast("_Openable", getattr(import_module(module), name)).open(spec)
