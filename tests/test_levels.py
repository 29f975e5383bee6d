"""The table of levels names everything that is written: a record, a field, an API between nodes, a file, each with its level."""

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct as Layout
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest
from msgspec import Struct

import ropewalk.groups
import ropewalk.log
import ropewalk.metadata
import ropewalk.records
import ropewalk.transactions
from ropewalk.base import levels
from ropewalk.base.levels import LEVELS, OURS, Level, are_neighbours, peer_version_max, release_of
from ropewalk.groups.versioned import Versioned
from ropewalk.kafka.peer.apis import PEER_APIS
from ropewalk.metadata.records import ChangeDetail, Endpoint, MetadataRecord
from ropewalk.wire.types import OWN_TAG_FIRST, Tagged

Parts = dict[str, tuple[str, ...]]

SOURCE = Path(ropewalk.__file__).parent


def records_written(kinds: Sequence[type[Struct]] = get_args(MetadataRecord)) -> Parts:
    all_kinds: list[type[Struct]] = [*kinds, Endpoint, ChangeDetail]
    return {_record_name(kind): kind.__struct_fields__ for kind in all_kinds}


def _record_name(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag or kind.__name__)


def peer_versions() -> Parts:
    return {
        api.name: tuple(f"v{version}" for version in range(api.version_min, api.version_max + 1))
        for api in PEER_APIS
    }


def peer_fields() -> Parts:
    """What travels in tagged sections, which no version stands for: on our own APIs all of it, on Kafka's what is ours."""
    found: Parts = {}
    for api in PEER_APIS:
        tag_min = 0 if api.key >= OWN_TAG_FIRST else OWN_TAG_FIRST
        for message in (*_reached(api.request), *_reached(api.response)):
            tags = tuple(name for name, tag in _tagged(message).items() if tag >= tag_min)
            if tags:
                found[message.__name__] = tags
    return found


def files_written() -> Parts:
    """Formats by the names that the code has for them: structures with their fields, numbers and marks with their values."""
    found: Parts = {}
    rooms = (ropewalk.log, ropewalk.metadata, ropewalk.groups, ropewalk.transactions, ropewalk.records)
    for module in _modules(*rooms):
        where = module.__name__.removeprefix("ropewalk.")
        for name, value in vars(module).items():
            if name in ("_MAGIC", "_MARKER", "LAYOUT_VERSION"):
                found[f"{where}.{name}"] = (value.hex() if isinstance(value, bytes) else str(value),)
            elif isinstance(value, Layout) and where.startswith(LAYOUTS):
                found[f"{where}.{name}"] = (value.format,)
            elif isinstance(value, Versioned):
                found[f"{where}.{name}"] = (f"v{value.written}",)
    for place in ROOTS:
        for kind in _reached(_named(place)):
            if kind.__module__ != "ropewalk.metadata.records":  # they stand under records
                found[_place(kind)] = kind.__struct_fields__
    return found


ROOTS = (
    "log.aborted.AbortedTransaction",
    "log.checkpoints._Entry",
    "log.directory.Identity",
    "log.directory.Lives",
    "log.directory.PartitionIdentity",
    "log.known_damage._Entry",
    "log.snapshot.Snapshot",
    "metadata.etcd.keys.Held",
    "metadata.etcd.keys.Pointer",
    "metadata.log.Snapshot",
    "transactions.event_codec.TransactionLogKey",
    "transactions.event_codec.TransactionLogValue",
)
"""What files begin with; all that is within them is found from there."""


LAYOUTS = ("log.", "records.control")
"""Where layouts are our own, and not Kafka's."""


def named(part: str) -> Parts:
    """What the levels name together, in the shape of what is found in the code."""
    found: Parts = {}
    for level in LEVELS:
        for name, brought in getattr(level, part).items():
            found[name] = (*found.get(name, ()), *_spelled(part, brought))
    return found


def _spelled(part: str, brought: Any) -> tuple[str, ...]:
    if part == "peer_versions":
        return tuple(f"v{version}" for version in range(brought[0], brought[1] + 1))
    return tuple(brought)


def without_level(written: Mapping[str, tuple[str, ...]], part: str) -> list[str]:
    """What is written and no level names; and what a level names and nobody writes."""
    return sorted(_flat(written) ^ _flat(named(part)))


def _flat(parts: Mapping[str, tuple[str, ...]]) -> set[str]:
    return set(parts) | {f"{name}.{each}" for name, brought in parts.items() for each in brought}


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ("records", records_written),
        ("peer_versions", peer_versions),
        ("peer_fields", peer_fields),
        ("files", files_written),
    ],
)
def test_every_thing_that_is_written_names_its_level(part: str, written: Callable[[], Parts]) -> None:
    assert without_level(written(), part) == [], (
        f"name them in base/levels.py, under {part} of the newest level"
    )


