"""What lies in the directories of a table though no state that is kept names it."""

import re
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from ropewalk.spark.lake.iceberg import OWN_TABLE
from ropewalk.spark.lake.iceberg_upkeep import metadata_files, named_by
from ropewalk.spark.lake.kinds import Kind


def unnamed(kind: Kind, path: Path) -> list[str]:
    """Of Delta: files that neither the newest version nor any that was there within the time kept has."""
    return _unnamed_of_delta(path) if kind == "delta" else _unnamed_of_iceberg(path)


def _unnamed_of_iceberg(path: Path) -> list[str]:
    catalog = load_catalog("ropewalk", type="sql", uri=f"sqlite:///{path}/_ropewalk/catalog.db")
    table = catalog.load_table(OWN_TABLE)
    named = named_by(table.snapshots(), table.io)
    needed = {each.removeprefix("file://") for each in (*named.data, *named.metadata, *metadata_files(table))}
    there = [each for part in ("data", "metadata") for each in (path / part).rglob("*") if each.is_file()]
    return sorted(str(each) for each in there if str(each) not in needed)


def _unnamed_of_delta(path: Path) -> list[str]:
    table = DeltaTable(str(path))
    needed = {unquote(each.removeprefix("file://")) for each in table.file_uris()}
    log = "".join(each.read_text() for each in (path / "_delta_log").glob("*.json"))
    removed = set(re.findall(r'"remove":\{"path":"([^"]+)"', log))
    for checkpoint in (path / "_delta_log").glob("*.checkpoint.parquet"):
        # A checkpoint of a table from which nothing was removed has no such column.
        rows = pq.read_table(checkpoint, columns=["remove.path"]).to_pylist()
        removed |= {row["remove"]["path"] for row in rows if row.get("remove") is not None}
    needed |= {str(path / unquote(each)) for each in removed}
    there = [each for each in path.rglob("*.parquet") if not str(each.relative_to(path)).startswith("_")]
    return sorted(str(each) for each in there if str(each) not in needed)
