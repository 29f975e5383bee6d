"""Choosing records by what is in them, and showing what values mean."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import Offset
from ropewalk.client.formats import Avro
from ropewalk.records.record import Record
from ropewalk.views.decoding import Undecoded, as_text, decoder, json_indented
from ropewalk.views.json_paths import parse_comparison
from ropewalk.views.record_filters import all_of, comparing, containing, matching

ORDER = {
    "id": 5,
    "price": 9.5,
    "paid": True,
    "name": "Bergen",
    "note": None,
    "a.b": {"c d": 1},
    "items": [{"sku": "x", "count": 1}, {"sku": "y", "count": 3}],
    "tags": ["new", "5"],
}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("id=5", True),
        ("id = 5", True),
        ("$.id == 5", True),
        ("id=5.0", True),
        ('id="5"', False),
        ("id=6", False),
        ("id!=6", True),
        ("id!=5", False),
        ("nowhere!=5", False),
        ("id>4", True),
        ("id>=5", True),
        ("id<5", False),
        ("id<=5", True),
        ("price>9", True),
        ("name>A", True),
        ("name>4", False),
        ("paid=true", True),
        ("paid=1", False),
        ("paid>0", False),
        ("note=null", True),
        ("note", True),
        ("nowhere", False),
        ("name=Bergen", True),
        ('name="Bergen"', True),
        ("name~erg", True),
        ("name~5", False),
        ("id~5", False),
        ('["a.b"]["c d"]=1', True),
        ("items[0].sku=x", True),
        ("items[-1].sku=y", True),
        ("items[2].sku=y", False),
        ("items[-3]", False),
        ("items[*].count>2", True),
        ("items[*].count>3", False),
        ("tags[*]=5", False),
        ('tags[*]="5"', True),
        ("[*]=Bergen", True),
        ("items.sku=x", False),
        ("id.sku=x", False),
        ('items[1]={"sku":"y","count":3}', True),
    ],
)
def test_a_path_leads_somewhere_and_what_is_there_is_compared(text: str, fits: bool) -> None:
    assert parse_comparison(text).fits(ORDER) is fits


@pytest.mark.parametrize("text", ["", "=5", "$", "a b", "a[x]", "a[", "a..b", "a=5 ==", ".".join("a" * 65)])
def test_what_is_no_path_is_refused(text: str) -> None:
    if text == "a=5 ==":
        assert parse_comparison(text).operand == "5 =="  # text, since it is no JSON
        return
    with pytest.raises(ValueError, match=r"path|read"):
        parse_comparison(text)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(JSONS, st.text(max_size=3))
def test_a_field_of_any_name_is_found_and_is_equal_to_itself(value: object, name: str) -> None:
    text = f"[{json.dumps(name)}]={json.dumps(value)}"
    assert parse_comparison(text).fits({name: value})
    assert not parse_comparison(text).fits({f"{name}x": value})


def record(
    value: bytes | None, key: bytes | None = None, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> Record:
    return Record(offset=Offset(0), timestamp=0, key=key, value=value, headers=headers)


@pytest.mark.parametrize("make", [containing, matching])
def test_a_text_is_looked_for_in_key_value_and_headers(
    make: Callable[[str], Callable[[Record], bool]],
) -> None:
    holds = make("café")
    word = "café".encode()
    assert holds(record(b"\xff" + word + b"\xff"))
    assert holds(record(None, key=word))
    assert holds(record(None, headers=(("a", None), ("b", word))))
    assert holds(record(None, headers=(("café", None),)))
    assert not holds(record(b"cafe", key=b"", headers=(("caf", b"\xc3"),)))


def test_expressions_are_those_of_re2_and_bounded() -> None:
    assert matching("(?i)ERR[0-9]+")(record(b"an err42 came"))
    assert not matching("^b")(record(b"ab"))
    for refused in ("(", r"(a)\1", "a" * 100_000):
        with pytest.raises(ValueError):
            matching(refused)
    with pytest.raises(ValueError):
        containing("a" * 5_000)


def test_all_filters_must_hold_and_what_is_no_json_fits_none() -> None:
    holds = all_of([containing("x"), comparing(parse_comparison("id=5"), decoder("json"))])
    assert holds(record(b'{"id": 5, "x": 1}'))
    assert not holds(record(b'{"id": 5}'))
    assert not holds(record(b"x id=5"))
    assert not holds(record(None, key=b"x"))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_nested_too_deeply_is_an_answer(opening: bytes) -> None:
    deep = opening * 100_000
    assert json_indented(deep) is None
    with pytest.raises(Undecoded):
        decoder("json")(deep)
    assert not comparing(parse_comparison("a=1"), decoder("json"))(record(deep))
    with pytest.raises(Undecoded):
        decoder("msgpack")(b"\x91" * 100_000)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("json", b'{"a": [1]}', '{"a":[1]}'),
        ("msgpack", msgspec.msgpack.encode({"a": [1]}), '{"a":[1]}'),
        ("msgpack", msgspec.msgpack.encode({1: b"x"}), '{"1":"eA=="}'),
        ("text", b"caf\xc3\xa9", "café"),
        ("text", b"\xff", "\ufffd"),
        ("hex", b"\x00\xff\x10", "00 ff10"),
    ],
)
def test_values_are_shown_for_what_they_mean(name: str, data: bytes, text: str) -> None:
    assert as_text(decoder(name)(data), indent=False) == text


def test_avro_is_read_by_the_schema_of_a_file(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(schema))
    decode = decoder(f"avro:{path}")
    assert decode(Avro(schema).encode({"id": 5})) == {"id": 5}
    with pytest.raises(Undecoded):
        decode(b"")
    (tmp_path / "bad").write_text('{"type": "nothing"}')
    for name in (f"avro:{tmp_path}/missing", f"avro:{tmp_path}/bad", "xml"):
        with pytest.raises(InvalidSetting):
            decoder(name)


def test_json_is_indented_as_it_was_written_and_nothing_else_is() -> None:
    assert json_indented(b' {"price": 1.50, "id": 12345678901234567890123}') == (
        b'{\n  "price": 1.50,\n  "id": 12345678901234567890123\n}'
    )
    for left in (b"5", b"text", b"{", b"", b"\xff{", b'"a"'):
        assert json_indented(left) is None
