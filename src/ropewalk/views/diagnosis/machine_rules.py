"""Rules about the machine that asks, and about a node that would be started on it."""

from collections.abc import Iterator
from typing import Final

from ropewalk.base.limits import OPEN_FILES_MAX
from ropewalk.views.diagnosis.facts import ConfiguredSetting, Facts
from ropewalk.views.diagnosis.node_rules import FREE_BYTES_LOW, one_by_one, others_may_look, room
from ropewalk.views.diagnosis.rule import Rule, Sighting, Verdict

_DESCRIPTORS_FOR_CONNECTIONS: Final = 1024
DESCRIPTORS_WANTED: Final = OPEN_FILES_MAX + _DESCRIPTORS_FOR_CONNECTIONS
_SENSIBLE_SINCE_MS: Final = 1_735_689_600_000
"""The first day of 2025: a clock before that was never set."""


def _settings(facts: Facts) -> Iterator[Sighting]:
    if facts.machine is not None and facts.machine.settings_problem is not None:
        yield Sighting("settings", facts.machine.settings_problem)


def _addresses(facts: Facts) -> Iterator[Sighting]:
    for warning in () if facts.machine is None else facts.machine.warnings:
        yield Sighting("addresses", warning)


def _surprising(facts: Facts) -> Iterator[Sighting]:
    for each in () if facts.machine is None else facts.machine.surprising:
        yield Sighting("settings", _said(each))


def _idle(facts: Facts) -> Iterator[Sighting]:
    for each in () if facts.machine is None else facts.machine.idle:
        yield Sighting("settings", _said(each))


def _loop(facts: Facts) -> Iterator[Sighting]:
    if facts.machine is not None and not facts.machine.has_uvloop:
        yield Sighting("event loop", "asyncio; `pip install uvloop` makes a node faster")


def _descriptors(facts: Facts) -> Iterator[Sighting]:
    allowed = None if facts.machine is None else facts.machine.descriptors
    if allowed is not None and allowed < DESCRIPTORS_WANTED:
        wanted = f"a busy node wants {DESCRIPTORS_WANTED}: `ulimit -Hn {DESCRIPTORS_WANTED}`"
        yield Sighting("file descriptors", f"{allowed} open files allowed; {wanted}")


def _clock(facts: Facts) -> Iterator[Sighting]:
    if facts.machine is not None and facts.machine.clock_ms < _SENSIBLE_SINCE_MS:
        yield Sighting("clock", "is in the past; retention by time would misbehave")


def _unwritable(facts: Facts) -> Iterator[Sighting]:
    machine = facts.machine
    if machine is not None and machine.directory is not None and not machine.is_directory_writable:
        yield Sighting(
            "data directory", f"{machine.directory.path} cannot be written; choose another with --data"
        )


def _low(facts: Facts) -> Iterator[Sighting]:
    directory = None if facts.machine is None else facts.machine.directory
    if directory is not None and directory.usable_bytes < FREE_BYTES_LOW:
        yield Sighting("free disk", f"{room(directory)}; a full disk refuses writes")


def _open_to_others(facts: Facts) -> Iterator[Sighting]:
    directory = None if facts.machine is None else facts.machine.directory
    if directory is not None and directory.is_open_to_others:
        yield Sighting("data directory", others_may_look(directory.path))


def _file_system(facts: Facts) -> Iterator[Sighting]:
    directory = None if facts.machine is None else facts.machine.directory
    if directory is not None and directory.file_system is not None and not directory.syncs_at_once:
        yield Sighting("file system", one_by_one(directory.file_system))


def _said(setting: ConfiguredSetting) -> str:
    return f"{setting.name}={setting.value} (from {setting.origin}): {setting.why}"


MACHINE_RULES: Final = (
    Rule(
        name="settings-refused",
        verdict=Verdict.WRONG,
        sees="A node would not start with these settings.",
        why="A setting does not exist, or has a value that it cannot have.",
        command="ropewalk config describe SETTING",
        page="reference/settings.md",
        look=_settings,
    ),
    Rule(
        name="addresses-exposed",
        verdict=Verdict.ODD,
        sees="A node with these settings would be open to anybody, or send clients to the wrong place.",
        why="Whoever reaches the Kafka port may read, write and delete everything.",
        command="ropewalk config show --origin",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_addresses,
    ),
    Rule(
        name="settings-surprise",
        verdict=Verdict.ODD,
        sees="A setting is set to what not everybody expects.",
        why="Each says for itself what follows from it.",
        command="ropewalk config describe SETTING",
        page="reference/settings.md",
        look=_surprising,
    ),
    Rule(
        name="settings-idle",
        verdict=Verdict.ODD,
        sees="A setting is set that this version does not act on.",
        why="Whoever set it expects something that does not happen.",
        command="take it out of the file",
        page="reference/settings.md",
        look=_idle,
    ),
    Rule(
        name="loop-of-python",
        verdict=Verdict.ODD,
        sees="uvloop is not installed.",
        why="A node does fewer requests a second without it.",
        command="pip install uvloop",
        page="operating/capacity.md",
        look=_loop,
    ),
    Rule(
        name="descriptors-few",
        verdict=Verdict.ODD,
        sees="Fewer files may be open than a busy node wants.",
        why="Connections and segments each take one.",
        command=f"ulimit -Hn {DESCRIPTORS_WANTED}, or LimitNOFILE of the unit",
        page="operating/capacity.md",
        look=_descriptors,
    ),
    Rule(
        name="clock-unset",
        verdict=Verdict.WRONG,
        sees="The clock of this machine was never set.",
        why="Retention by time would remove everything, or nothing.",
        command="let a time service set it",
        page="reference/alerts.md#ropewalkclock",
        look=_clock,
    ),
    Rule(
        name="data-unwritable",
        verdict=Verdict.WRONG,
        sees="The data directory cannot be written.",
        why="A node does not start there.",
        command="chown it to the user of the node, or choose another with --data",
        page="operating/when-something-is-wrong.md#it-does-not-start",
        look=_unwritable,
    ),
    Rule(
        name="data-disk-low",
        verdict=Verdict.ODD,
        sees="Less than 1 GiB is free where the data directory is.",
        why="A full disk refuses writes.",
        command="more room, or another --data",
        page="operating/running-a-node.md#the-disk",
        look=_low,
    ),
    Rule(
        name="data-open",
        verdict=Verdict.ODD,
        sees="Others than its owner may look into the data directory.",
        why="Every record is there.",
        command="chmod 700 DIRECTORY",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_open_to_others,
    ),
    Rule(
        name="data-synced-singly",
        verdict=Verdict.ODD,
        sees="The file system does not say whether all of it was synced.",
        why="Every file is synced by itself, which many partitions feel.",
        command="ext4, xfs or btrfs on a kernel from 5.8 on",
        page="operating/capacity.md",
        look=_file_system,
    ),
)
