"""`ropewalk queue`: make, look at, fill, empty and delete queues, and bring back what they gave up or have deleted."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli import queue_messages, queue_moves
from ropewalk.cli.asking_first import YesOption, ask_for_name
from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic
from ropewalk.cli.failure import guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    assignments,
    chosen_output,
)
from ropewalk.cli.output import counted, print_json, print_table
from ropewalk.cli.queue_options import EndpointOption, Name, Names, Place, seconds, with_queues

if TYPE_CHECKING:
    from ropewalk.client.queues.administration import Counts, Described, Queues
    from ropewalk.client.queues.explaining import Explained
    from ropewalk.client.queues.message import Content

app = new_app("Queues: create, look at, fill, empty, delete; dead letters back to work.")
app.command("send")(queue_messages.send)
app.command("receive")(queue_messages.receive)
app.command("redrive")(queue_moves.redrive)
app.command("move")(queue_moves.move)
app.command("moves")(queue_moves.moves)


class From(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"


@app.command("create")
@guarded
def create_queue(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="QUEUE")],
    fifo: Annotated[
        bool, typer.Option("--fifo", help="In order by group, each once; the name ends in .fifo.")
    ] = False,
    visibility: Annotated[
        str | None,
        typer.Option("--visibility", metavar="TIME", help="How long a receiver has for a message."),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option("--delay", metavar="TIME", help="How long a message waits before it is given out."),
    ] = None,
    retention: Annotated[
        str | None, typer.Option("--retention", metavar="TIME", help="How long a message is kept.")
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option("--dead-letters", metavar="QUEUE", help="Where messages go that were received in vain."),
    ] = None,
    max_receives: Annotated[
        int | None,
        typer.Option(
            "--max-receives",
            metavar="N",
            min=1,
            max=1000,
            help="With --dead-letters: after so many receives. [default: 5]",
        ),
    ] = None,
    content_deduplication: Annotated[
        bool,
        typer.Option(
            "--content-deduplication", help="With --fifo: messages with the same body are the same."
        ),
    ] = False,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Make a queue of a topic that is there.",
            autocompletion=complete_topic,
        ),
    ] = None,
    begin: Annotated[
        From, typer.Option("--from", help="With --topic: all it holds, or what comes from now on.")
    ] = From.EARLIEST,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", "-a", metavar="KEY=VALUE", help="Any other attribute of SQS."),
    ] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag.")] = None,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Create a queue. One that is there with the same attributes is no failure."""
    if fifo and not name.endswith(".fifo"):
        name = f"{name}.fifo"
    if max_receives is not None and dead_letters is None:
        raise typer.BadParameter("say where to with --dead-letters", param_hint="--max-receives")
    chosen = assignments(attributes, "--attribute")
    chosen |= _times(("VisibilityTimeout", "--visibility", visibility), ("DelaySeconds", "--delay", delay))
    chosen |= _times(("MessageRetentionPeriod", "--retention", retention))
    if content_deduplication:
        chosen["ContentBasedDeduplication"] = "true"

    async def work(queues: "Queues") -> str:
        if dead_letters is not None:
            chosen["RedrivePolicy"] = _redrive_policy(await queues.arn(dead_letters), max_receives or 5)
        if topic is not None:
            return await queues.adopt(name, topic, chosen, from_latest=begin is From.LATEST)
        if name.endswith(".fifo"):
            chosen["FifoQueue"] = "true"
        return await queues.create(name, chosen, assignments(tags, "--tag"))

    url = with_queues(Place(ctx, endpoint, bootstrap), work)
    _tell_created(name, url, chosen_output(ctx, output))


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_queues(
    ctx: typer.Context,
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only names that begin so.")] = "",
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """List queues with how many messages are visible, in flight and delayed."""

    async def work(queues: "Queues") -> "list[tuple[str, Counts]]":
        return [(name, await queues.counts(name)) for name in await queues.names(prefix)]

    found = with_queues(Place(ctx, endpoint, bootstrap), work)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            [
                {"queue": name, "visible": each.visible, "in_flight": each.in_flight, "delayed": each.delayed}
                for name, each in found
            ]
        )
    else:
        rows = [(name, each.visible, each.in_flight, each.delayed) for name, each in found]
        print_table(("QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED"), rows)


