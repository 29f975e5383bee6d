"""The command line as a user meets it: real arguments, real output, a fake broker on the loopback."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.client.fake_broker import FakeBroker, FakeCluster
from typer.testing import CliRunner, Result

from ropewalk.cli.main import app
from ropewalk.runtime.network import TcpNetwork

Ropewalk = Callable[..., Result]


class LoopbackBroker:
    """A fake broker in a thread of its own, because a command runs an event loop until it is done."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.broker = FakeBroker(self.cluster, 0)
        self.address = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self.broker.start(TcpNetwork()), self._loop)
        self.address = str(starting.result(timeout=10))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self.broker.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


@pytest.fixture
def broker() -> Iterator[LoopbackBroker]:
    broker = LoopbackBroker()
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def ropewalk(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Ropewalk:
    """Run `ropewalk ARGUMENTS…` in this process; with the fixture `broker`, against it."""
    for name in [name for name in os.environ if name.startswith("ROPEWALK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    if "broker" in request.fixturenames:
        monkeypatch.setenv("ROPEWALK_BOOTSTRAP", request.getfixturevalue("broker").address)

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=stdin, prog_name="ropewalk")

    return run


def start_process(*arguments: str, bootstrap: str = "") -> "subprocess.Popen[bytes]":
    """A command in a process of its own, for what only a process can show: signals, pipes, imports."""
    environment = {**os.environ, "ROPEWALK_BOOTSTRAP": bootstrap or "127.0.0.1:1"}
    return subprocess.Popen(
        [sys.executable, "-c", "from ropewalk.cli.main import main; main()", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
