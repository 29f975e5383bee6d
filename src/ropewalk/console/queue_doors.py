"""Queues as the console asks for them: over the SQS API of the nodes, with no keys of anybody's.

What a reader could get wrong
    The API knows who comes by a key and a signature, and a reader of the console has none to show: neither a token nor a password is one. So it is
    asked only where nobody has to say who he is, and could ask it himself. The keys in the environment of the node's process are another's, and not used.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.base.ports import ClientPorts
from ropewalk.client.administration.membership import ClusterViewer
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.security import NO_SECURITY
from ropewalk.client.queues import endpoints
from ropewalk.client.queues.administration import Queues
from ropewalk.client.queues.calling import Caller
from ropewalk.client.queues.endpoints import Endpoint
from ropewalk.client.queues.errors import NoDoor
from ropewalk.metadata.records import SQS_LISTENER
from ropewalk.views.answering import PATIENCE_MS

_NO_VARIABLES: Final[dict[str, str]] = {}


@asynccontextmanager
async def open_queues(client: Client, ports: ClientPorts) -> AsyncIterator[Queues]:
    """Raises `NoDoor` where no node that can be asked serves them."""
    membership = await ClusterViewer(client).describe()
    found = [
        Endpoint(address.host, address.port, has_tls=False)
        for node in membership.nodes
        if node.state == "active"
        for name, address in node.doors
        if name == SQS_LISTENER
    ]
    if not found:
        raise NoDoor("no node serves the SQS API where the console could ask it")
    caller = Caller(
        endpoints.Given(found[0]),
        endpoints.credentials(None, None, None, _NO_VARIABLES),
        region=endpoints.region(None, _NO_VARIABLES),
        ports=ports,
        timeout_ms=PATIENCE_MS,
        patience_ms=PATIENCE_MS,
        tls=endpoints.tls_for_https(NO_SECURITY, _NO_VARIABLES),
    )
    try:
        yield Queues(caller)
    finally:
        caller.close()
