"""`ropewalk topic`: list, create, describe, change and delete topics."""

from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.asking_first import YesOption, ask_for_name
from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic
from ropewalk.cli.failure import guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    PropertyOption,
    assignments,
    chosen_output,
)
from ropewalk.cli.outcomes import report
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ropewalk.client.calls.client import Client
    from ropewalk.client.connections.cluster import TopicView
    from ropewalk.client.errors import RemoteError

app = new_app("Topics: list, create, describe, change, delete.")

Names = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC…", help="One or more topics.", autocompletion=complete_topic),
]
NewNames = Annotated[list[str], typer.Argument(metavar="TOPIC…", help="One or more topics.")]
Name = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen and change nothing.")]


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_topics(
    ctx: typer.Context,
    internal: Annotated[bool, typer.Option("--internal", "-i", help="Show internal topics too.")] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List topics with their partitions and replicas."""
    from ropewalk.cli.connect import with_client

    async def work(client: "Client") -> "Sequence[TopicView]":
        return (await client.metadata()).topics

    topics = sorted(
        (topic for topic in with_client(ctx, work, bootstrap=bootstrap, properties=properties)),
        key=lambda topic: topic.name,
    )
    shown = [topic for topic in topics if internal or not topic.is_internal]
    if chosen_output(ctx, output) is Output.JSON:
        print_json([_summary(topic) for topic in shown])
    else:
        rows = [(topic.name, len(topic.partitions), _replica_count(topic)) for topic in shown]
        print_table(("TOPIC", "PARTITIONS", "REPLICAS"), rows)


@app.command("create")
@guarded
def create_topics(
    ctx: typer.Context,
    names: NewNames,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", min=-1, help="-1: as the cluster does.")
    ] = -1,
    replicas: Annotated[int, typer.Option("--replicas", "-r", min=-1, help="-1: as the cluster does.")] = -1,
    observers: Annotated[
        int, typer.Option("--observers", min=0, help="Copies beside the replicas that no write waits for.")
    ] = 0,
    min_insync: Annotated[
        str | None,
        typer.Option(
            "--min-insync",
            metavar="N",
            help="In-sync replicas a write with acks=all needs: a number, or majority.",
        ),
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Whom to ask about the topic.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting of the topic.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that is there already is no failure.")
    ] = False,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Create topics."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.admin import Admin, NewTopic
    from ropewalk.wire.error_code import ErrorCode

    _check_count(partitions, "--partitions")
    _check_count(replicas, "--replicas")
    given = assignments(settings, "--config")
    if observers:
        given["ropewalk.observers"] = str(observers)
    if min_insync is not None:
        given["min.insync.replicas"] = min_insync
    if owner is not None:
        given["ropewalk.owner"] = owner
    chosen = tuple(given.items())

    async def work(client: "Client") -> "Mapping[str, RemoteError | None]":
        topics = [NewTopic(name, partitions, replicas, chosen) for name in names]
        return await Admin(client).create_topics(topics, validate_only=dry_run)

    outcomes = dict(with_client(ctx, work, bootstrap=bootstrap, properties=properties))
    statuses = dict.fromkeys(outcomes, "would be created" if dry_run else "created")
    for name, error in outcomes.items():
        if if_not_exists and error is not None and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            outcomes[name], statuses[name] = None, "exists"
    report("topic", outcomes, statuses, chosen_output(ctx, output))


@app.command("delete")
@guarded
def delete_topics(
    ctx: typer.Context,
    names: Names,
    yes: YesOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Delete topics and everything in them. Asks for the name, except with --yes."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.admin import Admin

    if not yes:
        _check_there(ctx, names, bootstrap, properties)
    ask_for_name(f"All records of {', '.join(names)} will be gone", names, yes=yes)

    async def work(client: "Client") -> "Mapping[str, RemoteError | None]":
        return await Admin(client).delete_topics(names)

    outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    report("topic", outcomes, dict.fromkeys(outcomes, "deleted"), chosen_output(ctx, output))


@app.command("describe")
@guarded
def describe_topics(
    ctx: typer.Context,
    names: Names,
    all_settings: Annotated[
        bool,
        typer.Option("--all", "-a", help="Show every setting, not only those that differ from the default."),
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show topics: partitions with leaders and offsets, and settings."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.topic_description import print_topic
    from ropewalk.views.topic_description import TopicDescription, collect

    async def work(client: "Client") -> "list[TopicDescription]":
        return [await collect(client, name, all_settings=all_settings) for name in names]

    descriptions = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(descriptions)
        return
    for position, description in enumerate(descriptions):
        if position:
            print()
        print_topic(description)


@app.command("alter")
@guarded
def alter_topic(
    ctx: typer.Context,
    name: Name,
    set_: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="Give a setting a value.")
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", "-d", metavar="KEY", help="Take a setting back to its default."),
    ] = None,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Change settings of a topic, all of them or none."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.admin import Admin, ResourceKind

    changes: dict[str, str | None] = {**assignments(set_, "--set"), **dict.fromkeys(unset or ())}
    if not changes:
        raise typer.BadParameter("nothing to change", param_hint="--set or --unset")

    async def work(client: "Client") -> None:
        await Admin(client).alter_settings(ResourceKind.TOPIC, name, changes, validate_only=dry_run)

    with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    report(
        "topic",
        {name: None},
        {name: "would be altered" if dry_run else "altered"},
        chosen_output(ctx, output),
    )


@app.command("add-partitions")
@guarded
def add_partitions(
    ctx: typer.Context,
    names: Names,
    count: Annotated[int, typer.Option("--num", "-n", min=1, help="How many to add to each topic.")],
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Add partitions to topics. Keys may go to other partitions from then on."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.admin import Admin

    async def work(client: "Client") -> "Mapping[str, RemoteError | None]":
        counts = {name: len((await client.topic(name)).partitions) + count for name in names}
        return await Admin(client).create_partitions(counts, validate_only=dry_run)

    outcomes = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    status = f"{count} would be added" if dry_run else f"{count} added"
    report("topic", outcomes, dict.fromkeys(outcomes, status), chosen_output(ctx, output))


@app.command("trim")
@guarded
def trim_topic(
    ctx: typer.Context,
    name: Name,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            help="Remove what lies before: an offset, end (everything), -N (all but the last N) or s@TIME.",
        ),
    ],
    partitions: Annotated[
        str | None, typer.Option("--partitions", "-p", metavar="N,…", help="Only these. [default: all]")
    ] = None,
    yes: YesOption = False,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Remove the oldest records of a topic, for good. Asks for its name, except with --yes and --dry-run."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.offsets import parse_offset, parse_partitions, resolve_starts
    from ropewalk.client.administration.admin import Admin

    where = parse_offset(before, option="--before")
    chosen = parse_partitions(partitions)
    if not dry_run:
        if not yes:
            _check_there(ctx, [name], bootstrap, properties)
        ask_for_name(f"Records of {name} before {before} will be gone", [name], yes=yes)

    async def work(client: "Client") -> "list[tuple[int, int, int]]":
        bounds = await resolve_starts(client, name, chosen, where)
        targets = {bound.partition: bound.offset for bound in bounds}
        if not dry_run:
            targets = await Admin(client).delete_records(name, targets)
        return [
            (bound.partition, bound.start, max(bound.start, targets[bound.partition])) for bound in bounds
        ]

    rows = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json([{"partition": index, "former_start": old, "start": new} for index, old, new in rows])
    else:
        heading = "WOULD START" if dry_run else "STARTS"
        print_table(("PARTITION", "STARTED", heading, "REMOVED"), [(*row, row[2] - row[1]) for row in rows])


def _check_there(
    ctx: typer.Context, names: list[str], bootstrap: str | None, properties: list[str] | None
) -> None:
    """Raises for a topic that is not there, before somebody is asked to type its name."""
    from ropewalk.cli.connect import with_client

    async def look(client: "Client") -> None:
        for name in names:
            await client.topic(name)

    with_client(ctx, look, bootstrap=bootstrap, properties=properties)


def _check_count(count: int, option: str) -> None:
    if count == 0:
        raise typer.BadParameter(
            "0 is none; write 1 or more, or -1 for as many as the cluster gives", param_hint=option
        )


def _replica_count(topic: "TopicView") -> int:
    return max((len(partition.replicas) for partition in topic.partitions), default=0)


def _summary(topic: "TopicView") -> dict[str, object]:
    from ropewalk.base.ids import format_id

    return {
        "topic": topic.name,
        "id": format_id(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": _replica_count(topic),
        "internal": topic.is_internal,
    }
