"""Run a command's work with a client connected to the brokers that were named."""

import os
from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import TypeVar

import typer

from ropewalk.cli.options import assignments, chosen_bootstrap, said_before
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address, parse_addresses
from ropewalk.client.connections.security import has_security
from ropewalk.client.connections.settings import ClientSettings
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
    settings = client_settings(ctx, properties)

    async def main() -> T:
        async with Client(TcpNetwork(), SystemClock(), SystemRandom(), addresses, settings) as client:
            return await work(client)

    return run(main())


def client_settings(
    ctx: typer.Context, properties: list[str] | None = None, *, may_ask: bool = True
) -> ClientSettings:
    """What the command line, the profile and the environment say of clients. Raises `InvalidSetting`.

    A password that nobody has said is asked for where somebody sits before the terminal, unless `may_ask` is False.
    """
    said = said_before(ctx)
    given = assignments([*said.properties, *(properties or ())], "-X")
    if said.profile is None and not given and not has_security(os.environ):
        return ClientSettings()
    from ropewalk.cli.profiles import settings_of  # needed by those alone who have any of it

    return settings_of(given, said.profile, os.environ, may_ask=may_ask)


def addresses_from(text: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from None
