"""What the tab key offers, in the shells' own way of asking."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ropewalk.cli.main import app
from ropewalk.wire.messages import metadata
from tests.client.fake_broker import Fault
from tests.client.fake_groups import FakeGroup
from tests.client.loopback import LoopbackBroker

ROPEWALK = [sys.executable, "-c", "from ropewalk.cli.main import main; main()"]


Completions = Callable[..., list[str]]


@pytest.fixture
def completions(monkeypatch: pytest.MonkeyPatch) -> Completions:
    """What bash would be told for the line up to the cursor. The patience is a test's, not a person's."""
    monkeypatch.setattr("ropewalk.cli.completion._PATIENCE_MS", 60_000)

    def complete(line: str, *, bootstrap: str = "127.0.0.1:1") -> list[str]:
        environment = {
            "_ROPEWALK_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
            "ROPEWALK_BOOTSTRAP": bootstrap,
        }
        result = CliRunner().invoke(app, [], env=environment, prog_name="ropewalk")
        assert result.stderr == ""
        return result.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ropewalk gro", ["group"]),
        ("ropewalk group re", ["reset"]),
        ("ropewalk topic describe ord", ["orders"]),
        ("ropewalk topic describe ", ["bills", "orders"]),
        ("ropewalk topic describe __", ["__hidden"]),
        ("ropewalk topic create ord", []),
        ("ropewalk produce b", ["bills"]),
        ("ropewalk consume b", ["bills"]),
        ("ropewalk group describe bil", ["billing"]),
        ("ropewalk group reset billing --topic o", ["orders"]),
        ("ropewalk produce orders --acks ", ["all", "-1", "1", "0"]),
    ],
)
def test_commands_options_and_names_are_offered(
    line: str, expected: list[str], broker: LoopbackBroker, completions: Completions
) -> None:
    for name in ("orders", "bills", "__hidden"):
        broker.cluster.add_topic(name, 0)
    broker.cluster.groups["billing"] = FakeGroup(0)
    assert completions(line, bootstrap=broker.address) == expected


@pytest.mark.parametrize("place", ["ropewalk -b {} topic delete o", "ropewalk topic delete -b {} o"])
def test_the_brokers_named_on_the_line_are_asked(
    place: str, broker: LoopbackBroker, completions: Completions
) -> None:
    broker.cluster.add_topic("orders", 0)
    assert completions(place.format(broker.address)) == ["orders"]


def test_nobody_there_offers_nothing_and_says_nothing(completions: Completions) -> None:
    assert completions("ropewalk topic describe o") == []
    assert completions("ropewalk -b nonsense:x topic describe o") == []


def test_a_broker_that_does_not_answer_offers_nothing(
    broker: LoopbackBroker, completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropewalk.cli.completion._PATIENCE_MS", 100)
    broker.cluster.add_topic("orders", 0)
    broker.broker.fail(metadata.API, Fault(100, is_silent=True))
    assert completions("ropewalk topic describe o", bootstrap=broker.address) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_every_shell(shell: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = subprocess.run(
        [*ROPEWALK, "--show-completion", shell], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "_ROPEWALK_COMPLETE=" in shown.stdout
    installed = subprocess.run(
        [*ROPEWALK, "--install-completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert installed.returncode == 0, installed.stderr
    assert any("_ROPEWALK_COMPLETE=" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_takes_the_script(tmp_path: Path) -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run(
        [*ROPEWALK, "--show-completion", "bash"], env=environment, capture_output=True, text=True, timeout=60
    ).stdout
    path = tmp_path / "completion.bash"
    path.write_text(script)
    done = subprocess.run(
        ["bash", "-c", f"source {path} && complete -p ropewalk"], capture_output=True, text=True, timeout=60
    )
    assert "complete" in done.stdout, done.stderr
