"""The quotas of clients as an administrator sees them.

An entity is a tuple of kinds (`user`, `client-id`, `ip`) with their names; a kind without a name stands for all who have
no quota of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_client_quotas, describe_client_quotas

Entity = tuple[tuple[str, str | None], ...]

_EXACT: Final = 0
_DEFAULT: Final = 1


class EntityQuotas(Struct, frozen=True, gc=False):
    entity: Entity
    quotas: Mapping[str, float]


class Quotas:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def find(
        self, parts: Entity = (), *, strict: bool = False, deadline_ms: float | None = None
    ) -> list[EntityQuotas]:
        """All entities that have these parts, and with `strict` no others; sorted."""
        until_ms = self._until(deadline_ms)
        request = describe_client_quotas.DescribeClientQuotasRequest(
            components=tuple(
                describe_client_quotas.ComponentData(kind, _DEFAULT if name is None else _EXACT, name)
                for kind, name in parts
            ),
            strict=strict,
        )

        async def once() -> list[EntityQuotas]:
            connection = await self._session.cluster.any_connection(deadline_ms=until_ms)
            response = await connection.call(describe_client_quotas.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="quotas")
            found = [
                EntityQuotas(
                    tuple((part.entity_type, part.entity_name) for part in entry.entity),
                    {value.key: value.value for value in entry.values},
                )
                for entry in response.entries or ()
            ]
            return sorted(found, key=lambda each: [(kind, name or "") for kind, name in each.entity])

        return await self._session.attempt((), once, deadline_ms=until_ms)

    async def alter(
        self,
        entity: Sequence[tuple[str, str | None]],
        changes: Mapping[str, float | None],
        *,
        validate_only: bool = False,
        deadline_ms: float | None = None,
    ) -> None:
        """Set each quota to its value; None takes it away. All or nothing."""
        until_ms = self._until(deadline_ms)
        entry = alter_client_quotas.EntryData(
            tuple(alter_client_quotas.EntityData(kind, name) for kind, name in entity),
            tuple(
                alter_client_quotas.OpData(name, 0.0 if value is None else value, value is None)
                for name, value in changes.items()
            ),
        )
        request = alter_client_quotas.AlterClientQuotasRequest((entry,), validate_only)

        async def once() -> None:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(alter_client_quotas.API, request, deadline_ms=until_ms)
            for answer in response.entries:
                if answer.error_code != ErrorCode.NONE:
                    raise RemoteError(answer.error_code, answer.error_message, about="quota")

        await self._session.attempt((), once, deadline_ms=until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms
