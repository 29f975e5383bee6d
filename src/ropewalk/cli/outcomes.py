"""What became of each of the things a command was asked to change."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.failure import EXIT_FAILED, Failed, describe
from ropewalk.cli.options import Output
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.errors import RemoteError


def report(
    noun: str, outcomes: "Mapping[str, RemoteError | None]", statuses: Mapping[str, str], output: Output
) -> None:
    """Each thing with what became of it; exits with 1 if one of them failed. One alone that failed is a failure."""
    failures = [error for error in outcomes.values() if error is not None]
    if len(outcomes) == 1 and failures and output is Output.TABLE:
        raise Failed(describe(failures[0]))
    if output is Output.JSON:
        print_json(
            [
                {noun: name, "status": "failed", "error": error.name, "message": error.message}
                if error is not None
                else {noun: name, "status": statuses[name]}
                for name, error in outcomes.items()
            ]
        )
    else:
        rows = [
            (name, statuses[name] if error is None else f"{error.message} ({error.name})")
            for name, error in outcomes.items()
        ]
        print_table((noun.upper(), "STATUS"), rows)
    if failures:
        raise typer.Exit(EXIT_FAILED)
