"""What `doctor` looks at on this machine, and what it says of what is as it should be."""

import os
import platform
import resource
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from msgspec import structs

from ropewalk.base.errors import InvalidSetting
from ropewalk.cli.output import counted
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.node.config import Config, load
from ropewalk.node.exposure import warnings_of
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.disk import SYNCFS_FILE_SYSTEMS, file_system_of, kernel_reports_syncfs
from ropewalk.views.diagnosis.facts import ConfiguredSetting, Directory, Facts, Machine
from ropewalk.views.diagnosis.node_rules import room
from ropewalk.views.diagnosis.rule import Finding, Verdict

_PACKAGES: Final = ("ropewalk", "uvloop", "msgspec", "crc32c", "cramjam", "lz4", "backports.zstd")
_SURPRISING: Final = {
    ("flush", "os"): "a power cut may lose what was acknowledged",
    ("storage", "memory"): "nothing survives the end of the node",
    ("auto.create.topics.enable", "false"): "producing to a topic that is not there fails",
    ("unclean.leader.election.enable", "true"): "a failover may lose what was acknowledged",
    ("delete.topic.enable", "false"): "topics cannot be deleted",
}
_IDLE: Final = "this version does not act on it"


def look_at_machine(options: NodeOptions, environment: Mapping[str, str]) -> Machine:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # the node raises the other limit to this one
    machine = Machine(
        versions=_versions(),
        has_uvloop=_version_of("uvloop") is not None,
        descriptors=None if hard == resource.RLIM_INFINITY else hard,
        clock_ms=SystemClock().now_ms(),
    )
    try:
        config = load(options, environment)
    except InvalidSetting as error:
        return structs.replace(machine, settings_problem=str(error))
    machine = structs.replace(
        machine,
        warnings=warnings_of(config),
        surprising=tuple(_surprising(config)),
        idle=tuple(_idle(config)),
    )
    if config.in_memory:
        return machine
    path = Path(config["node.data"]).absolute()
    # A node makes the directory when it starts; until then its nearest parent tells what it will be like.
    existing = next(place for place in (path, *path.parents) if place.exists())
    usage = shutil.disk_usage(existing)
    directory = Directory(str(path), usage.free, usage.total)
    return structs.replace(
        machine,
        directory=examined(directory, existing),
        is_directory_there=existing == path,
        is_directory_writable=os.access(existing, os.W_OK),
    )


def examine(directory: Directory) -> Directory:
    """With what can be seen of a node's directory where it is on this machine."""
    path = Path(directory.path)
    return examined(directory, path) if directory.error is None and path.is_dir() else directory


def examined(directory: Directory, existing: Path) -> Directory:
    """`existing` is as much of its path as there is."""
    kind = file_system_of(str(existing))
    path = Path(directory.path)
    return structs.replace(
        directory,
        file_system=kind,
        syncs_at_once=kind in SYNCFS_FILE_SYSTEMS and kernel_reports_syncfs(platform.release()),
        is_open_to_others=path.exists() and bool(path.stat().st_mode & 0o077),
    )


def good_news(facts: Facts) -> list[Finding]:
    """What was looked at and is as it should be, or is worth knowing either way."""
    said = [] if facts.machine is None else list(_of_machine(facts.machine))
    for each in facts.asked:
        if each.problem is None:
            said.append((each.where, each.detail))
    if facts.nodes:
        cluster = facts.membership
        named = f"{cluster.cluster_id}: " if cluster is not None else ""
        decides = f", controller {cluster.controller}" if cluster is not None else ""
        said.append(
            (
                "cluster",
                f"{named}{counted(len(facts.nodes), 'node')}, {counted(len(facts.topics), 'topic')}{decides}",
            )
        )
    said += _of_nodes(facts)
    return [Finding(check, Verdict.GOOD, detail) for check, detail in said]


def _of_nodes(facts: Facts) -> Iterator[tuple[str, str]]:
    for node in facts.nodes:
        if node.reached is not None and node.reached.problem is None:
            yield node.reached.where, node.reached.detail
        answerer = None if node.answer is None else node.answer.answerer
        if answerer is not None and answerer.age_ms <= answerer.session_timeout_ms:
            heard = (
                "decides" if answerer.decides else f"heard the controller {answerer.age_ms / 1000:.1f} s ago"
            )
            yield node.where, f"ropewalk {answerer.version}, {heard}"
        for each in node.directories:
            if each.error is None:
                yield f"{node.where} directory", f"{each.path}: {room(each)}"


def _of_machine(machine: Machine) -> Iterator[tuple[str, str]]:
    yield "versions", machine.versions
    if machine.has_uvloop:
        yield "event loop", "uvloop"
    allowed = "any number of" if machine.descriptors is None else machine.descriptors
    yield "file descriptors", f"{allowed} open files allowed"
    yield "clock", datetime.fromtimestamp(machine.clock_ms / 1000, UTC).isoformat(timespec="seconds")
    if machine.settings_problem is None and not (machine.surprising or machine.idle):
        yield "settings", "none that surprise"
    if machine.directory is not None and machine.is_directory_writable:
        missing = "" if machine.is_directory_there else " (not there yet)"
        yield "data directory", f"{machine.directory.path}{missing}"
        yield "free disk", room(machine.directory)
        if machine.directory.syncs_at_once:
            yield "file system", f"{machine.directory.file_system}: one syncfs serves all partitions"


def _versions() -> str:
    found = [(package, _version_of(package)) for package in _PACKAGES]
    listed = ", ".join(f"{package} {known}" for package, known in found if known is not None)
    return f"Python {platform.python_version()}, {listed}"


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _surprising(config: Config) -> Iterator[ConfiguredSetting]:
    for name, configured in config.entries():
        why = _SURPRISING.get((name, configured.value))
        if why is not None and configured.origin != "default":
            yield ConfiguredSetting(name, configured.value, configured.origin, why)


def _idle(config: Config) -> Iterator[ConfiguredSetting]:
    for name, configured in config.entries():
        is_set = configured.origin != "default" and (name, configured.value) not in _SURPRISING
        if is_set and name in BROKER_SETTINGS and BROKER_SETTINGS[name].without_effect:
            yield ConfiguredSetting(name, configured.value, configured.origin, _IDLE)
