"""What answers within three seconds is shown, and the rest left open: one node that hangs must not keep people from seeing the others.

What a reader could get wrong
    A broker that refuses has answered. Silent is one that cannot be reached, or does not say anything in time.
"""

import asyncio
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address

PATIENCE_MS: Final = 3_000


def deadline_ms(client: Client) -> float:
    return client.session.deadline_ms(PATIENCE_MS)


async def begin_with_any(client: Client) -> None:
    """Connect to whichever of the brokers that were named answers first; what comes next is asked there."""
    cluster = client.session.cluster
    addresses = cluster.bootstrap
    if len(addresses) == 1:
        return
    settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed_count = 0

    async def connect(address: Address) -> None:
        nonlocal failed_count
        try:
            await cluster.connection_to(address, deadline_ms=deadline_ms(client))
        except RopewalkError:  # whoever asks next says why
            failed_count += 1
            if failed_count < len(addresses):
                return
        if not settled.done():
            settled.set_result(None)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(connect(address)) for address in addresses]
        await settled
        for task in tasks:
            task.cancel()
