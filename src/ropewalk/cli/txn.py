"""`ropewalk txn`: see transactions, find those that hang, and end what nobody else does."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic, complete_transactional_id
from ropewalk.cli.failure import EXIT_FAILED, Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.outcomes import report
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropewalk.client.administration.open_transactions import OpenTransaction
    from ropewalk.client.administration.transactions import DescribedTransaction, ListedTransaction
    from ropewalk.client.calls.client import Client
    from ropewalk.client.errors import RemoteError

app = new_app("Transactions: list, describe, find hanging ones, abort.")

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="ID…", help="One or more transactional ids.", autocompletion=complete_transactional_id
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("ls", epilog="Example: ropewalk txn ls --state Ongoing --longer-than 15m")
@app.command("list", hidden=True)
@guarded
def list_transactions(
    ctx: typer.Context,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", "-s", metavar="STATE", help="Only in this state. As often as needed."),
    ] = None,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than", metavar="TIME", help="Only those open for longer than this: 15m, 2h, PT2H."
        ),
    ] = None,
    matching: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="Only ids that this expression matches as a whole."),
    ] = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List transactional ids with their state, producer id and the broker that looks after them."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.durations import parse_duration
    from ropewalk.client.administration.transactions import Transactions

    longer_than_ms = -1 if longer_than is None else parse_duration(longer_than, option="--longer-than")

    async def work(client: "Client") -> "list[ListedTransaction]":
        return await Transactions(client).list(
            states=states or (), longer_than_ms=longer_than_ms, pattern=matching
        )

    listed = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(listed)
    else:
        rows = [(each.transactional_id, each.state, each.producer_id, each.coordinator) for each in listed]
        print_table(("ID", "STATE", "PRODUCER", "BROKER"), rows)


@app.command("describe")
@guarded
def describe_transactions(
    ctx: typer.Context,
    names: Names,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show transactional ids: state, producer, when the transaction began, and where it writes."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.transactions import Transactions

    async def work(client: "Client") -> "list[DescribedTransaction]":
        transactions = Transactions(client)
        return [await transactions.describe(name) for name in names]

    described = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(described)
        return
    rows = [
        (
            each.transactional_id,
            each.state,
            f"{each.producer_id}/{each.producer_epoch}",
            f"{each.timeout_ms} ms",
            _instant(each.started_at_ms),
            each.coordinator,
            " ".join(map(str, each.partitions)) or None,
        )
        for each in described
    ]
    print_table(("ID", "STATE", "PRODUCER", "TIMEOUT", "BEGAN", "COORDINATOR", "PARTITIONS"), rows)


@app.command("abort")
@guarded
def abort_transactions(
    ctx: typer.Context,
    names: Names,
    yes: YesOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Abort what these transactional ids have under way. Their producers are fenced: they have to begin anew."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.transactions import Transactions
    from ropewalk.client.errors import RemoteError

    _ask(f"Abort the transactions of {', '.join(names)} and fence their producers?", yes=yes)
    statuses: dict[str, str] = {}

    async def work(client: "Client") -> "dict[str, RemoteError | None]":
        transactions = Transactions(client)
        outcomes: dict[str, RemoteError | None] = {}
        for name in names:
            try:
                statuses[name] = "aborted" if await transactions.abort(name) else "nothing to abort"
                outcomes[name] = None
            except RemoteError as error:
                outcomes[name] = error
        return outcomes

    outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    report("id", outcomes, statuses, chosen_output(ctx, output))


@app.command("hanging", epilog="Example: ropewalk txn hanging orders || alert")
@guarded
def find_hanging(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[-PARTITION]…]",
            help="[default: all topics]",
            show_default=False,
            autocompletion=complete_topic,
        ),
    ] = None,
    abort: Annotated[
        bool, typer.Option("--abort", help="End them, as aborted, in the partitions where they hang.")
    ] = False,
    yes: YesOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show transactions that are open in a partition and that no coordinator will end; exits with 1 if there are any."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.partition_names import named_partitions
    from ropewalk.client.administration.transactions import Transactions

    async def find(client: "Client") -> "Sequence[OpenTransaction]":
        chosen = names or [topic.name for topic in (await client.metadata()).topics]
        return await Transactions(client).hanging_in(await named_partitions(client, chosen))

    hanging = with_client(ctx, find, bootstrap=bootstrap, properties=properties)
    chosen_form = chosen_output(ctx, output)
    if not abort or not hanging:
        _show(hanging, chosen_form)
        if hanging:
            raise typer.Exit(EXIT_FAILED)
        return
    if chosen_form is Output.TABLE:
        _show(hanging, chosen_form)
    _ask("End these, as aborted?", yes=yes)

    async def end(client: "Client") -> "dict[str, RemoteError | None]":
        transactions = Transactions(client)
        return {
            f"{each.partition} {each.producer_id}": await transactions.abort_in_partition(each)
            for each in hanging
        }

    outcomes = with_client(ctx, end, bootstrap=bootstrap, properties=properties)
    report("transaction", outcomes, dict.fromkeys(outcomes, "aborted"), chosen_form)


def _show(hanging: "Sequence[OpenTransaction]", form: Output) -> None:
    if form is Output.JSON:
        print_json(
            [
                {
                    "topic": each.partition.topic,
                    "partition": each.partition.partition,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                    "first_offset": each.first_offset,
                    "written_at_ms": each.written_at_ms,
                }
                for each in hanging
            ]
        )
    elif hanging:
        rows = [
            (
                each.partition,
                f"{each.producer_id}/{each.producer_epoch}",
                each.first_offset,
                _instant(each.written_at_ms),
            )
            for each in hanging
        ]
        print_table(("PARTITION", "PRODUCER", "FIRST OFFSET", "LAST WRITTEN"), rows)
    else:
        print("no transaction hangs")


def _instant(at_ms: int) -> str | None:
    from datetime import UTC, datetime

    if at_ms < 0:
        return None
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failed("nobody is there to ask; --yes aborts without asking")
    typer.confirm(question, abort=True, err=True)
