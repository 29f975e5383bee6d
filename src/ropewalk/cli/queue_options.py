"""What the commands of queues have in common: how the door is found, and attributes of queues as options."""

from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from ropewalk.cli.completion import complete_queue
from ropewalk.cli.durations import parse_duration
from ropewalk.cli.options import chosen_bootstrap

if TYPE_CHECKING:
    from ropewalk.client.queues.administration import Queues

T = TypeVar("T")

ENDPOINT_VARIABLES: Final = ("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL")
TIMEOUT_MS: Final = 30_000
PATIENCE_MS: Final = 3_000
"""For somebody to answer at all: a person waits, as in `answering.py`."""

EndpointOption = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="Where the SQS API is served. [default: what nodes have registered; with neither this nor --bootstrap, AWS_ENDPOINT_URL_SQS]",
    ),
]
Name = Annotated[str, typer.Argument(metavar="QUEUE", autocompletion=complete_queue)]
Names = Annotated[
    list[str], typer.Argument(metavar="QUEUE…", help="One or more queues.", autocompletion=complete_queue)
]


class Place:
    """Where a command finds queues: an endpoint, or brokers to ask for one."""

    def __init__(self, ctx: typer.Context, endpoint: str | None, bootstrap: str | None) -> None:
        """The nearest word counts: --endpoint, --bootstrap, what AWS's tools read, and then the usual brokers."""
        import os

        self.endpoint = endpoint
        if endpoint is None and bootstrap is None:
            self.endpoint = next(
                (os.environ[name] for name in ENDPOINT_VARIABLES if os.environ.get(name)), None
            )
        self.bootstrap = None if self.endpoint is not None else chosen_bootstrap(ctx, bootstrap)
        from ropewalk.cli.connect import client_settings

        self.security = client_settings(ctx).security


def with_queues(place: Place, work: "Callable[[Queues], Awaitable[T]]") -> T:
    from ropewalk.client.queues.administration import open_queues
    from ropewalk.runtime.clock import SystemClock
    from ropewalk.runtime.loop import run
    from ropewalk.runtime.network import TcpNetwork
    from ropewalk.runtime.ports import SystemClientPorts

    async def main() -> T:
        ports = SystemClientPorts(SystemClock(), SystemRandom(), TcpNetwork())
        async with open_queues(
            ports,
            endpoint=place.endpoint,
            bootstrap=place.bootstrap,
            timeout_ms=TIMEOUT_MS,
            patience_ms=PATIENCE_MS,
            security=place.security,
        ) as queues:
            return await work(queues)

    return run(main())


def seconds(text: str, *, option: str) -> int:
    """As `15m` or `2h`; a bare number is seconds, as everywhere in the SQS API. Raises for what is no whole number of them."""
    if text.isascii() and text.isdigit():
        return int(text)
    ms = parse_duration(text, option=option)
    if ms % 1000:
        raise typer.BadParameter(f"{text!r} is no whole number of seconds", param_hint=option)
    return ms // 1000
