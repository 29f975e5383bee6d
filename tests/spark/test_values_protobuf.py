"""Protobuf values become columns, by descriptors from a file or from a registry."""

import base64
import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, ValueReader, open_reader, resolve
from ropewalk.spark.values.framing import NotFramed, take_message_path
from ropewalk.spark.values.protobuf_schema import load_pool
from ropewalk.spark.values.schemas import SchemaText
from tests.spark.fake_registry import FakeRegistry, fake_registry, framed

Type = descriptor_pb2.FieldDescriptorProto
SINGLE, REPEATED = 1, 3


def _order() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto",
        package="shop",
        syntax="proto3",
        dependency=[
            f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "wrappers", "struct")
        ],
    )
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=Type.TYPE_STRING, label=SINGLE)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Type.TYPE_STRING, label=SINGLE)
    entry.field.add(name="value", number=2, type=Type.TYPE_INT32, label=SINGLE)
    order.oneof_decl.add(name="payment")
    google = ".google.protobuf."
    for number, (name, type_, label, type_name) in enumerate(
        [
            ("id", Type.TYPE_INT64, SINGLE, None),
            ("big", Type.TYPE_UINT64, SINGLE, None),
            ("price", Type.TYPE_FLOAT, SINGLE, None),
            ("paid", Type.TYPE_BOOL, SINGLE, None),
            ("name", Type.TYPE_STRING, SINGLE, None),
            ("hash", Type.TYPE_BYTES, SINGLE, None),
            ("state", Type.TYPE_ENUM, SINGLE, ".shop.State"),
            ("lines", Type.TYPE_MESSAGE, REPEATED, ".shop.Line"),
            ("labels", Type.TYPE_MESSAGE, REPEATED, ".shop.Order.LabelsEntry"),
            ("at", Type.TYPE_MESSAGE, SINGLE, google + "Timestamp"),
            ("took", Type.TYPE_MESSAGE, SINGLE, google + "Duration"),
            ("maybe", Type.TYPE_MESSAGE, SINGLE, google + "Int32Value"),
            ("free", Type.TYPE_MESSAGE, SINGLE, google + "Struct"),
            ("numbers", Type.TYPE_UINT32, REPEATED, None),
        ],
        start=1,
    ):
        order.field.add(name=name, number=number, type=type_, label=label, type_name=type_name)
    order.field.add(name="card", number=20, type=Type.TYPE_STRING, label=SINGLE, oneof_index=0)
    order.field.add(name="cash", number=21, type=Type.TYPE_INT32, label=SINGLE, oneof_index=0)
    return file


FILE = _order()


def schema_of(*files: Any) -> SchemaText:
    text = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()).decode()
    return SchemaText("protobuf", text, is_set=True)


def message(name: str = "shop.Order") -> Any:
    pool, _ = load_pool(schema_of(FILE))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()


def reader(name: str | None = "shop.Order", **settings: Any) -> ValueReader:
    return open_reader(
        ResolvedFormat(ValueFormat(format="protobuf", message=name, **settings), schema_of(FILE))
    )


def full() -> bytes:
    order = message()
    order.id, order.big, order.price, order.paid, order.name, order.hash, order.state = (
        -5,
        2**64 - 1,
        1.5,
        True,
        "a",
        b"h",
        1,
    )
    order.lines.add(sku="x")
    order.labels["k"] = 3
    order.at.seconds, order.at.nanos = 1, 5999
    order.took.seconds, order.took.nanos = -1, -500_000_000
    order.maybe.value = 0
    order.free["k"] = True
    order.numbers.append(2**32 - 1)
    order.cash = 0
    data: bytes = order.SerializeToString()
    return data


def test_a_full_value_and_an_empty_one_are_read() -> None:
    found = reader().read(pa.array([full(), b"", None]))
    assert found.faults.to_pylist() == [None] * 3
    instant = datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.UTC)
    first, empty, tombstone = found.columns.to_pylist()
    assert first == {
        "id": -5, "big": Decimal(2**64 - 1), "price": 1.5, "paid": True, "name": "a", "hash": b"h", "state": "PAID",
        "lines": [{"sku": "x"}], "labels": [("k", 3)], "at": instant, "took": -1_500_000, "maybe": 0, "free": '{"k": true}',
        "numbers": [2**32 - 1], "card": None, "cash": 0,
    }  # fmt: skip
    assert empty == {
        "id": 0, "big": Decimal(0), "price": 0.0, "paid": False, "name": "", "hash": b"", "state": "NEW",
        "lines": [], "labels": [], "at": None, "took": None, "maybe": None, "free": None, "numbers": [], "card": None, "cash": None,
    }  # fmt: skip
    assert tombstone is None


def test_a_number_that_the_enum_does_not_name_is_kept() -> None:
    order = message()
    order.state = 9
    (row,) = reader().read(pa.array([order.SerializeToString()])).columns.to_pylist()
    assert row["state"] == "9"


@given(st.lists(st.one_of(st.none(), st.binary(max_size=30), st.just(full())), max_size=20))
def test_any_bytes_are_either_a_row_or_a_fault(values: list[bytes | None]) -> None:
    found = _READER.read(pa.array(values, pa.binary()))
    for value, row, fault in zip(values, found.columns.to_pylist(), found.faults.to_pylist(), strict=True):
        assert (row is None) == (value is None or fault is not None)


_READER = reader()


def test_bytes_that_are_no_message_and_a_time_out_of_range_are_faults() -> None:
    order = message()
    order.at.seconds = 2**62
    found = reader().read(pa.array([b"\xff\xff", full(), order.SerializeToString(), full()]))
    faults = found.faults.to_pylist()
    assert "is not a message shop.Order" in faults[0]
    assert "does not fit" in faults[2]
    assert faults[1] is faults[3] is None


def test_the_prefix_tells_which_message_it_is() -> None:
    """Order is the second message of its file: one index, 1."""
    opened = reader(prefix=True)
    values = [framed(1, b"\x02\x02" + full()), framed(1, b"\0" + full()), framed(1, b""), full()]
    faults = opened.read(pa.array(values)).faults.to_pylist()
    assert faults[0] is None
    assert "is message [0] of its file, and shop.Order is [1]" in faults[1]
    assert "ends inside the path" in faults[2]
    assert "begins with" in faults[3]


@pytest.mark.parametrize(
    ("body", "path", "rest"),
    [(b"\0rest", (0,), b"rest"), (b"\x02\x02rest", (1,), b"rest"), (b"\x04\x02\x80\x01", (1, 64), b"")],
)
def test_paths_of_messages(body: bytes, path: tuple[int, ...], rest: bytes) -> None:
    assert take_message_path(body) == (path, rest)


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x02", b"\xff\xff\xff\xff\xff\xff", b"\xfe\x01"])
def test_what_is_no_path(body: bytes) -> None:
    with pytest.raises(NotFramed):
        take_message_path(body)


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as made:
        yield made


def test_a_registry_gives_descriptors_and_tells_messages_apart(registry: FakeRegistry) -> None:
    bare = descriptor_pb2.FileDescriptorProto()
    bare.CopyFrom(FILE)
    bare.ClearField("name")  # as registries answer
    number = registry.register("t-value", base64.b64encode(bare.SerializeToString()).decode(), "PROTOBUF")
    settings = ValueFormat(format="protobuf", registry=registry.url, message="shop.Order")
    opened = open_reader(resolve(settings, ["t"]))
    values = [
        framed(number, b"\x02\x02" + full()),
        framed(number, b"\0"),
        framed(number, b"\x02\x08"),
        framed(7, b"\0"),
    ]
    found = opened.read(pa.array(values))
    assert found.faults.to_pylist() == [
        None,
        f"is message shop.Line of schema {number}, not shop.Order",
        f"is no message of schema {number}, not shop.Order",
        f"schema 7 is not in the registry {registry.url}",
    ]
    assert found.columns[0].as_py()["id"] == -5


def test_a_registrys_file_may_import_others(registry: FakeRegistry) -> None:
    part = descriptor_pb2.FileDescriptorProto(package="parts", syntax="proto3")
    part.message_type.add(name="Part").field.add(name="n", number=1, type=Type.TYPE_INT32, label=SINGLE)
    whole = descriptor_pb2.FileDescriptorProto(package="parts", syntax="proto3", dependency=["part.proto"])
    field = whole.message_type.add(name="Whole").field.add(
        name="part", number=1, type=Type.TYPE_MESSAGE, label=SINGLE
    )
    field.type_name = ".parts.Part"
    registry.register("part", base64.b64encode(part.SerializeToString()).decode(), "PROTOBUF")
    number = registry.register(
        "t-value",
        base64.b64encode(whole.SerializeToString()).decode(),
        "PROTOBUF",
        [{"name": "part.proto", "subject": "part", "version": 1}],
    )
    opened = open_reader(resolve(ValueFormat(format="protobuf", registry=registry.url), ["t"]))
    found = opened.read(pa.array([framed(number, b"\0\x0a\x02\x08\x05")]))
    assert found.columns.to_pylist() == [{"part": {"n": 5}}]


def test_descriptors_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "order.desc"
    path.write_bytes(base64.b64decode(schema_of(FILE).text))
    resolved = resolve(ValueFormat(format="protobuf", schema=str(path), message="shop.Order"))
    assert open_reader(resolved).schema() == reader().schema()
    assert open_reader(resolve(ValueFormat(format="protobuf", schema=str(path)))).schema() == pa.schema(
        [("sku", pa.string())]
    )
    path.write_bytes(b"no descriptor")
    with pytest.raises(WrongUse, match="descriptor_set_out"):
        open_reader(resolve(ValueFormat(format="protobuf", schema=str(path))))


def test_descriptors_that_are_no_table_are_refused() -> None:
    with pytest.raises(WrongUse, match=r"no message 'shop\.Nobody'"):
        reader("shop.Nobody")
    tree = descriptor_pb2.FileDescriptorProto(name="tree.proto", syntax="proto3")
    tree.message_type.add(name="Tree").field.add(
        name="left", number=1, type=Type.TYPE_MESSAGE, label=SINGLE, type_name=".Tree"
    )
    for file, reason in [
        (tree, "in itself"),
        (descriptor_pb2.FileDescriptorProto(name="x", dependency=["gone.proto"]), "not complete"),
    ]:
        with pytest.raises(WrongUse, match=reason):
            open_reader(ResolvedFormat(ValueFormat(format="protobuf"), schema_of(file)))
    assert descriptor_pool.Default() is not load_pool(schema_of(FILE))[0]
