"""Users as an administrator sees them: who can log in, and by which mechanisms.

What a reader could get wrong
    A password never leaves this process: what is sent was made from it, with a salt, by thousands of hashes. That is as good as the password to
    whoever reads it on the way, so it belongs on a connection that nobody listens to.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ports import Rng
from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.security.scram import ITERATIONS_OURS, SALT_BYTES_OURS, Mechanism, salted
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import describe_user_scram_credentials as described


class User(Struct, frozen=True):
    name: str
    iterations: Mapping[Mechanism, int]
    """By each mechanism by which it can log in."""


class Users:
    def __init__(self, client: Client, rng: Rng) -> None:
        self._session: Final = client.session
        self._rng = rng

    async def find(self, names: Sequence[str] = (), *, deadline_ms: float | None = None) -> list[User]:
        """Those that are there, of these or of all; sorted by name."""
        until_ms = self._until(deadline_ms)
        asked = tuple(map(described.UserName, dict.fromkeys(names))) or None
        request = described.DescribeUserScramCredentialsRequest(asked)

        async def once() -> list[User]:
            connection = await self._session.cluster.any_connection(deadline_ms=until_ms)
            response = await connection.call(described.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="users")
            return [_user(each) for each in response.results if each.error_code != _NOT_THERE]

        return sorted(await self._session.attempt((), once, deadline_ms=until_ms), key=lambda user: user.name)

    async def set_password(
        self, name: str, password: str, mechanism: Mechanism, *, deadline_ms: float | None = None
    ) -> None:
        salt = self._rng.randbytes(SALT_BYTES_OURS)
        salted_password = salted(mechanism, password.encode(), salt, ITERATIONS_OURS)
        upsertion = alter.ScramCredentialUpsertion(name, mechanism, ITERATIONS_OURS, salt, salted_password)
        await self._alter((), (upsertion,), deadline_ms)

    async def remove(self, name: str, mechanism: Mechanism, *, deadline_ms: float | None = None) -> None:
        """It cannot log in by that mechanism any more; without any, the user is gone."""
        await self._alter((alter.ScramCredentialDeletion(name, mechanism),), (), deadline_ms)

    async def _alter(
        self,
        deletions: tuple[alter.ScramCredentialDeletion, ...],
        upsertions: tuple[alter.ScramCredentialUpsertion, ...],
        deadline_ms: float | None,
    ) -> None:
        until_ms = self._until(deadline_ms)
        request = alter.AlterUserScramCredentialsRequest(deletions, upsertions)

        async def once() -> None:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(alter.API, request, deadline_ms=until_ms)
            for result in response.results:
                if result.error_code != ErrorCode.NONE:
                    raise RemoteError(result.error_code, result.error_message, about="user")

        await self._session.attempt((), once, deadline_ms=until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms


_NOT_THERE: Final = ErrorCode.RESOURCE_NOT_FOUND


def _user(result: described.DescribeUserScramCredentialsResult) -> User:
    if result.error_code != ErrorCode.NONE:
        raise RemoteError(result.error_code, result.error_message, about="user")
    return User(result.user, {Mechanism(info.mechanism): info.iterations for info in result.credential_infos})
