"""Everything that must hold before a change is handed over, in one run: `./test` calls this.

    --fast             leaves out what kills processes and what takes long
    --allow-missing    green although something could not be tested on this machine
    --write-seconds    keeps in `tests/seconds.json` how long each file took, by which later runs are ordered
    --again            runs a few tests that failed once more, alone; what passes then is named in the summary
    anything else      goes to pytest

Ruff, mypy and the layer contracts are looked at while the tests run, which wait for a third of their time; each says what it
found in one piece when it is done.

Programs that the tests need are fetched from Debian's packages where they are missing and this is root, or sudo
asks no password. A test that cannot run here is skipped with the reason, and the run is then red unless
`--allow-missing` is given: a green run without it has tested everything. Only what the reason calls optional
(Kafka's own client, which Maven fetches) may be absent from a green run; it is listed all the same.
"""

import argparse
import ctypes.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import starmap
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
OPTIONAL = "optional:"
WORKERS = max(3, min(4, os.cpu_count() or 1))
"""One more than a machine of two cores has: a test that starts a process or waits for a timer leaves its core to another."""
FAST = "not slow and not chaos"
SECONDS = ROOT / "tests" / "seconds.json"
SECONDS_KEPT_MIN = 2
"""Where shorter files stand in the order makes no difference."""
SLOWEST_COUNT = 10
AGAIN_MAX = 4
"""More failures than these are no matter of what ran beside them."""
BYTECODE = ROOT / ".cache" / "bytecode"


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
    Need("haproxy", lambda: shutil.which("haproxy", path=_path_of_root()) is not None, ("haproxy",)),
    Need("Chromium", lambda: shutil.which("chromium") is not None, ("chromium",)),
    Need("keepalived", lambda: shutil.which("keepalived", path=_path_of_root()) is not None, ("keepalived",)),
)


CHECKS: dict[str, list[str]] = {
    "ruff check": ["ruff", "check", "--quiet"],
    "ruff format": ["ruff", "format", "--check", "--quiet"],
    "mypy": ["mypy"],
    "lint-imports": ["lint-imports", "--no-logo"],
}
SPARK_CLASSES = ["-m", "tests.spark.quick_java"]
"""Makes what lets Java start Spark in less time, unless it is there from an earlier run."""


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
    parser.add_argument(
        "--write-seconds",
        action="store_true",
        help=f"keep in {SECONDS.relative_to(ROOT)} how long files took",
    )
    parser.add_argument(
        "--again", action="store_true", help=f"run up to {AGAIN_MAX} failed tests once more, alone"
    )
    parser.add_argument("--environment-seconds", type=int, default=0, help=argparse.SUPPRESS)
    arguments, for_pytest = parser.parse_known_args()

    started_at = time.monotonic() - arguments.environment_seconds
    stages = [Stage("environment", arguments.environment_seconds, True)]
    packages_at = time.monotonic()
    missing = _fetch_needs()
    stages.append(Stage("packages", time.monotonic() - packages_at, True))
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "pytest.xml"
        pytest = ["python", "-m", "pytest", f"--junit-xml={report}", *_side_by_side(for_pytest), *for_pytest]
        if arguments.fast:
            pytest += ["-m", FAST]
        with_spark = not for_pytest or any("spark" in word for word in for_pytest)
        stages += run_all(pytest, with_spark=with_spark)
        failed = list(failures(report))
        if arguments.again and not stages[-1].passed and 0 < len(failed) <= AGAIN_MAX:
            stages[-1] = run_again(for_pytest, stages[-1])
        unsteady = failed if stages[-1].passed else []
        skipped = Counter(_skip_reasons(report))
        seconds = seconds_by_file(report)
    # What was compiled of copies that tests made will not be asked for again.
    shutil.rmtree(f"{BYTECODE}{tempfile.gettempdir()}", ignore_errors=True)
    if arguments.write_seconds:
        _write_seconds(seconds)

    _summarise(stages, time.monotonic() - started_at, missing, skipped, fast=arguments.fast)
    if unsteady:
        print(
            "Failed once and passed alone, which is a fault of the test or of what it tests; find out which:"
        )
        print("".join(f"  {name}\n" for name in unsteady), end="")
    _tell_slowest(seconds)
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


