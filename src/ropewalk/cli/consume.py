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
    from ropewalk.views.record_filters import Filter

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
    grep: Annotated[
        list[str] | None,
        typer.Option("--grep", metavar="TEXT", help="Only records whose key, value or a header contains it."),
    ] = None,
    regex: Annotated[
        list[str] | None,
        typer.Option(
            "--regex", metavar="EXPR", help="Only records in which an expression (RE2) matches somewhere."
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="PATH[=VALUE]",
            help="Only records whose JSON holds this, as 'user.id=5', 'items[*].price>=9.5' or 'name~Berg'.",
        ),
    ] = None,
    decode: Annotated[
        str | None,
        typer.Option(
            "--decode",
            metavar="FORM",
            help="Show values as json, msgpack, text, hex or avro:FILE, which has the schema.",
        ),
    ] = None,
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
    from ropewalk.cli.record_format import decoded, indented, shown
    from ropewalk.views.decoding import decoder

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
    chosen = _filter(grep or [], regex or [], path or [], decode)
    printer = _printer(record_format, as_json=as_json)
    is_plain = record_format is None and not as_json
    if decode is not None:
        printer = decoded(printer, decoder(decode), indent=is_plain and sys.stdout.isatty())
    elif is_plain and sys.stdout.isatty():
        printer = indented(printer)
    if sys.stdout.isatty():
        printer = shown(printer)

    async def work(client: "Client") -> tuple[int, int]:
        consumption = Consumption(
            client, topic, wanted, printer, sys.stdout.buffer, committed=committed, wanted_by=chosen
        )
        return await consumption.run(), consumption.read_count

    printed_count, read_count = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    of_all = "" if chosen is None else f" of {read_count}"
    note(f"{printed_count}{of_all} records from {topic}")


_OUTPUT_WORDS = frozenset(output.value for output in Output)


def _filter(
    texts: "list[str]", expressions: "list[str]", paths: "list[str]", decode: str | None
) -> "Filter | None":
    """All of them must hold; None where every record is wanted."""
    from ropewalk.views.decoding import decoder
    from ropewalk.views.json_paths import parse_comparison
    from ropewalk.views.record_filters import all_of, comparing, containing, matching

    option, filters = "--grep", []
    try:
        filters += [containing(each) for each in texts]
        option = "--regex"
        filters += [matching(each) for each in expressions]
        option = "--path"
        filters += [comparing(parse_comparison(each), decoder(decode or "json")) for each in paths]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    return all_of(filters) if filters else None


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
