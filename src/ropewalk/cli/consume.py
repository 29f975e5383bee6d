"""`ropewalk consume`: print the records of a topic, in kcat's manner."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic
from ropewalk.cli.failure import guarded
from ropewalk.cli.options import BootstrapOption, Output, PropertyOption, chosen_output
from ropewalk.cli.output import note

if TYPE_CHECKING:
    from ropewalk.cli.record_format import Printer
    from ropewalk.client.calls.client import Client

app = new_app()

OFFSET_HELP = (
    "Where to start: beginning, end, an offset, -N (N before the end of each partition) or s@TIME; "
    "with e@TIME where to stop. Give it twice for both. TIME is milliseconds since 1970 or a date. "
    "As with every command, -o json prints JSON. [default: beginning]"
)
FORMAT_HELP = (
    "What to print for each record: %v value, %k key, %o offset, %p partition, %t topic, %T timestamp, "
    "%h headers, %V and %K sizes, \\n a new line. [default: '%v\\n']"
)


@app.command(epilog="Example: ropewalk consume orders -o -10 -e -f '%o %k %v\\n'")
@guarded
def consume(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic)],
    offsets: Annotated[
        list[str] | None, typer.Option("--offset", "-o", metavar="WHERE", help=OFFSET_HELP)
    ] = None,
    partitions: Annotated[
        str | None, typer.Option("--partitions", "-p", metavar="N,…", help="Only these. [default: all]")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--num", "-n", "-c", min=1, help="Stop after so many records.")
    ] = None,
    exit_at_end: Annotated[
        bool,
        typer.Option("--exit", "-e", help="Stop when everything there was at the start has been printed."),
    ] = False,
    record_format: Annotated[str | None, typer.Option("--format", "-f", help=FORMAT_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="One JSON object per line.")] = False,
    committed: Annotated[
        bool, typer.Option("--committed", help="Only records of transactions that were committed.")
    ] = False,
    bootstrap: BootstrapOption = None,
    properties: PropertyOption = None,
) -> None:
    """Print records of a topic to stdout and wait for more. No group is joined and nothing is committed."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.consumption import Consumption, Range
    from ropewalk.cli.offsets import parse_offset, parse_partitions, parse_time
    from ropewalk.cli.record_format import shown

    formats = [Output(word) for word in offsets or () if word in _OUTPUT_WORDS]
    places = [word for word in offsets or () if word not in _OUTPUT_WORDS]
    starts = [word for word in places if not word.startswith("e@")]
    stops = [word for word in places if word.startswith("e@")]
    if len(starts) > 1 or len(stops) > 1:
        raise typer.BadParameter("one place to start and one to stop, please", param_hint="--offset")
    as_json = as_json or chosen_output(ctx, formats[-1] if formats else None) is Output.JSON
    wanted = Range(
        parse_partitions(partitions),
        parse_offset(starts[0] if starts else "beginning", option="--offset"),
        parse_time(stops[0][2:], option="--offset") if stops else None,
        count,
        exit_at_end,
    )
    printer = _printer(record_format, as_json=as_json)
    if sys.stdout.isatty():
        printer = shown(printer)

    async def work(client: "Client") -> int:
        consumption = Consumption(client, topic, wanted, printer, sys.stdout.buffer, committed=committed)
        return await consumption.run()

    printed_count = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    note(f"{printed_count} records from {topic}")


_OUTPUT_WORDS = frozenset(output.value for output in Output)


def _printer(record_format: str | None, *, as_json: bool) -> "Printer":
    from ropewalk.cli.record_format import compile_format, print_json_line

    if as_json and record_format is not None:
        raise typer.BadParameter("choose one of --json and --format", param_hint="--format")
    if as_json:
        return print_json_line
    try:
        return compile_format("%v\\n" if record_format is None else record_format)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from None
