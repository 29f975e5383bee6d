"""What `ropewalk generate` prints can be used as it is."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ropewalk.alerts.boards import BOARDS
from ropewalk.alerts.declared import RULES
from ropewalk.cli.generate import BoardName
from ropewalk.node.config import load
from ropewalk.node.exposure import warnings_of
from ropewalk.node.options import NodeOptions
from tests.cli.conftest import Ropewalk


def test_rules_are_printed_with_links_to_ones_own_copy(ropewalk: Ropewalk) -> None:
    printed = ropewalk("generate", "prometheus-rules", "--docs", "https://docs.example/")
    assert printed.exit_code == 0
    assert printed.stdout.count("- alert: ") == len(RULES)
    assert printed.stdout.count('runbook_url: "https://docs.example/reference/alerts.md#') == len(RULES)


def test_every_board_can_be_printed(ropewalk: Ropewalk) -> None:
    assert [name.value for name in BoardName] == [board.name for board in BOARDS]
    for board in BOARDS:
        assert json.loads(ropewalk("generate", "grafana", board.name).stdout)["title"] == board.title


def test_the_unit_starts_the_program_that_prints_it(ropewalk: Ropewalk) -> None:
    unit = ropewalk("generate", "systemd").stdout
    (start,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    program = Path(start.removeprefix("ExecStart=").split()[0])
    assert program.name == "ropewalk"
    assert program.exists()
    assert "/opt/ropewalk" not in unit
    assert "Type=notify" in unit


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(shell: str, ropewalk: Ropewalk) -> None:
    script = ropewalk("generate", "completion", shell).stdout
    assert "_ROPEWALK_COMPLETE" in script
    if shutil.which(shell) is not None:
        checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


def instructions(text: str) -> list[tuple[str, str]]:
    """Of a container file, in their order, with lines that go on joined."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def test_in_the_container_the_node_is_not_root_and_starts_with_these_settings(ropewalk: Ropewalk) -> None:
    found = instructions(ropewalk("generate", "container").stdout)
    last = dict(found)
    user = last["USER"].partition(":")[0]
    assert user.isdigit()
    assert int(user) >= 1_000
    assert json.loads(last["ENTRYPOINT"]) == ["ropewalk", "serve"]
    settings = dict(each.split("=", 1) for each in last["ENV"].split() if each.startswith("ROPEWALK_"))
    config = load(NodeOptions(), settings)
    assert config["node.data"] == last["VOLUME"]
    assert config["kafka.listen"] == f"0.0.0.0:{last['EXPOSE']}"
    assert any("kafka.advertise" in warning for warning in warnings_of(config)), "whoever forgets it is told"
    check = last["HEALTHCHECK"].partition(" CMD ")[2]
    program = json.loads(check)[2]
    assert f"http://{config['http.listen']}/readyz" in program
    compile(program, "the health check", "exec")
    order = [name for name, _ in found]
    assert order.index("USER") < order.index("ENTRYPOINT"), "nothing runs as root from there on"
