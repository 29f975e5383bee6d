"""Keeps records at hand: fetches ahead of what is consumed, one request to each leader at a time.

What a reader could get wrong
    Nothing here waits. `start` sends what can be sent and begins errands for what is missing; `on_news` is called when
    something has come.
    Of each partition at most two answers lie ready, and no more than `fetch_max_bytes` in all: who does not poll does not fill
    memory.
    An answer belongs to the position it was asked for. If the position was changed meanwhile the answer is dropped.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicId, TopicPartition
from ropewalk.base.limits import CLIENT_CHUNKS_AHEAD, CLIENT_FETCH_SHORT_WAIT_MS
from ropewalk.client.cluster import Lane, TopicView
from ropewalk.client.connection import Connection
from ropewalk.client.consuming.assignment import Assignment, Held
from ropewalk.client.consuming.chunk import Chunk
from ropewalk.client.consuming.message import Message
from ropewalk.client.consuming.settings import ConsumerSettings
from ropewalk.client.errors import STALE_METADATA, ConnectionLost, RemoteError, is_retriable
from ropewalk.client.session import Session, version_max_for
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch as wire

_SESSIONLESS: Final = -1
_LATE_MS: Final = 30_000
"""How much longer than it was told to wait a broker may take to answer."""


class _Asked(Struct, frozen=True):
    held: Held
    version: int
    offset: int
    topic: TopicView
    leader_epoch: int


class Fetcher:
    def __init__(
        self,
        session: Session,
        assignment: Assignment,
        settings: ConsumerSettings,
        tasks: Supervisor,
        on_news: Callable[[], None],
        on_out_of_range: Callable[[Held], None],
    ) -> None:
        self._session = session
        self._assignment = assignment
        self._settings = settings
        self._tasks = tasks
        self._on_news = on_news
        self._on_out_of_range = on_out_of_range
        self._ready: dict[TopicPartition, deque[tuple[int, Chunk]]] = {}
        """For each partition the chunks at hand, each with the version of the position it belongs to."""
        self._ready_bytes = 0
        self._asking: set[NodeId] = set()
        self._asked: set[TopicPartition] = set()
        self._running: set[object] = set()
        self._failures: dict[object, int] = {}
        self._errand_count = 0
        self._error: RopewalkError | None = None
        self._is_stopped = False
        self.ends: dict[TopicPartition, int] = {}
        """Where each partition ended when it last answered: for lag."""

    def stop(self) -> None:
        self._is_stopped = True

    def take(self, count_max: int) -> list[Message]:
        """What is at hand, up to so many, partition by partition in turn. Positions move past what is returned."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        taken: list[Message] = []
        for partition in list(self._ready):
            held = self._assignment.get(partition)
            chunks = self._ready[partition]
            if held is not None and held.is_paused:
                continue
            while chunks and len(taken) < count_max:
                version, chunk = chunks[0]
                if held is None or held.version != version:
                    self._drop(chunks)
                    continue
                taken += chunk.take(count_max - len(taken))
                held.position = chunk.position
                held.leader_epoch = chunk.leader_epoch
                if chunk.is_empty:
                    self._drop(chunks)
            if not chunks:
                del self._ready[partition]
            else:
                self._ready[partition] = self._ready.pop(partition)  # the others come first next time
            if len(taken) >= count_max:
                break
        return taken

    def start(self) -> None:
        """Ask every leader that is not being asked for what is wanted of it."""
        if self._is_stopped or self._ready_bytes >= self._settings.fetch_max_bytes:
            return
        by_leader: dict[NodeId, list[_Asked]] = {}
        full: set[NodeId] = set()
        """Leaders of partitions that are left out, because enough of them lies ready."""
        for held in self._assignment.all():
            if self._is_full(held):
                full |= self._leader_of(held.partition)
                continue
            asked = self._wanted(held)
            if asked is not None:
                leader = asked.topic.partitions[held.partition.partition].leader
                if leader not in self._asking:
                    by_leader.setdefault(leader, []).append(asked)
        for leader, wanted in by_leader.items():
            connection = self._session.cluster.open_connection(leader, Lane.POLLS)
            if connection is None:
                self._run(leader, partial(self._reach, leader, [each.topic.name for each in wanted]))
            elif connection.is_writable:
                self._ask(leader, connection, wanted, is_short=leader in full)

    def forget(self, partition: TopicPartition) -> None:
        """It is no longer read: what is at hand of it is dropped."""
        chunks = self._ready.pop(partition, None)
        while chunks:
            self._drop(chunks)

    def _drop(self, chunks: deque[tuple[int, Chunk]]) -> None:
        _, chunk = chunks.popleft()
        self._ready_bytes -= chunk.size_bytes

    def _is_full(self, held: Held) -> bool:
        return not held.is_paused and len(self._ready.get(held.partition, ())) >= CLIENT_CHUNKS_AHEAD

    def _leader_of(self, partition: TopicPartition) -> set[NodeId]:
        """Nobody where that is not known."""
        topic = self._session.cluster.known_topic(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return set()
        return {topic.partitions[partition.partition].leader}

    def _wanted(self, held: Held) -> _Asked | None:
        partition = held.partition
        if held.position is None or held.is_paused or partition in self._asked:
            return None
        cluster = self._session.cluster
        topic = cluster.known_topic(partition.topic)
        if topic is None or cluster.is_aged(partition.topic):
            self._run(partition.topic, partial(self._look_up, partition.topic))
        if topic is None:
            return None
        if partition.partition >= len(topic.partitions) or not cluster.knows(
            topic.partitions[partition.partition].leader
        ):
            cluster.forget(partition.topic)
            self._run(partition.topic, partial(self._look_up, partition.topic))
            return None
        epoch = topic.partitions[partition.partition].leader_epoch
        return _Asked(held, held.version, held.fetch_offset, topic, epoch)

    def _ask(self, node: NodeId, connection: Connection, wanted: Sequence[_Asked], *, is_short: bool) -> None:
        by_topic: dict[str, list[_Asked]] = {}
        for asked in wanted:
            by_topic.setdefault(asked.topic.name, []).append(asked)
        settings = self._settings
        wait_ms = min(settings.fetch_max_wait_ms, CLIENT_FETCH_SHORT_WAIT_MS if is_short else 1 << 30)
        request = wire.FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=settings.isolation,
            session_epoch=_SESSIONLESS,
            topics=tuple(
                wire.FetchTopic(
                    name=name,
                    topic_id=of_topic[0].topic.topic_id,
                    partitions=tuple(
                        wire.FetchPartition(
                            index=asked.held.partition.partition,
                            current_leader_epoch=asked.leader_epoch,
                            fetch_offset=asked.offset,
                            partition_max_bytes=settings.max_partition_fetch_bytes,
                        )
                        for asked in of_topic
                    ),
                )
                for name, of_topic in by_topic.items()
            ),
            rack_id=settings.client_rack,
        )
        version_max = version_max_for(asked.topic for asked in wanted)
        deadline_ms = self._session.deadline_ms(settings.fetch_max_wait_ms + _LATE_MS)
        try:
            version = connection.versions.choose(wire.API, version_max=version_max)
            answer = connection.send(wire.API, version, request, deadline_ms=deadline_ms)
        except ConnectionLost:
            return  # the next `start` makes another connection
        self._asking.add(node)
        self._asked |= {asked.held.partition for asked in wanted}
        answer.add_done_callback(partial(self._on_answer, node, wanted))

    def _on_answer(
        self, node: NodeId, wanted: Sequence[_Asked], answer: "asyncio.Future[wire.FetchResponse]"
    ) -> None:
        self._asked -= {asked.held.partition for asked in wanted}
        error = answer.exception() if not answer.cancelled() else ConnectionLost("the consumer was closed")
        if self._is_stopped:
            self._asking.discard(node)
            return
        if error is None and answer.result().error_code != ErrorCode.NONE:
            error = RemoteError(answer.result().error_code, about="Fetch")
        if error is not None:
            assert isinstance(error, RopewalkError), error
            for asked in wanted:
                self._session.cluster.forget(asked.topic.name)
            self._rest(node, error)
            return
        self._asking.discard(node)
        failed = self._take_in(wanted, answer.result())
        if failed is not None:
            # A broker answers at once when a partition is in error: without a pause we would ask in a circle.
            self._asking.add(node)
            self._rest(node, failed)
        else:
            self._failures.pop(node, None)
            self.start()
        self._on_news()

    def _take_in(self, wanted: Sequence[_Asked], response: wire.FetchResponse) -> RopewalkError | None:
        """Keep what came; the error of a partition whose leader is elsewhere, if there is one."""
        names = {asked.topic.topic_id: asked.topic.name for asked in wanted}
        by_partition = {asked.held.partition: asked for asked in wanted}
        stale: RopewalkError | None = None
        for topic in response.topics:
            name = topic.name or names.get(TopicId(bytes(topic.topic_id)), "")
            for answer in topic.partitions:
                asked = by_partition.get(TopicPartition(name, answer.index))
                if asked is None or not self._is_current(asked):
                    continue
                if answer.error_code == ErrorCode.NONE:
                    self._keep(asked, answer)
                    continue
                error = RemoteError(answer.error_code, about=str(asked.held.partition))
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    if asked.offset == asked.held.position:
                        self._on_out_of_range(asked.held)
                elif error.code in STALE_METADATA or is_retriable(error):
                    self._session.cluster.forget(name)
                    stale = error
                else:
                    self._error = error
                    stale = error
        return stale

    def _is_current(self, asked: _Asked) -> bool:
        held = self._assignment.get(asked.held.partition)
        return held is asked.held and held.version == asked.version

    def _keep(self, asked: _Asked, answer: wire.PartitionData) -> None:
        partition, held = asked.held.partition, asked.held
        is_committed = self._settings.isolation_level == "read_committed"
        self.ends[partition] = answer.last_stable_offset if is_committed else answer.high_watermark
        if not answer.records:
            return
        try:
            chunk = Chunk(
                partition,
                answer.records,
                fetch_offset=asked.offset,
                aborted=[(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
                if is_committed
                else (),
                checks_crcs=self._settings.check_crcs,
            )
        except RopewalkError as error:  # what cannot be read is the caller's to hear of
            self._error = error
            return
        if chunk.end_offset > asked.offset:
            held.fetch_offset = chunk.end_offset
            self._ready.setdefault(partition, deque()).append((asked.version, chunk))
            self._ready_bytes += chunk.size_bytes

    def _rest(self, node: NodeId, error: RopewalkError) -> None:
        """Leave the broker alone for a while."""
        count = self._failures[node] = self._failures.get(node, 0) + 1
        del error

        def again() -> None:
            self._asking.discard(node)
            self.start()

        asyncio.get_running_loop().call_later(self._pause_ms(count) / 1000, again)

    def _pause_ms(self, failure_count: int) -> float:
        settings = self._settings
        grown_ms = settings.retry_backoff_ms * 2.0 ** min(failure_count - 1, 20)
        return min(grown_ms, settings.retry_backoff_max_ms) * self._session.rng.uniform(0.8, 1.2)

    def _run(self, errand: object, work: Callable[[], Awaitable[None]]) -> None:
        if errand not in self._running and not self._is_stopped:
            self._running.add(errand)
            self._errand_count += 1
            self._tasks.start(f"errand {self._errand_count} {errand!r}", self._errand(errand, work))

    async def _errand(self, errand: object, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
            self._failures.pop(errand, None)
        except RopewalkError as error:
            if not is_retriable(error):
                self._error = error
                self._on_news()
            count = self._failures[errand] = self._failures.get(errand, 0) + 1
            await asyncio.sleep(self._pause_ms(count) / 1000)
        finally:
            self._running.discard(errand)
        self.start()

    async def _look_up(self, topic: str) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        await self._session.cluster.topic(topic, deadline_ms=deadline_ms)

    async def _reach(self, node: NodeId, topics: Sequence[str]) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        try:
            await self._session.cluster.connection(node, deadline_ms=deadline_ms, lane=Lane.POLLS)
        except RopewalkError:
            for topic in topics:
                self._session.cluster.forget(topic)
            raise
