"""What the command line reads and prints: offsets, times, formats, lines. Tables and properties."""

import asyncio
import io
import os
from pathlib import Path

import msgspec
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import Offset, TopicPartition
from ropewalk.cli.lines import read_messages
from ropewalk.cli.message import Template
from ropewalk.cli.offsets import parse_offset, parse_partitions, parse_time
from ropewalk.cli.record_format import compile_format, print_json_line
from ropewalk.records.record import Record
from ropewalk.views.offsets import Anchor, Where

ORDERS = TopicPartition("orders", 2)
RECORD = Record(
    offset=Offset(17),
    timestamp=1234,
    key=b"k",
    value=b"hello",
    headers=(("a", b"1"), ("b", None), ("a", b"2")),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", Where(Anchor.BEGINNING)),
        ("earliest", Where(Anchor.BEGINNING)),
        ("end", Where(Anchor.END)),
        ("0", Where(Anchor.ABSOLUTE, 0)),
        ("17", Where(Anchor.ABSOLUTE, 17)),
        ("-5", Where(Anchor.BEFORE_END, 5)),
        ("s@1500", Where(Anchor.TIME, 1500)),
        ("s@1970-01-01T00:00:02", Where(Anchor.TIME, 2000)),
        ("s@1970-01-01T01:00:02+01:00", Where(Anchor.TIME, 2000)),
        ("s@1970-01-02", Where(Anchor.TIME, 86_400_000)),
    ],
)
def test_offsets_are_read_as_kcat_reads_them(text: str, expected: Where) -> None:
    assert parse_offset(text, option="-o") == expected


@pytest.mark.parametrize("text", ["", "soon", "1.5", "s@", "s@tomorrow", "e@1500", "@5", "--5"])
def test_what_is_not_an_offset_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_offset(text, option="-o")


def test_times_without_a_zone_are_utc() -> None:
    assert parse_time("2026-11-15T10:00", option="-o") == parse_time("2026-11-15T10:00Z", option="-o")


@pytest.mark.parametrize(("text", "expected"), [(None, None), ("0", [0]), ("2,0,2", [0, 2])])
def test_partitions_are_a_list(text: str | None, expected: list[int] | None) -> None:
    assert parse_partitions(text) == expected


@pytest.mark.parametrize("text", ["", "a", "1,", "-1", "0,-2"])
def test_what_is_not_a_list_of_partitions_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_partitions(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%v\\n", b"hello\n"),
        ("%s", b"hello"),
        ("%k=%v", b"k=hello"),
        ("%t-%p@%o", b"orders-2@17"),
        ("%T", b"1234"),
        ("%S %V %K", b"5 5 1"),
        ("%h", b"a=1,b=,a=2"),
        ("100%%\\t\\x41\\\\", b"100%\tA\\"),
        ("", b""),
        ("plain", b"plain"),
    ],
)
def test_a_format_prints_what_its_letters_say(text: str, expected: bytes) -> None:
    assert compile_format(text)(ORDERS, RECORD) == expected


def test_nothing_prints_as_nothing_and_has_the_size_minus_one() -> None:
    assert compile_format("[%k|%v|%K|%S]")(ORDERS, Record()) == b"[||-1|-1]"


@pytest.mark.parametrize(("text", "named"), [("%x", "%x"), ("%", "%"), ("\\q", r"\\q"), ("\\", r"\\")])
def test_a_letter_that_does_not_exist_is_named(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        compile_format(text)


@given(st.binary(), st.binary() | st.none())
def test_bytes_are_printed_as_they_are(value: bytes, key: bytes | None) -> None:
    assert compile_format("%k %v")(ORDERS, Record(key=key, value=value)) == (key or b"") + b" " + value


def test_json_holds_everything_about_a_record() -> None:
    assert msgspec.json.decode(print_json_line(ORDERS, RECORD)) == {
        "topic": "orders",
        "partition": 2,
        "offset": 17,
        "timestamp": 1234,
        "key": "k",
        "value": "hello",
        "headers": [
            {"name": "a", "value": "1"},
            {"name": "b", "value": None},
            {"name": "a", "value": "2"},
        ],
    }


def test_bytes_that_are_not_text_are_base64_in_json() -> None:
    shown = msgspec.json.decode(print_json_line(ORDERS, Record(key=b"\xff", value=b"\xfe\xfd")))
    assert shown["key_base64"] == "/w=="
    assert shown["value_base64"] == "/v0="
    assert "value" not in shown


@pytest.mark.parametrize(
    ("template", "message", "expected"),
    [
        (Template(), b"a:b", Record(timestamp=9, value=b"a:b")),
        (Template(key_delimiter=b":"), b"a:b:c", Record(timestamp=9, key=b"a", value=b"b:c")),
        (Template(key_delimiter=b":"), b"abc", Record(timestamp=9, value=b"abc")),
        (Template(key_delimiter=b":"), b":b", Record(timestamp=9, key=b"", value=b"b")),
        (Template(key=b"k"), b"v", Record(timestamp=9, key=b"k", value=b"v")),
        (Template(empty_as_null=True), b"", Record(timestamp=9, value=None)),
        (Template(), b"", Record(timestamp=9, value=b"")),
        (Template(key_delimiter=b":", empty_as_null=True), b"k:", Record(timestamp=9, key=b"k", value=None)),
        (Template(headers=(("h", b"1"),)), b"v", Record(timestamp=9, value=b"v", headers=(("h", b"1"),))),
    ],
)
def test_a_line_becomes_a_record(template: Template, message: bytes, expected: Record) -> None:
    assert template.record(message, 9) == expected


def messages_of(source: "io.BufferedReader | io.BytesIO", delimiter: bytes) -> list[bytes]:
    async def read() -> list[bytes]:
        return [message async for group in read_messages(source, delimiter) for message in group]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("text", "delimiter", "expected"),
    [
        (b"", b"\n", []),
        (b"a", b"\n", [b"a"]),
        (b"a\n", b"\n", [b"a"]),
        (b"a\n\nb\n", b"\n", [b"a", b"", b"b"]),
        (b"\n", b"\n", [b""]),
        (b"a--b-c", b"--", [b"a", b"b-c"]),
    ],
)
def test_input_is_cut_at_the_delimiter(text: bytes, delimiter: bytes, expected: list[bytes]) -> None:
    assert messages_of(io.BytesIO(text), delimiter) == expected


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 1_000_000 + b"\nlast")
    with path.open("rb") as source:
        assert messages_of(source, b"\n") == [b"x" * 1_000_000, b"last"]


def test_a_pipe_is_read_as_it_fills() -> None:
    async def story() -> list[list[bytes]]:
        reading, writing = os.pipe()
        groups = []
        with os.fdopen(reading, "rb", buffering=0) as source, os.fdopen(writing, "wb", buffering=0) as sink:
            sink.write(b"one\ntw")
            messages = read_messages(source, b"\n")
            groups.append(await anext(messages))
            sink.write(b"o\nrest")
            groups.append(await anext(messages))
            sink.close()
            groups.append(await anext(messages))
            return groups

    assert asyncio.run(story()) == [[b"one"], [b"two"], [b"rest"]]
