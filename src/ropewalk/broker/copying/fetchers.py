"""Everything that this node copies from others: a fetcher for every node that leads something it follows.

`follow` keeps them in step with the partitions; `run` lets them work.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ropewalk.base import metrics
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId
from ropewalk.base.limits import CATCH_UP_BYTES_PER_SECOND, PARTITIONS_PER_TURN, REPLICA_HURRY_MS_MAX
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.copying.fetcher import Fetcher, Work
from ropewalk.broker.partitions.catch_up import CatchUpBudget
from ropewalk.broker.partitions.cutting import Cutting
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.partitions.replica import Replica
from ropewalk.broker.peers.calls.fetch import Fetched, ReplicaFetch, fetch
from ropewalk.broker.peers.calls.hurry_fetch import hurry_fetch
from ropewalk.broker.peers.peers import PeerLinks
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import Fact, PartitionChanged, PartitionCreated, TopicDeleted
from ropewalk.metadata.settings.applied import AppliedSettings, BrokerSettings
from ropewalk.replication.follower import Restart, Truncate
from ropewalk.runtime.bell import Bell
from ropewalk.runtime.steps import Pace


class Fetchers:
    def __init__(
        self,
        node_id: NodeId,
        *,
        image: Image,
        settings: AppliedSettings,
        partitions: Partitions,
        disk: Home,
        links: PeerLinks,
        pool: Pool,
        clock: Clock,
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.commits = disk.commits
        self.budget = CatchUpBudget(CATCH_UP_BYTES_PER_SECOND)
        self._image = image
        self._settings = settings
        self._partitions = partitions
        self._links = links
        self._cutting = Cutting(partitions.log_work, pool, clock)
        self._by_leader: dict[NodeId, Fetcher] = {}
        self._leaders: dict[tuple[TopicId, int], NodeId] = {}
        """From whom each partition is copied."""
        self._told_epoch = -1
        self._works: deque[Work] = deque()
        self._wake = Bell()

    @property
    def settings(self) -> BrokerSettings:
        return self._settings.of_broker

    @property
    def broker_epoch(self) -> int:
        own = self._image.brokers.get(self.node_id)
        return -1 if own is None else own.epoch

    def counts_on(self, topic_id: TopicId, index: int) -> bool:
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            return True
        partition = topic.partitions[index]
        return self.node_id in partition.isr or self.node_id in partition.eligible

    def collect(self, sheet: Sheet) -> Iterator[None]:
        fetchers = list(self._by_leader.values())
        sheet.add(metrics.REPLICAS_FOLLOWED, sum(map(len, fetchers)))
        sheet.add(metrics.REPLICA_LAG_MAX, max((fetcher.lag_max for fetcher in fetchers), default=0))
        sheet.add(metrics.REPLICA_COPIED, sum(fetcher.copied_bytes for fetcher in fetchers))
        yield

    async def follow(
        self, records: Sequence[Fact] | None, opened: Sequence[tuple[TopicId, int]] = ()
    ) -> None:
        """The partitions have followed these records, and opened these; with None, look at all of them.

        What found no room at first is opened long after the records that named it.
        """
        rate = min(CATCH_UP_BYTES_PER_SECOND, self.settings.follower_replication_throttled_rate)
        self.budget.bytes_per_second = rate
        if records is None:
            keys = {(each.topic_id, each.name.partition): None for each in self._partitions.all_followed()}
        else:
            keys = dict.fromkeys([*opened, *self._touched(records)])
        pace = Pace(PARTITIONS_PER_TURN)
        for topic_id, index in keys:
            await pace.next()
            self._follow_one(topic_id, index)
        if (
            self.broker_epoch != self._told_epoch
        ):  # whom leaders have not heard of in this epoch, they let nobody count on
            self._told_epoch = self.broker_epoch
            for fetcher in self._by_leader.values():
                fetcher.hurry()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                while self._works:
                    group.create_task(self._works.popleft()())
                await self._wake.wait()

    def begin(self, work: Work) -> None:
        self._works.append(work)
        self._wake.ring()

    async def fetch(
        self, leader: NodeId, asked: ReplicaFetch, *, deadline_ms: float
    ) -> Fetched | RopewalkError:
        return await fetch(asked).at(self._links, leader, deadline_ms=deadline_ms)

    async def hurry(self, leader: NodeId, session_id: int, session_epoch: int) -> None:
        deadline_ms = self.clock.monotonic_ms() + REPLICA_HURRY_MS_MAX
        with suppress(
            RopewalkError
        ):  # a node of the version before, or one that is gone: the fetch says so itself
            await hurry_fetch(session_id, session_epoch).at(self._links, leader, deadline_ms=deadline_ms)

    async def cut(self, replica: Replica, effect: Truncate | Restart, *, leader_epoch: LeaderEpoch) -> None:
        home = self._partitions.home_of(replica)
        cut = self._cutting.cut_back if isinstance(effect, Truncate) else self._cutting.begin_anew
        try:
            await cut(replica, home, effect.offset, leader_epoch=leader_epoch)
        finally:  # it may be copied from another node by now, whose fetcher has held back
            leader = self._leaders.get((replica.topic_id, replica.name.partition))
            if leader is not None:
                self._by_leader[leader].hurry()

    async def move_start(self, replica: Replica, offset: Offset) -> None:
        await self._partitions.trim(replica, offset)

    def _touched(self, records: Sequence[Fact]) -> Iterator[tuple[TopicId, int]]:
        for record in records:
            if isinstance(record, PartitionCreated | PartitionChanged):
                yield record.topic_id, record.index
            elif isinstance(record, TopicDeleted):
                yield from [key for key in self._leaders if key[0] == record.topic_id]

    def _follow_one(self, topic_id: TopicId, index: int) -> None:
        key = topic_id, index
        replica = self._partitions.followed(topic_id, index)
        leader = None if replica is None else replica.leader
        former = self._leaders.get(key)
        if former is not None and former != leader:
            self._by_leader[former].leave(key)
            del self._leaders[key]
        if replica is None or leader is None:
            return
        self._leaders[key] = leader
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = Fetcher(leader, self)
            self.begin(fetcher.run)
        topic = self._image.topics_by_id.get(topic_id)
        is_in_sync = topic is not None and self.node_id in topic.partitions[index].isr
        fetcher.follow(key, replica, is_in_sync=is_in_sync)
