"""A login: a password is shown to the cluster once, and a token of the cluster's own is kept in its place."""

from ropewalk.base.errors import InvalidSetting, RopewalkError
from ropewalk.base.limits import CONSOLE_SESSION_MS_MAX
from ropewalk.client.administration.tokens import Token, Tokens
from ropewalk.client.errors import ApiNotOffered, AuthenticationFailed
from ropewalk.console.clients import Clients
from ropewalk.console.reach import Reach


class LoginFailed(RopewalkError):
    """Said on the page; the same whether the user is unknown or the password another."""


async def log_in(clients: Clients, reach: Reach, user: str, password: str) -> Token:
    """Raises `LoginFailed`, and what keeps the cluster from answering."""
    if not user or not password:
        raise LoginFailed("say a user and a password")
    refused: AuthenticationFailed | InvalidSetting | None = None
    for mechanism in reach.mechanisms:
        try:
            async with clients.connecting(reach.of_password(mechanism, user, password)) as client:
                return await Tokens(client).issue(lifetime_ms=CONSOLE_SESSION_MS_MAX)
        except (AuthenticationFailed, InvalidSetting) as error:  # or it has characters that no name has
            refused = error
        except ApiNotOffered:
            raise LoginFailed(
                "this cluster issues no tokens, so nobody can log in to it here; give the console credentials and have it listen on "
                "the loopback"
            ) from None
    raise LoginFailed("the user or the password is not right") from refused
