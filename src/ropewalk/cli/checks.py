"""What `doctor` looks at on this machine. Each check answers with a finding and never raises."""

import os
import platform
import resource
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import OPEN_FILES_MAX
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.node.config import Config, load
from ropewalk.node.exposure import warnings_of
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.disk import SYNCFS_FILE_SYSTEMS, file_system_of, kernel_reports_syncfs

FREE_BYTES_LOW: Final = 1 << 30
_DESCRIPTORS_FOR_CONNECTIONS: Final = 1024
_SENSIBLE_SINCE_MS: Final = 1_735_689_600_000
"""The first day of 2025: a clock before that was never set."""
_PACKAGES: Final = ("ropewalk", "uvloop", "msgspec", "crc32c", "cramjam", "lz4", "backports.zstd")
_SURPRISING: Final = {
    ("flush", "os"): "a power cut may lose what was acknowledged",
    ("storage", "memory"): "nothing survives the end of the node",
    ("auto.create.topics.enable", "false"): "producing to a topic that is not there fails",
    ("unclean.leader.election.enable", "true"): "a failover may lose what was acknowledged",
    ("delete.topic.enable", "false"): "topics cannot be deleted",
}


class Verdict(Enum):
    GOOD = "ok"
    ODD = "note"
    """Works, but not as everyone would expect."""
    WRONG = "wrong"


class Finding(Struct, frozen=True):
    check: str
    verdict: Verdict
    detail: str


def check_machine(options: NodeOptions, environment: Mapping[str, str]) -> list[Finding]:
    findings = [_versions(), _event_loop(), _descriptors(), _clock()]
    try:
        config = load(options, environment)
    except InvalidSetting as error:
        return [*findings, Finding("settings", Verdict.WRONG, str(error))]
    return [*findings, *_settings(config), *_data_directory(config)]


def _versions() -> Finding:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return Finding("versions", Verdict.GOOD, f"Python {platform.python_version()}, {', '.join(found)}")


def _event_loop() -> Finding:
    try:
        version("uvloop")
    except PackageNotFoundError:
        return Finding("event loop", Verdict.ODD, "asyncio; `pip install uvloop` makes a node faster")
    return Finding("event loop", Verdict.GOOD, "uvloop")


def _descriptors() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # the node raises the other limit to this one
    needed = OPEN_FILES_MAX + _DESCRIPTORS_FOR_CONNECTIONS
    if hard == resource.RLIM_INFINITY:
        return Finding("file descriptors", Verdict.GOOD, "any number of open files allowed")
    detail = f"{hard} open files allowed"
    if hard >= needed:
        return Finding("file descriptors", Verdict.GOOD, detail)
    return Finding(
        "file descriptors", Verdict.ODD, f"{detail}; a busy node wants {needed}: `ulimit -Hn {needed}`"
    )


def _clock() -> Finding:
    now_ms = SystemClock().now_ms()
    shown = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="seconds")
    if now_ms < _SENSIBLE_SINCE_MS:
        return Finding("clock", Verdict.WRONG, f"{shown} is in the past; retention by time would misbehave")
    return Finding("clock", Verdict.GOOD, shown)


def _settings(config: Config) -> list[Finding]:
    findings = [Finding("addresses", Verdict.ODD, warning) for warning in warnings_of(config)]
    for name, configured in config.entries():
        surprise = _SURPRISING.get((name, configured.value))
        if surprise is not None and configured.origin != "default":
            findings.append(_odd_setting(name, configured.value, configured.origin, surprise))
        elif (
            configured.origin != "default"
            and name in BROKER_SETTINGS
            and BROKER_SETTINGS[name].without_effect
        ):
            findings.append(
                _odd_setting(name, configured.value, configured.origin, "this version does not act on it")
            )
    return findings or [Finding("settings", Verdict.GOOD, "none that surprise")]


def _odd_setting(name: str, value: str, origin: str, why: str) -> Finding:
    return Finding("settings", Verdict.ODD, f"{name}={value} (from {origin}): {why}")


def _data_directory(config: Config) -> list[Finding]:
    if config.in_memory:
        return []
    path = Path(config["node.data"]).absolute()
    # A node makes the directory when it starts; until then its nearest parent tells what it will be like.
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not os.access(existing, os.W_OK):
        return [
            Finding("data directory", Verdict.WRONG, f"{path} cannot be written; choose another with --data")
        ]
    return [
        Finding("data directory", Verdict.GOOD, str(path) if existing == path else f"{path} (not there yet)"),
        _free_space(existing),
        *check_directory(existing, path),
    ]


def check_directory(existing: Path, path: Path) -> list[Finding]:
    """What is to be said of a directory on this machine; `existing` is as much of its `path` as there is."""
    return [_file_system(existing), *_mode(path)]


def _mode(path: Path) -> list[Finding]:
    """Nothing where only its owner can read it, or it is not there yet."""
    if not path.exists() or not path.stat().st_mode & 0o077:
        return []
    detail = f"others than its owner may look into {path}, where every record is; `chmod 700 {path}`"
    return [Finding("data directory", Verdict.ODD, detail)]


def _free_space(path: Path) -> Finding:
    usage = shutil.disk_usage(path)
    detail = f"{usage.free / 2**30:.1f} GiB of {usage.total / 2**30:.1f} GiB"
    if usage.free < FREE_BYTES_LOW:
        return Finding("free disk", Verdict.ODD, f"{detail}; a full disk refuses writes")
    return Finding("free disk", Verdict.GOOD, detail)


def _file_system(path: Path) -> Finding:
    kind = file_system_of(str(path))
    if kind in SYNCFS_FILE_SYSTEMS and kernel_reports_syncfs(platform.release()):
        return Finding("file system", Verdict.GOOD, f"{kind}: one syncfs serves all partitions")
    return Finding(
        "file system", Verdict.ODD, f"{kind}: every file is synced by itself, which many partitions feel"
    )
