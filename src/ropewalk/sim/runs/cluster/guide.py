"""A client's way about the cluster: who leads what, and one connection to each node.

As Kafka's own clients it never goes back: of what it is told about a leader only the newest epoch counts.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Network
from ropewalk.sim.clients.link import Link, LinkLost, open_link
from ropewalk.sim.clients.workload import Caller, Workload
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import metadata

KAFKA_PORT: Final = 9092

ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Ask again who leads."""


class Guide(Caller):
    """One client of a cluster."""

    def __init__(self, workload: Workload, name: str, node_names: list[str]) -> None:
        super().__init__(workload, name)
        self._node_names = node_names
        self._hosts: Network = workload.world.network.host(name)
        self._links: dict[str, tuple[int, Link]] = {}
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}
        self._is_stale = True

    def number_of(self, link: Link) -> int:
        return next((number for number, known in self._links.values() if known is link), 0)

    def leader_of(self, partition: TopicPartition) -> tuple[int, int] | None:
        """Its epoch and who it is (-1 for nobody), as far as is known."""
        return self._leaders.get(partition)

    def doubt(self) -> None:
        """What is known of leaders may be out of date."""
        self._is_stale = True

    async def connect(self) -> Link | None:
        """To any node; None when the run is over before."""
        while not self.workload.is_over:
            try:
                return await self._open(self.rng.choice(self._node_names))
            except LinkLost:
                await self.pause(0.3)
        return None

    async def connect_to(self, node_id: int | None) -> Link:
        """To that node, or to any. Raises `LinkLost` where it cannot be reached."""
        return await self._open(self.rng.choice(self._node_names) if node_id is None else f"node{node_id}")

    async def connect_to_leader(self, partition: TopicPartition) -> Link:
        """Raises `LinkLost` where nobody leads or it cannot be reached."""
        if self._is_stale or partition not in self._leaders:
            await self._ask()
        _, leader = self._leaders.get(partition, (-1, -1))
        if leader < 0:
            self.doubt()
            raise LinkLost(f"nobody leads {partition}")
        try:
            return await self._open(f"node{leader}")
        except LinkLost:
            self.doubt()
            raise

    async def work(self, step: Callable[[], Awaitable[None]], *, pause_s: float) -> None:
        """One step after the other until the run is over; where a connection is lost, somebody else may lead by now."""
        while not self.workload.is_over:
            try:
                await step()
            except LinkLost:
                self.doubt()
                await self.pause(0.3)
            await self.pause(pause_s)
        self.close()

    def close(self) -> None:
        for _, link in self._links.values():
            link.close()

    async def _ask(self) -> None:
        link = await self._open(self.rng.choice(self._node_names))
        request = metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        response = await link.send(metadata.API, link.newest_version(metadata.API), request)
        for topic in response.topics:
            name = self.workload.topics.find_name(bytes(topic.topic_id))
            if name is None:
                continue
            for told in topic.partitions:
                partition = TopicPartition(name, told.index)
                former = self._leaders.get(partition)
                if former is None or told.leader_epoch >= former[0]:
                    self._leaders[partition] = (told.leader_epoch, told.leader_id)
                    if former is not None and told.leader_id not in (-1, former[1]):
                        self.workload.sometimes.note("a client was sent to another leader")
        self._is_stale = False

    async def _open(self, node_name: str) -> Link:
        _, link = self._links.get(node_name, (0, None))
        if link is not None and link.is_open:
            return link
        link = await open_link(self._hosts, self.name, (node_name, KAFKA_PORT))
        self.connection_count += 1
        self._links[node_name] = (self.connection_count, link)
        return link