@app.command("describe")
@guarded
def describe_queues(
    ctx: typer.Context,
    names: Names,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Show queues: their counts, attributes and tags, and whose dead letters come here."""

    async def work(queues: "Queues") -> "list[Described]":
        return [await queues.describe(name) for name in names]

    found = with_queues(Place(ctx, endpoint, bootstrap), work)
    if chosen_output(ctx, output) is Output.JSON:
        print_json([_described(each) for each in found])
        return
    for position, each in enumerate(found):
        if position:
            print()
        rows: list[tuple[str, object]] = [
            ("queue", each.name),
            ("url", each.url),
            ("visible", each.counts.visible),
            ("in flight", each.counts.in_flight),
            ("delayed", each.counts.delayed),
            *each.attributes.items(),
            *((f"tag {name}", value) for name, value in each.tags.items()),
            *(("dead letters of", source) for source in each.sources),
        ]
        print_table(("ATTRIBUTE", "VALUE"), rows)


@app.command("peek")
@guarded
def peek(
    ctx: typer.Context,
    name: Name,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="So many at most.")] = 10,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Look at the first messages, hidden ones too, without taking them."""

    async def work(queues: "Queues") -> "list[Content]":
        return (await queues.peek(name))[:count]

    found = with_queues(Place(ctx, endpoint, bootstrap), work)
    if chosen_output(ctx, output) is Output.JSON:
        print_json([queue_messages.message_object(each) for each in found])
    else:
        rows = [
            (each.message_id, each.system.get("ApproximateReceiveCount", "-"), each.body) for each in found
        ]
        print_table(("MESSAGE", "RECEIVED", "BODY"), rows)


@app.command("why")
@guarded
def why(
    ctx: typer.Context,
    name: Name,
    message_id: Annotated[str, typer.Argument(metavar="MESSAGE_ID")],
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Say of a message where it is: visible, hidden until when, behind which other, dead, or deleted."""

    async def work(queues: "Queues") -> "Explained":
        return await queues.explain(name, message_id)

    told = with_queues(Place(ctx, endpoint, bootstrap), work)
    if chosen_output(ctx, output) is Output.JSON:
        import msgspec

        print_json({**msgspec.structs.asdict(told), "text": told.text})
    else:
        print(
            f"{told.message_id} is {told.text}" if told.behind is None else f"{told.message_id} {told.text}"
        )


@app.command("purge")
@guarded
def purge(
    ctx: typer.Context,
    name: Name,
    yes: YesOption = False,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Delete all messages of a queue, those in flight too. Asks for the name, except with --yes."""
    place = Place(ctx, endpoint, bootstrap)

    async def look(queues: "Queues") -> "Counts":
        return await queues.counts(name)

    async def work(queues: "Queues") -> None:
        await queues.purge(name)

    if not yes:
        counts = with_queues(place, look)
        total = counts.visible + counts.in_flight + counts.delayed
        ask_for_name(f"About {counted(total, 'message')} of {name} will be gone", [name], yes=yes)
    with_queues(place, work)
    _tell([(name, "purged")], chosen_output(ctx, output))


@app.command("delete")
@guarded
def delete_queues(
    ctx: typer.Context,
    names: Names,
    yes: YesOption = False,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Delete queues and everything in them. Asks for the name, except with --yes."""
    place = Place(ctx, endpoint, bootstrap)

    async def look(queues: "Queues") -> None:
        for name in names:
            await queues.url(name)

    async def work(queues: "Queues") -> None:
        for name in names:
            await queues.delete(name)

    if not yes:
        with_queues(place, look)
    ask_for_name(f"All messages of {', '.join(names)} will be gone", names, yes=yes, noun="queue")
    with_queues(place, work)
    _tell([(name, "deleted") for name in names], chosen_output(ctx, output))


@app.command("rewind")
@guarded
def rewind(
    ctx: typer.Context,
    name: Name,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="TIME", help="Milliseconds since 1970 or a date such as 2026-11-15T10:00."
        ),
    ],
    yes: YesOption = False,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Give out everything again that was sent since, as far as the log still has it; what was sent before counts as done. Asks for the name, except with --yes."""
    from ropewalk.cli.offsets import parse_time

    to_ms = parse_time(to, option="--to")

    async def work(queues: "Queues") -> None:
        await queues.rewind(name, to_ms=to_ms)

    ask_for_name(
        f"Receivers of {name} will get everything again that was sent since {to}, and nothing that was sent before",
        [name],
        yes=yes,
    )
    with_queues(Place(ctx, endpoint, bootstrap), work)
    _tell([(name, "rewound")], chosen_output(ctx, output))


def _tell(outcomes: "list[tuple[str, str]]", output: Output) -> None:
    if output is Output.JSON:
        print_json([{"queue": name, "status": status} for name, status in outcomes])
    else:
        print_table(("QUEUE", "STATUS"), outcomes)


def _tell_created(name: str, url: str, output: Output) -> None:
    if output is Output.JSON:
        print_json({"queue": name, "url": url, "status": "created"})
    else:
        print_table(("QUEUE", "URL"), [(name, url)])


def _times(*given: tuple[str, str, str | None]) -> dict[str, str]:
    """Attributes in seconds, of those that were given: attribute, option and text."""
    return {
        attribute: str(seconds(text, option=option)) for attribute, option, text in given if text is not None
    }


def _redrive_policy(arn: str, max_receives: int) -> str:
    import msgspec

    return msgspec.json.encode({"deadLetterTargetArn": arn, "maxReceiveCount": max_receives}).decode()


def _described(each: "Described") -> dict[str, object]:
    return {
        "queue": each.name,
        "url": each.url,
        "visible": each.counts.visible,
        "in_flight": each.counts.in_flight,
        "delayed": each.counts.delayed,
        "attributes": each.attributes,
        "tags": each.tags,
        "dead_letters_of": each.sources,
    }
