"""Names for the shell to complete, asked of the cluster that the half-written command would talk to.

What a reader could get wrong
    The person waits with a finger on the tab key: whoever does not answer at once has nothing to offer, and a
    failure is silent, because there is nowhere to say it but in the middle of the line being typed.
    The root command has not run when its options are completed, so what it was told is read from its parameters.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from ropewalk.client.calls.client import Client
    from ropewalk.client.connections.settings import ClientSettings

_PATIENCE_MS: Final = 500
"""Beyond this a person takes the shell for stuck."""


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    """Internal topics are offered to those who begin to write one."""

    async def names(client: "Client") -> list[str]:
        topics = (await client.metadata()).topics
        return [topic.name for topic in topics if not topic.is_internal or incomplete.startswith("_")]

    return _complete(ctx, names, incomplete)


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    async def names(client: "Client") -> list[str]:
        from ropewalk.client.administration.groups import Groups

        return [each.group for each in await Groups(client).list()]

    return _complete(ctx, names, incomplete)


def complete_transactional_id(ctx: typer.Context, incomplete: str) -> list[str]:
    async def names(client: "Client") -> list[str]:
        from ropewalk.client.administration.transactions import Transactions

        return [each.transactional_id for each in await Transactions(client).list()]

    return _complete(ctx, names, incomplete)


def complete_queue(ctx: typer.Context, incomplete: str) -> list[str]:
    """Asked of the door of queues, wherever that is."""
    from ropewalk.base.errors import RopewalkError
    from ropewalk.client.queues.administration import open_queues
    from ropewalk.runtime.loop import run
    from ropewalk.runtime.ports import SystemClientPorts

    async def ask() -> list[str]:
        bootstrap, settings = _said(ctx)
        endpoint = ctx.params.get("endpoint")
        async with (
            asyncio.timeout(_PATIENCE_MS / 1000),
            open_queues(
                SystemClientPorts(),
                endpoint=endpoint,
                bootstrap=bootstrap,
                timeout_ms=_PATIENCE_MS,
                patience_ms=_PATIENCE_MS,
                security=settings.security,
            ) as queues,
        ):
            return await queues.names(incomplete)

    try:
        return run(ask())
    except (RopewalkError, OSError, TimeoutError, ValueError):
        return []


def _said(ctx: typer.Context) -> "tuple[str, ClientSettings]":
    """Where brokers are, and how to log in to them; nobody is asked for a password in the middle of a line."""
    from ropewalk.cli.connect import client_settings
    from ropewalk.cli.options import Globals, Output, chosen_bootstrap

    root = ctx.find_root()
    nearest = ctx.params.get("bootstrap")
    if root.obj is None:
        said = root.params
        root.obj = Globals(
            said.get("bootstrap"),
            Output.TABLE,
            profile=said.get("profile"),
            properties=list(said.get("properties") or ()),
        )
    return chosen_bootstrap(ctx, nearest), client_settings(ctx, ctx.params.get("properties"), may_ask=False)


def _complete(
    ctx: typer.Context, names: "Callable[[Client], Awaitable[list[str]]]", incomplete: str
) -> list[str]:
    from random import SystemRandom

    from msgspec.structs import replace

    from ropewalk.base.errors import RopewalkError
    from ropewalk.client.calls.client import Client
    from ropewalk.client.connections.address import parse_addresses
    from ropewalk.runtime.clock import SystemClock
    from ropewalk.runtime.loop import run
    from ropewalk.runtime.network import TcpNetwork

    async def ask() -> list[str]:
        bootstrap, given = _said(ctx)
        addresses = parse_addresses(bootstrap)
        settings = replace(given, request_timeout_ms=_PATIENCE_MS, connect_timeout_ms=_PATIENCE_MS)
        async with (
            asyncio.timeout(_PATIENCE_MS / 1000),
            Client(TcpNetwork(), SystemClock(), SystemRandom(), addresses, settings) as client,
        ):
            return await names(client)

    try:
        known = run(ask())
    except (RopewalkError, OSError, TimeoutError, ValueError):
        return []
    return sorted(name for name in known if name.startswith(incomplete))
