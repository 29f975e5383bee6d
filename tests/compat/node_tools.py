"""Our small program on KafkaJS, where Node and npm are: its package is fetched once into the project's cache.

Without Node the other clients speak for it, so its absence does not turn `./test` red; it is listed there.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_SOURCES: Final = Path(__file__).parent / "node"
_CACHE: Final = Path(__file__).parents[2] / ".cache" / "node"
PATIENCE_S: Final = 60
FETCH_S_MAX: Final = 120


def run_kafkajs(program: str, *arguments: str) -> str:
    """Runs to the end and answers with what was printed; the test is skipped where KafkaJS cannot be had."""
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            pytest.skip(f"optional: {name} is missing, so KafkaJS was not tried")
    modules = _CACHE / "node_modules"
    if not (modules / "kafkajs").exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        shutil.copy(_SOURCES / "package.json", _CACHE)
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(_CACHE)]
        if subprocess.run(command, capture_output=True, timeout=FETCH_S_MAX).returncode:
            pytest.skip("optional: npm could not fetch KafkaJS, so it was not tried")
    done = subprocess.run(
        ["node", str(_SOURCES / program), *arguments],
        env={**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
