"""The cluster as a client sees it: brokers, topics, leaders, and a connection to each broker it talks to.

Metadata is asked for when something is missing, when it has aged, and when a broker's answer shows that it
is out of date (`forget`). Any broker can be asked: first those already connected, then those known, then
the bootstrap addresses, which therefore matter only until the first answer and when all else fails.

What a reader could get wrong
    Each broker has lanes. Long polls, and joining a group, which waits for others, go through connections of their own,
    since a broker answers in order.
    A topic's leader epoch never goes back: an answer from a broker that lags behind does not replace a
    newer leader.
"""

from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.ids import TOPIC_ID_NONE, LeaderEpoch, NodeId, TopicId
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connecting import connector
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.connections.single_flight import SingleFlight
from ropewalk.client.errors import RemoteError, Unreachable
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import metadata

BOOTSTRAP: Final = NodeId(-1)
"""A broker whose node id is not known yet."""


class Broker(Struct, frozen=True, gc=False):
    node_id: NodeId
    address: Address
    rack: str | None = None


class PartitionView(Struct, frozen=True, gc=False):
    index: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    offline_replicas: tuple[NodeId, ...]
    error_code: int


class TopicView(Struct, frozen=True, gc=False):
    name: str
    topic_id: TopicId
    is_internal: bool
    partitions: tuple[PartitionView, ...]
    """In the order of their indexes."""
    error_code: int = 0


class ClusterView(Struct, frozen=True, gc=False):
    """One Metadata answer."""

    cluster_id: str | None
    controller: NodeId | None
    brokers: tuple[Broker, ...]
    topics: tuple[TopicView, ...]


class Lane(Enum):
    CALLS = "calls"
    POLLS = "polls"
    JOINS = "joins"


