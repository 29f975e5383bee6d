"""Create, alter and describe what a cluster holds.

Calls about several things answer for each of them: a mapping from name to the `RemoteError` that it met, or
None where it went well. They raise only when the request as a whole got nowhere.

What a reader could get wrong
    What creates or deletes is not repeated once it may have been done: the second answer would be a refusal
    ("already exists") that hides the first one's success.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, TypeVar

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ids import NodeId
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.together import together
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.cluster import PartitionView
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    incremental_alter_configs,
)

T = TypeVar("T")

BROKER_CHOOSES: Final = -1
"""A partition count or replication factor that is left to the cluster's defaults."""


class ResourceKind(IntEnum):
    """What settings can belong to, as DescribeConfigs numbers it."""

    TOPIC = 2
    BROKER = 4


class SettingSource(IntEnum):
    """Where a setting's value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5


class NewTopic(Struct, frozen=True, gc=False):
    name: str
    partition_count: int = BROKER_CHOOSES
    replication_factor: int = BROKER_CHOOSES
    settings: tuple[tuple[str, str], ...] = ()


class Setting(Struct, frozen=True, gc=False):
    """`value` is None where it is secret or not set."""

    name: str
    value: str | None
    source: SettingSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None = None
    inherited: tuple[str, str | None] | None = None
    """The setting that would apply if nothing was set for the thing itself, and its value in that one's unit; None where nobody asked."""

    @property
    def is_default(self) -> bool:
        return self.source is SettingSource.DEFAULT


class ClusterDescription(Struct, frozen=True, gc=False):
    cluster_id: str
    controller: NodeId | None
    brokers: tuple[tuple[NodeId, Address, str | None], ...]
    """Node id, address, rack."""


Outcomes = dict[str, RemoteError | None]


