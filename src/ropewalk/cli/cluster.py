"""`ropewalk cluster`: the nodes of a cluster, what they lead and hold, and how to change that."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ropewalk.cli.cluster_config import app as config_app
from ropewalk.cli.cluster_load import add, balance, hot, remove
from ropewalk.cli.cluster_metadata import app as metadata_app
from ropewalk.cli.cluster_upgrade import maintenance_app, restart_check, upgrade_app
from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import EXIT_FAILED, Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import counted, note, print_json, print_table

if TYPE_CHECKING:
    from ropewalk.cli.unclean import Leaderless
    from ropewalk.client.administration.leadership import Move, PartitionOutcomes
    from ropewalk.client.calls.client import Client
    from ropewalk.views.cluster_state import ClusterState

_ASK_EVERY_S: Final = 1.0

app = new_app("The cluster: its nodes, who leads what, and where replicas are.")

Partitions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TOPIC[-PARTITION]…]", help="Topics or partitions, as orders or orders-3."),
]


@app.command("status")
@guarded
def status(
    ctx: typer.Context,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show at a glance who decides, who serves, and whether every partition is as it should be."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.cluster_state import collect

    state = with_client(ctx, collect, bootstrap=bootstrap, properties=properties)
    summary = state.summary()
    if chosen_output(ctx, output) is Output.JSON:
        print_json(summary)
    else:
        rows = [(name.replace("_", " "), value) for name, value in summary.items()]
        print_table(("CLUSTER", state.membership.cluster_id), rows[1:])
    _fail_if_old(state)


@app.command("nodes")
@guarded
def nodes(
    ctx: typer.Context,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List the nodes: state, roles, addresses, and how many partitions each leads and holds."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.cluster_state import collect

    state = with_client(ctx, collect, bootstrap=bootstrap, properties=properties)
    rows = state.nodes()
    if chosen_output(ctx, output) is Output.JSON:
        print_json(rows)
        _fail_if_old(state)
        return
    columns = (
        "NODE",
        "STATE",
        "KAFKA",
        "RACK",
        "ROLES",
        "LEADERS",
        "REPLICAS",
        "BEHIND",
        "METADATA",
        "HEARD MS",
        "CONTROLLER",
        "ANSWER",
    )
    print_table(
        columns,
        [
            (
                row.node,
                row.state,
                row.kafka,
                row.rack,
                row.roles,
                row.leaders,
                row.replicas,
                row.replicas_behind,
                row.metadata_offset,
                row.heard_ms,
                "yes" if row.controller else "",
                row.answer,
            )
            for row in rows
        ],
    )
    _fail_if_old(state)


@app.command("health")
@guarded
def health(
    ctx: typer.Context,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Return when all is well, by knowledge that is fresh, however long that takes.",
        ),
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="A line for every partition, not one for each topic.")
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Ask every node what is wrong, and show it, the worst first, and what may have been lost; exit with 1 if something is wrong."""
    from ropewalk.base.errors import TimedOut
    from ropewalk.cli.connect import with_client
    from ropewalk.client.errors import ConnectionLost, Unreachable
    from ropewalk.views.cluster_state import collect

    async def work(client: "Client") -> "ClusterState":
        while True:
            try:
                state = await collect(client)
                if not wait or not state.troubles():
                    return state
                note(f"waiting: {counted(len(state.grouped_troubles()), 'trouble')}")
            except (Unreachable, TimedOut, ConnectionLost) as error:
                if not wait:
                    raise
                note(f"waiting: {error}")
            await asyncio.sleep(_ASK_EVERY_S)

    state = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    losses = state.losses()
    troubles = state.troubles() if show_all else state.grouped_troubles()
    if chosen_output(ctx, output) is Output.JSON:
        told = {"healthy": not troubles, "fresh": state.is_fresh, "controller_heard_ms_ago": state.age_ms}
        print_json({**told, "troubles": troubles, "losses": losses})
    elif troubles or losses:
        shown = [(each.what, each.where, each.why) for each in (*troubles, *losses)]
        print_table(("WHAT", "WHERE", "WHY"), shown)
    else:
        print("all is well")
    if troubles:
        raise typer.Exit(EXIT_FAILED)