def test_a_record_without_a_level_is_found() -> None:
    class PaintOrdered(Struct, frozen=True, tag="paint_ordered", tag_field="type"):
        colour: str

    written = records_written((*get_args(MetadataRecord), PaintOrdered))
    assert without_level(written, "records") == ["paint_ordered", "paint_ordered.colour"]


def test_a_field_without_a_level_is_found() -> None:
    written = records_written()
    written["topic_created"] = (*written["topic_created"], "colour")
    assert without_level(written, "records") == ["topic_created.colour"]


def test_a_version_between_nodes_without_a_level_is_found() -> None:
    versions = peer_versions()
    versions["NodeHeartbeat"] = (*versions["NodeHeartbeat"], "v9")
    assert without_level(versions, "peer_versions") == ["NodeHeartbeat.v9"]


def test_whoever_writes_files_is_known() -> None:
    """A module that begins to encode something for the disk is to be added to `ROOTS`, and what it writes to the table."""
    writers = {
        path.relative_to(SOURCE).as_posix()
        for room in ("log", "metadata", "groups", "transactions", "broker")
        for path in (SOURCE / room).rglob("*.py")
        if re.search(
            r"msgspec\.(json|msgpack)\.(encode|Encoder)|encode_checked\(|_HEADER\.pack\(", path.read_text()
        )
    }
    assert writers == {
        "broker/administration/scale_webhook.py",  # says it to others
        "broker/cluster/metadata_feed.py",  # a snapshot of metadata/log.py
        "broker/watching/alerting.py",  # says it to others
        "broker/watching/audit_events.py",
        "broker/watching/telemetry_samples.py",  # for people; nobody here reads it back
        "log/aborted.py",
        "log/checkpoints.py",
        "log/directory.py",
        "log/index.py",
        "log/known_damage.py",
        "log/snapshot.py",
        "metadata/etcd/client.py",  # requests
        "metadata/etcd/keys.py",
        "metadata/frames.py",
        "metadata/records.py",
        "metadata/snapshots.py",
    }


def test_levels_follow_each_other_and_belong_to_releases() -> None:
    assert [level.number for level in LEVELS] == list(range(1, len(LEVELS) + 1))
    assert [level.release for level in LEVELS] == sorted(level.release for level in LEVELS)
    assert OURS.level_max == LEVELS[-1].number
    assert OURS.release == LEVELS[-1].release


def test_the_package_has_the_version_that_nodes_register() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert project["project"]["version"] == OURS.version == ropewalk.__version__


def test_a_version_between_nodes_is_used_from_its_level_on(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Level(number=9, release=(9, 0), peer_versions={"NodeHeartbeat": (1, 1)})
    monkeypatch.setattr(levels, "LEVELS", (*LEVELS, later))
    peer_version_max.cache_clear()
    assert [peer_version_max("NodeHeartbeat", level) for level in (1, 8, 9)] == [0, 0, 1]
    peer_version_max.cache_clear()


@pytest.mark.parametrize(
    ("version", "release"),
    [("0.1.0", (0, 1)), ("0.2.0.dev0", (0, 2)), ("1.10.3", (1, 10)), ("", None), ("main", None)],
)
def test_a_release_is_told_from_a_version(version: str, release: tuple[int, int] | None) -> None:
    assert release_of(version) == release


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((0, 1), (0, 1), True), ((0, 1), (0, 2), True), ((0, 3), (0, 1), False), ((0, 9), (1, 0), False)],
)
def test_neighbours_are_one_release_apart(
    one: tuple[int, int], other: tuple[int, int], expected: bool
) -> None:
    assert are_neighbours(one, other) is are_neighbours(other, one) is expected


def _reached(kind: Any) -> Iterator[type[Struct]]:
    """A structure and all those within it."""
    found: dict[type[Struct], None] = {}

    def visit(each: Any) -> None:
        if isinstance(each, type) and issubclass(each, Struct) and each not in found:
            found[each] = None
            for hint in get_type_hints(each).values():
                visit(hint)
        for argument in get_args(each):
            visit(argument)

    visit(kind)
    return iter(found)


def _tagged(message: type[Struct]) -> dict[str, int]:
    return {
        name: mark.tag
        for name, hint in get_type_hints(message, include_extras=True).items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, Tagged)
    }


def _modules(*packages: ModuleType) -> Iterator[ModuleType]:
    for package in packages:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def _named(place: str) -> type[Struct]:
    module, _, name = place.rpartition(".")
    found: type[Struct] = getattr(importlib.import_module(f"ropewalk.{module}"), name)
    return found


def _place(kind: type[Struct]) -> str:
    return f"{kind.__module__.removeprefix('ropewalk.')}.{kind.__name__}"
