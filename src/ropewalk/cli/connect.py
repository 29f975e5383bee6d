"""Run a command's work with a client connected to the brokers that were named."""

from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import TypeVar

import typer

from ropewalk.cli.options import assignments, chosen_bootstrap
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address, parse_addresses
from ropewalk.client.connections.settings import settings_from
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.loop import run
from ropewalk.runtime.network import TcpNetwork

T = TypeVar("T")


def with_client(
    ctx: typer.Context,
    work: Callable[[Client], Awaitable[T]],
    *,
    bootstrap: str | None,
    properties: list[str] | None = None,
) -> T:
    addresses = addresses_from(chosen_bootstrap(ctx, bootstrap))
    settings = settings_from(assignments(properties, "-X"))

    async def main() -> T:
        async with Client(TcpNetwork(), SystemClock(), SystemRandom(), addresses, settings) as client:
            return await work(client)

    return run(main())


def addresses_from(text: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from None
