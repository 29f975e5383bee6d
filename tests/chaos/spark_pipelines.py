"""The pipelines that are killed: how each is started, where it may be stopped, and what it has carried so far."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from ropewalk.spark.lake.object_catalog import ObjectCatalog
from ropewalk.spark.ranges import progress_in
from ropewalk.spark.sink.marker import Marker, from_text
from ropewalk.spark.sink.marker_store import MARKERS_TOPIC
from tests.chaos.spark_feed import PARTITION_COUNT, SOURCE, read_committed
from tests.chaos.spark_job import Checkpoint
from tests.chaos.spark_judge import Place, Record
from tests.spark.s3_server import BUCKET, S3

if TYPE_CHECKING:
    from pyiceberg.table import Table

TARGET: Final = "target"
TASK_COUNT: Final = 2
INTERVAL: Final = "200 milliseconds"


WithoutCheckpoint: TypeAlias = Literal["goes on", "refuses", "begins anew"]
"""What it does when it finds none. Those that begin anew are not tried: they do not know better."""


class Chosen(NamedTuple):
    """What may be another at every start."""

    offsets_per_trigger_max: int
    partitions_min: int
    once: bool = False


class Scenery(NamedTuple):
    bootstrap: str
    scratch: Path
    checkpoint: Path
    master: str
    s3: S3 | None = None
    """Where tables are, if not in a directory. Jobs are told their target and nothing else then, and keep their progress where they like."""

    @property
    def lake(self) -> str:
        return str(self.scratch / "lake") if self.s3 is None else f"s3://{BUCKET}/lake"

    def checkpoint_of(self, job: str) -> Path:
        return self.checkpoint if self.s3 is None else self.scratch / "state" / "checkpoints" / job


class Killed(Protocol):
    name: str
    done_at: tuple[str, ...]
    """Places at which something is committed that Spark does not know of yet."""
    driver_at: tuple[str, ...]
    """Where somebody waits, the driver itself or one of its workers, while the driver is killed."""
    task_at: tuple[str, ...]
    without_checkpoint: WithoutCheckpoint

    def command(self, chosen: Chosen) -> list[str]: ...

    def is_ahead(self, checkpoint: Checkpoint) -> bool:
        """Of a driver that is dead: whether something of the last batch that it began is committed, and Spark does not know."""

    def carried(self) -> Iterator[Sequence[Record]]: ...


class Archive:
    name = "archive"
    done_at: tuple[str, ...] = ("archive committed",)
    driver_at: tuple[str, ...] = ("archive committed", "archive files written")
    task_at: tuple[str, ...] = ("archive task written",)
    without_checkpoint: WithoutCheckpoint = "goes on"

    def __init__(self, scenery: Scenery) -> None:
        self._scenery = scenery

    def command(self, chosen: Chosen) -> list[str]:
        return [*_run("archive", self._scenery, chosen), "--to", self._scenery.lake, "--upkeep-batches", "10"]

    def is_ahead(self, checkpoint: Checkpoint) -> bool:
        return _is_stored(self.stored(), checkpoint)

    def stored(self) -> dict[int, int | None]:
        """The next offset of each partition, as the table has it."""
        options = _options(self._scenery)
        try:
            table = DeltaTable(self._scenery.lake, storage_options=options)
        except TableNotFoundError:
            return {}
        job = self.name.partition("-")[0]
        return {
            index: table.transaction_version(f"ropewalk/{job}/{SOURCE}/{index}")
            for index in range(PARTITION_COUNT)
        }

    def carried(self) -> Iterator[Sequence[Record]]:
        table = DeltaTable(self._scenery.lake, storage_options=_options(self._scenery))
        return _records(table.to_pyarrow_dataset().to_table(columns=["partition", "offset", "value"]))


class ArchiveIceberg(Archive):
    name = "archive-iceberg"

    def command(self, chosen: Chosen) -> list[str]:
        return [*super().command(chosen), "--table", "iceberg"]

    def stored(self) -> dict[int, int | None]:
        try:
            table = self._table()
        except NoSuchTableError:
            return {}
        reached = progress_in(json.loads(table.properties.get("ropewalk.next-offsets", "{}"))).offsets
        return {each.partition: offset for each, offset in reached.items()}

    def carried(self) -> Iterator[Sequence[Record]]:
        scan = self._table().scan(selected_fields=("partition", "offset", "value"))
        return _records(scan.to_arrow())

    def _table(self) -> "Table":
        if self._scenery.s3 is not None:
            return ObjectCatalog(self._scenery.lake, self._scenery.s3.storage).load_table("ropewalk.archive")
        catalog = f"sqlite:///{self._scenery.lake}/_ropewalk/catalog.db"
        return load_catalog("ropewalk", type="sql", uri=catalog).load_table("ropewalk.archive")


class TransformTable(Archive):
    """A transform whose rows go to a table."""

    name = "transform-table"
    done_at: tuple[str, ...] = ("transform committed",)
    driver_at: tuple[str, ...] = ("transform committed",)
    task_at: tuple[str, ...] = ()

    def command(self, chosen: Chosen) -> list[str]:
        sql = f"SELECT partition, offset, value FROM {SOURCE}"
        return [*_run("transform", self._scenery, chosen), "--to", self._scenery.lake, "--sql", sql]


class Transform:
    name = "transform"
    done_at: tuple[str, ...] = ("transform committed", "sink committed")
    driver_at: tuple[str, ...] = ("transform committed", "sink committed", "sink before commit")
    task_at: tuple[str, ...] = ("sink before commit", "sink committed")
    without_checkpoint: WithoutCheckpoint = "goes on"

    def __init__(self, scenery: Scenery) -> None:
        self._scenery = scenery

    def command(self, chosen: Chosen) -> list[str]:
        sql = f"SELECT key, concat(partition, ' ', offset, ' ', CAST(value AS string)) AS value FROM {SOURCE}"
        settings = ["--to-topic", TARGET, "--tasks", str(TASK_COUNT), "--sql", sql]
        return [*_run(self.name, self._scenery, chosen), *settings]

    def is_ahead(self, checkpoint: Checkpoint) -> bool:
        return _marked(self._scenery.bootstrap, self.name, checkpoint)

    def carried(self) -> Iterator[Sequence[Record]]:
        return _copies(self._scenery.bootstrap)


class Sink:
    """Straight from the source, as anybody would write it with nothing but Spark."""

    name = "sink"
    done_at: tuple[str, ...] = ("sink committed",)
    driver_at: tuple[str, ...] = ("sink committed", "sink before commit")
    task_at: tuple[str, ...] = ("sink before commit", "sink committed")
    without_checkpoint: WithoutCheckpoint = "refuses"

    def __init__(self, scenery: Scenery) -> None:
        self._scenery = scenery

    def command(self, chosen: Chosen) -> list[str]:
        return _program(self.name, self._scenery, chosen, TARGET)

    def is_ahead(self, checkpoint: Checkpoint) -> bool:
        return _marked(self._scenery.bootstrap, self.name, checkpoint)

    def carried(self) -> Iterator[Sequence[Record]]:
        return _copies(self._scenery.bootstrap)


class Loop(Sink):
    """The sink's tasks and the source's under a loop of our own in place of Spark."""

    name = "loop"

    def command(self, chosen: Chosen) -> list[str]:
        command = _program(self.name, self._scenery, chosen, TARGET)
        # No master, and no other kinds.
        return [command[0], str(Path(__file__).with_name("spark_loop.py")), *command[4:]]


class PlainSink(Sink):
    """The control: no marker."""

    name = "plain-sink"
    done_at: tuple[str, ...] = ("sink written",)
    driver_at: tuple[str, ...] = ("sink written",)
    task_at: tuple[str, ...] = ("sink written",)
    without_checkpoint: WithoutCheckpoint = "begins anew"

    def is_ahead(self, checkpoint: Checkpoint) -> bool:
        return checkpoint.last_begun > checkpoint.last_done


class PlainArchive:
    """The control: Spark's own Parquet files, appended by a function of each batch."""

    name = "plain-archive"
    done_at: tuple[str, ...] = ("archive committed",)
    driver_at: tuple[str, ...] = ("archive committed",)
    task_at: tuple[str, ...] = ()
    without_checkpoint: WithoutCheckpoint = "begins anew"

    def __init__(self, scenery: Scenery) -> None:
        self._scenery = scenery
        self._lake = scenery.scratch / "files"

    def command(self, chosen: Chosen) -> list[str]:
        return _program(self.name, self._scenery, chosen, str(self._lake))

    def is_ahead(self, checkpoint: Checkpoint) -> bool:
        return checkpoint.last_begun > checkpoint.last_done

    def carried(self) -> Iterator[Sequence[Record]]:
        from pyarrow import dataset

        for row in dataset.dataset(self._lake, format="parquet").to_table().to_pylist():
            yield [_record(row["value"])]