def run_all(pytest: list[str], *, with_spark: bool = False) -> list[Stage]:
    """The tests, and beside them one check after the other."""
    checks: list[Stage] = []

    def look() -> None:
        if with_spark:  # whatever comes of it: Spark's tests run without as well, only longer
            subprocess.run([BIN / "python", *SPARK_CLASSES], cwd=ROOT, env=environment(), capture_output=True)
        checks.extend(starmap(_check, CHECKS.items()))

    beside = threading.Thread(target=look)
    beside.start()
    print("── pytest", flush=True)
    started_at = time.monotonic()
    code = subprocess.run([BIN / pytest[0], *pytest[1:]], cwd=ROOT, env=environment()).returncode
    tests = Stage("pytest", time.monotonic() - started_at, code == 0)
    beside.join()
    return [*checks, tests]


def run_again(for_pytest: list[str], tests: Stage) -> Stage:
    """What failed, with nothing beside it; the stage is green if all of it passes.

    So that a machine which was busy elsewhere for a moment costs a look at the summary, not the whole run.
    """
    print("\n── pytest, once more what failed", flush=True)
    started_at = time.monotonic()
    pytest = [
        str(BIN / "python"),
        "-m",
        "pytest",
        *for_pytest,
        "--last-failed",
        "--last-failed-no-failures=none",
    ]
    code = subprocess.run(pytest, cwd=ROOT, env=environment()).returncode
    return Stage(tests.name, tests.seconds + time.monotonic() - started_at, code == 0)


def failures(report: Path) -> Iterator[str]:
    """Which tests failed, or could not be set up."""
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                yield f"{_file_of(case.get('classname') or '')}::{case.get('name')}"


def _check(name: str, command: list[str]) -> Stage:
    started_at = time.monotonic()
    try:
        done = subprocess.run(
            [BIN / command[0], *command[1:]],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        passed, told = done.returncode == 0, done.stdout
    except OSError as error:
        passed, told = False, f"{error}\n"
    # In one piece, so that it stands together among what pytest prints.
    print(f"\n── {name}: {'passed' if passed else 'FAILED'}\n{told}", end="", flush=True)
    return Stage(name, time.monotonic() - started_at, passed)


def environment() -> dict[str, str]:
    """As it is, but with compiled modules kept: the tests start Python many hundreds of times.

    Where Python was told not to keep them beside the source, they are kept in the project's cache. Compiling at each start
    takes a node and each worker of Spark from half a second to more than one.
    """
    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", None):
        environment.setdefault("PYTHONPYCACHEPREFIX", str(BYTECODE))
    return environment


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


def seconds_by_file(report: Path) -> dict[str, float]:
    """How long the tests of each file took, what they share included; in the order of the files' names."""
    seconds: dict[str, float] = defaultdict(float)
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            seconds[_file_of(case.get("classname") or "")] += float(case.get("time") or 0)
    return dict(sorted(seconds.items()))


def _file_of(classname: str) -> str:
    """`tests.log.test_index.TestClass` is in `tests/log/test_index.py`."""
    words = classname.split(".")
    while words and not (ROOT / "/".join(words)).with_suffix(".py").exists():
        words.pop()
    return "/".join(words) + ".py"


def _write_seconds(seconds: dict[str, float]) -> None:
    kept = {name: round(taken) for name, taken in seconds.items() if taken >= SECONDS_KEPT_MIN}
    SECONDS.write_text(json.dumps(kept, indent=1) + "\n")


def _tell_slowest(seconds: dict[str, float]) -> None:
    if seconds:
        print("Slowest files:")
    for name, taken in sorted(seconds.items(), key=lambda each: -each[1])[:SLOWEST_COUNT]:
        print(f"{taken:9.1f} s  {name}")
    sys.stdout.flush()


def _summarise(
    stages: list[Stage], all_seconds: float, missing: list[str], skipped: Counter[str], *, fast: bool
) -> None:
    print("\n── summary")
    for stage in stages:
        print(f"{stage.name:<14}{stage.seconds:7.1f} s  {'passed' if stage.passed else 'FAILED'}")
    print(f"{'all':<14}{all_seconds:7.1f} s")
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
