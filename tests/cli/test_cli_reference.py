"""The reference page names every command and every option there is, and no option that is not."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer

from ropewalk.cli.commands import COMMANDS

PAGE = Path(__file__).parents[2] / "docs/reference/commands.md"
SECTIONS = {
    title: body
    for title, _, body in (section.partition("\n") for section in PAGE.read_text().split("\n## ")[1:])
}
SHARED = {"-h", "--help", "-b", "--bootstrap", "-o", "--output", "-X"}


def options_of(name: str) -> Iterator[str]:
    command = typer.main.get_command(import_module(COMMANDS[name]).app)
    below = getattr(command, "commands", {}).values()
    for each in [
        command,
        *below,
        *(lower for one in below for lower in getattr(one, "commands", {}).values()),
    ]:
        for parameter in each.params:
            yield from (option for option in parameter.opts if option.startswith("-"))


def test_every_command_has_its_section_in_order() -> None:
    assert list(SECTIONS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_every_documented_option_exists(name: str) -> None:
    options = set(options_of(name))
    documented = set(re.findall(r"`(--?[a-zA-Z][a-z-]*)", SECTIONS[name]))
    assert options - SHARED - documented == set()
    assert documented - options - SHARED - {"-N"} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_a_group_is_documented(name: str) -> None:
    command = typer.main.get_command(import_module(COMMANDS[name]).app)
    shown = {each for each, child in getattr(command, "commands", {}).items() if not child.hidden}
    assert shown == set(re.findall(rf"^\| `{name} ([a-z-]+)", SECTIONS[name], re.MULTILINE))