class Admin:
    def __init__(self, client: Client) -> None:
        self._session: Final = client.session

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, deadline_ms: float | None = None
    ) -> Outcomes:
        until_ms = self._until(deadline_ms)

        async def once() -> Outcomes:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = create_topics.CreateTopicsRequest(
                topics=tuple(map(_creatable, topics)),
                timeout_ms=self._session.remaining_ms(until_ms),
                validate_only=validate_only,
            )
            response = await connection.call(create_topics.API, request, deadline_ms=until_ms)
            return await self._outcomes(
                [(topic.name, topic.error_code, topic.error_message) for topic in response.topics], until_ms
            )

        return await self._attempt(once, until_ms, repeatable=validate_only)

    async def delete_topics(self, names: Sequence[str], *, deadline_ms: float | None = None) -> Outcomes:
        until_ms = self._until(deadline_ms)

        async def once() -> Outcomes:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = delete_topics.DeleteTopicsRequest(
                topics=tuple(delete_topics.DeleteTopicState(name=name) for name in names),
                topic_names=tuple(names),
                timeout_ms=self._session.remaining_ms(until_ms),
            )
            response = await connection.call(delete_topics.API, request, deadline_ms=until_ms)
            return await self._outcomes(
                [(topic.name or "", topic.error_code, topic.error_message) for topic in response.topics],
                until_ms,
            )

        outcomes = await self._attempt(once, until_ms, repeatable=False)
        for name in names:
            self._session.cluster.forget(name)
        return outcomes

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        deadline_ms: float | None = None,
    ) -> Outcomes:
        """Grow each topic to that many partitions in all."""
        until_ms = self._until(deadline_ms)

        async def once() -> Outcomes:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            request = create_partitions.CreatePartitionsRequest(
                topics=tuple(
                    create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
                    for name, count in counts.items()
                ),
                timeout_ms=self._session.remaining_ms(until_ms),
                validate_only=validate_only,
            )
            response = await connection.call(create_partitions.API, request, deadline_ms=until_ms)
            return await self._outcomes(
                [(topic.name, topic.error_code, topic.error_message) for topic in response.results], until_ms
            )

        outcomes = await self._attempt(once, until_ms, repeatable=validate_only)
        for name in counts:
            self._session.cluster.forget(name)
        return outcomes

    async def describe_settings(
        self,
        kind: ResourceKind,
        name: str,
        *,
        with_documentation: bool = False,
        with_inherited: bool = False,
        deadline_ms: float | None = None,
    ) -> list[Setting]:
        """All settings of a topic (by name) or a broker (by its node id in digits), in the broker's order."""
        until_ms = self._until(deadline_ms)

        async def once() -> list[Setting]:
            connection = (
                await self._session.cluster.connection(NodeId(int(name)), deadline_ms=until_ms)
                if kind is ResourceKind.BROKER
                else await self._session.cluster.any_connection(deadline_ms=until_ms)
            )
            request = describe_configs.DescribeConfigsRequest(
                resources=(describe_configs.DescribeConfigsResource(kind, name, None),),
                include_synonyms=with_inherited,
                include_documentation=with_documentation,
            )
            response = await connection.call(describe_configs.API, request, deadline_ms=until_ms)
            if len(response.results) != 1:
                raise ProtocolError(f"DescribeConfigs answered {len(response.results)} times, asked once")
            (result,) = response.results
            if result.error_code != ErrorCode.NONE:
                raise RemoteError(result.error_code, result.error_message, about=name)
            return [_setting(config) for config in result.configs]

        return await self._attempt(once, until_ms)

    async def alter_settings(
        self,
        kind: ResourceKind,
        name: str,
        changes: Mapping[str, str | None],
        *,
        validate_only: bool = False,
        deadline_ms: float | None = None,
    ) -> None:
        """Set each to its value; None takes the setting back to its default. All or nothing."""
        until_ms = self._until(deadline_ms)

        async def once() -> None:
            connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
            configs = tuple(
                incremental_alter_configs.AlterableConfig(
                    name=setting, config_operation=_DELETE if value is None else _SET, value=value
                )
                for setting, value in changes.items()
            )
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=(incremental_alter_configs.AlterConfigsResource(kind, name, configs),),
                validate_only=validate_only,
            )
            response = await connection.call(incremental_alter_configs.API, request, deadline_ms=until_ms)
            answers = [(name, answer.error_code, answer.error_message) for answer in response.responses]
            for error in (await self._outcomes(answers, until_ms)).values():
                if error is not None:
                    raise error

        await self._attempt(once, until_ms)

    async def alter_list(
        self,
        kind: ResourceKind,
        name: str,
        setting: str,
        *,
        added: Sequence[str] = (),
        removed: Sequence[str] = (),
        deadline_ms: float | None = None,
    ) -> None:
        """Add items to a setting that is a list, or take them from it; two who do so at once do not undo each other."""
        until_ms = self._until(deadline_ms)
        operations = ((_APPEND, added), (_SUBTRACT, removed))

        async def once() -> None:
            for operation, items in operations:
                if items:
                    await self._alter(kind, name, setting, operation, ",".join(items), until_ms)

        await self._attempt(once, until_ms)

    async def _alter(
        self, kind: ResourceKind, name: str, setting: str, operation: int, value: str, until_ms: float
    ) -> None:
        connection = await self._session.cluster.controller_connection(deadline_ms=until_ms)
        config = incremental_alter_configs.AlterableConfig(
            name=setting, config_operation=operation, value=value
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=(incremental_alter_configs.AlterConfigsResource(kind, name, (config,)),),
            validate_only=False,
        )
        response = await connection.call(incremental_alter_configs.API, request, deadline_ms=until_ms)
        answers = [(name, answer.error_code, answer.error_message) for answer in response.responses]
        for error in (await self._outcomes(answers, until_ms)).values():
            if error is not None:
                raise error

    async def delete_records(
        self, topic: str, offsets: Mapping[int, int], *, deadline_ms: float | None = None
    ) -> dict[int, int]:
        """Remove what lies below each partition's offset (-1: everything there is); the new starts."""
        until_ms = self._until(deadline_ms)

        async def ask(node: NodeId, partitions: Sequence[PartitionView]) -> dict[int, int]:
            connection = await self._session.cluster.connection(node, deadline_ms=until_ms)
            asked = tuple(
                delete_records.DeleteRecordsPartition(partition.index, offsets[partition.index])
                for partition in partitions
            )
            request = delete_records.DeleteRecordsRequest(
                topics=(delete_records.DeleteRecordsTopic(topic, asked),),
                timeout_ms=self._session.remaining_ms(until_ms),
            )
            response = await connection.call(delete_records.API, request, deadline_ms=until_ms)
            starts: dict[int, int] = {}
            for answer in [answer for found in response.topics for answer in found.partitions]:
                if answer.error_code != ErrorCode.NONE:
                    raise RemoteError(answer.error_code, about=f"{topic}-{answer.index}")
                starts[answer.index] = answer.low_watermark
            return starts

        async def once() -> dict[int, int]:
            leaders = await self._session.leaders(topic, offsets, deadline_ms=until_ms)
            answers = await together([ask(node, partitions) for node, partitions in leaders.items()])
            return {index: start for answer in answers for index, start in sorted(answer.items())}

        return await self._session.attempt((topic,), once, deadline_ms=until_ms) if offsets else {}

    async def describe_cluster(self, *, deadline_ms: float | None = None) -> ClusterDescription:
        until_ms = self._until(deadline_ms)

        async def once() -> ClusterDescription:
            connection = await self._session.cluster.any_connection(deadline_ms=until_ms)
            request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False)
            response = await connection.call(describe_cluster.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about="DescribeCluster")
            return ClusterDescription(
                response.cluster_id,
                NodeId(response.controller_id) if response.controller_id >= 0 else None,
                tuple(
                    (NodeId(broker.broker_id), Address(broker.host, broker.port), broker.rack)
                    for broker in response.brokers
                ),
            )

        return await self._attempt(once, until_ms)

    def _until(self, deadline_ms: float | None) -> float:
        return self._session.deadline_ms() if deadline_ms is None else deadline_ms

    async def _attempt(
        self, once: Callable[[], Awaitable[T]], deadline_ms: float, *, repeatable: bool = True
    ) -> T:
        return await self._session.attempt((), once, deadline_ms=deadline_ms, repeatable=repeatable)

    async def _outcomes(self, answers: Sequence[tuple[str, int, str | None]], deadline_ms: float) -> Outcomes:
        """When the controller is elsewhere nothing was done: learn where it is, and have the call repeated."""
        outcomes: Outcomes = {
            name: RemoteError(code, message, about=name) if code != ErrorCode.NONE else None
            for name, code, message in answers
        }
        for error in outcomes.values():
            if error is not None and error.code is ErrorCode.NOT_CONTROLLER:
                await self._session.cluster.metadata([], deadline_ms=deadline_ms)
                raise error
        return outcomes


_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3


def _creatable(topic: NewTopic) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=tuple(create_topics.CreatableTopicConfig(name, value) for name, value in topic.settings),
    )


def _setting(config: describe_configs.DescribeConfigsResourceResult) -> Setting:
    sources = {source.value for source in SettingSource}
    source = SettingSource(config.config_source) if config.config_source in sources else SettingSource.UNKNOWN
    beneath = (each for each in config.synonyms if each.source != config.config_source)
    inherited = next(((each.name, each.value) for each in beneath), None)
    return Setting(
        config.name,
        config.value,
        source,
        config.read_only,
        config.is_sensitive,
        config.documentation,
        inherited,
    )
