"""Tokens of a cluster's own, for users to log in with by OAUTHBEARER and at doors that speak HTTP."""

from typing import Final

from msgspec import Struct

from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import issue_token, replace_token_key

_USUAL: Final = -1


class Token(Struct, frozen=True):
    user: str
    token: str
    issued_at_ms: int
    ends_at_ms: int
    access_key: str = ""
    secret: str = ""
    """Of a session token: what requests to the SQS API are signed with."""

    def __repr__(self) -> str:
        """Whoever has the token is its user."""
        return f"<Token of {self.user!r}>"


class Tokens:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def issue(
        self,
        user: str = "",
        *,
        lifetime_ms: int | None = None,
        is_session: bool = False,
        deadline_ms: float | None = None,
    ) -> Token:
        """For a user, or for whoever asks. It lasts for an hour where nothing is said. `is_session`: it comes with an access key for the SQS API,
        and is for that alone."""
        until_ms = self._until(deadline_ms)
        request = issue_token.IssueTokenRequest(
            user, _USUAL if lifetime_ms is None else lifetime_ms, is_session
        )

        async def once() -> Token:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(issue_token.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="token")
            if is_session and not response.secret:
                text = "the cluster knows no session tokens: not all of its nodes are of this version"
                raise RemoteError(ErrorCode.UNSUPPORTED_VERSION, text, about="token")
            return Token(
                response.user,
                response.token,
                response.issued_at_ms,
                response.ends_at_ms,
                response.access_key,
                response.secret,
            )

        return await self._session.attempt((), once, deadline_ms=until_ms)

    async def replace_key(self, *, is_known_to_others: bool = False, deadline_ms: float | None = None) -> str:
        """The id of the key that signs from here on. `is_known_to_others`: no token of a former key counts any more."""
        until_ms = self._until(deadline_ms)
        request = replace_token_key.ReplaceTokenKeyRequest(is_known_to_others)

        async def once() -> str:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(replace_token_key.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="key of tokens")
            return response.key_id

        return await self._session.attempt((), once, deadline_ms=until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms
