"""`ropewalk queue send` and `receive`: messages from arguments or lines, and to lines.

What a reader could get wrong
    What is received without --delete is hidden and comes back when its time is over; a look that hides nothing is `peek`.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, assignments, chosen_output
from ropewalk.cli.output import counted, note, print_json, print_table, visible_lines
from ropewalk.cli.queue_options import PATIENCE_MS, EndpointOption, Name, Place, seconds

if TYPE_CHECKING:
    from ropewalk.client.queues.message import Content, Message
    from ropewalk.client.queues.queue import Queue
    from ropewalk.client.queues.sending import Outgoing, Sent

T = TypeVar("T")


@guarded
def send(
    ctx: typer.Context,
    name: Name,
    bodies: Annotated[
        list[str] | None, typer.Argument(metavar="[BODY…]", help="Messages; without any, lines of the input.")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="The message group; a FIFO queue needs one.")
    ] = None,
    deduplication_id: Annotated[
        str | None,
        typer.Option("--deduplication-id", help="Of one message: it is taken once in five minutes."),
    ] = None,
    delay: Annotated[str | None, typer.Option("--delay", metavar="TIME", help="How long it waits.")] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", "-a", metavar="KEY=VALUE", help="An attribute, as text."),
    ] = None,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Send messages: each argument, or each line of standard input."""
    from ropewalk.client.queues.sending import Outgoing

    delay_s = None if delay is None else seconds(delay, option="--delay")
    given = assignments(attributes, "--attribute")
    if deduplication_id is not None and len(bodies or ()) != 1:
        raise typer.BadParameter(
            "this is for one message, given as an argument", param_hint="--deduplication-id"
        )

    def outgoing(body: str) -> Outgoing:
        return Outgoing(
            body=body, attributes=given, group=group, deduplication_id=deduplication_id, delay_s=delay_s
        )

    async def work(queue: "Queue") -> "list[Sent]":
        if bodies:
            return await queue.send_many([outgoing(body) for body in bodies])
        return await _send_lines(queue, outgoing)

    sent = _with_queue(Place(ctx, endpoint, bootstrap), name, work)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            [{"message_id": each.message_id, "sequence_number": each.sequence_number} for each in sent]
        )
    elif bodies:
        print_table(("MESSAGE",), [(each.message_id,) for each in sent])
    else:
        note(f"{counted(len(sent), 'message')} sent")


@guarded
def receive(
    ctx: typer.Context,
    name: Name,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="So many at most.")] = 1,
    wait: Annotated[
        str, typer.Option("--wait", "-w", metavar="TIME", help="How long to wait for the first, up to 20s.")
    ] = "0s",
    visibility: Annotated[
        str | None,
        typer.Option(
            "--visibility", metavar="TIME", help="For how long they are hidden. [default: the queue's own]"
        ),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", "-d", help="Delete what was printed.")] = False,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Receive messages and print their bodies, a line each. They come back, except with --delete."""
    wait_s = seconds(wait, option="--wait")
    visibility_s = None if visibility is None else seconds(visibility, option="--visibility")
    as_json = chosen_output(ctx, output) is Output.JSON

    async def work(queue: "Queue") -> "list[Message]":
        received: list[Message] = []
        while len(received) < count:
            # What was waited for once is there: the rest is asked for without waiting.
            more = await queue.receive(
                min(10, count - len(received)), wait_s=0 if received else wait_s, visibility_s=visibility_s
            )
            if not more:
                break
            if not as_json:
                for message in more:
                    _print_body(message.body)
                sys.stdout.flush()
            received += more
            if delete and not as_json:
                await queue.delete(*more)
        if as_json:
            print_json([message_object(message.content) for message in received])
            sys.stdout.flush()
            if delete:
                await queue.delete(*received)
        return received

    received = _with_queue(Place(ctx, endpoint, bootstrap), name, work)
    if not received:
        note("nothing is visible")


def message_object(content: "Content") -> dict[str, object]:
    """As `-o json` shows a message. Bytes of attributes are base64, as msgspec writes them."""
    return {
        "message_id": content.message_id,
        "body": content.body,
        "receipt_handle": content.receipt_handle,
        "attributes": content.attributes,
        "system_attributes": content.system,
    }


async def _send_lines(queue: "Queue", outgoing: "Callable[[str], Outgoing]") -> "list[Sent]":
    from ropewalk.cli.lines import read_messages

    sent: list[Sent] = []
    async for lines in read_messages(sys.stdin.buffer, b"\n"):
        try:
            bodies = [line.decode() for line in lines if line]
        except UnicodeDecodeError as error:
            raise Failed(f"a line is no text: {error}; the body of a message is text") from None
        sent += await queue.send_many([outgoing(body) for body in bodies])
    return sent


def _print_body(body: str) -> None:
    if sys.stdout.isatty():
        body = visible_lines(body.encode()).decode()
    print(body)


def _with_queue(place: Place, name: str, work: "Callable[[Queue], Awaitable[T]]") -> T:
    from ropewalk.client.queues.queue import Queue
    from ropewalk.runtime.loop import run

    async def main() -> T:
        async with Queue(
            name, endpoint=place.endpoint, bootstrap=place.bootstrap, patience_ms=PATIENCE_MS
        ) as queue:
            return await work(queue)

    return run(main())
