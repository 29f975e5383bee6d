"""Carries the outbox out: one pass looks at what may be sent and where, and writes as much as may be on its way.

What a reader could get wrong
    A pass (`_pump`) never waits. Whatever it lacks (a leader, a connection, a producer id) it has fetched in the
    background, one errand per thing, and there is another pass when that is done.
    One request carries at most one batch of a partition, as the protocol wants it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from ropewalk.base.errors import ProtocolError, RopewalkError, TimedOut
from ropewalk.base.ids import NodeId, TopicId, TopicPartition
from ropewalk.client.calls.produce import Acks, Produced, init_producer_id
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.session import Session, version_max_for
from ropewalk.client.errors import LASTING, STALE_METADATA, ConnectionLost, RemoteError, is_retriable
from ropewalk.client.producing.batch import Batch
from ropewalk.client.producing.outbox import Outbox, PartitionQueue
from ropewalk.client.producing.settings import ProducerSettings
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import produce as wire


class Gate(Protocol):
    """Whether a transaction takes in a partition's records; if it must be asked for first, it is."""

    @property
    def transactional_id(self) -> str: ...

    @property
    def produce_version_max(self) -> int | None: ...

    def admits(self, partition: TopicPartition) -> bool: ...


class Sender:
    def __init__(
        self,
        session: Session,
        outbox: Outbox,
        settings: ProducerSettings,
        tasks: Supervisor,
        gate: Gate | None,
    ) -> None:
        self._session = session
        self._outbox = outbox
        self._settings = settings
        self._tasks = tasks
        self._gate = gate
        self._acks: Final = settings.acknowledgement
        self._in_flight: dict[Connection, int] = {}
        self._errands: dict[object, int] = {}
        """What is being fetched in the background, or rests after a failure, and how often it has failed."""
        self._running: set[object] = set()
        self._errand_count = 0
        self._is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False

    def wake(self) -> None:
        """Have a pass soon; asking twice is asking once."""
        if not self._is_scheduled and not self._is_stopped:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _pump(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        now_ms = self._session.clock.monotonic_ms()
        outbox = self._outbox
        outbox.expire(now_ms)
        if outbox.wants_identity:
            if not outbox.is_empty and self._gate is None:
                self._run("identity", self._identify)
        else:
            by_leader: dict[NodeId, deque[PartitionQueue]] = {}
            for queue in outbox.ready(now_ms):
                leader = self._leader(queue.partition)
                if (
                    leader is not None
                    and self._is_ready(queue, now_ms)
                    and (self._gate is None or self._gate.admits(queue.partition))
                ):
                    by_leader.setdefault(leader, deque()).append(queue)
            for leader, queues in by_leader.items():
                self._send_to(leader, queues, now_ms)
        self._set_timer(now_ms)

    def _set_timer(self, now_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at_ms = self._outbox.next_at_ms()
        if at_ms is not None and at_ms > now_ms:
            delay_s = (at_ms - now_ms) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.wake)

    def _leader(self, partition: TopicPartition) -> NodeId | None:
        cluster = self._session.cluster
        topic = cluster.known_topic(partition.topic)
        if topic is None or cluster.is_aged(partition.topic):
            self._run(partition.topic, partial(self._look_up, partition.topic))
        if topic is None:
            return None
        if partition.partition < len(topic.partitions):
            leader = topic.partitions[partition.partition].leader
            if cluster.knows(leader):
                return leader
        self._run(partition, partial(self._find_leader, partition))
        return None

    def _is_ready(self, queue: PartitionQueue, now_ms: float) -> bool:
        """Still, with the topic that is known by now."""
        topic = self._session.cluster.known_topic(queue.partition.topic)
        assert topic is not None, "it has a leader"
        if topic.topic_id == queue.topic_id:
            return True
        self._outbox.on_topic(queue, topic.topic_id)
        return self._outbox.may_send(queue, now_ms)

    def _send_to(self, node: NodeId, queues: deque[PartitionQueue], now_ms: float) -> None:
        connection = self._session.cluster.open_connection(node)
        if connection is None:
            self._run(node, partial(self._reach, node, [queue.partition.topic for queue in queues]))
            return
        while (
            queues
            and self._in_flight.get(connection, 0) < self._settings.max_in_flight
            and connection.is_writable
        ):
            batches: list[Batch] = []
            again: list[PartitionQueue] = []
            size_bytes = 0
            while queues:
                queue = queues[0]
                if self._session.cluster.known_topic(queue.partition.topic) is None:
                    # A request of this very pass has failed, and with it what was known of the topic.
                    queues.popleft()
                    self.wake()
                    continue
                size_bytes += queue.waiting[0].size_bytes
                if batches and size_bytes > self._settings.max_request_size:
                    break
                queues.popleft()
                batches.append(self._outbox.take(queue, now_ms))
                again.append(queue)
            if not batches:
                return
            self._send(connection, batches, now_ms)
            queues.extend(queue for queue in again if self._outbox.may_send(queue, now_ms))

    def _send(self, connection: Connection, batches: Sequence[Batch], now_ms: float) -> None:
        by_topic: dict[str, list[Batch]] = {}
        for batch in batches:
            by_topic.setdefault(batch.partition.topic, []).append(batch)
        views: list[TopicView] = []
        topics: list[wire.TopicProduceData] = []
        for name, of_topic in by_topic.items():
            view = self._session.cluster.known_topic(name)
            assert view is not None, "a batch was taken for a topic that nobody knows"
            views.append(view)
            data = tuple(
                wire.PartitionProduceData(index=batch.partition.partition, records=batch.encoded)
                for batch in of_topic
            )
            topics.append(wire.TopicProduceData(name=name, topic_id=view.topic_id, partitions=data))
        gate = self._gate
        request = wire.ProduceRequest(
            transactional_id=None if gate is None else gate.transactional_id,
            acks=self._acks,
            timeout_ms=self._settings.request_timeout_ms,
            topics=tuple(topics),
        )
        version_max = version_max_for(views)
        if gate is not None and gate.produce_version_max is not None:
            version_max = gate.produce_version_max
        try:
            version = connection.versions.choose(wire.API, version_max=version_max)
            if self._acks is Acks.NONE:
                connection.send_unanswered(wire.API, version, request)
                for batch in batches:
                    self._outbox.on_acknowledged(batch, Produced(-1), now_ms)
                return
            deadline_ms = now_ms + self._settings.request_timeout_ms
            answer = connection.send(wire.API, version, request, deadline_ms=deadline_ms)
        except RopewalkError as error:
            self._fail(batches, error)
            return
        self._in_flight[connection] = self._in_flight.get(connection, 0) + 1
        answer.add_done_callback(partial(self._on_answer, connection, batches, views))

    def _on_answer(
        self,
        connection: Connection,
        batches: Sequence[Batch],
        views: Sequence[TopicView],
        answer: "asyncio.Future[wire.ProduceResponse]",
    ) -> None:
        self._in_flight[connection] -= 1
        if not self._in_flight[connection]:
            del self._in_flight[connection]
        error = answer.exception() if not answer.cancelled() else ConnectionLost("the producer was closed")
        if error is not None:
            assert isinstance(error, RopewalkError), error
            self._fail(batches, error)
        else:
            self._take_in(batches, views, answer.result())
        self.wake()

    def _take_in(
        self, batches: Sequence[Batch], views: Sequence[TopicView], response: wire.ProduceResponse
    ) -> None:
        names = {view.topic_id: view.name for view in views}
        answers = {
            TopicPartition(topic.name or names.get(TopicId(bytes(topic.topic_id)), ""), answer.index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        now_ms = self._session.clock.monotonic_ms()
        for batch in batches:
            answer = answers.get(batch.partition)
            if answer is None:
                self._fail(
                    [batch], ProtocolError(f"Produce was answered without a word about {batch.partition}")
                )
            elif answer.error_code == ErrorCode.NONE:
                produced = Produced(answer.base_offset, answer.log_append_time_ms, answer.log_start_offset)
                self._outbox.on_acknowledged(batch, produced, now_ms)
            else:
                error = RemoteError(answer.error_code, answer.error_message, about=str(batch.partition))
                self._fail([batch], error)

    def _fail(self, batches: Sequence[Batch], error: RopewalkError) -> None:
        now_ms = self._session.clock.monotonic_ms()
        is_stale = not isinstance(error, RemoteError) or error.code in STALE_METADATA
        for batch in batches:
            if is_stale:
                self._session.cluster.forget(batch.partition.topic)
            self._outbox.on_failure(batch, error, now_ms, self._pause_ms(batch.attempt_count))

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
        """Fetch something. After a failure it rests, longer each time; the batches' deadlines end it."""
        try:
            await work()
            self._errands.pop(errand, None)
        except RopewalkError as error:
            # Whoever did not answer in time hangs, perhaps; the next one that is asked may answer.
            may_pass = is_retriable(error) or isinstance(error, TimedOut)
            if (errand == "identity" and not may_pass) or isinstance(error, LASTING):
                self._outbox.give_up_all(error)
            failure_count = self._errands.get(errand, 0) + 1
            self._errands[errand] = failure_count
            await asyncio.sleep(self._pause_ms(failure_count) / 1000)
        finally:
            self._running.discard(errand)
        self.wake()

    async def _identify(self) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        self._outbox.identity = await init_producer_id(self._session, deadline_ms=deadline_ms)

    async def _look_up(self, topic: str) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        await self._session.cluster.topic(
            topic, deadline_ms=deadline_ms, may_create=self._settings.may_create_topics
        )

    async def _find_leader(self, partition: TopicPartition) -> None:
        """That nobody leads it is a failure like others: it is asked for again after a while."""
        cluster = self._session.cluster
        cluster.forget(partition.topic)
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        await cluster.partition(
            partition.topic,
            partition.partition,
            deadline_ms=deadline_ms,
            may_create=self._settings.may_create_topics,
        )

    async def _reach(self, node: NodeId, topics: Sequence[str]) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        try:
            await self._session.cluster.connection(node, deadline_ms=deadline_ms)
        except RopewalkError:
            for topic in topics:  # perhaps somebody else leads by now
                self._session.cluster.forget(topic)
            raise
