"""How the console reaches its cluster, and in whose name."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.client.connections.address import Address
from ropewalk.client.connections.secret import GivenSecret
from ropewalk.client.connections.security import OAUTHBEARER, ClientSecurity
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.console.gate import Place

CLIENT_ID: Final = "ropewalk-console"


class Entry(Enum):
    OPEN = "open"
    """Nobody says who they are: where the console is on the loopback, and the cluster asks nobody either."""
    GIVEN = "given"
    """Everybody is whom the command line or the profile says: on the loopback."""
    LOGIN = "login"
    """Everybody is who they prove to be."""
    CLOSED = "closed"
    """Nobody is let in; `why` says what would have to be otherwise."""


class Reach(Struct, frozen=True):
    entry: Entry
    addresses: Callable[[], Sequence[Address]]
    settings: ClientSettings
    """Of the client, but for who it is after a login."""
    mechanisms: Sequence[str] = ()
    """By which a password may be shown; the first that takes it counts."""
    why: str = ""

    def of_token(self, token: str) -> ClientSettings:
        security = replace(
            self._security(OAUTHBEARER),
            sasl_username=None,
            sasl_password=None,
            sasl_oauthbearer_token=lambda: token,
        )
        return replace(self.settings, security=security)

    def of_password(self, mechanism: str, user: str, password: str) -> ClientSettings:
        security = replace(self._security(mechanism), sasl_username=user, sasl_password=GivenSecret(password))
        return replace(self.settings, security=security)

    def _security(self, mechanism: str) -> ClientSecurity:
        return replace(self.settings.security, sasl_mechanism=mechanism)


def given(place: Place, addresses: Sequence[Address], settings: ClientSettings) -> Reach:
    """For a console by itself: with the credentials it was given on the loopback, and elsewhere with those of who comes."""
    settings = replace(settings, client_id=CLIENT_ID)
    if place.is_loopback:
        entry = Entry.OPEN if settings.security.is_plain else Entry.GIVEN
        return Reach(entry, lambda: addresses, settings)
    if not settings.security.has_login:
        return Reach(
            Entry.CLOSED,
            lambda: addresses,
            settings,
            why="a console that other machines can reach asks for a login, and this cluster was named without one: say "
            "security.protocol=SASL_SSL, or listen on the loopback",
        )
    mechanism = settings.security.sasl_mechanism
    mechanisms = ("SCRAM-SHA-256", "SCRAM-SHA-512") if mechanism in (None, OAUTHBEARER) else (mechanism,)
    bare = replace(settings.security, sasl_username=None, sasl_password=None, sasl_oauthbearer_token=None)
    return Reach(Entry.LOGIN, lambda: addresses, replace(settings, security=bare), mechanisms)
