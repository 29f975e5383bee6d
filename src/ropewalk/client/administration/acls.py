"""Rules about who may do what, as an administrator sees them."""

from collections.abc import Sequence
from typing import Final

from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.security.access import Filter, Operation, Pattern, Permission, ResourceType, Rule
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_acls, delete_acls, describe_acls

_ANY: Final = 1


class Acls:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def find(self, wanted: Filter, *, deadline_ms: float | None = None) -> list[Rule]:
        """The rules that a filter matches, those about one resource together."""
        until_ms = self._until(deadline_ms)
        request = describe_acls.DescribeAclsRequest(*_filter(wanted))

        async def once() -> list[Rule]:
            connection = await self._session.cluster.any_connection(deadline_ms=until_ms)
            response = await connection.call(describe_acls.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="rules")
            return [
                Rule(
                    ResourceType(resource.resource_type),
                    resource.resource_name,
                    Pattern(resource.pattern_type),
                    each.principal,
                    each.host,
                    Operation(each.operation),
                    Permission(each.permission_type),
                )
                for resource in response.resources
                for each in resource.acls
            ]

        return await self._session.attempt((), once, deadline_ms=until_ms)

    async def add(self, rules: Sequence[Rule], *, deadline_ms: float | None = None) -> None:
        """Raises `RemoteError` for the first that is refused; the others are added. Adding one twice is a success."""
        until_ms = self._until(deadline_ms)
        request = create_acls.CreateAclsRequest(
            tuple(
                create_acls.AclCreation(
                    rule.resource_type,
                    rule.name,
                    rule.pattern,
                    rule.principal,
                    rule.host,
                    rule.operation,
                    rule.permission,
                )
                for rule in rules
            )
        )

        async def once() -> None:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(create_acls.API, request, deadline_ms=until_ms)
            for answer in response.results:
                if answer.error_code != ErrorCode.NONE:
                    raise RemoteError(answer.error_code, answer.error_message, about="rule")

        await self._session.attempt((), once, deadline_ms=until_ms)

    async def remove(self, wanted: Filter, *, deadline_ms: float | None = None) -> list[Rule]:
        """What the filter matched, which is gone."""
        until_ms = self._until(deadline_ms)
        request = delete_acls.DeleteAclsRequest((delete_acls.DeleteAclsFilter(*_filter(wanted)),))

        async def once() -> list[Rule]:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            response = await connection.call(delete_acls.API, request, deadline_ms=until_ms)
            (answer,) = response.filter_results
            if answer.error_code != ErrorCode.NONE:
                raise RemoteError(answer.error_code, answer.error_message, about="rules")
            return [
                Rule(
                    ResourceType(each.resource_type),
                    each.resource_name,
                    Pattern(each.pattern_type),
                    each.principal,
                    each.host,
                    Operation(each.operation),
                    Permission(each.permission_type),
                )
                for each in answer.matching_acls
            ]

        return await self._session.attempt((), once, deadline_ms=until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms


def _filter(wanted: Filter) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    return (
        _ANY if wanted.resource_type is None else wanted.resource_type,
        wanted.name,
        wanted.match,
        wanted.principal,
        wanted.host,
        _ANY if wanted.operation is None else wanted.operation,
        _ANY if wanted.permission is None else wanted.permission,
    )
