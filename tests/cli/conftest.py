"""The command line as a user meets it: real arguments, real output, a fake broker on the loopback."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from ropewalk.cli.main import app
from tests.client.loopback import LoopbackBroker

Ropewalk = Callable[..., Result]

TERMINAL_PATIENCE_S = 60


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
        preexec_fn=_heed_control_c,
    )


def in_terminal(*arguments: str, bootstrap: str, until: str = "", then: str = "") -> tuple[str, int]:
    """Run a command in a terminal of its own; when it has shown `until`, type `then`. What it showed, and its exit code."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from ropewalk.cli.main import main; main()", *arguments],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "ROPEWALK_BOOTSTRAP": bootstrap},
        start_new_session=True,
    )
    os.close(end)
    shown, has_typed = b"", False
    try:
        while select.select([terminal], [], [], TERMINAL_PATIENCE_S)[0]:
            shown += os.read(terminal, 65536)
            if then and not has_typed and until.encode() in shown:
                os.write(terminal, then.encode())
                has_typed = True
    except OSError:  # what Linux says when the other end of a terminal is closed
        pass
    os.close(terminal)
    return shown.decode(errors="replace"), process.wait(TERMINAL_PATIENCE_S)


def _heed_control_c() -> None:
    """Tests started in the background of a shell inherit that Ctrl-C is ignored, and would pass that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
