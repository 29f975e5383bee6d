"""Pages of a node's HTTP port, read once.

What a reader could get wrong
    A password is sent over https, or within this machine, alone: a node takes it nowhere else, and neither should anybody be shown it.
"""

import asyncio
from base64 import b64encode
from http import HTTPStatus
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.loopback import is_loopback
from ropewalk.base.ports import Network
from ropewalk.client.administration.membership import Node
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.security import ClientSecurity
from ropewalk.client.connections.tls import TlsSource
from ropewalk.http1.client import ClientConnection
from ropewalk.metadata.records import HTTP_LISTENER, HTTPS_LISTENER

PATIENCE_S: Final = 5.0
_PAGE_BYTES_MAX: Final = 1 << 25


class NotRead(RopewalkError):
    """A page could not be had; the text says why."""


async def read_page(
    network: Network, node: Node, path: str, security: ClientSecurity, *, may_be_unwell: bool = False
) -> str:
    """Raises `NotRead`. Where a page tells how the node is, it may tell so with 503."""
    address, has_tls = _door(node)
    host = str(address)
    headers = [f"GET {path} HTTP/1.1", f"host: {host}", "connection: close"]
    if (
        (has_tls or is_loopback(address.host))
        and security.sasl_username is not None
        and security.sasl_password is not None
    ):
        shown = b64encode(f"{security.sasl_username}:{security.sasl_password.reveal()}".encode()).decode()
        headers.append(f"authorization: Basic {shown}")
    request = "".join(f"{line}\r\n" for line in (*headers, "")).encode()
    try:
        async with asyncio.timeout(PATIENCE_S):
            connection = await ClientConnection.open(
                network,
                address.host,
                address.port,
                tls=TlsSource(security) if has_tls else None,
                answer_bytes_max=_PAGE_BYTES_MAX,
            )
            try:
                reply = await connection.request(request)
            finally:
                connection.close()
    except (OSError, TimeoutError) as error:
        raise NotRead(f"{host}{path}: {error or 'no answer in time'}") from None
    taken = (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE) if may_be_unwell else (HTTPStatus.OK,)
    if reply.status not in taken:
        raise NotRead(f"{host}{path}: {reply.status} {reply.body[:200].decode(errors='replace').strip()}")
    return reply.body.decode(errors="replace")


def _door(node: Node) -> tuple[Address, bool]:
    doors = dict(node.doors)
    for name in (HTTP_LISTENER, HTTPS_LISTENER):
        if name in doors:
            return doors[name], name == HTTPS_LISTENER
    raise NotRead("the node has no HTTP port, or none that it tells of")
