"""`ropewalk pipeline`: jobs over topics, on Spark.

What a reader could get wrong
    A pipeline is a process of its own, and this one becomes it: signals, the exit code and the terminal are handed on by not being in between.
    The options of `run` that are not declared here are settings of the pipeline's kind; they are handed on unread.
"""

import os
import sys
from importlib.util import find_spec
from typing import Annotated, Final

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    chosen_bootstrap,
    chosen_output,
    said_before,
)

app = new_app("Pipelines: list, describe, run, and how they are. They need ropewalk[spark], and Java to run.")

_NEEDED: Final = ("pyspark", "pyarrow", "numpy")
"""A few of the extra, by which to tell whether it is there."""

FileOption = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", help="Jobs, as TOML. [pipelines.toml, if it is there]"),
]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="DIR", help="Where the status of jobs is kept. [~/.local/state/ropewalk/pipelines]"
    ),
]


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_pipelines(ctx: typer.Context, file: FileOption = None, output: OutputOption = None) -> None:
    """List the kinds of pipelines there are, and the jobs of the file."""
    _become(ctx, output, "ls", *_option("--file", file))


@app.command()
@guarded
def describe(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A kind, or a job of the file.")],
    file: FileOption = None,
    output: OutputOption = None,
) -> None:
    """Show what a pipeline can be told: its settings, their defaults, and what a job has set."""
    _become(ctx, output, "describe", name, *_option("--file", file))


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog="Example: ropewalk pipeline run archive --topic demo --to ./lake --once. "
    "`pipeline describe NAME` shows the settings that are options here as well.",
)
@guarded
def run(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A job of the file, or a kind. Comes before its options.")
    ],
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", "-t", help="What to read. As often as needed.", autocompletion=complete_topic
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option("--pattern", metavar="REGEX", help="Read all topics that this matches as a whole."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when everything is read that is there.")] = False,
    interval: Annotated[
        str | None, typer.Option("--interval", metavar="TIME", help='From batch to batch. ["5 seconds"]')
    ] = None,
    job_name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The name by which the job is known. [as asked for]"),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="Where progress is kept. [below the target]"),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="NAME=VALUE", help="An option of the source. As often as needed."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="MASTER", help="The Spark cluster. [local[*], this machine]"),
    ] = None,
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="sc://HOST:PORT", help="A Spark Connect server.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf", metavar="NAME=VALUE", help="A setting of the Spark session. As often as needed."
        ),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui", help="Serve Spark's own pages while it runs.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="FILE", help="Keep metrics in this file, as Prometheus' text."),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", min=0, max=65535, help="Serve metrics on this port of the loopback."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show Spark's log, and stacks of errors.")
    ] = False,
    file: FileOption = None,
    state: StateOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Run a job on Spark until Ctrl-C, or with --once until everything is read. Goes on where it was."""
    _become(
        ctx,
        output,
        "run",
        name,
        *_option("--topic", *(topics or ())),
        *_option("--pattern", pattern),
        *(["--once"] if once else []),
        *_option("--interval", interval),
        *_option("--name", job_name),
        *_option("--checkpoint", checkpoint),
        *_option("--source", *(source or ())),
        *_option("--master", master),
        *_option("--remote", remote),
        *_option("--conf", *(conf or ())),
        *(["--ui"] if ui else []),
        *_option("--metrics", metrics),
        *_option("--metrics-port", None if metrics_port is None else str(metrics_port)),
        *(["--verbose"] if verbose else []),
        *_option("--file", file),
        *_option("--state", state),
        *_option("--bootstrap", bootstrap or _said_before(ctx)),
        *ctx.args,
    )


@app.command()
@guarded
def status(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One job.")] = None,
    state: StateOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Tell how jobs are: state, batch, rows, rate, lag. Those of this machine, and with brokers named, those that the cluster has heard of."""
    _become(
        ctx,
        output,
        "status",
        *([name] if name is not None else []),
        *_option("--state", state),
        *_option("--bootstrap", bootstrap or _said_before(ctx)),
    )


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog="Example: ropewalk pipeline offsets orders --from-table, after its table was put back. "
    "A job that is not in the file is told as `pipeline run` is.",
)
@guarded
def offsets(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A job of the file, or a kind. Comes before its options.")
    ],
    moves: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TOPIC:PARTITION=OFFSET", help="Go on there. As often as needed."),
    ] = None,
    from_table: Annotated[
        bool, typer.Option("--from-table", help="Go on where the table's rows end, which are all read.")
    ] = False,
    file: FileOption = None,
    state: StateOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Show how far a job's output has come, or move that: after a table was put back, or to leave records out."""
    _become(
        ctx,
        output,
        "offsets",
        name,
        *_option("--set", *(moves or ())),
        *(["--from-table"] if from_table else []),
        *_option("--file", file),
        *_option("--state", state),
        *_option("--bootstrap", bootstrap or _said_before(ctx)),
        *ctx.args,
    )


def _become(ctx: typer.Context, output: Output | None, *words: str) -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise Failed(
            f"pipelines need the extra spark ({', '.join(missing)} missing): "
            "`pip install 'ropewalk[spark]'`, or start it as `./run pipeline`, which adds it"
        )
    as_json = ["--json"] if chosen_output(ctx, output) is Output.JSON else []
    command, *rest = words
    arguments = [sys.executable, "-m", "ropewalk.spark", command, *as_json, *rest]
    sys.stdout.flush()
    os.execve(sys.executable, arguments, {**os.environ, **_login(ctx)})


def _login(ctx: typer.Context) -> dict[str, str]:
    """How to log in to brokers, by the environment: arguments are there for all to see."""
    said = said_before(ctx)
    if said.profile is None and not said.properties:
        return {}
    from ropewalk.cli.connect import client_settings
    from ropewalk.client.connections.security import as_variables

    return as_variables(client_settings(ctx).security)


def _option(flag: str, *values: str | None) -> list[str]:
    # With its value in one word, because a value may begin with a dash.
    return [f"{flag}={value}" for value in values if value is not None]


def _said_before(ctx: typer.Context) -> str | None:
    """The brokers that were named before the command, or by a profile. Those of the environment are weaker than what a job's file says."""
    if said_before(ctx).profile is not None:
        return chosen_bootstrap(ctx, None)
    source = ctx.find_root().get_parameter_source("bootstrap")
    if source is None or source.name != "COMMANDLINE":
        return None
    said = ctx.find_root().params["bootstrap"]
    assert isinstance(said, str)
    return said
