"""The command line without a broker: help, configuration, handing options on, and what it imports."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from ropewalk.cli.commands import COMMANDS
from ropewalk.node.options import NodeOptions
from tests.cli.conftest import Ropewalk

NOT_NEEDED_TO_LIST_TOPICS = (
    "rich",
    "textual",
    "structlog",
    "crc32c",
    "lz4",
    "cramjam",
    "ropewalk.broker",
    "ropewalk.kafka",
    "ropewalk.log",
    "ropewalk.metadata",
    "ropewalk.node",
    "ropewalk.records",
)

PRINT_FILES = {"generate"}
"""What they print is a file, in a form that its reader prescribes."""


def test_every_command_is_in_the_help_and_has_help(ropewalk: Ropewalk) -> None:
    overview = ropewalk("--help")
    assert overview.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in overview.stdout
        page = ropewalk(name, "--help")
        assert page.exit_code == 0
        assert page.stdout.startswith(f"Usage: ropewalk {name}")


def _leaves(command: Any) -> Iterator[Any]:
    """The commands below a group of them, or the command itself."""
    below = getattr(command, "commands", None)
    if below is None:
        yield command
        return
    for each in below.values():
        yield from _leaves(each)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - PRINT_FILES))
def test_every_command_prints_json_when_asked(name: str) -> None:
    command = typer.main.get_command(import_module(COMMANDS[name]).app)
    for each in _leaves(command):
        assert any("-o" in parameter.opts for parameter in each.params), f"{name} {each.name}"


def test_the_version_is_said(ropewalk: Ropewalk) -> None:
    from ropewalk import __version__

    assert ropewalk("--version").stdout == f"ropewalk {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["topic", "ls"], ["topic", "create", "--help"]])
def test_what_is_slow_to_import_and_not_needed_is_not_imported(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from ropewalk.cli.main import app\n"
        "try:\n"
        f"    app({arguments!r} + ['-b', '127.0.0.1:1'] if {arguments!r}[-1] == 'ls' else {arguments!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "print('modules:', *sys.modules)\n"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = completed.stdout.rpartition("modules:")[2].split()
    assert "ropewalk.cli.main" in modules
    assert [name for name in NOT_NEEDED_TO_LIST_TOPICS if name in modules] == []


def test_settings_are_shown_with_their_origin(
    ropewalk: Ropewalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[kafka]\nlisten = "127.0.0.1:1234"\n')
    monkeypatch.setenv("ROPEWALK_NUM__PARTITIONS", "4")
    arguments = ("config", "show", "--origin", "--changed", "--config", str(path), "--set", "flush=os")
    shown = json.loads(ropewalk(*arguments, "-o", "json").stdout)
    assert shown == {
        "flush": {"value": "os", "origin": "--set flush"},
        "kafka.listen": {"value": "127.0.0.1:1234", "origin": str(path)},
        "num.partitions": {"value": "4", "origin": "ROPEWALK_NUM__PARTITIONS"},
    }
    table = ropewalk(*arguments).stdout.splitlines()
    assert table[0].split() == ["SETTING", "VALUE", "ORIGIN"]
    assert table[1].split() == ["flush", "os", "--set", "flush"]
    assert len(json.loads(ropewalk("config", "show", "-o", "json").stdout)) > 50


def test_a_setting_that_does_not_exist_is_one_line(ropewalk: Ropewalk) -> None:
    result = ropewalk("config", "show", "--set", "num.partition=4")
    assert result.exit_code == 1
    assert result.stderr == (
        "ropewalk: --set num.partition: there is no setting 'num.partition'; did you mean num.partitions?\n"
    )


def test_settings_are_explained(ropewalk: Ropewalk) -> None:
    explained = ropewalk("config", "describe", "flush").stdout
    assert "flush  (topic setting)" in explained
    assert "group" in explained
    overview = ropewalk("config", "describe").stdout.splitlines()
    assert overview[0].split() == ["SCOPE", "SETTING", "TYPE", "DEFAULT"]
    entries = json.loads(ropewalk("config", "describe", "retention", "-o", "json").stdout)
    assert "retention.ms" in {entry["name"] for entry in entries}
    refused = ropewalk("config", "describe", "nonsense")
    assert refused.exit_code == 1
    assert "no setting has 'nonsense' in its name" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("up",), NodeOptions()),
        (
            (
                "up",
                "--kafka",
                "h:1",
                "--http",
                "h:2",
                "--data",
                "d",
                "--set",
                "a=b",
                "--set",
                "c=d",
                "--demo",
            ),
            NodeOptions(kafka="h:1", http="h:2", data="d", settings=("a=b", "c=d"), demo=True),
        ),
        (
            ("up", "--memory", "--ready-file", "f", "--log-level", "debug", "-o", "json"),
            NodeOptions(memory=True, ready_file="f", log_level="debug", ready_as_json=True),
        ),
        (("serve", "--config", "node.toml"), NodeOptions(config="node.toml")),
    ],
)
def test_a_node_is_given_what_was_said_and_nothing_else(
    arguments: tuple[str, ...], expected: NodeOptions, ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[NodeOptions] = []
    main = pytest.importorskip("ropewalk.node.main")
    monkeypatch.setattr(main, f"run_{arguments[0]}", given.append)
    assert ropewalk(*arguments).exit_code == 0
    assert given == [expected]


def test_what_is_for_a_cluster_needs_one(ropewalk: Ropewalk) -> None:
    result = ropewalk("up", "--etcd", "auto")
    assert result.exit_code == 2
    assert "give --nodes too" in result.stderr
    assert ropewalk("up", "--nodes", "3", "--demo").exit_code == 1


def test_a_cluster_does_not_take_the_place_of_a_single_node(ropewalk: Ropewalk, tmp_path: Path) -> None:
    (tmp_path / "identity").touch()
    result = ropewalk("up", "--nodes", "3", "--data", str(tmp_path))
    assert result.exit_code == 1
    assert "holds the data of a single node" in result.stderr
