"""What all simulated clients share: whom they call, what they may use, and where they write down what happened."""

import asyncio
import math
import random
from collections.abc import Callable
from typing import Final, TypeVar

from ropewalk.base.ids import TopicId, TopicPartition
from ropewalk.base.ports import Clock, Network
from ropewalk.sim.clients.link import Link, LinkLost, open_link
from ropewalk.sim.judges.group_history import GroupJournal
from ropewalk.sim.judges.history import Journal, Promise
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.world import SimulatedClock, World
from ropewalk.wire.api import Api
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

REQUEST_TIMEOUT_MS: Final = 3000
TOPIC_BY_NAME_VERSION_MAX: Final = 12
"""The last version of Produce and of Fetch that names its topics."""


class Topics:
    """The topics whose creation was acknowledged, and the partitions they have."""

    def __init__(self) -> None:
        self.partitions: list[TopicPartition] = []
        self._ids: dict[str, TopicId] = {}
        self._promises: dict[str, Promise] = {}

    def add(self, name: str, topic_id: TopicId, partition_count: int, promise: Promise) -> None:
        self._ids[name] = topic_id
        self._promises[name] = promise
        self.partitions += [TopicPartition(name, index) for index in range(partition_count)]

    def id_of(self, name: str) -> TopicId:
        return self._ids[name]

    def is_known(self, name: str) -> bool:
        return name in self._ids

    def promise_of(self, name: str) -> Promise:
        return self._promises[name]

    def name_of(self, topic_id: bytes) -> str:
        return next(name for name, known in self._ids.items() if known == topic_id)

    def find_name(self, topic_id: bytes) -> str | None:
        """As `name_of`; None if nobody uses that topic."""
        return next((name for name, known in self._ids.items() if known == topic_id), None)

    def forget(self, name: str) -> None:
        """The topic is about to be deleted: nobody uses it any more."""
        del self._ids[name]
        self.partitions = [partition for partition in self.partitions if partition.topic != name]


class Workload:
    """One run's clients: they go on until `until_s` and count what they do."""

    def __init__(self, world: World, address: tuple[str, int], *, until_s: float) -> None:
        self.world = world
        self.address = address
        self.until_s = until_s
        self.journal = Journal()
        self.group_journal = GroupJournal()
        self.topics = Topics()
        self.operation_count = 0
        self.end_seen: dict[TopicPartition, int] = {}
        """Per partition one past the highest offset that any client has heard of."""
        self._value_count = 0

    @property
    def sometimes(self) -> Sometimes:
        return self.world.sometimes

    @property
    def is_over(self) -> bool:
        return self.world.now_s >= self.until_s

    async def until(self, condition: Callable[[], bool], *, within_s: float = math.inf) -> bool:
        """Wait for it; False when time is up, or the work is over, before."""
        until_s = self.world.now_s + within_s
        while not condition():
            if self.is_over or self.world.now_s >= until_s:
                return False
            await asyncio.sleep(0.1)
        return True

    def draw_partition(self, rng: random.Random) -> TopicPartition:
        """Any partition, one of a compacted topic more often than others: only what is written again is compacted."""
        partitions = self.topics.partitions
        compacted = [name for name in partitions if self.topics.promise_of(name.topic).is_compacted]
        return rng.choice(compacted if compacted and rng.random() < 0.3 else partitions)

    def see_end(self, partition: TopicPartition, end_offset: int) -> None:
        self.end_seen[partition] = max(end_offset, self.end_seen.get(partition, 0))

    def next_value(self) -> int:
        self._value_count += 1
        return self._value_count


class Caller:
    """One client's way to the node: a host of its own, dice of its own, one connection at a time."""

    def __init__(self, workload: Workload, name: str) -> None:
        self.name = name
        self.workload = workload
        self.rng: random.Random = workload.world.rng_for(name)
        self.clock: Clock = SimulatedClock(workload.world.loop)
        self.connection_count = 0
        self._network: Network = workload.world.network.host(name)

    async def pause(self, seconds_max: float) -> None:
        await asyncio.sleep(self.rng.uniform(0.0, seconds_max))

    async def connect(self) -> Link | None:
        """Try until it succeeds; None when the run is over before."""
        while not self.workload.is_over:
            try:
                link = await open_link(self._network, self.name, self.workload.address)
            except LinkLost:
                await self.pause(0.5)
            else:
                self.connection_count += 1
                return link
        return None

    def number_of(self, link: Link) -> int:
        """Which of this client's connections it is."""
        del link  # it has one at a time
        return self.connection_count

    def asks_former(self, group: str) -> bool:
        """Whether somebody else looks after the group than who is asked, and who may not have heard of it."""
        del group  # a single node has no successor
        return False

    def draw_version(self, link: Link, api: Api[Q, R]) -> int:
        """Any version both sides speak, the newest more often than the others."""
        newest = link.newest_version(api)
        if self.rng.random() < 0.5:
            return newest
        return self.rng.randrange(api.version_min, newest + 1)
