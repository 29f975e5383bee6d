"""Releases as people install them: wheels, built from the commits that `releases.toml` names."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[2]
RELEASES: dict[str, str] = tomllib.loads((Path(__file__).parent / "releases.toml").read_text())
BUILT_WITHIN_S = 120


class NoHistory(Exception):
    """The commit of a release is not in this copy of the repository."""


def unpack_release(version: str, directory: Path) -> Path:
    """Where the packages of that release are, to be put on a Python path. Raises `NoHistory`."""
    commit = RELEASES[version]
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        raise NoHistory(f"{commit}, which is {version}, cannot be had: {archive.stderr.decode().strip()}")
    source = directory / f"source-{version}"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    return _unpacked(source, directory, version)


def unpack_this(directory: Path) -> Path:
    """As `unpack_release`, of the tree as it is."""
    return _unpacked(ROOT, directory, "this")


def _unpacked(source: Path, directory: Path, name: str) -> Path:
    wheels, packages = directory / f"wheel-{name}", directory / f"packages-{name}"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)],
        cwd=source,
        check=True,
        capture_output=True,
        timeout=BUILT_WITHIN_S,
    )
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(packages)
    return packages
