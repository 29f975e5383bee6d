"""Everything that must hold before a change is handed over, in one run: `./test` calls this.

    --fast             leaves out what kills processes and what takes long
    --allow-missing    green although something could not be tested on this machine
    anything else      goes to pytest

Programs that the tests need are fetched from Debian's packages where they are missing and this is root, or sudo
asks no password. A test that cannot run here is skipped with the reason, and the run is then red unless
`--allow-missing` is given: a green run without it has tested everything. Only what the reason calls optional
(Kafka's own client, which Maven fetches) may be absent from a green run; it is listed all the same.
"""

import argparse
import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
OPTIONAL = "optional:"
WORKERS = max(2, min(4, os.cpu_count() or 1))
FAST = "not slow and not chaos"


class Need(NamedTuple):
    """A program or library that tests use, and the Debian packages that may hold it, the likeliest first."""

    name: str
    is_there: Callable[[], bool]
    packages: tuple[str, ...]


NEEDS = (
    Need("kcat", lambda: shutil.which("kcat") is not None, ("kcat",)),
    Need("etcd", lambda: shutil.which("etcd") is not None, ("etcd-server",)),
    Need("etcdctl", lambda: shutil.which("etcdctl") is not None, ("etcd-client",)),
    Need("libfuse 2", lambda: ctypes.util.find_library("fuse") is not None, ("libfuse2", "libfuse2t64")),
    Need("mkfs.ext4", lambda: shutil.which("mkfs.ext4", path=_path_of_root()) is not None, ("e2fsprogs",)),
    Need("ip", lambda: shutil.which("ip", path=_path_of_root()) is not None, ("iproute2",)),
    Need("nft", lambda: shutil.which("nft", path=_path_of_root()) is not None, ("nftables",)),
    Need(
        "Java",
        lambda: shutil.which("java") is not None,
        ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
    ),
    Need("Prometheus", lambda: shutil.which("prometheus") is not None, ("prometheus",)),
    Need("systemd-analyze", lambda: shutil.which("systemd-analyze") is not None, ("systemd",)),
    Need("mount", lambda: shutil.which("mount", path=_path_of_root()) is not None, ("mount",)),
)


CHECKS: dict[str, list[str]] = {
    "ruff check": ["ruff", "check", "--quiet"],
    "ruff format": ["ruff", "format", "--check", "--quiet"],
    "mypy": ["mypy"],
    "lint-imports": ["lint-imports", "--no-logo"],
}


class Stage(NamedTuple):
    name: str
    seconds: float
    passed: bool


def main() -> int:
    parser = argparse.ArgumentParser(prog="./test", description="Run every check and every test.")
    parser.add_argument("--fast", action="store_true", help="leave out tests marked slow or chaos")
    parser.add_argument(
        "--allow-missing", action="store_true", help="green although something was not testable here"
    )
    parser.add_argument("--environment-seconds", type=int, default=0, help=argparse.SUPPRESS)
    arguments, for_pytest = parser.parse_known_args()

    stages = [Stage("environment", arguments.environment_seconds, True)]
    started_at = time.monotonic()
    missing = _fetch_needs()
    stages.append(Stage("packages", time.monotonic() - started_at, True))
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "pytest.xml"
        pytest = ["python", "-m", "pytest", f"--junit-xml={report}", *_side_by_side(for_pytest), *for_pytest]
        if arguments.fast:
            pytest += ["-m", FAST]
        stages += [_run(name, command) for name, command in {**CHECKS, "pytest": pytest}.items()]
        skipped = Counter(_skip_reasons(report))

    _summarise(stages, missing, skipped, fast=arguments.fast)
    complete = not missing and all(reason.startswith(OPTIONAL) for reason in skipped)
    if not complete and not arguments.allow_missing:
        print("Red, because not everything was tested; --allow-missing accepts that.")
    return 0 if all(stage.passed for stage in stages) and (complete or arguments.allow_missing) else 1


def _side_by_side(for_pytest: list[str]) -> list[str]:
    """Half of the tests' time is waiting, so several files are run at a time; one alone where the caller looks closely.

    In the order in which they are collected: `tests/conftest.py` says what comes first.
    """
    looks_closely = {"-s", "-x", "--pdb", "-n", "--trace"} & set(for_pytest)
    return [] if looks_closely else ["-n", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder"]


def _run(name: str, command: list[str]) -> Stage:
    print(f"── {name}", flush=True)
    started_at = time.monotonic()
    code = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT).returncode
    return Stage(name, time.monotonic() - started_at, code == 0)


def _fetch_needs() -> list[str]:
    """Installs what is missing where that is possible, and names what is missing still."""
    absent = [need for need in NEEDS if not need.is_there()]
    prefix = _prefix_of_root()
    if absent and prefix is not None and shutil.which("apt-get"):
        _apt_get(prefix, "update")
        for need in absent:
            print(f"── installing {need.name}", flush=True)
            # The first package that can be installed is enough: names differ between releases.
            any(
                _apt_get(prefix, "install", "-y", "--no-install-recommends", package)
                for package in need.packages
            )
    return [f"{need.name} (Debian: {need.packages[0]})" for need in absent if not need.is_there()]


def _apt_get(prefix: list[str], *arguments: str) -> bool:
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *arguments]
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


def _prefix_of_root() -> list[str] | None:
    """What to put before a command so that root runs it; None where that is not to be had."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return None


def _path_of_root() -> str:
    """The search path with the directories of system programs, which ordinary users often lack."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def _skip_reasons(report: Path) -> Iterator[str]:
    if report.exists():
        for skipped in ElementTree.parse(report).iter("skipped"):
            if skipped.get("type") == "pytest.skip":  # an expected failure is reported as skipped too
                yield (skipped.get("message") or "without a reason").removeprefix("Skipped: ")


def _summarise(stages: list[Stage], missing: list[str], skipped: Counter[str], *, fast: bool) -> None:
    print("\n── summary")
    for stage in stages:
        print(f"{stage.name:<14}{stage.seconds:7.1f} s  {'passed' if stage.passed else 'FAILED'}")
    print(f"{'all':<14}{sum(stage.seconds for stage in stages):7.1f} s")
    if fast:
        print(f"--fast: only tests that are {FAST}")
    if missing or skipped:
        print("Not tested:")
        for name in missing:
            print(f"  {name} is missing and could not be installed")
        for reason, count in sorted(skipped.items()):
            print(f"  {count} × {reason}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