class Cluster:
    """What is known, and the connections. Owned by one `Client`."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        rng: Rng,
        bootstrap: tuple[Address, ...],
        settings: ClientSettings,
    ) -> None:
        assert bootstrap, "a cluster needs an address to start from"
        self._open = connector(network, clock, rng, settings.security)
        self._clock = clock
        self._rng = rng
        self._bootstrap = bootstrap
        self._settings = settings
        self._brokers: dict[NodeId, Broker] = {}
        self._controller: NodeId | None = None
        self._topics: dict[str, _Remembered] = {}
        self._connections: dict[tuple[Address, Lane], Connection] = {}
        self._connecting: SingleFlight[tuple[Address, Lane], Connection] = SingleFlight()
        self._refreshing: SingleFlight[tuple[str, bool], TopicView] = SingleFlight()

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """Where the client began."""
        return self._bootstrap

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def metadata(
        self, topics: Iterable[str] | None, *, deadline_ms: float, may_create: bool = False
    ) -> ClusterView:
        """Ask a broker, and remember the answer. `None` asks for all topics, an empty list for none.

        A topic's own error is in its `error_code`; this raises only when no broker answers.
        """
        wanted = (
            None if topics is None else tuple(metadata.MetadataRequestTopic(name=name) for name in topics)
        )
        request = metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=may_create)
        connection = await self.any_connection(deadline_ms=deadline_ms)
        response = await connection.call(metadata.API, request, deadline_ms=deadline_ms)
        view = _view(response)
        self._remember(view)
        return view

    async def topic(self, name: str, *, deadline_ms: float, may_create: bool = False) -> TopicView:
        """From memory where that is fresh enough. Raises `RemoteError` where the topic itself is in error."""
        remembered = self._topics.get(name)
        age_ms_max = self._settings.metadata_max_age_ms
        if remembered is not None and self._clock.monotonic_ms() - remembered.at_ms < age_ms_max:
            return remembered.view

        async def ask() -> TopicView:
            view = await self.metadata([name], deadline_ms=deadline_ms, may_create=may_create)
            for topic in view.topics:
                if topic.name == name:
                    # What is remembered may know a newer leader than the broker that was asked.
                    return self._topics[name].view if topic.error_code == ErrorCode.NONE else topic
            return TopicView(name, TOPIC_ID_NONE, False, (), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

        topic = await self._refreshing.run((name, may_create), ask)
        if topic.error_code != ErrorCode.NONE:
            raise RemoteError(topic.error_code, about=name)
        return topic

    def known_topic(self, name: str) -> TopicView | None:
        """From memory alone: None where nothing is known, or what was known has been proved wrong."""
        remembered = self._topics.get(name)
        return None if remembered is None or remembered.at_ms == -inf else remembered.view

    def is_aged(self, name: str) -> bool:
        """Whether what is known of a topic is so old that it should be asked for again."""
        remembered = self._topics.get(name)
        age_ms_max = self._settings.metadata_max_age_ms
        return remembered is None or self._clock.monotonic_ms() - remembered.at_ms >= age_ms_max

    def forget(self, topic: str) -> None:
        """What is known of `topic` was proved wrong: the next look-up asks. Its leader epochs stay known."""
        remembered = self._topics.get(topic)
        if remembered is not None:
            self._topics[topic] = _Remembered(remembered.view, -inf)

    async def partition(
        self, topic: str, index: int, *, deadline_ms: float, may_create: bool = False
    ) -> tuple[TopicView, PartitionView]:
        """A partition that has a leader. Raises `RemoteError` when there is none, or no such partition."""
        view = await self.topic(topic, deadline_ms=deadline_ms, may_create=may_create)
        about = f"{topic}-{index}"
        if not 0 <= index < len(view.partitions):
            text = f"the topic has {len(view.partitions)} partitions, counted from 0"
            raise RemoteError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text, about=about)
        partition = view.partitions[index]
        if partition.leader not in self._brokers:
            raise RemoteError(ErrorCode.LEADER_NOT_AVAILABLE, about=about)
        return view, partition

    def knows(self, node: NodeId) -> bool:
        """Whether the latest metadata has an address for `node`."""
        return node in self._brokers

    async def connection(self, node: NodeId, *, deadline_ms: float, lane: Lane = Lane.CALLS) -> Connection:
        """An open connection to `node`, made if there is none."""
        broker = self._brokers.get(node)
        if broker is None:
            raise RemoteError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node} is not in the cluster's metadata"
            )
        return await self._connect(broker.address, lane, deadline_ms)

    def open_connection(self, node: NodeId, lane: Lane = Lane.CALLS) -> Connection | None:
        """The connection to `node` if there is one that is open."""
        broker = self._brokers.get(node)
        connection = None if broker is None else self._connections.get((broker.address, lane))
        return connection if connection is not None and connection.is_open else None

    async def controller_connection(self, *, deadline_ms: float) -> Connection:
        """To the controller if it is known, else to anyone: every broker of ours forwards what is not its own."""
        if self._controller is not None and self._controller in self._brokers:
            return await self.connection(self._controller, deadline_ms=deadline_ms)
        return await self.any_connection(deadline_ms=deadline_ms)

    async def connection_to(self, address: Address, *, deadline_ms: float) -> Connection:
        """To an address that somebody has named, whether or not the cluster tells clients of it."""
        return await self._connect(address, Lane.CALLS, deadline_ms)

    async def any_connection(self, *, deadline_ms: float) -> Connection:
        for (_, lane), connection in self._connections.items():
            if lane is Lane.CALLS and connection.is_open:
                return connection
        failures: list[Unreachable] = []
        for address in self._candidates():
            try:
                return await self._connect(address, Lane.CALLS, deadline_ms)
            except Unreachable as error:
                failures.append(error)
            if self._clock.monotonic_ms() >= deadline_ms:
                break
        raise _joined(failures)

    def _candidates(self) -> list[Address]:
        """Everyone we know, in random order, so that a fleet of clients does not pick on one broker."""
        known = [broker.address for broker in self._brokers.values()]
        ordered: dict[Address, None] = {}
        for group in (known, list(self._bootstrap)):
            while group:
                ordered[group.pop(self._rng.randrange(0, len(group)))] = None
        return list(ordered)

    async def _connect(self, address: Address, lane: Lane, deadline_ms: float) -> Connection:
        connection = self._connections.get((address, lane))
        if connection is not None and connection.is_open:
            return connection

        async def open_connection() -> Connection:
            limit_ms = self._clock.monotonic_ms() + self._settings.connect_timeout_ms
            made = await self._open(
                address, client_id=self._settings.client_id, deadline_ms=min(deadline_ms, limit_ms)
            )
            self._connections[address, lane] = made
            return made

        return await self._connecting.run((address, lane), open_connection)

    def _remember(self, view: ClusterView) -> None:
        now_ms = self._clock.monotonic_ms()
        self._brokers = {broker.node_id: broker for broker in view.brokers}
        self._controller = view.controller
        for topic in view.topics:
            if topic.error_code != ErrorCode.NONE:
                self._topics.pop(topic.name, None)
            else:
                former = self._topics.get(topic.name)
                self._topics[topic.name] = _Remembered(
                    _newest(former.view if former else None, topic), now_ms
                )


class _Remembered(Struct, frozen=True):
    view: TopicView
    at_ms: float


def _newest(former: TopicView | None, latter: TopicView) -> TopicView:
    """Per partition the view with the higher leader epoch, as long as it is known to be the same topic."""
    if former is None or former.topic_id != latter.topic_id or latter.topic_id == TOPIC_ID_NONE:
        return latter
    known = {partition.index: partition for partition in former.partitions}
    merged = tuple(
        known[partition.index]
        if partition.index in known and known[partition.index].leader_epoch > partition.leader_epoch
        else partition
        for partition in latter.partitions
    )
    return TopicView(latter.name, latter.topic_id, latter.is_internal, merged)


def _view(response: metadata.MetadataResponse) -> ClusterView:
    brokers = tuple(
        Broker(NodeId(broker.node_id), Address(broker.host, broker.port), broker.rack)
        for broker in response.brokers
    )
    controller = NodeId(response.controller_id) if response.controller_id >= 0 else None
    return ClusterView(response.cluster_id, controller, brokers, tuple(map(_topic_view, response.topics)))


def _topic_view(topic: metadata.MetadataResponseTopic) -> TopicView:
    partitions = sorted(
        (
            PartitionView(
                index=partition.index,
                leader=NodeId(partition.leader_id),
                leader_epoch=LeaderEpoch(partition.leader_epoch),
                replicas=tuple(map(NodeId, partition.replica_nodes)),
                isr=tuple(map(NodeId, partition.isr_nodes)),
                offline_replicas=tuple(map(NodeId, partition.offline_replicas)),
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ),
        key=lambda partition: partition.index,
    )
    return TopicView(
        topic.name or "",
        TopicId(bytes(topic.topic_id)),
        topic.is_internal,
        tuple(partitions),
        topic.error_code,
    )


def _joined(failures: list[Unreachable]) -> RopewalkError:
    """One failure as it is; several in one line, each with its own reason."""
    if not failures:
        return TimedOut("no time was left to try a broker")
    if len(failures) == 1:
        return failures[0]
    reasons = {failure.reason for failure in failures}
    addresses = ", ".join(failure.address for failure in failures)
    if len(reasons) == 1:
        return Unreachable(addresses, f"{reasons.pop()} at each of them")
    return Unreachable(addresses, "; ".join(f"{failure.address} {failure.reason}" for failure in failures))
