"""Conditions, choices of columns and masks: what they let through, and what is refused before anything is read."""

import hmac
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from ropewalk.spark.lake.choosing import SECRET, Choice, Choosing, for_letters, read_secret
from ropewalk.spark.lake.conditions import DEPTH_MAX, parse_condition
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.refusals import WrongUse

HUSH = b"a secret of sixteen bytes"
VALUE = pa.struct(
    [
        pa.field("id", pa.int64()),
        pa.field("card", pa.string()),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("rate", pa.float64()),
        pa.field("is new", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("who", pa.struct([pa.field("name", pa.string()), pa.field("raw", pa.binary())])),
    ]
)
TOPIC = raw_schema("date")
WHOLE = TOPIC.set(1, pa.field("value", VALUE))


def row(number: int, **value: Any) -> dict[str, Any]:
    return {
        "key": f"k{number}".encode() if number % 3 else None,
        "value": {"id": number, **value} if number != 4 else None,
        "topic": "orders" if number % 2 else "returns",
        "partition": 0,
        "offset": number,
        "timestamp": datetime(2026, 11, 10 + number, tzinfo=UTC),
        "timestampType": 0,
    }


ROWS = pa.RecordBatch.from_pylist(
    [
        row(
            1, card="4111222233334444", amount=Decimal("12.50"), rate=0.5, who={"name": "Ann", "raw": b"abc"}
        ),
        row(2, card="12", amount=Decimal("100.00"), rate=1.5, **{"is new": True}, day=date(2026, 1, 2)),
        row(3, card=None, amount=Decimal("7.00"), rate=2.5, **{"is new": False}, tags=["a"]),
        row(4),
    ],
    schema=pa.schema([field for field in WHOLE if field.name != "date"]),
)


def passing(condition: str, rows: pa.RecordBatch = ROWS) -> list[int]:
    found: list[int] = Choosing(Choice(where=condition), rows.schema).of(rows)["offset"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("condition", "offsets"),
    [
        ("offset > 2", [3, 4]),
        ("2 < offset", [3, 4]),
        ("offset = -1", []),
        ("value.amount >= 12.5", [1, 2]),
        ("value.rate > 0.5 AND value.rate <= 1.5", [2]),
        ("value.rate BETWEEN 0.5 AND 1.5", [1, 2]),
        ("value.rate NOT BETWEEN 0.5 AND 1.5", [3]),
        ("value.id > value.rate", [1, 2, 3]),
        ("topic = 'orders'", [1, 3]),
        ("topic IN ('orders', 'other') or offset in (4)", [1, 3, 4]),
        ("NOT topic IN ('orders')", [2, 4]),
        ("key = 'k2'", [2]),
        ("key LIKE 'k%'", [1, 2, 4]),
        ("value.card NOT LIKE '41%'", [2]),
        ("key IS NULL", [3]),
        ("value IS NOT NULL", [1, 2, 3]),
        ("value.`is new`", [2]),
        ("value.`is new` = FALSE", [3]),
        ("NOT value.`is new`", [3]),
        ("timestamp >= '2026-11-13'", [3, 4]),
        ("timestamp < '2026-11-12T01:00:00+01:00'", [1]),
        ("value.day = '2026-01-02'", [2]),
        ("value.who.name = 'Ann'", [1]),
        ("value.who.raw = 'abc' AND (offset = 1 OR offset = 2)", [1]),
        ("value.card = '4111222233334444' OR value.amount > 50", [1, 2]),
        ("value.card <> 'it''s'", [1, 2]),
    ],
)
def test_rows_that_a_condition_lets_through(condition: str, offsets: list[int]) -> None:
    assert passing(condition) == offsets
    assert passing(condition, ROWS.slice(1)) == [each for each in offsets if each > 1], "a slice as the whole"


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("amount > 3", "there is no column 'amount'"),
        ("ofset > 3", "there is no column 'ofset'; did you mean offset"),
        ("value.amuont > 3", "value has no field 'amuont'; did you mean value.amount"),
        ("key.id = 3", "key is binary and has no fields"),
        ("offset > 'three'", "offset is int64 and cannot be compared with 'three'"),
        ("topic = 3", "topic is string and cannot be compared with 3"),
        ("timestamp > 'yesterday'", "'yesterday' is no timestamp"),
        ("value.tags = 'a'", "cannot be compared"),
        ("topic = partition", "they cannot be compared"),
        ("offset LIKE '1%'", "LIKE takes a column of text or bytes"),
        ("1 = 2", "both no column"),
        ("offset >", "ends where a column or a value must be"),
        ("offset > 3 offset", "where AND, OR or the end must be"),
        ("(offset > 3", "ends where [)] must be"),
        ("offset", "ends where =, <"),
        ("offset NOT 3", "where IN, LIKE or BETWEEN must be"),
        ("offset > 3; DROP TABLE x", "cannot be read from ';"),
        ("__import__('os')", "there is no column '__import__'"),
        ("offset IN (partition)", "is a column, and a value must stand there"),
        ("NOT " * (DEPTH_MAX + 1) + "key IS NULL", "nested deeper"),
        ("'" + "x" * 10_001, "may have 10000"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(condition: str, words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        parse_condition(condition, ROWS.schema)


def masked(choice: Choice, rows: pa.RecordBatch = ROWS) -> pa.RecordBatch:
    return Choosing(choice, rows.schema).of(rows)


def test_a_hash_is_that_of_everybody_who_has_the_secret() -> None:
    rows = masked(Choice(masks={"value.card": "hash", "key": "hash", "value.who.raw": "hash"}, secret=HUSH))
    first, second, third, fourth = rows.to_pylist()
    assert first["value"]["card"] == hmac.digest(HUSH, b"4111222233334444", "sha256").hex()
    assert first["key"] == hmac.digest(HUSH, b"k1", "sha256")
    assert first["value"]["who"] == {"name": "Ann", "raw": hmac.digest(HUSH, b"abc", "sha256")}
    assert (second["value"]["who"], third["value"]["card"], third["key"], fourth["value"]) == (None,) * 4
    assert rows.slice(1) == masked(
        Choice(masks={"value.card": "hash", "key": "hash", "value.who.raw": "hash"}, secret=HUSH),
        ROWS.slice(1),
    )
    assert rows.schema == ROWS.schema


def test_of_the_last_characters_no_more_are_kept_and_nothing_of_what_is_no_longer() -> None:
    rows = masked(Choice(masks={"value.card": "last 2", "key": "last 1"}))
    assert [each and each["card"] for each in rows["value"].to_pylist()] == ["44", "", None, None]
    assert rows["key"].to_pylist() == [b"1", b"2", None, b"4"]


def test_a_condition_sees_what_is_masked_and_what_is_left_out() -> None:
    choice = Choice(columns=("offset",), where="value.card LIKE '4111%'", masks={"value.card": "last 4"})
    assert masked(choice)["offset"].to_pylist() == [1]
    assert choice.schema(WHOLE).names == ["offset", "date"]


def test_columns_and_fields_are_chosen_and_dropped() -> None:
    chosen = Choice(columns=("value.amount", "value.who.name", "key")).schema(WHOLE)
    assert chosen.names == ["key", "value", "date"]
    assert [field.name for field in chosen.field("value").type] == ["amount", "who"]
    assert [field.name for field in chosen.field("value").type.field("who").type] == ["name"]
    left = Choice(masks={"headers": "drop", "value.card": "drop", "value.who": "drop"}).schema(WHOLE)
    assert "headers" not in left.names
    assert {"card", "who"}.isdisjoint(field.name for field in left.field("value").type)
    assert Choice().schema(WHOLE) == WHOLE


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(columns=("kee",)), "there is no column 'kee'; did you mean key"),
        (Choice(masks={"value.card": "first 4"}), "must be drop, hash, or last N"),
        (Choice(masks={"value.card": "last 0"}), "must be drop, hash, or last N"),
        (Choice(masks={"value.amount": "last 2"}), "hash and last N take text or bytes; drop it"),
        (Choice(masks={"value.card": "hash"}), "needs a secret of at least 16 bytes"),
        (Choice(masks={"value.card": "hash"}, secret=b"short"), "needs a secret"),
        (Choice(columns=("key",), masks={"key": "drop"}), "leave no column"),
        (Choice(where="date = '2026-01-01'"), "there is no column 'date'"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(choice: Choice, words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        choice.check(WHOLE)


def test_dead_letters_show_no_more_than_the_table_may_have() -> None:
    bad = pa.RecordBatch.from_pylist([{"key": b"k1", "value": b"4111", "topic": "t", "offset": 1}], schema=pa.schema([
        pa.field("key", pa.binary()), pa.field("value", pa.binary()), pa.field("topic", pa.string()), pa.field("offset", pa.int64())
    ]))  # fmt: skip

    def letter(**choice: Any) -> dict[str, Any]:
        found: dict[str, Any] = for_letters(Choice(secret=HUSH, **choice), bad).to_pylist()[0]
        return found

    assert letter(where="offset > 5")["value"] == b"4111"
    assert letter(masks={"value.card": "last 2"})["value"] is None
    assert letter(columns=("value.id", "offset")) == {"key": None, "value": None, "topic": "t", "offset": 1}
    assert letter(masks={"key": "hash"}) == {
        "key": hmac.digest(HUSH, b"k1", "sha256"), "value": b"4111", "topic": "t", "offset": 1
    }  # fmt: skip
    assert letter(masks={"key": "drop"})["key"] is None


def test_the_secret_is_read_and_shown_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(HUSH + b"\n")
    assert read_secret(str(tmp_path / "secret"), {SECRET: "other"}) == HUSH
    assert read_secret(None, {SECRET: HUSH.decode()}) == HUSH
    assert read_secret(None, {}) == b""
    with pytest.raises(WrongUse, match="cannot be read"):
        read_secret(str(tmp_path / "nowhere"), {})
    choice = Choice(secret=HUSH)
    assert HUSH.decode() not in repr(choice)
    assert pickle.loads(pickle.dumps(choice)) == choice
