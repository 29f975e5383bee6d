"""`ropewalk generate`: files for what runs beside Ropewalk, or runs it, printed to standard output; a chart, which is many, into a folder.

What a reader could get wrong
    Everything is made from what is installed here: rules name metrics of this version, and the unit starts the program it was printed by.
"""

import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final

import typer

from ropewalk import __version__
from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded

app = new_app(
    "Files for Prometheus, Grafana, systemd, containers and shells, printed as this version has them."
)

DOCS: Final = "docs"
PROGRAM: Final = "/opt/ropewalk/bin/ropewalk"
"""As the unit has it; replaced by where this program is."""


class BoardName(Enum):
    CLUSTER = "cluster"
    NODE = "node"
    TOPICS = "topics"
    QUEUES = "queues"


class Shell(Enum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("prometheus-rules")
def prometheus_rules(
    docs: Annotated[
        str,
        typer.Option(
            "--docs", metavar="URL", help="Where the documentation is: runbook links begin with it."
        ),
    ] = DOCS,
) -> None:
    """Alert rules, for `rule_files` of Prometheus."""
    from ropewalk.alerts.declared import GROUPS
    from ropewalk.alerts.rule_file import rule_file

    print(rule_file(GROUPS, docs=docs), end="")


@app.command()
def grafana(
    board: Annotated[BoardName, typer.Argument(help="What the board is about.")] = BoardName.CLUSTER,
) -> None:
    """A board for Grafana, as JSON to import."""
    from ropewalk.alerts.boards import BOARDS
    from ropewalk.alerts.grafana import grafana as written

    print(written(next(each for each in BOARDS if each.name == board.value)), end="")


@app.command()
@guarded
def systemd(ctx: typer.Context) -> None:  # noqa: ARG001  `guarded` asks it how failures are shown
    """A hardened unit for systemd, which starts the program that prints it."""
    print(_packaged("ropewalk.service").replace(PROGRAM, str(_program())), end="")


@app.command()
def container() -> None:
    """A container file: not root, on a read-only root, with a health check."""
    print(_packaged("Containerfile"), end="")


@app.command()
@guarded
def helm(
    ctx: typer.Context,  # noqa: ARG001  `guarded` asks it how failures are shown
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Where to write it: a folder that is not there yet, or empty."),
    ],
) -> None:
    """Write a chart for Helm into a folder: nodes as a StatefulSet, with etcd, services, probes, and a console behind an Ingress."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failed(f"{folder} is there and not empty")
    chart = resources.files("ropewalk.cli") / "packages" / "helm"
    for name, text in _files_of(chart):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_with_version(text) if name == "Chart.yaml" else text)
        print(path)


def _files_of(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _files_of(each, f"{prefix}{each.name}/")
        else:
            yield f"{prefix}{each.name}", each.read_text()


def _with_version(chart: str) -> str:
    """The package's version as Helm wants it: 0.2.0.dev0 is 0.2.0-dev0 there."""
    numbered = re.sub(r"^(\d+\.\d+\.\d+)\.?(?=[a-z])", r"\1-", __version__)
    return chart.replace("version: 0.0.0", f"version: {numbered}", 1).replace('"0.0.0"', f'"{__version__}"')


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Whose completion it is.")]) -> None:
    """A script that completes commands, options, topics and groups."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # which is how `--show-completion` makes it

    print(get_completion_script(prog_name="ropewalk", complete_var="_ROPEWALK_COMPLETE", shell=shell.value))


def _packaged(name: str) -> str:
    return (resources.files("ropewalk.cli") / "packages" / name).read_text()


def _program() -> Path:
    """Beside the interpreter that runs this, where installers put it."""
    program = Path(sys.executable).with_name("ropewalk")
    if not program.exists():
        raise Failed(f"there is no {program}, so that a unit could not start it; install the package there")
    return program
