"""Where rows go, and what they come to: without a broker."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.spark.columns import Column
from ropewalk.spark.encoding.rows import RECORD_OVERHEAD_BYTES, Rows, rows_of
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.digest import RowsDigest
from ropewalk.spark.sink.incoming import GATHERED_BYTES, by_topic, gathered
from ropewalk.spark.sink.placing import Placing


def keyed(keys: list[bytes | None], value_bytes: int = 10) -> Rows:
    return rows_of(
        {
            Column.KEY: pa.array(keys, pa.binary()),
            Column.VALUE: pa.array([bytes(value_bytes)] * len(keys), pa.binary()),
        },
        0,
    )


def placing(count: int = 3, *, first: int = 0, bytes_each: int = 4 * (RECORD_OVERHEAD_BYTES + 10)) -> Placing:
    return Placing("t", count, first=first, bytes_each=bytes_each)


def test_a_key_goes_where_every_client_puts_it_and_a_named_partition_comes_first() -> None:
    keys: list[bytes | None] = [b"a", b"", b"some-longer-key", None]
    named = pa.array([None, None, 2, 1], pa.int32())
    assert placing().place(keyed(keys), named).tolist() == [
        partition_for_key(b"a", 3),
        partition_for_key(b"", 3),
        2,
        1,
    ]


def test_rows_without_a_key_fill_a_batch_and_then_go_on_also_from_one_piece_to_the_next() -> None:
    turns = placing(first=2)
    assert turns.place(keyed([None] * 6)).tolist() == [2, 2, 2, 2, 0, 0]
    assert turns.place(keyed([b"a", None, None, None])).tolist()[1:] == [0, 0, 1]


@pytest.mark.parametrize("number", [-1, 3])
def test_a_partition_that_is_not_there_is_named(number: int) -> None:
    with pytest.raises(WrongUse, match=f"partition {number} of t, which has 3"):
        placing().place(keyed([b"a", b"b"]), pa.array([None, number], pa.int32()))


def test_small_batches_are_joined_and_nothing_changes_its_place() -> None:
    pieces = [pa.record_batch([pa.array([bytes([number]) * 1000])], ["value"]) for number in range(250)] * 20
    joined = list(gathered(iter(pieces)))
    assert 1 < len(joined) < 4
    assert all(piece.nbytes >= GATHERED_BYTES for piece in joined[:-1])
    values = [value for piece in joined for value in piece.column(0).to_pylist()]
    assert values == [bytes([number]) * 1000 for number in range(250)] * 20


def test_rows_of_several_topics_are_told_apart() -> None:
    batch = pa.record_batch([pa.array([b"1", b"2", b"3"]), pa.array(["a", "b", "a"])], ["value", "topic"])
    found = {
        topic: columns[Column.VALUE].to_pylist()
        for topic, columns in by_topic(batch, (Column.VALUE, Column.TOPIC), None)
    }
    assert found == {"a": [b"1", b"3"], "b": [b"2"]}


_rows = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=5),
        st.none() | st.binary(max_size=5),
        st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=3),
        st.none() | st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int | None]


def digest(rows: list[Row], pieces: int) -> str:
    found = RowsDigest()
    for part in np.array_split(np.arange(len(rows)), pieces):
        chosen = [rows[index] for index in part.tolist()]
        found.add(
            {
                Column.KEY: pa.array([row[0] for row in chosen], pa.binary()),
                Column.VALUE: pa.array([row[1] for row in chosen], pa.binary()),
                Column.HEADERS: pa.array(
                    [[{"key": name, "value": content} for name, content in row[2]] or None for row in chosen],
                    Column.HEADERS.arrow_type,
                ),
                Column.PARTITION: pa.array([row[3] for row in chosen], pa.int32()),
            }
        )
    return found.text


@settings(max_examples=80, deadline=None)
@given(rows=_rows, other=_rows, data=st.data())
def test_a_digest_tells_rows_apart_and_nothing_else(
    rows: list[Row], other: list[Row], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert digest(rows, 1) == digest(list(shuffled), data.draw(st.integers(1, 3)))
    is_same = sorted(map(repr, rows)) == sorted(map(repr, other))
    assert (digest(rows, 1) == digest(other, 1)) is is_same