PIPELINES: Final[dict[str, Callable[[Scenery], Killed]]] = {
    "archive": Archive,
    "archive-iceberg": ArchiveIceberg,
    "transform-table": TransformTable,
    "transform": Transform,
    "sink": Sink,
    "loop": Loop,
}
CONTROLS: Final[dict[str, Callable[[Scenery], Killed]]] = {"archive": PlainArchive, "sink": PlainSink}


IN_TABLES: Final = frozenset({"archive", "archive-iceberg", "transform-table"})
"""Those whose output may be in an object store."""


def _options(scenery: Scenery) -> dict[str, str] | None:
    return None if scenery.s3 is None else scenery.s3.storage.for_delta()


def _is_stored(stored: Mapping[int, int | None], checkpoint: Checkpoint) -> bool:
    if checkpoint.last_begun <= checkpoint.last_done:
        return False
    ends = checkpoint.ends(checkpoint.last_begun)
    return all((stored.get(index) or 0) >= end for index, end in ends.items())


def _records(rows: pa.Table) -> Iterator[Sequence[Record]]:
    columns = (rows.column(name).to_pylist() for name in ("partition", "offset", "value"))
    for partition, offset, value in zip(*columns, strict=True):
        yield [Record(Place(partition, offset), value.decode())]


def _run(kind: str, scenery: Scenery, chosen: Chosen) -> list[str]:
    command = [sys.executable, "-m", "ropewalk.spark", "run", kind, "--bootstrap", scenery.bootstrap]
    command += ["--topic", SOURCE, "--master", scenery.master]
    command += [] if scenery.s3 else ["--checkpoint", str(scenery.checkpoint)]
    command += ["--state", str(scenery.scratch / "state"), "--interval", INTERVAL]
    command += ["--source", f"maxOffsetsPerTrigger={chosen.offsets_per_trigger_max}"]
    command += ["--source", f"minPartitions={chosen.partitions_min}"]
    command += ["--conf", "spark.driver.memory=1g", "--conf", "spark.sql.shuffle.partitions=2"]
    return [*command, *(("--once",) if chosen.once else ())]


