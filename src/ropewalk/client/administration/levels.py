"""The level that a cluster works at, and raising it."""

from typing import Final

from ropewalk.client.calls.client import Client
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import update_features

LEVEL_FEATURE: Final = "ropewalk.level"
_NEWEST_KNOWN: Final = 0


class Levels:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def finalize(self, level: int | None = None, *, deadline_ms: float | None = None) -> None:
        """Raise the level to `level`, or to the newest that all nodes know. Raises `RemoteError` with what holds it back."""
        until_ms = self._session.deadline_ms() if deadline_ms is None else deadline_ms
        wanted = _NEWEST_KNOWN if level is None else level
        update = update_features.FeatureUpdateKey(LEVEL_FEATURE, wanted)

        async def once() -> None:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = update_features.UpdateFeaturesRequest(self._session.remaining_ms(until_ms), (update,))
            response = await connection.call(update_features.API, request, deadline_ms=until_ms)
            outcomes = [(response.error_code, response.error_message)]
            outcomes += [(each.error_code, each.error_message) for each in response.results]
            for code, message in outcomes:
                if code == ErrorCode.NOT_CONTROLLER:  # learn where it is before the next attempt
                    await self._session.cluster.metadata([], deadline_ms=until_ms)
                if code != ErrorCode.NONE:
                    raise RemoteError(code, message, about=LEVEL_FEATURE)

        await self._session.attempt((), once, deadline_ms=until_ms)
