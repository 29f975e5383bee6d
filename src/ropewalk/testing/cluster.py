"""A cluster for tests: one node or several, on the loopback, in this process.

with Cluster() as cluster: ...           the node runs on a thread of its own; every call blocks
async with Cluster() as cluster: ...     the node runs on the caller's loop; see `AsyncCluster`
"""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Self

from ropewalk.records.record import Record
from ropewalk.runtime.loop_thread import LoopThread
from ropewalk.testing.async_cluster import AsyncCluster
from ropewalk.testing.member import NotRunning
from ropewalk.testing.settings import SettingValue


class Cluster:
    """Every method does what `AsyncCluster`'s does, and returns when it is done."""

    def __init__(
        self,
        *,
        nodes: int = 1,
        data: str | os.PathLike[str] | None = None,
        settings: Mapping[str, SettingValue] | None = None,
        **named: SettingValue,
    ) -> None:
        """As `AsyncCluster`: memory or the directory `data`, and Kafka's settings by name or keyword."""
        self._cluster = AsyncCluster(nodes=nodes, data=data, settings=settings, **named)
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        self._thread = LoopThread()
        try:
            self._thread.run(self._cluster.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Raises what the node's background work failed with, if it did."""
        thread = self._the_thread()
        self._thread = None
        try:
            thread.run(self._cluster.__aexit__())
        finally:
            thread.stop()

    async def __aenter__(self) -> AsyncCluster:
        return await self._cluster.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await self._cluster.__aexit__()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for `bootstrap.servers`; the same for as long as the cluster is open."""
        return self._cluster.bootstrap

    @property
    def http(self) -> str:
        """http://HOST:PORT, where `/metrics` and `/readyz` are; the same for as long as the cluster is open."""
        return self._cluster.http

    @property
    def sqs(self) -> str:
        """http://HOST:PORT, where the SQS API is; the same for as long as the cluster is open."""
        return self._cluster.sqs

    @property
    def running(self) -> list[int]:
        """The numbers of the nodes that run."""
        return self._cluster.running

    def leader(self, topic: str, partition: int = 0) -> int:
        """The number of the node that leads it. Waits until there is one."""
        return self._the_thread().run(self._cluster.leader(topic, partition))

    def restart(self, node: int | None = None) -> None:
        """Stop the node in order, unless it was killed, and start it again at the same address; of several all, unless one is named."""
        self._the_thread().run(self._cluster.restart(node))

    def kill(self, node: int | None = None) -> None:
        """End the node as a crash would: nobody is answered, nothing is tidied up. `restart` brings it back. Of several one is to be named."""
        self._the_thread().run(self._cluster.kill(node))

    def kill_leader(self, topic: str, partition: int = 0) -> int:
        """Kill the node that leads the partition; its number."""
        return self._the_thread().run(self._cluster.kill_leader(topic, partition))

    def freeze(self, node: int | None = None) -> None:
        """The node hangs: connections stay open and can still be made, and nothing is answered until `thaw`."""
        self._the_thread().call(partial(self._cluster.freeze, node))

    def thaw(self, node: int | None = None) -> None:
        """What clients have asked meanwhile is answered, in order."""
        self._the_thread().call(partial(self._cluster.thaw, node))

    def cut(self, node: int) -> None:
        """No other node reaches it, nor it them, until `heal`. Clients do."""
        self._the_thread().call(partial(self._cluster.cut, node))

    def heal(self, node: int) -> None:
        self._the_thread().call(partial(self._cluster.heal, node))

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """So much time has passed for the node; see `AsyncCluster.advance`."""
        self._the_thread().call(
            partial(self._cluster.advance, days=days, hours=hours, minutes=minutes, seconds=seconds, ms=ms)
        )

    def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int | None = None, **settings: SettingValue
    ) -> str:
        """The topic's name. It has a replica on every node, three at most, unless `replicas` says otherwise. Settings are Kafka's, with underscores: `cleanup_policy="compact"`."""
        created = self._cluster.create_topic(name, partitions=partitions, replicas=replicas, **settings)
        return self._the_thread().run(created)

    def delete_topics(self, names: Iterable[str]) -> None:
        self._the_thread().run(self._cluster.delete_topics(names))

    def topics(self) -> list[str]:
        """The names of all topics, sorted, without those that the node keeps for itself."""
        return self._the_thread().run(self._cluster.topics())

    def groups(self) -> list[str]:
        """The names of all consumer groups, sorted."""
        return self._the_thread().run(self._cluster.groups())

    def delete_groups(self, names: Iterable[str]) -> list[str]:
        """Delete groups and their offsets; answers those that still have members and are therefore kept."""
        return self._the_thread().run(self._cluster.delete_groups(names))

    def create_queue(self, name: str, **attributes: SettingValue) -> str:
        """The queue's address. Attributes are those of SQS, with underscores: `visibility_timeout=5`; a name that ends in .fifo makes a FIFO queue."""
        return self._the_thread().run(self._cluster.create_queue(name, **attributes))

    def delete_queues(self, names: Iterable[str]) -> None:
        self._the_thread().run(self._cluster.delete_queues(names))

    def queues(self) -> list[str]:
        """The names of all queues, sorted."""
        return self._the_thread().run(self._cluster.queues())

    def records(self, topic: str, *, partition: int | None = None) -> list[Record]:
        """All that the topic holds at this moment, in order, partition by partition; or one partition's."""
        return self._the_thread().run(self._cluster.records(topic, partition=partition))

    def wait_for_records(
        self, topic: str, count: int, *, partition: int | None = None, seconds: float = 30
    ) -> list[Record]:
        """As `records`, as soon as there are so many. Raises `TimeoutError`, which says how many there were."""
        waiting = self._cluster.wait_for_records(topic, count, partition=partition, seconds=seconds)
        return self._the_thread().run(waiting)

    def _the_thread(self) -> LoopThread:
        if self._thread is None:
            raise NotRunning("enter the cluster first, with Cluster() as cluster")
        return self._thread
