"""Tables in an object store: one commit at a time, whoever writes and whatever becomes of answers on their way."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from deltalake.exceptions import DeltaError
from msgspec import structs

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.joining import here
from ropewalk.spark.lake.keeping import Kept, keep_up
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.places import Place
from ropewalk.spark.lake.shaping import raw_schema, with_times
from ropewalk.spark.lake.table import Commit, LakeTable, TableSpec, Upkeep, WrittenFile
from ropewalk.spark.lake.writing import FileWriter
from ropewalk.spark.objects import Objects, StoreFailed, refuse_unfit
from ropewalk.spark.pipelines.causes import cause_of
from ropewalk.spark.refusals import Overtaken, PipelineFailed, WrongUse
from ropewalk.spark.storage import Storage
from tests.spark.s3_server import BUCKET, S3, SLOW_DOWN, WRONG_KEY, BadDays, Fault, bad_days

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

KINDS: tuple[Kind, ...] = ("delta", "iceberg")
PARTITION = TopicPartition("orders", 0)


def spec(name: str, s3: S3) -> TableSpec:
    return TableSpec(
        address=f"s3://{BUCKET}/{name}",
        owner="nightly",
        schema=raw_schema("date"),
        partition_columns=("date",),
        storage=s3.storage,
    )


def written(table: LakeTable, offset: int) -> tuple[WrittenFile, ...]:
    """A file of one row."""
    row = {
        "value": b"v",
        "topic": "orders",
        "partition": 0,
        "offset": offset,
        "timestamp": datetime(2026, 11, 18, tzinfo=UTC),
        "timestampType": 0,
    }
    rows = pa.RecordBatch.from_pylist([row], schema=raw_schema("date"))
    writer = FileWriter(table.target, table.schema, file_bytes_target=1 << 20)
    writer.write(with_times(rows, table.schema))
    return tuple(writer.finish())


def commit(table: LakeTable, offset: int) -> None:
    table.commit(Commit(written(table, offset), {PARTITION: offset + 1}, {"batch": str(offset)}))


def offsets(kind: Kind, of: TableSpec) -> list[int]:
    """As somebody reads them who knows nothing of us."""
    if kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(of.address, storage_options=of.storage.for_delta()).to_pyarrow_table()
    else:
        from pyiceberg.table import StaticTable

        # From where the hint points to, as readers do that are given a directory.
        table = StaticTable.from_metadata(of.address, of.storage.for_iceberg()).scan().to_arrow()
    return sorted(table["offset"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_offsets_are_there_together_and_once(kind: Kind, s3: S3) -> None:
    wanted = spec(f"once-{kind}", s3)
    assert open_table(kind, wanted).next_offsets([PARTITION]) == {}
    for offset in range(3):
        commit(open_table(kind, wanted), offset)
    assert open_table(kind, wanted).next_offsets([PARTITION]) == {PARTITION: 3}
    assert open_table(kind, wanted).last_note() == {"batch": "2"}
    first, second = open_table(kind, wanted), open_table(kind, wanted)
    commit(first, 3)
    (left,) = written(second, 3)
    with pytest.raises(Overtaken, match="Let one run of 'nightly' go on alone"):
        second.commit(Commit((left,), {PARTITION: 4}))
    assert offsets(kind, wanted) == [0, 1, 2, 3]
    place = Place(second.target.root, s3.storage)
    assert place.has(left.path, left.size_bytes)
    tomorrow_ms = int(time.time() * 1000) + 25 * 3_600_000
    kept = Kept(kind, wanted, Upkeep(compact_at=2, file_bytes_target=1 << 20, keep_hours=0))
    assert keep_up(kept, here, now_ms=tomorrow_ms).startswith("4 small files joined")
    assert offsets(kind, wanted) == [0, 1, 2, 3]
    assert len(open_table(kind, wanted).files()) == 1
    if kind == "iceberg":  # delta-rs looks at its own clock
        assert not place.has(left.path, left.size_bytes), "no commit names it"
    commit(open_table(kind, wanted), 4)
    assert offsets(kind, wanted) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_who_make_a_table_one_does(kind: Kind, s3: S3) -> None:
    wanted = spec(f"made-{kind}", s3)
    open_table(kind, wanted)
    other = TableSpec(
        address=wanted.address,
        owner="hourly",
        schema=wanted.schema,
        partition_columns=("date",),
        storage=s3.storage,
    )
    with pytest.raises(WrongUse, match="belongs to the job 'nightly'"):
        open_table(kind, other)


@pytest.fixture(scope="module")
def proxy(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BadDays]:
    with bad_days(tmp_path_factory.mktemp("bad days"), s3) as made:
        yield made


@pytest.fixture
def bad(proxy: BadDays) -> Iterator[BadDays]:
    yield proxy
    proxy.say(None)


COMMIT = r"^PUT \S+(_delta_log/\d+|/v\d+\.metadata)\.json"


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_whose_answer_is_lost_is_made_once(kind: Kind, bad: BadDays) -> None:
    """Whoever asks again is told that there is one by now: their own."""
    wanted = spec(f"lost-{kind}", bad.store)
    commit(open_table(kind, wanted), 0)
    bad.say(Fault(COMMIT, loses_answer=True, count=1))
    commit(open_table(kind, wanted), 1)
    assert bad.hits == 1
    assert open_table(kind, wanted).next_offsets([PARTITION]) == {PARTITION: 2}
    commit(open_table(kind, wanted), 2)
    assert offsets(kind, wanted) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_busy_for_a_while_is_waited_for(kind: Kind, bad: BadDays) -> None:
    wanted = spec(f"busy-{kind}", bad.store)
    commit(open_table(kind, wanted), 0)
    bad.say(Fault("^(GET|PUT|POST)", status=503, body=SLOW_DOWN, count=3))
    commit(open_table(kind, wanted), 1)
    assert bad.hits == 3
    bad.say(Fault(COMMIT, status=503, body=SLOW_DOWN, count=2))
    commit(open_table(kind, wanted), 2)
    assert bad.hits == 2
    assert offsets(kind, wanted) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_stays_busy_leaves_the_table_as_it_was(kind: Kind, bad: BadDays) -> None:
    wanted = structs.replace(
        spec(f"always-{kind}", bad.store), storage=structs.replace(bad.store.storage, patience_s=2)
    )
    commit(open_table(kind, wanted), 0)
    table = open_table(kind, wanted)
    files = written(table, 1)
    bad.say(Fault(COMMIT, status=503, body=SLOW_DOWN))
    with pytest.raises((OSError, DeltaError, StoreFailed)) as caught:
        table.commit(Commit(files, {PARTITION: 2}))
    assert "asks to slow down" in cause_of(f"{type(caught.value).__name__}: {caught.value}")
    bad.say(None)
    assert offsets(kind, wanted) == [0]
    assert open_table(kind, wanted).next_offsets([PARTITION]) == {PARTITION: 1}


@pytest.mark.parametrize(
    ("fault", "words", "error"),
    [
        pytest.param(Fault("", status=403, body=WRONG_KEY), "refuses the keys", WrongUse, id="wrong key"),
        pytest.param(Fault("", status=503, body=SLOW_DOWN), "asks to slow down", PipelineFailed, id="busy"),
    ],
)
def test_a_store_that_refuses_is_found_out_first(
    fault: Fault, words: str, error: type[Exception], bad: BadDays
) -> None:
    bad.say(fault)
    with pytest.raises(error, match=words) as caught:
        refuse_unfit(f"s3://{BUCKET}/refused", structs.replace(bad.store.storage, patience_s=2))
    assert "\n" not in str(caught.value)


def test_a_store_that_is_not_there_or_has_no_such_bucket_is_found_out_first(s3: S3) -> None:
    nobody = Storage(
        endpoint="http://127.0.0.1:9", region="r", access_key_id="a", secret_access_key="b", patience_s=1
    )
    with pytest.raises(WrongUse, match=r"does not answer \(http://127.0.0.1:9"):
        refuse_unfit(f"s3://{BUCKET}/nowhere", nobody)
    with pytest.raises(WrongUse, match="there is no bucket none"):
        refuse_unfit("s3://none/nowhere", s3.storage)
    with pytest.raises(WrongUse, match="names no bucket"):
        refuse_unfit("s3:///nowhere", s3.storage)


def test_a_store_that_replaces_what_was_to_be_created_is_refused(bad: BadDays) -> None:
    bad.say(Fault("^PUT", forgets_condition=True))
    for _ in range(2):  # whatever the first has left
        with pytest.raises(WrongUse, match="replaces an object"):
            refuse_unfit(f"s3://{BUCKET}/forgetful", bad.store.storage)
    bad.say(None)
    refuse_unfit(f"s3://{BUCKET}/sound", bad.store.storage)
    refuse_unfit(f"s3://{BUCKET}/sound", bad.store.storage)


def test_an_object_is_created_by_one_alone(s3: S3) -> None:
    objects = Objects(f"s3://{BUCKET}/created", s3.storage)
    assert objects.create("a/v1", b"mine")
    assert objects.create("a/v1", b"mine"), "an answer may have been lost"
    assert not objects.create("a/v1", b"yours")
    assert objects.read("a/v1") == b"mine"
    objects.create("a/u1", b"")
    assert list(objects.names("a", after="v")) == ["v1"]


def test_plain_parquet_is_refused_in_an_object_store(s3: S3) -> None:
    with pytest.raises(WrongUse, match="use table=delta for object stores"):
        open_table("parquet", spec("plain", s3))
