"""The house is in order: requirements are hashed and complete, scripts run, nothing names a machine."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _normalised(requirement: str) -> str:
    """A package's name as indexes compare it, without versions and markers."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def _locked(name: str) -> dict[str, str]:
    """The packages of a requirements file, each with everything that is said about it."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {_normalised(entry): entry for entry in entries if entry.strip()}


@pytest.mark.parametrize("name", ["build", "run", "test"])
def test_every_requirement_is_pinned_and_hashed(name: str) -> None:
    for package, entry in _locked(name).items():
        assert re.match(r"[\w.-]+==\S+", entry), package
        assert "--hash=sha256:" in entry, package


def test_requirement_files_hold_what_the_project_asks_for() -> None:
    run = {_normalised(requirement) for requirement in PROJECT["project"]["dependencies"]}
    test = {_normalised(requirement) for requirement in PROJECT["dependency-groups"]["test"]}
    build = {_normalised(requirement) for requirement in PROJECT["build-system"]["requires"]}
    assert run <= _locked("run").keys(), "run tools/lock-requirements"
    assert run | test <= _locked("test").keys(), "run tools/lock-requirements"
    assert build | {"uv"} <= _locked("build").keys(), "run tools/lock-requirements"


def test_requirement_files_agree_with_each_other() -> None:
    """They are installed together, so a package has one version in all of them."""
    versions: dict[str, set[str]] = {}
    for name in ("build", "run", "test"):
        for package, entry in _locked(name).items():
            versions.setdefault(package, set()).add(entry.split()[0])
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("script", ["run", "test", ".ci/run", "tools/find-python", "tools/lock-requirements"])
def test_scripts_can_be_executed_and_are_plain_shell(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    assert path.read_text().startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", path], check=True)


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    """The words are put together here, or this file would be the first to name them."""
    hosts = ["pypi" + ".org", "python" + "hosted", "repo" + ".maven", "maven" + ".org/maven2"]
    paths = ["/" + name + "/" for name in ("root", "home", "work", "Users")]
    forbidden = re.compile("|".join([*map(re.escape, hosts), *(rf"(?<![\w.}}/-]){path}" for path in paths)]))
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("optional: this is not a git checkout, so there is no list of its files")
    found = []
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            matches = forbidden.findall(path.read_text(errors="replace"))
            found += [f"{name}: {match}" for match in matches]
    assert found == []


def test_the_contracts_of_the_layers_are_there() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    containers = [contract["containers"] for contract in contracts if contract["type"] == "layers"]
    assert [container for (container,) in containers] == [
        "ropewalk",
        "ropewalk.broker",
        "ropewalk.client",
        "ropewalk.sim",
        "ropewalk.sim.runs",
    ]
    assert len([contract for contract in contracts if contract["type"] == "forbidden"]) == 4
