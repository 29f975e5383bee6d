"""Our small programs in Go, where Go is: built once into the project's cache, and run.

Without Go the other clients speak for it, so its absence does not turn `./test` red; it is listed there.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_SOURCES: Final = Path(__file__).parent / "go"
_CACHE: Final = Path(__file__).parents[2] / ".cache" / "go"
PATIENCE_S: Final = 60
BUILD_S_MAX: Final = 400


def built(program: str) -> str:
    """The path of a program; the test is skipped where it cannot be built."""
    if shutil.which("go") is None:
        pytest.skip("optional: go is missing, so clients in Go were not tried")
    environment = {**os.environ, "GOPATH": str(_CACHE / "path"), "GOCACHE": str(_CACHE / "build")}
    path = _CACHE / "bin" / program
    done = subprocess.run(
        ["go", "build", "-o", str(path), f"./{program}"],
        cwd=_SOURCES,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_S_MAX,
    )
    if done.returncode and ("dial tcp" in done.stderr or "toolchain" in done.stderr):
        pytest.skip("optional: Go could not fetch what its clients need, so they were not tried")
    assert done.returncode == 0, done.stderr
    return str(path)


def run_go(path: str, *arguments: str) -> str:
    """Runs to the end and answers with what was printed."""
    done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
