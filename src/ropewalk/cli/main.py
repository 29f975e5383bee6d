"""The entry point: `ropewalk`."""

import os
from typing import Annotated

import typer

from ropewalk.cli.commands import Commands
from ropewalk.cli.options import (
    BOOTSTRAP_VARIABLE,
    GlobalBootstrap,
    GlobalOutput,
    GlobalProfile,
    GlobalProperty,
    Globals,
    Output,
)

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from ropewalk import __version__

        print(f"ropewalk {__version__}")
        raise typer.Exit


@app.callback()
def ropewalk(
    ctx: typer.Context,
    bootstrap: GlobalBootstrap = None,
    profile: GlobalProfile = None,
    properties: GlobalProperty = None,
    output: GlobalOutput = Output.TABLE,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """A message queue that speaks Kafka. Start a node with `ropewalk up`; try `ropewalk COMMAND --help`."""
    said = Globals(bootstrap, output, profile=profile, properties=properties)
    said.is_bootstrap_of_environment = bootstrap == os.environ.get(BOOTSTRAP_VARIABLE)
    ctx.obj = said


def main() -> None:
    app(prog_name="ropewalk")
