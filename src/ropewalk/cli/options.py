"""Options that many commands share. Each may stand before the command or after it; the nearer one wins."""

from enum import Enum
from typing import Annotated

import typer

BOOTSTRAP_VARIABLE = "ROPEWALK_BOOTSTRAP"


class Output(Enum):
    TABLE = "table"
    JSON = "json"


class Globals:
    """What was said before the command."""

    def __init__(self, bootstrap: str, output: Output) -> None:
        self.bootstrap = bootstrap
        self.output = output


GlobalBootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar=BOOTSTRAP_VARIABLE,
        metavar="HOST:PORT,…",
        help="Brokers to start from.",
    ),
]
GlobalOutput = Annotated[Output, typer.Option("--output", "-o", help="How results are printed.")]

BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT,…",
        help=f"Brokers to start from. [env: {BOOTSTRAP_VARIABLE}; default: 127.0.0.1:9092]",
    ),
]
OutputOption = Annotated[
    Output | None, typer.Option("--output", "-o", help="How results are printed. [default: table]")
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "-X", metavar="KEY=VALUE", help="A client setting by Kafka's name, such as request.timeout.ms."
    ),
]


def chosen_bootstrap(ctx: typer.Context, nearer: str | None) -> str:
    said = ctx.find_root().obj
    assert isinstance(said, Globals)
    return nearer if nearer is not None else said.bootstrap


def chosen_output(ctx: typer.Context, nearer: Output | None) -> Output:
    """The choice is remembered with what was said before the command: a failure is told in the same manner."""
    said = ctx.find_root().obj
    assert isinstance(said, Globals)
    if nearer is not None:
        said.output = nearer
    return said.output


def pairs(values: list[str] | None, option: str) -> list[tuple[str, str]]:
    """`KEY=VALUE` each; a value may contain further equals signs, and a key may come twice."""
    read: list[tuple[str, str]] = []
    for value in values or ():
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{value!r} is not KEY=VALUE", param_hint=option)
        read.append((name, text))
    return read


def assignments(values: list[str] | None, option: str) -> dict[str, str]:
    """As `pairs`; of a key that comes twice the last one counts."""
    return dict(pairs(values, option))
