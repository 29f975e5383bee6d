"""All shards of one kind of replicated state that this node hosts: one for every partition it leads of their topic.

`follow` keeps them in step with the partitions; `run` loads what has to be read, one after the other.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import structlog

from ropewalk.base.errors import NodeStopping, RopewalkError, ShardElsewhere, ShardUnavailable
from ropewalk.base.limits import SHARD_REST_MS
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.hosting.shard import Shard
from ropewalk.broker.hosting.state_machine import Kind
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.metadata.image import Image
from ropewalk.runtime.bell import Bell

C = TypeVar("C")
E = TypeVar("E")
A = TypeVar("A")

_log = structlog.get_logger()


class Shards(Generic[C, E, A]):
    def __init__(
        self,
        kind: Kind[C, E, A],
        *,
        image: Image,
        partitions: Partitions,
        pool: Pool,
        clock: Clock,
        commit_timeout_ms: int,
        on_serving: Callable[[Shard[C, E, A]], None],
    ) -> None:
        self._kind = kind
        self._topic = kind.topic
        self._image = image
        self._partitions = partitions
        self._pool = pool
        self._clock = clock
        self._time = SteadyTime(clock)
        self._commit_timeout_ms = commit_timeout_ms
        self._on_serving = on_serving
        self._hosted: dict[int, Shard[C, E, A]] = {}
        self._to_load: dict[Shard[C, E, A], float] = {}
        """Not before which time, on the monotonic clock."""
        self._wake = Bell()
        self._is_stopped = False

    def __iter__(self) -> Iterator[Shard[C, E, A]]:
        yield from list(self._hosted.values())

    @property
    def count(self) -> int:
        """How many shards there are on all nodes together; 0 before the topic is made."""
        topic = self._image.topics.get(self._topic)
        return 0 if topic is None else len(topic.partitions)

    @property
    def is_loaded(self) -> bool:
        return not self._to_load

    def find(self, index: int) -> Shard[C, E, A]:
        shard = self._hosted.get(index)
        if shard is None:
            raise ShardElsewhere(f"{self._topic}-{index} is not hosted here")
        return shard

    async def follow(self) -> None:
        """The partitions may have changed: host what is led here, let go of the rest."""
        led = dict(self._led())
        for index, shard in list(self._hosted.items()):
            if led.get(index) is not shard.partition:
                del self._hosted[index]
                self._to_load.pop(shard, None)
                shard.end(ShardElsewhere(f"{shard.partition.name} is not hosted here any more"))
        for index, partition in led.items():
            if index not in self._hosted:
                await self._host(index, partition)

    async def run(self) -> None:
        while True:
            now_ms = self._clock.monotonic_ms()
            due = [shard for shard, due_ms in self._to_load.items() if due_ms <= now_ms]
            if due:
                await self._load(due[0])
            else:
                await self._wait(min(self._to_load.values(), default=None))

    def on_clock_moved(self) -> None:
        for shard in self:
            shard.on_clock_moved()

    def stop(self) -> None:
        """Send everyone away; call after `run` has been cancelled."""
        self._is_stopped = True
        for shard in self:
            shard.end(
                ShardUnavailable(
                    f"{shard.partition.name}: the node is shutting down; the outcome is not known"
                )
            )

    def _led(self) -> Iterator[tuple[int, Partition]]:
        for index in range(0 if self._is_stopped else self.count):
            try:
                yield index, self._partitions.find(self._topic, index)
            except RopewalkError:
                continue  # led elsewhere, or not to be opened for the time being; `find` says so to who asks

    async def _host(self, index: int, partition: Partition) -> None:
        shard = self._hosted[index] = Shard(
            self._kind,
            partition,
            self._time,
            self._pool,
            commit_timeout_ms=self._commit_timeout_ms,
            on_thrown_away=self._load_again,
        )
        self._load_at(shard, self._clock.monotonic_ms())
        if partition.log.start_offset == partition.log.end_offset:
            await self._load(shard)  # there is nothing to read, so it serves at once

    async def _load(self, shard: Shard[C, E, A]) -> None:
        try:
            await shard.load()
        except NodeStopping:
            self._to_load.pop(shard, None)
        except RopewalkError as error:
            if shard.partition.has_ended:  # deleted, or led elsewhere: `follow` lets go of the shard
                self._to_load.pop(shard, None)
                return
            _log.error(
                "a shard's log cannot be read; what it holds is refused, and it is tried again",
                partition=str(shard.partition.name),
                reason=str(error),
            )
            if shard in self._to_load:
                self._load_again(shard)
        else:
            if self._to_load.pop(shard, None) is not None:
                self._on_serving(shard)

    def _load_again(self, shard: Shard[C, E, A]) -> None:
        self._load_at(shard, self._clock.monotonic_ms() + SHARD_REST_MS)

    def _load_at(self, shard: Shard[C, E, A], due_ms: float) -> None:
        self._to_load[shard] = due_ms
        self._wake.ring()

    async def _wait(self, due_ms: float | None) -> None:
        """Until `due_ms`, or until another shard has to be loaded."""
        await self._wake.wait(None if due_ms is None else due_ms - self._clock.monotonic_ms())