def _program(what: str, scenery: Scenery, chosen: Chosen, target: str) -> list[str]:
    numbers = [str(chosen.offsets_per_trigger_max), str(chosen.partitions_min), str(TASK_COUNT)]
    places = [scenery.master, scenery.bootstrap, str(scenery.checkpoint), SOURCE, target]
    program = Path(__file__).with_name("spark_program.py")
    return [sys.executable, str(program), what, *places, *numbers, "once" if chosen.once else INTERVAL]


def _marked(bootstrap: str, name: str, checkpoint: Checkpoint) -> bool:
    batch = checkpoint.last_begun
    if batch <= checkpoint.last_done:
        return False
    query = checkpoint.query
    return any(each.query == query and each.batch == batch for each in _markers(bootstrap, name))


def _markers(bootstrap: str, name: str) -> Iterator[Marker]:
    """The newest of every task; what stands for all of them is passed over."""
    newest: dict[str, str] = {}
    for each in read_committed(bootstrap, MARKERS_TOPIC):
        sink, _, task = json.loads(each.key)
        if sink == name and task is not None:
            newest[each.key] = each.value
    yield from map(from_text, newest.values())


def _copies(bootstrap: str) -> Iterator[Sequence[Record]]:
    """By partition and key: tasks write to a partition side by side, each its own keys."""
    by_key: dict[tuple[int, str], list[Record]] = {}
    for copy in read_committed(bootstrap, TARGET):
        by_key.setdefault((copy.place.partition, copy.key), []).append(_record(copy.value))
    yield from by_key.values()


def _record(copy: str) -> Record:
    """Each copy says which record it is of."""
    partition, offset, value = copy.split(" ", 2)
    return Record(Place(int(partition), int(offset)), value)
