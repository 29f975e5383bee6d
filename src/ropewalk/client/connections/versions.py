"""Which version of an API to speak with a broker, from what it says it offers."""

from collections.abc import Iterable
from typing import Final, Protocol

from ropewalk.client.errors import ApiNotOffered, RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import api_versions


class VersionedApi(Protocol):
    """As much of an `Api` as a choice of version depends on."""

    @property
    def key(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def version_min(self) -> int: ...

    @property
    def version_max(self) -> int: ...


class Versions:
    """What one broker offers: for each API key the oldest and the newest version, inclusive."""

    __slots__ = ("_finalized", "_offered")

    def __init__(
        self, offered: Iterable[tuple[int, int, int]], finalized: Iterable[tuple[str, int]] = ()
    ) -> None:
        self._offered: Final = {key: (oldest, newest) for key, oldest, newest in offered}
        self._finalized: Final = dict(finalized)

    def __len__(self) -> int:
        return len(self._offered)

    @property
    def offered(self) -> list[tuple[int, int, int]]:
        """Each API key with its oldest and newest version."""
        return [(key, oldest, newest) for key, (oldest, newest) in self._offered.items()]

    def offers(self, api: VersionedApi) -> bool:
        return api.key in self._offered

    def feature(self, name: str) -> int:
        """The level at which the cluster uses a feature; 0 where it does not know it."""
        return self._finalized.get(name, 0)

    def choose(self, api: VersionedApi, *, version_max: int | None = None) -> int:
        """The newest version that both sides speak, and no newer than `version_max`."""
        if api.key not in self._offered:
            raise ApiNotOffered(f"the broker does not offer {api.name}")
        oldest, newest = self._offered[api.key]
        chosen = min(newest, api.version_max)
        if version_max is not None:
            chosen = min(chosen, version_max)
        if chosen < max(oldest, api.version_min):
            raise ApiNotOffered(
                f"the broker offers {api.name} in versions {oldest} to {newest}, "
                f"this client speaks {api.version_min} to {api.version_max}"
            )
        return chosen


def newest_for_discovery() -> int:
    return api_versions.API.version_max


def older_for_discovery(refusal: api_versions.ApiVersionsResponse, refused: int) -> int | None:
    """The version to ask in next: the newest that the refusal names, 0 where it names none. None when 0 was refused."""
    named = [offer.max_version for offer in refusal.api_keys if offer.api_key == api_versions.API.key]
    older = min(named[0], refused - 1) if named else 0
    return max(older, 0) if refused > 0 else None


def read_discovery(response: api_versions.ApiVersionsResponse) -> Versions | None:
    """None where the broker refused the version we asked in."""
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        return None
    if response.error_code != ErrorCode.NONE:
        raise RemoteError(response.error_code, about="ApiVersions")
    return Versions(
        ((offer.api_key, offer.min_version, offer.max_version) for offer in response.api_keys),
        ((feature.name, feature.max_version_level) for feature in response.finalized_features),
    )
