"""Ask before something is gone for good: its name has to be typed, as nobody does by accident."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ropewalk.cli.failure import Failed
from ropewalk.cli.output import counted, visible

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def ask_for_name(what: str, names: Sequence[str], *, yes: bool, noun: str = "topic") -> None:
    """`what` is a sentence that says what will be gone. Returns if it was meant; one of several is asked for by its number."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failed(f"{what}. Nobody is there to ask, so nothing was done; --yes does it without asking")
    wanted = names[0] if len(names) == 1 else str(len(names))
    asked = (
        f"the name {visible(names[0])}" if len(names) == 1 else f"{wanted}, for {counted(len(names), noun)}"
    )
    typed = typer.prompt(f"{what}. Type {asked}, to go on", err=True)
    if typed.strip() != wanted:
        raise Failed(f"{typed.strip()!r} was typed, so nothing was done")
