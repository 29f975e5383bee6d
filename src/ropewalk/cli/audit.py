"""`ropewalk audit`: who changed what, and whether all of it is still there as it was."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    PropertyOption,
    chosen_output,
)
from ropewalk.cli.output import counted, print_json, visible

if TYPE_CHECKING:
    from ropewalk.client.calls.client import Client

app = new_app("The audit: who changed what of the cluster.")

_NONE_YET: Final = (
    "there is no topic __audit: it is made some ten seconds after the first change that somebody asks for, "
    "unless audit.topic is false or storage is memory"
)

FileOption = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", exists=True, dir_okay=False, help="Events from a file, one on each line."
    ),
]


@app.command("tail")
@guarded
def tail(
    ctx: typer.Context,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", min=0, help="How many of the last.")
    ] = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what comes.")] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Print the last changes, one on each line, or with -o json the events as they are."""
    from ropewalk.cli.connect import with_client

    is_json = chosen_output(ctx, output) is Output.JSON

    async def work(client: "Client") -> None:
        from ropewalk.client.consumer import Consumer

        partition, start, end = await _bounds(client)
        consumer = Consumer(client, {partition: max(start, end - count)})
        while follow or consumer.positions[partition] < end:
            for consumed in await consumer.poll():
                for record in consumed.records:
                    if follow or record.offset < end:
                        _print(record.value or b"", is_json=is_json)

    with_client(ctx, work, bootstrap=bootstrap, properties=properties)


@app.command("verify")
@guarded
def verify(
    ctx: typer.Context,
    file: FileOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Look whether an event was altered, or is missing, by the hashes and numbers that events have. Exits with 1 if so."""
    from ropewalk.cli.connect import with_client
    from ropewalk.security.audit_chain import verify as faults_in

    if file is not None:
        with file.open("rb") as source:
            events = [(number, line.rstrip(b"\n")) for number, line in enumerate(source, 1)]
    else:
        events = with_client(ctx, _read_all, bootstrap=bootstrap, properties=properties)
    faults = list(faults_in(events))
    numbers = _numbers(events)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            {
                "events": len(events),
                "first_number": numbers[0] if numbers else None,
                "last_number": numbers[-1] if numbers else None,
                "faults": [{"event": fault.offset, "text": fault.text} for fault in faults],
            }
        )
    else:
        for fault in faults:
            typer.echo(f"event {fault.offset}: {fault.text}")
    if faults:
        raise Failed(f"{counted(len(faults), 'fault')} in {counted(len(events), 'event')}")
    if chosen_output(ctx, output) is not Output.JSON:
        told = f", numbers {numbers[0]} to {numbers[-1]}" if numbers else ""
        typer.echo(
            f"{counted(len(events), 'event')}{told}: nothing was altered, and none is missing between them"
        )


async def _bounds(client: "Client") -> tuple[Any, int, int]:
    from ropewalk.base.ids import TopicPartition
    from ropewalk.client.calls.list_offsets import OffsetQuery
    from ropewalk.client.errors import RemoteError
    from ropewalk.metadata.internal_topics import AUDIT_TOPIC
    from ropewalk.wire.error_code import ErrorCode

    try:
        start = (await client.list_offsets(AUDIT_TOPIC, {0: OffsetQuery.EARLIEST}))[0].offset
        end = (await client.list_offsets(AUDIT_TOPIC, {0: OffsetQuery.LATEST}))[0].offset
    except RemoteError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Failed(_NONE_YET) from None
        raise
    return TopicPartition(AUDIT_TOPIC, 0), start, end


async def _read_all(client: "Client") -> list[tuple[int, bytes]]:
    from ropewalk.client.consumer import Consumer

    partition, start, end = await _bounds(client)
    consumer = Consumer(client, {partition: start})
    events: list[tuple[int, bytes]] = []
    while consumer.positions[partition] < end:
        for consumed in await consumer.poll():
            events += [(record.offset, record.value or b"") for record in consumed.records]
    return events


def _numbers(events: Iterable[tuple[int, bytes]]) -> list[int]:
    """Of those that are events."""
    from ropewalk.security.audit_chain import number_of

    numbers: list[int] = []
    for _, event in events:
        with suppress(ValueError):
            numbers.append(number_of(event))
    return numbers


def _print(value: bytes, *, is_json: bool) -> None:
    typer.echo(value.decode(errors="replace") if is_json else visible(line_of(value)))


def line_of(value: bytes) -> str:
    """For people: when, who from where, by what, and what it has changed."""
    from datetime import UTC, datetime

    import msgspec

    try:
        event = msgspec.json.decode(value, type=dict[str, Any])
        at = datetime.fromtimestamp(event["time"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        if "api" not in event:
            return f"{at} {event['message']}"
        user, unmapped = event["actor"]["user"], event["unmapped"]
        who = f"{user['type']}:{user['name']} from {event['src_endpoint']['ip']}"
        changes = [_spelled(each) for each in event["resources"]]
        if unmapped["more_count"]:
            changes.append(f"and {unmapped['more_count']} more")
        return f"{at} {who} {event['api']['operation']}: {', '.join(changes)}"
    except (KeyError, TypeError, ValueError):
        return f"no event: {value.decode(errors='replace')}"


def _spelled(resource: dict[str, Any]) -> str:
    before, after = resource["data"]["before"], resource["data"]["after"]
    if before is None and after is None:
        return f"{resource['type']} {resource['name']}"
    return f"{resource['type']} {resource['name']} {'-' if before is None else before} -> {'-' if after is None else after}"
