"""Options that many commands share. Each may stand before the command or after it; the nearer one wins."""

from collections.abc import Callable
from enum import Enum
from typing import Annotated

import typer

BOOTSTRAP_VARIABLE = "ROPEWALK_BOOTSTRAP"
BOOTSTRAP_DEFAULT = "127.0.0.1:9092"
PROFILE_VARIABLE = "ROPEWALK_PROFILE"


class Output(Enum):
    TABLE = "table"
    JSON = "json"


class Globals:
    """What was said before the command, and by options that every command has."""

    def __init__(
        self,
        bootstrap: str | None,
        output: Output,
        *,
        profile: str | None = None,
        properties: list[str] | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        """None: neither on the command line nor in the environment."""
        self.output = output
        self.profile = profile
        self.properties = list(properties or ())
        self.is_bootstrap_of_environment = False


GlobalBootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar=BOOTSTRAP_VARIABLE,
        metavar="HOST:PORT,…",
        help="Brokers to start from. [default: 127.0.0.1:9092]",
    ),
]
GlobalProfile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        envvar=PROFILE_VARIABLE,
        metavar="NAME",
        help="A cluster and how to log in to it, as profiles.toml has it.",
    ),
]
GlobalProperty = Annotated[
    list[str] | None,
    typer.Option(
        "-X", metavar="KEY=VALUE", help="A client setting by Kafka's name, such as security.protocol."
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


def _remember_profile(ctx: typer.Context, _option: object, value: str | None) -> None:
    if value is not None:
        said_before(ctx).profile = value


def _remember_properties(ctx: typer.Context, _option: object, values: tuple[str, ...]) -> None:
    said_before(ctx).properties += values


CommonOption = tuple[str, str, str, Callable[..., None]]
PROFILE: CommonOption = (
    "--profile",
    "NAME",
    f"A cluster and how to log in to it, as profiles.toml has it. [env: {PROFILE_VARIABLE}]",
    _remember_profile,
)
PROPERTY: CommonOption = (
    "-X",
    "KEY=VALUE",
    "A client setting by Kafka's name, such as request.timeout.ms.",
    _remember_properties,
)
"""Options of every command that connects: the flag, what it takes, what it is for, and who hears of it."""


def chosen_bootstrap(ctx: typer.Context, nearer: str | None) -> str:
    """What the command line says; then the profile; then the environment."""
    said = said_before(ctx)
    if nearer is not None:
        return nearer
    if said.profile is not None and (said.bootstrap is None or said.is_bootstrap_of_environment):
        from ropewalk.cli.profiles import read_profile  # needed by those alone who have profiles

        said_there = read_profile(said.profile).bootstrap
        if said_there is not None:
            return said_there
    return said.bootstrap or BOOTSTRAP_DEFAULT


def said_before(ctx: typer.Context) -> Globals:
    said = ctx.find_root().obj
    assert isinstance(said, Globals)
    return said


def chosen_output(ctx: typer.Context, nearer: Output | None) -> Output:
    """The choice is remembered with what was said before the command: a failure is told in the same manner."""
    said = said_before(ctx)
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
