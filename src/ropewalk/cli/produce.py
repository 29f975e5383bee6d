"""`ropewalk produce`: one record per line of stdin, in kcat's manner."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.base.errors import RopewalkError
from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic
from ropewalk.cli.failure import Failed, describe, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output, pairs
from ropewalk.cli.output import counted, note, print_json, warn
from ropewalk.cli.sending import AcksName, AcksOption, CodecName, CodecOption

if TYPE_CHECKING:
    from ropewalk.client.calls.client import Client
    from ropewalk.client.producer import Delivered

app = new_app()


@app.command(epilog="Example: echo 'alice:hello' | ropewalk produce greetings -K :")
@guarded
def produce(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic)],
    key_delimiter: Annotated[
        str | None,
        typer.Option(
            "--key-delimiter", "-K", help="Split each message at the first of these into key and value."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The same key for every message.")] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, help="[default: by key as Java does, in turn without one]"),
    ] = None,
    headers: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="Added to every message.")
    ] = None,
    codec: CodecOption = CodecName.NONE,
    acks: AcksOption = AcksName.ALL,
    delimiter: Annotated[
        str,
        typer.Option(
            "--delimiter", "-D", help="What ends a message. [default: a new line]", show_default=False
        ),
    ] = "\n",
    empty_as_null: Annotated[
        bool, typer.Option("--null", "-Z", help="An empty value is null: a tombstone on a compacted topic.")
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Send each line of stdin as a record. It has arrived when the command ends with 0."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.lines import read_messages
    from ropewalk.cli.message import Template
    from ropewalk.client.calls.produce import Acks
    from ropewalk.client.producer import Producer
    from ropewalk.records.codec import Codec

    if not delimiter or key_delimiter == "":
        raise typer.BadParameter("a delimiter has at least one character", param_hint="--delimiter")
    if key is not None and key_delimiter is not None:
        raise typer.BadParameter("choose one of --key and --key-delimiter", param_hint="--key")
    template = Template(
        key=None if key is None else key.encode(),
        key_delimiter=None if key_delimiter is None else unescape(key_delimiter),
        headers=tuple((name, value.encode()) for name, value in pairs(headers, "--header")),
        empty_as_null=empty_as_null,
    )
    if sys.stdin.isatty():
        note("one record per line; Ctrl-D ends")

    async def work(client: "Client") -> "list[Delivered]":
        client.session.on_retry = _Patience().on_retry
        await _check_partition(client, topic, partition)
        producer = Producer(client, topic, acks=Acks(acks.number), codec=Codec[codec.name])
        delivered: list[Delivered] = []
        async for messages in read_messages(sys.stdin.buffer, unescape(delimiter)):
            now_ms = client.session.clock.now_ms()
            records = [template.record(message, now_ms) for message in messages]
            delivered = _tally(delivered, await producer.send(records, partition=partition))
        await producer.drain()
        return delivered

    delivered = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    record_count = sum(part.record_count for part in delivered)
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"topic": topic, "records": record_count, "partitions": delivered})
    else:
        note(f"{record_count} records to {topic}")


class _Patience:
    """Says once why the command takes so long: a disk that is full, or too few replicas, may stay so for a while."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def on_retry(self, error: RopewalkError) -> None:
        name = getattr(error, "name", "")  # a `RemoteError` has Kafka's
        if name in ("KAFKA_STORAGE_ERROR", "NOT_ENOUGH_REPLICAS") and name not in self._told:
            self._told.add(name)
            warn(f"refused, and tried again: {describe(error)}")


async def _check_partition(client: "Client", topic: str, partition: int | None) -> None:
    """One that a topic does not have is refused before anything is read. A topic that is not there may be made by the first record."""
    from ropewalk.client.errors import RemoteError
    from ropewalk.wire.error_code import ErrorCode

    if partition is None:
        return
    try:
        count = len((await client.topic(topic)).partitions)
    except RemoteError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return
        raise
    if partition >= count:
        raise Failed(
            f"{topic} has {counted(count, 'partition')}, counted from 0, and no partition {partition}"
        )


def unescape(text: str) -> bytes:
    """`\\t` and its like as a shell passes them on; anything else as it is."""
    for written, meant in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\\0", "\0")):
        text = text.replace(written, meant)
    return text.encode()


def _tally(former: "list[Delivered]", latter: "list[Delivered]") -> "list[Delivered]":
    """One entry per partition: where its first batch went, and how many records in all."""
    from ropewalk.client.producer import Delivered

    sums = {entry.partition: entry for entry in former}
    for entry in latter:
        known = sums.get(entry.partition)
        if known is not None:
            entry = Delivered(entry.partition, known.base_offset, known.record_count + entry.record_count)
        sums[entry.partition] = entry
    return [sums[partition] for partition in sorted(sums)]