@app.command("elect")
@guarded
def elect(
    ctx: typer.Context,
    partitions: Partitions = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="Where nobody leads, let a replica lead that may lack acknowledged records. They are lost for good.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before something may be lost.")] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Let preferred replicas lead again, everywhere or where named."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.partition_names import named_partitions
    from ropewalk.client.administration.leadership import Leadership

    if unclean and not partitions:
        raise typer.BadParameter("name the partitions that may lose records", param_hint="--unclean")

    async def find(client: "Client") -> "list[Leaderless]":
        from ropewalk.cli.unclean import leaderless
        from ropewalk.views.cluster_state import collect

        return await leaderless(client, await collect(client), partitions or ())

    if unclean:
        _warn_of_loss(with_client(ctx, find, bootstrap=bootstrap, properties=properties), yes=yes)

    async def work(client: "Client") -> "PartitionOutcomes":
        chosen = await named_partitions(client, partitions) if partitions else None
        return await Leadership(client).elect(chosen, unclean=unclean)

    outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _report(outcomes, "elected", chosen_output(ctx, output))


@app.command("reassign")
@guarded
def reassign(
    ctx: typer.Context,
    partitions: Partitions = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="NODE,…", help="The replicas each is to have, the preferred leader first."
        ),
    ] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Give up moves that are under way.")] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Move partitions to other nodes, or without arguments show what is being moved."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.partition_names import named_partitions, parse_nodes
    from ropewalk.client.administration.leadership import Leadership

    if not partitions:
        if to is not None:
            raise typer.BadParameter("name the partitions to move", param_hint="--to")
        if cancel:
            outcomes = with_client(ctx, _cancel_all, bootstrap=bootstrap, properties=properties)
            _report(outcomes, "given up", chosen_output(ctx, output))
            return
        moves = with_client(
            ctx, lambda client: Leadership(client).moves(), bootstrap=bootstrap, properties=properties
        )
        _show_moves(moves, chosen_output(ctx, output))
        return
    if cancel == (to is not None):
        raise typer.BadParameter("give one of the two", param_hint="--to or --cancel")
    target = None if to is None else parse_nodes(to, "--to")

    async def work(client: "Client") -> "PartitionOutcomes":
        chosen = await named_partitions(client, partitions)
        return await Leadership(client).reassign(dict.fromkeys(chosen, target))

    outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _report(outcomes, "given up" if cancel else "moving", chosen_output(ctx, output))


app.add_typer(config_app, name="config")
app.add_typer(upgrade_app, name="upgrade")
app.add_typer(maintenance_app, name="maintenance")
app.command("restart-check")(restart_check)
app.add_typer(metadata_app, name="metadata")
for _name, _command in (("balance", balance), ("add", add), ("remove", remove), ("hot", hot)):
    app.command(_name)(_command)


def _fail_if_old(state: "ClusterState") -> None:
    """What is shown may be wrong: whoever goes by the exit code hears so."""
    answerer = state.membership.answerer
    if answerer is None or state.is_fresh:
        return
    raise Failed(
        f"the controller was last heard {answerer.age_ms / 1000:.0f} s ago, by node {answerer.node_id}: "
        "what is shown may be wrong; `ropewalk cluster health` says more"
    )


def _warn_of_loss(found: "list[Leaderless]", *, yes: bool) -> None:
    """What is known is told in any case, so that it is in whatever log the command writes to."""
    from ropewalk.cli.unclean import lines

    for each in found:
        for line in lines(each):
            typer.echo(line, err=True)
    if found and not yes:
        if not sys.stdin.isatty():
            raise Failed("nobody was elected; --yes elects without being asked")
        typer.confirm("Go on?", abort=True, err=True)


async def _cancel_all(client: "Client") -> "PartitionOutcomes":
    from ropewalk.base.ids import TopicPartition
    from ropewalk.client.administration.leadership import Leadership

    leadership = Leadership(client)
    moving = [TopicPartition(move.topic, move.partition) for move in await leadership.moves()]
    return await leadership.reassign(dict.fromkeys(moving)) if moving else {}


def _show_moves(moves: "list[Move]", output: Output) -> None:
    if output is Output.JSON:
        print_json(moves)
        return
    print_table(
        ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"),
        [(move.topic, move.partition, move.replicas, move.adding, move.removing) for move in moves],
    )


def _report(outcomes: "PartitionOutcomes", status: str, output: Output) -> None:
    """Like `outcomes.report`; of partitions there may be many, so those that needed nothing are only counted."""
    from ropewalk.cli.outcomes import report
    from ropewalk.wire.error_code import ErrorCode

    unneeded = [
        name
        for name, error in outcomes.items()
        if error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED
    ]
    told = {str(name): error for name, error in outcomes.items() if name not in unneeded}
    if output is Output.TABLE and unneeded:
        typer.echo(f"{counted(len(unneeded), 'partition')} needed nothing", err=True)
    if told or output is Output.JSON:
        report("partition", told, dict.fromkeys(told, status), output)
