"""`ropewalk group`: see consumer groups, how far they are behind, and set them right."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_group, complete_topic
from ropewalk.cli.failure import EXIT_FAILED, Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.outcomes import report
from ropewalk.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.administration.groups import Groups, ListedGroup
    from ropewalk.client.calls.client import Client
    from ropewalk.client.calls.group_offsets import PartitionOutcomes
    from ropewalk.client.errors import RemoteError
    from ropewalk.views.group_description import GroupDescription
    from ropewalk.views.group_lag import GroupLag
    from ropewalk.views.group_reset import Move

app = new_app("Consumer groups: list, describe, lag, reset, delete.")

Names = Annotated[
    list[str], typer.Argument(metavar="GROUP…", help="One or more groups.", autocompletion=complete_group)
]
TOPIC_HELP = "A topic, or some partitions of it: orders:0,2. As often as needed."


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_groups(
    ctx: typer.Context,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List groups with their state and the broker that looks after them."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.groups import Groups

    async def work(client: "Client") -> "list[ListedGroup]":
        return await Groups(client).list()

    listed = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            [
                {
                    "group": each.group,
                    "state": each.state or None,
                    "type": each.kind or None,
                    "protocol_type": each.protocol_type,
                    "coordinator": each.coordinator,
                }
                for each in listed
            ]
        )
    else:
        rows = [
            (each.group, each.state or None, each.kind or None, each.protocol_type or None, each.coordinator)
            for each in listed
        ]
        print_table(("GROUP", "STATE", "TYPE", "PROTOCOL", "BROKER"), rows)


@app.command("describe")
@guarded
def describe_groups(
    ctx: typer.Context,
    names: Names,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show groups: state, members with their partitions, offsets with their lag."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.group_description import print_group
    from ropewalk.client.administration.groups import Groups
    from ropewalk.views.group_description import collect

    async def work(client: "Client") -> "list[GroupDescription]":
        groups = Groups(client)
        return [await collect(client, groups, name) for name in names]

    descriptions = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(descriptions)
        return
    for position, description in enumerate(descriptions):
        if position:
            print()
        print_group(description)


@app.command("lag", epilog="Example: ropewalk group lag billing --max 10000 || alert")
@guarded
def show_lag(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GROUP…]",
            help="[default: all groups]",
            show_default=False,
            autocompletion=complete_group,
        ),
    ] = None,
    lag_max: Annotated[
        int | None,
        typer.Option("--max", min=0, help="Exit with 1 if a group is further behind than this, in records."),
    ] = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show how far groups are behind, by partition and in all."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.groups import Groups
    from ropewalk.views.group_lag import measure

    async def work(client: "Client") -> "list[GroupLag]":
        groups = Groups(client)
        return await measure(client, groups, names or await _all_groups(client, groups))

    measured = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(measured)
    else:
        _print_lags(measured)
    silent = [each.group for each in measured if each.unanswered is not None]
    if silent and lag_max is not None:
        raise Failed(f"of {', '.join(silent)} nothing is known: the coordinator does not answer")
    behind = [each for each in measured if lag_max is not None and each.lag > lag_max]
    if behind:
        text = ", ".join(f"{each.group} is {each.lag} behind" for each in behind)
        raise Failed(f"{text}; {lag_max} allowed")


async def _all_groups(client: "Client", groups: "Groups") -> list[str]:
    from ropewalk.views.answering import deadline_ms

    listed = await groups.list(deadline_ms=deadline_ms(client), without_the_silent=True)
    return [each.group for each in listed]


def _print_lags(measured: "list[GroupLag]") -> None:
    print_table(
        ("GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG"),
        [
            (each.group, row.topic, row.partition, row.committed, row.end, row.lag)
            for each in measured
            for row in each.partitions
        ],
    )
    print()
    rows = [
        (each.group, each.lag, each.unknown) if each.unanswered is None else (each.group, None, None)
        for each in measured
    ]
    print_table(("GROUP", "TOTAL", "UNKNOWN"), rows)


@app.command(
    "reset", epilog="Example: ropewalk group reset billing --topic orders --to-datetime 2026-11-15T10:00"
)
@guarded
def reset_offsets(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", autocompletion=complete_group)],
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC[:N,…]", help=TOPIC_HELP, autocompletion=complete_topic),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Everything the group has committed an offset of.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the oldest record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="After the newest record.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To this offset.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To the first record at or after TIME."),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="So many records forward, or back if negative.")
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="TIME", help="To so long ago: 15m, 2h, 7d or PT2H."),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without it nothing is changed.")] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Set a group's offsets, once it has no members. Shows what would change; --execute changes it."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.group_reset import choose_partitions, choose_target, plan, print_moves, refuse_members
    from ropewalk.client.administration.groups import Groups

    if bool(topics) == all_topics:
        raise typer.BadParameter("choose one of the two", param_hint="--topic or --all-topics")
    target = choose_target(to_earliest, to_latest, to_offset, to_datetime, shift_by, by_duration)

    async def work(client: "Client") -> "tuple[list[Move], PartitionOutcomes]":
        groups = Groups(client)
        committed = await groups.committed(group)
        await refuse_members(groups, group, is_new=not committed, execute=execute)
        chosen = await choose_partitions(client, committed, topics or [])
        if not chosen:
            raise Failed(f"{group} has committed nothing; name what it should read with --topic")
        moves = await plan(client, committed, chosen, target, now_ms=client.session.clock.now_ms())
        if not execute:
            return moves, {}
        return moves, await groups.commit(group, {move.at: move.target for move in moves})

    moves, outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    print_moves(group, moves, outcomes, chosen_output(ctx, output), executed=execute)
    if any(outcomes.values()):
        raise typer.Exit(EXIT_FAILED)
    if not execute:
        note("nothing was changed; --execute does it")


@app.command("delete")
@guarded
def delete_groups(
    ctx: typer.Context,
    names: Names,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:N,…]",
            help=f"Only the offsets of these. {TOPIC_HELP}",
            autocompletion=complete_topic,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Delete groups that have no members, with all their offsets; or their offsets of some topics."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.group_reset import parse_topic
    from ropewalk.client.administration.groups import Groups

    for text in topics or ():
        parse_topic(text)  # a wrong call is refused before anything is asked
    what = f"the offsets of {', '.join(topics)} from" if topics else "with all their offsets:"
    _ask(f"Delete {what} {', '.join(names)}?", yes=yes)

    async def work(client: "Client") -> "dict[str, RemoteError | None]":
        groups = Groups(client)
        if not topics:
            return await groups.delete(names)
        return {name: await _delete_offsets(groups, name, topics) for name in names}

    outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    report("group", outcomes, dict.fromkeys(outcomes, "deleted"), chosen_output(ctx, output))


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failed("nobody is there to ask; --yes deletes without asking")
    typer.confirm(question, abort=True, err=True)


async def _delete_offsets(groups: "Groups", group: str, topics: list[str]) -> "RemoteError | None":
    """The first refusal, if any. A topic that is gone may still have offsets, so the group's own list decides."""
    from ropewalk.cli.group_reset import parse_topic

    wanted = dict(map(parse_topic, topics))
    chosen = [
        partition
        for partition in await groups.committed(group)
        if partition.topic in wanted
        and ((indexes := wanted[partition.topic]) is None or partition.partition in indexes)
    ]
    if not chosen:
        raise Failed(
            f"{group} has committed no offset of {', '.join(topics)}; `ropewalk group lag {group}` shows which"
        )
    outcomes = await groups.delete_offsets(group, chosen)
    return next((error for error in outcomes.values() if error is not None), None)
