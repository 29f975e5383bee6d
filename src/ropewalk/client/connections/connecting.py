"""How a client makes its connections: the same way to every broker, whether it was named at the start or found in the metadata."""

from functools import partial
from typing import Protocol

from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.security import ClientSecurity
from ropewalk.client.errors import NotAnswered, Unreachable


class Connector(Protocol):
    async def __call__(self, address: Address, *, client_id: str, deadline_ms: float) -> Connection:
        """A connection on which requests are answered. Raises `Unreachable`, and `NotAdmitted` where trying again changes nothing."""


def connector(network: Network, clock: Clock, rng: Rng, security: ClientSecurity) -> Connector:
    """One for a client: what it knows of tokens and certificates is shared by its connections."""
    if security.is_plain:
        return partial(_open_plain, network, clock)
    from ropewalk.client.connections.admission import Admission  # needed by those alone who have security

    return Admission(network, clock, rng, security).open


async def _open_plain(
    network: Network, clock: Clock, address: Address, *, client_id: str, deadline_ms: float
) -> Connection:
    try:
        made = await Connection.open(network, clock, address, client_id=client_id, deadline_ms=deadline_ms)
    except NotAnswered as error:
        raise Unreachable(
            address, f"{error.reason}; where it wants TLS, set security_protocol to SSL or SASL_SSL"
        ) from None
    made.hint_when_unanswered(" (where it wants a login, set security_protocol and sasl_mechanism)")
    return made
