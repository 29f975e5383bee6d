"""Topics, settings, groups, offsets and records: `from ropewalk import Admin`. Every call returns when it is done.

It says and does what `ropewalk.aio.Admin` does.
"""

from collections.abc import Iterable, Mapping
from typing import Self

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.admin import BROKER_CHOOSES, ClusterDescription, Setting
from ropewalk.client.administration.for_applications import Admin as AsyncAdmin
from ropewalk.client.administration.groups import DescribedGroup, ListedGroup
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.errors import Misuse
from ropewalk.runtime.loop_thread import LoopThread

_NO_SETTINGS: Mapping[str, str] = {}


class Admin:
    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "ropewalk",
        request_timeout_ms: int = 30_000,
        **security: SettingValue,
    ) -> None:
        """`security`: `security_protocol`, `ssl_ca_location`, `sasl_username` and all that producers take of these."""
        self._admin = AsyncAdmin(
            bootstrap, client_id=client_id, request_timeout_ms=request_timeout_ms, ports=None, **security
        )
        self._thread: LoopThread | None = None

    def start(self) -> None:
        """Connect; `with` does it."""
        self._thread = LoopThread()
        try:
            self._thread.run(self._admin.start())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._thread is not None:
            thread, self._thread = self._thread, None
            thread.run(self._admin.close())
            thread.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topics(self) -> list[str]:
        """The names of all topics, without those that brokers keep for themselves."""
        return self._the_thread().run(self._admin.topics())

    def describe_topic(self, name: str) -> TopicView:
        """Its partitions: leaders, replicas, who is in sync."""
        return self._the_thread().run(self._admin.describe_topic(name))

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_CHOOSES,
        replication_factor: int = BROKER_CHOOSES,
        settings: Mapping[str, str] = _NO_SETTINGS,
        exists_ok: bool = False,
    ) -> None:
        self._the_thread().run(
            self._admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                settings=settings,
                exists_ok=exists_ok,
            )
        )

    def delete_topic(self, name: str) -> None:
        self._the_thread().run(self._admin.delete_topic(name))

    def add_partitions(self, topic: str, count: int) -> None:
        """Grow the topic to so many partitions in all. Keys go elsewhere afterwards."""
        self._the_thread().run(self._admin.add_partitions(topic, count))

    def topic_settings(self, topic: str) -> list[Setting]:
        return self._the_thread().run(self._admin.topic_settings(topic))

    def broker_settings(self, node_id: int) -> list[Setting]:
        return self._the_thread().run(self._admin.broker_settings(node_id))

    def alter_topic_settings(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Set each to its value; None takes it back to its default."""
        self._the_thread().run(self._admin.alter_topic_settings(topic, changes))

    def alter_broker_settings(self, node_id: int, changes: Mapping[str, str | None]) -> None:
        self._the_thread().run(self._admin.alter_broker_settings(node_id, changes))

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Remove what lies below each offset (-1: everything there is); where the partitions begin afterwards."""
        return self._the_thread().run(self._admin.delete_records(offsets))

    def beginning_offsets(self, topic: str) -> dict[TopicPartition, int]:
        return self._the_thread().run(self._admin.beginning_offsets(topic))

    def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        return self._the_thread().run(self._admin.end_offsets(topic))

    def groups(self) -> list[ListedGroup]:
        return self._the_thread().run(self._admin.groups())

    def describe_group(self, group: str) -> DescribedGroup:
        return self._the_thread().run(self._admin.describe_group(group))

    def committed(self, group: str) -> dict[TopicPartition, Committed]:
        """Every offset the group has committed. A group that is not there has none."""
        return self._the_thread().run(self._admin.committed(group))

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Have a group that has no members go on from these offsets."""
        self._the_thread().run(self._admin.commit(group, offsets))

    def delete_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Have the group forget how far it has read of these."""
        self._the_thread().run(self._admin.delete_offsets(group, partitions))

    def delete_group(self, group: str) -> None:
        """With its offsets; only a group without members."""
        self._the_thread().run(self._admin.delete_group(group))

    def describe_cluster(self) -> ClusterDescription:
        return self._the_thread().run(self._admin.describe_cluster())

    def _the_thread(self) -> LoopThread:
        if self._thread is None:
            raise Misuse("the administrator is closed, or was not started: use it as a context manager")
        return self._thread
