"""Connections that send a byte a second: five hundred here, ten thousand by `python -m tests.fuzz.slow_senders`."""

import json
import subprocess
import sys

import pytest

from ropewalk.base.limits import HTTP_REQUEST_MS_MAX


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_slow_senders_are_closed_and_a_client_beside_them_notices_nothing() -> None:
    """In a process of its own, which may raise how many descriptors it has."""
    command = [sys.executable, "-m", "tests.fuzz.slow_senders", "--connections", "500", "--seconds", "18"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    if done.returncode == 2:
        pytest.skip(done.stdout)
    seen = json.loads(done.stdout)
    assert seen["violations"] == []
    assert seen["open_at_most"] == 500
    assert seen["closed"] >= 500, "all that were opened at first"
    assert seen["answered"] == 0
    assert seen["kept_s_max"] < 2 * HTTP_REQUEST_MS_MAX / 1000
    assert seen["growth_mib"] < 32
    assert seen["slow_ms"]["count"] > 20
