"""The client: produce, fetch and look up offsets, by topic and partition.

    async with Client(network, clock, rng, parse_addresses("127.0.0.1:9092")) as client:
        produced = await client.produce("orders", 0, build([record], codec=Codec.NONE))

Every call takes a deadline, an instant of `Clock.monotonic_ms`; without one it has the settings'
`request_timeout_ms` from now.

What a reader could get wrong
    Entering the client connects. A cluster that cannot be reached at all is reported at once; one that was
    reached before is tried again until the deadline.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Self

from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicId, TopicPartition
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.calls import fetch, list_offsets, log_sizes, produce
from ropewalk.client.calls.fetch import Fetched
from ropewalk.client.calls.list_offsets import Isolation, ListedOffset
from ropewalk.client.calls.produce import Acks, Produced
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.cluster import ClusterView, TopicView
from ropewalk.client.connections.session import Session
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.wire.types import Buffer


class Client:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        rng: Rng,
        bootstrap: tuple[Address, ...],
        settings: ClientSettings | None = None,
    ) -> None:
        self.session: Final = Session(network, clock, rng, bootstrap, settings or ClientSettings())

    async def __aenter__(self) -> Self:
        try:
            await self.session.cluster.metadata([], deadline_ms=self.session.deadline_ms())
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Calls still waiting end with `ConnectionLost`."""
        self.session.cluster.close()

    async def metadata(
        self, topics: Iterable[str] | None = None, *, deadline_ms: float | None = None
    ) -> ClusterView:
        """Brokers and topics, all of them by default, asked for now and not from memory."""
        names = None if topics is None else tuple(topics)
        until_ms = self._until(deadline_ms)
        return await self.session.attempt(
            (), lambda: self.session.cluster.metadata(names, deadline_ms=until_ms), deadline_ms=until_ms
        )

    async def topic(
        self, name: str, *, may_create: bool = False, deadline_ms: float | None = None
    ) -> TopicView:
        """A topic that exists, with its partitions, from memory where that is fresh."""
        until_ms = self._until(deadline_ms)
        return await self.session.attempt(
            (name,),
            lambda: self.session.cluster.topic(name, deadline_ms=until_ms, may_create=may_create),
            deadline_ms=until_ms,
            may_create=may_create,
        )

    async def produce(
        self,
        topic: str,
        partition: int,
        batch: Buffer,
        *,
        acks: Acks = Acks.ALL,
        may_create: bool = True,
        deadline_ms: float | None = None,
    ) -> Produced:
        """Send one record batch to one partition; see `client.produce` for what is sent twice."""
        return await produce.produce(
            self.session,
            topic,
            partition,
            batch,
            acks=acks,
            may_create=may_create,
            deadline_ms=self._until(deadline_ms),
        )

    async def init_producer_id(self, *, deadline_ms: float | None = None) -> tuple[ProducerId, ProducerEpoch]:
        return await produce.init_producer_id(self.session, deadline_ms=self._until(deadline_ms))

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        wait_ms: int | None = None,
        bytes_min: int = 1,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        topic_ids: Mapping[str, TopicId] | None = None,
        deadline_ms: float | None = None,
    ) -> list[Fetched]:
        """One round of fetching from each position; waits up to `wait_ms` for `bytes_min` to be there.

        `topic_ids` are those of the topics that the positions belong to, as far as they are known.
        """
        return await fetch.fetch(
            self.session,
            positions,
            wait_ms=self.session.settings.fetch_max_wait_ms if wait_ms is None else wait_ms,
            bytes_min=bytes_min,
            isolation=isolation,
            deadline_ms=self._until(deadline_ms),
            topic_ids=topic_ids or {},
        )

    async def list_offsets(
        self,
        topic: str,
        queries: Mapping[int, int],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        deadline_ms: float | None = None,
    ) -> dict[int, ListedOffset]:
        """For each partition the first offset whose timestamp is not before the one given, or an `OffsetQuery`."""
        return await list_offsets.list_offsets(
            self.session, topic, queries, isolation=isolation, deadline_ms=self._until(deadline_ms)
        )

    async def log_sizes(
        self, partitions: Iterable[TopicPartition], *, deadline_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Bytes of each in the log, as far as brokers say."""
        return await log_sizes.log_sizes(self.session, partitions, deadline_ms=self._until(deadline_ms))

    async def list_known_offsets(
        self,
        queries: Mapping[TopicPartition, int],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        deadline_ms: float | None = None,
        without_the_silent: bool = False,
    ) -> dict[TopicPartition, ListedOffset]:
        """As `list_offsets`, over topics; a partition that is gone or that nobody leads is left out, and where that is wanted one whose
        leader does not answer in time."""
        return await list_offsets.list_known(
            self.session,
            queries,
            isolation=isolation,
            deadline_ms=self._until(deadline_ms),
            without_the_silent=without_the_silent,
        )

    def _until(self, deadline_ms: float | None) -> float:
        return self.session.deadline_ms() if deadline_ms is None else deadline_ms
