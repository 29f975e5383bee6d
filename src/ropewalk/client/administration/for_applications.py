"""Topics, settings, groups, offsets and records, for asyncio: `from ropewalk.aio import Admin`.

One thing at a time, and an exception when it does not go well. `client.admin` and `client.groups` below it do many at once and
answer for each.

What a reader could get wrong
    A topic that was just created may be unknown to some brokers for a moment; producers and consumers wait for it by
    themselves.
"""

from collections.abc import Iterable, Mapping
from typing import Self

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import ClientPorts
from ropewalk.client.administration import admin
from ropewalk.client.administration.admin import (
    BROKER_CHOOSES,
    ClusterDescription,
    NewTopic,
    ResourceKind,
    Setting,
)
from ropewalk.client.administration.groups import DescribedGroup, Groups, ListedGroup
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.connections.security import only_security
from ropewalk.client.connections.settings import ClientSettings, SettingValue
from ropewalk.client.errors import RemoteError
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.wire.error_code import ErrorCode

_NO_SETTINGS: Mapping[str, str] = {}


class Admin:
    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "ropewalk",
        request_timeout_ms: int = 30_000,
        ports: ClientPorts | None = None,
        **security: SettingValue,
    ) -> None:
        """`security`: `security_protocol`, `ssl_ca_location`, `sasl_username` and all that producers take of these."""
        used = ports or SystemClientPorts()
        settings = ClientSettings(
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            security=only_security(security, "an Admin"),
        )
        self._client = Client(used.network, used.clock, used.rng, parse_addresses(bootstrap), settings)
        self._admin = admin.Admin(self._client)
        self._groups = Groups(self._client)

    async def start(self) -> None:
        """Connect; `async with` does it."""
        await self._client.__aenter__()

    async def close(self) -> None:
        self._client.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client.close()

    async def topics(self) -> list[str]:
        """The names of all topics, without those that brokers keep for themselves."""
        view = await self._client.metadata()
        return sorted(topic.name for topic in view.topics if not topic.is_internal)

    async def describe_topic(self, name: str) -> TopicView:
        """Its partitions: leaders, replicas, who is in sync."""
        view = await self._client.metadata([name])
        for topic in view.topics:
            if topic.error_code != ErrorCode.NONE:
                raise RemoteError(topic.error_code, about=name)
            return topic
        raise RemoteError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=name)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_CHOOSES,
        replication_factor: int = BROKER_CHOOSES,
        settings: Mapping[str, str] = _NO_SETTINGS,
        exists_ok: bool = False,
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor, tuple(settings.items()))
        outcome = (await self._admin.create_topics([topic])).get(name)
        if outcome is not None and not (exists_ok and outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS):
            raise outcome

    async def delete_topic(self, name: str) -> None:
        _raise((await self._admin.delete_topics([name])).get(name))

    async def add_partitions(self, topic: str, count: int) -> None:
        """Grow the topic to so many partitions in all. Keys go elsewhere afterwards."""
        _raise((await self._admin.create_partitions({topic: count})).get(topic))

    async def topic_settings(self, topic: str) -> list[Setting]:
        return await self._admin.describe_settings(ResourceKind.TOPIC, topic)

    async def broker_settings(self, node_id: int) -> list[Setting]:
        return await self._admin.describe_settings(ResourceKind.BROKER, str(node_id))

    async def alter_topic_settings(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Set each to its value; None takes it back to its default."""
        await self._admin.alter_settings(ResourceKind.TOPIC, topic, changes)

    async def alter_broker_settings(self, node_id: int, changes: Mapping[str, str | None]) -> None:
        await self._admin.alter_settings(ResourceKind.BROKER, str(node_id), changes)

    async def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Remove what lies below each offset (-1: everything there is); where the partitions begin afterwards."""
        by_topic: dict[str, dict[int, int]] = {}
        for partition, offset in offsets.items():
            by_topic.setdefault(partition.topic, {})[partition.partition] = offset
        starts: dict[TopicPartition, int] = {}
        for topic, of_topic in sorted(by_topic.items()):
            found = await self._admin.delete_records(topic, of_topic)
            starts |= {TopicPartition(topic, index): start for index, start in found.items()}
        return starts

    async def beginning_offsets(self, topic: str) -> dict[TopicPartition, int]:
        return await self._offsets(topic, OffsetQuery.EARLIEST)

    async def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        return await self._offsets(topic, OffsetQuery.LATEST)

    async def groups(self) -> list[ListedGroup]:
        return await self._groups.list()

    async def describe_group(self, group: str) -> DescribedGroup:
        return await self._groups.describe(group)

    async def committed(self, group: str) -> dict[TopicPartition, Committed]:
        """Every offset the group has committed. A group that is not there has none."""
        return await self._groups.committed(group)

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Have a group that has no members go on from these offsets."""
        for outcome in (await self._groups.commit(group, offsets)).values():
            _raise(outcome)

    async def delete_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Have the group forget how far it has read of these."""
        for outcome in (await self._groups.delete_offsets(group, partitions)).values():
            _raise(outcome)

    async def delete_group(self, group: str) -> None:
        """With its offsets; only a group without members."""
        _raise((await self._groups.delete([group])).get(group))

    async def describe_cluster(self) -> ClusterDescription:
        return await self._admin.describe_cluster()

    async def _offsets(self, topic: str, query: OffsetQuery) -> dict[TopicPartition, int]:
        view = await self._client.topic(topic)
        queries: dict[int, int] = {partition.index: query for partition in view.partitions}
        listed = await self._client.list_offsets(topic, queries)
        return {TopicPartition(topic, index): found.offset for index, found in sorted(listed.items())}


def _raise(outcome: RemoteError | None) -> None:
    if outcome is not None:
        raise outcome
