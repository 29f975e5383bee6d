"""What records of a topic hold: the last of them, or from an offset or a time on, those that fit."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.limits import (
    CONSOLE_LOOKED_AT_BYTES_MAX,
    CONSOLE_LOOKED_AT_MAX,
    CONSOLE_LOOKED_AT_MS_MAX,
    CONSOLE_VALUE_CHARACTERS_MAX,
)
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.errors import RemoteError
from ropewalk.console.filled_in import number
from ropewalk.console.page import Asked, NotThere, Page, Shown, Wrong, link
from ropewalk.console.short import shortened
from ropewalk.records.record import Record
from ropewalk.views.decoding import Undecoded, as_text, decoder, json_indented
from ropewalk.views.json_paths import parse_comparison
from ropewalk.views.offsets import Anchor, Where, resolve_starts
from ropewalk.views.record_filters import Filter, all_of, comparing, containing, matching
from ropewalk.views.record_pages import Bounds, Found, RecordPage, read_records
from ropewalk.views.words import parse_indexes, parse_instant
from ropewalk.wire.error_code import ErrorCode

_FROM: Final = (
    ("last", "the last"),
    ("beginning", "the oldest on"),
    ("offset", "an offset on"),
    ("time", "a time on"),
)
_COUNTS: Final = ("20", "50", "100", "200")
_FORMS: Final = (("auto", "as they look"), ("json", "JSON"), ("text", "text"), ("hex", "bytes"))
_FIELDS: Final = ("partitions", "from", "value", "count", "text", "expression", "path", "form", "at")


class ShownRecord(Struct, frozen=True):
    partition: int
    offset: int
    timestamp: int
    key: str | None
    value: str | None
    """None: there is none, as where a key was deleted."""
    more: int
    """Characters of the value that are left out."""
    headers: tuple[tuple[str, str], ...]
    is_transactional: bool


class _Wanted(Struct, frozen=True):
    positions: Mapping[int, int]
    ends: Mapping[int, int]
    newest: bool


async def show(asked: Asked) -> Shown:
    name = asked.query.get("name", "")
    if not name:
        raise NotThere("say which topic, as ?name=NAME")
    said = {each: asked.query.get(each, "").strip() for each in _FIELDS}
    said["from"] = said["from"] or "last"
    said["count"] = said["count"] if said["count"] in _COUNTS else _COUNTS[1]
    said["form"] = said["form"] if said["form"] in dict(_FORMS) else "auto"
    try:
        page = await _read(asked, name, said)
    except RemoteError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise NotThere(
                f"there is no topic {name!r} with these partitions, or you may not see it"
            ) from None
        raise
    shown = await asked.pool.run(lambda: [_shown(each, said["form"]) for each in page.found])
    at = ",".join(f"{index}:{offset}" for index, offset in sorted(page.positions.items()))
    values: dict[str, object] = {
        "name": name,
        "said": said,
        "page": page,
        "records": list(reversed(shown)) if said["from"] == "last" and not said["at"] else shown,
        "onward": link("messages", name=name, **{**said, "at": at}) if at and len(at) < 4096 else None,
        "is_filtered": bool(said["text"] or said["expression"] or said["path"]),
        "froms": _FROM,
        "counts": [(each, each) for each in _COUNTS],
        "forms": _FORMS,
    }
    return Shown("messages.html", values, f"Messages of {name}")


async def _read(asked: Asked, name: str, said: Mapping[str, str]) -> RecordPage:
    try:
        wanted = _filter(said)
    except ValueError as error:
        raise Wrong(str(error)) from None
    place = await _place(asked, name, said, is_filtered=wanted is not None)
    bounds = Bounds(
        int(said["count"]),
        CONSOLE_LOOKED_AT_MAX,
        CONSOLE_LOOKED_AT_BYTES_MAX,
        asked.clock.monotonic_ms() + CONSOLE_LOOKED_AT_MS_MAX,
    )
    return await read_records(
        asked.client,
        asked.pool,
        name,
        place.positions,
        place.ends,
        wanted or _everything,
        bounds,
        newest=place.newest,
    )


def _everything(_record: Record) -> bool:
    return True


def _filter(said: Mapping[str, str]) -> Filter | None:
    """None where everything is wanted."""
    filters: list[Filter] = []
    if said["text"]:
        filters.append(containing(said["text"]))
    if said["expression"]:
        filters.append(matching(said["expression"]))
    if said["path"]:
        filters.append(comparing(parse_comparison(said["path"]), decoder("json")))
    return all_of(filters) if filters else None


async def _place(asked: Asked, name: str, said: Mapping[str, str], *, is_filtered: bool) -> _Wanted:
    chosen = parse_indexes(said["partitions"]) if said["partitions"] else None
    if said["at"]:  # further on from where somebody was
        positions = dict(map(_parse_position, said["at"].split(",")))
        listed = await asked.client.list_offsets(name, dict.fromkeys(positions, OffsetQuery.LATEST))
        starts = await asked.client.list_offsets(name, dict.fromkeys(positions, OffsetQuery.EARLIEST))
        return _Wanted(
            {index: max(offset, starts[index].offset) for index, offset in positions.items()},
            {index: each.offset for index, each in listed.items()},
            False,
        )
    match said["from"]:
        case "last":
            partition_count = (
                len((await asked.client.topic(name)).partitions) if chosen is None else len(chosen)
            )
            back = (
                max(1, CONSOLE_LOOKED_AT_MAX // max(1, partition_count))
                if is_filtered
                else int(said["count"])
            )
            where = Where(Anchor.BEFORE_END, back)
        case "beginning":
            where = Where(Anchor.BEGINNING)
        case "offset":
            where = Where(Anchor.ABSOLUTE, number(said["value"], "offset"))
        case "time":
            where = Where(Anchor.TIME, parse_instant(said["value"]))
        case _:
            raise Wrong("choose where to begin")
    bounds = await resolve_starts(asked.client, name, chosen, where)
    return _Wanted(
        {each.partition: each.offset for each in bounds},
        {each.partition: each.end for each in bounds},
        said["from"] == "last",
    )


def _parse_position(text: str) -> tuple[int, int]:
    index, _, offset = text.partition(":")
    return number(index, "partition"), number(offset, "offset")


def _shown(found: Found, form: str) -> ShownRecord:
    record = found.record
    value, more = (
        (None, 0)
        if record.value is None
        else shortened(_text(record.value, form), CONSOLE_VALUE_CHARACTERS_MAX)
    )
    key = None if record.key is None else shortened(_text(record.key, form), CONSOLE_VALUE_CHARACTERS_MAX)[0]
    return ShownRecord(
        found.partition,
        record.offset,
        record.timestamp,
        key,
        value,
        more,
        tuple(
            (name, "" if data is None else shortened(_text(data, "auto"), CONSOLE_VALUE_CHARACTERS_MAX)[0])
            for name, data in record.headers
        ),
        found.is_transactional,
    )


def _text(data: bytes, form: str) -> str:
    data = bytes(data)
    if form == "auto":
        indented = json_indented(data)
        if indented is not None:
            data = indented
        try:
            return data.decode()
        except UnicodeDecodeError:
            form = "hex"
    try:
        return as_text(decoder(form)(data), indent=True)
    except (Undecoded, RecursionError):
        return f"(no {form}) {data.decode(errors='replace')}"


PAGE: Final = Page(
    name="messages",
    title="Messages",
    under="topics",
    show=show,
    needs=lambda options: options.shows_messages,
)
