"""`ropewalk top`: watch topics, partitions, groups and nodes."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.calls.client import Client
    from ropewalk.views.observation import Picture

app = new_app()


@app.command(
    epilog="Keys: t, p, g, n choose topics, partitions, groups or nodes; < and > the column to sort by, r the other way; "
    "/ filters by name, Esc shows all; space pauses, u looks now, q ends."
)
@guarded
def top(
    ctx: typer.Context,
    interval: Annotated[str, typer.Option("--interval", metavar="TIME", help="How often to look.")] = "2s",
    internal: Annotated[bool, typer.Option("--internal", "-i", help="Show internal topics too.")] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Look twice, one interval apart, print tables instead of drawing, and end."
        ),
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Watch topics, partitions, groups and nodes: records, bytes, rates, lag."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.durations import parse_duration
    from ropewalk.views.observation import ClusterSource, draw

    interval_s = parse_duration(interval, option="--interval") / 1000
    if interval_s == 0:
        raise typer.BadParameter("there must be time between two looks", param_hint="--interval")
    as_json = chosen_output(ctx, output) is Output.JSON
    if as_json and not once:
        raise typer.BadParameter("JSON is printed with --once", param_hint="--output")
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failed("top draws on a terminal, and here is none; --once prints tables")

    async def print_once(client: "Client") -> None:
        source = ClusterSource(client, internal=internal, with_sizes=True)
        former = await source.look()
        await asyncio.sleep(interval_s)
        picture = draw(former, await source.look())
        if as_json:
            print_json(picture)
        else:
            _print(picture)

    async def watch(client: "Client") -> None:
        from ropewalk.cli.top_screen import TopScreen

        source = ClusterSource(client, internal=internal, with_sizes=True)
        await TopScreen(source, interval_s=interval_s).run_async()

    with_client(ctx, print_once if once else watch, bootstrap=bootstrap, properties=properties)


def _print(picture: "Picture") -> None:
    from ropewalk.cli.listing import COLUMNS, Listing, View

    for position, view in enumerate((View.TOPICS, View.GROUPS, View.NODES)):
        if position:
            print()
        headings = [column.heading for column in COLUMNS[view]]
        print_table(headings, Listing().switched(view).rows(picture).shown)
