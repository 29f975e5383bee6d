"""Keeps records at hand: fetches ahead of what is consumed, one request to each node at a time.

What a reader could get wrong
    Nothing here waits. `start` sends what can be sent and begins errands for what is missing; `on_news` is called when
    something has come.
    Of each partition at most two answers lie ready, and no more than `fetch_max_bytes` in all: who does not poll does not fill
    memory.
    An answer belongs to the position it was asked for. If the position was changed meanwhile the answer is dropped.
    What was refused is not asked for again at once: the partition rests, longer each time, and the others go on.
    A partition that cannot be read on (a batch that cannot be opened, a history that has changed) costs the others nothing. Its
    error is raised at the call after the one that met it, and by every call that would return nothing, until the application seeks.
    A reader with a rack goes where the leader sends it, and comes back whenever the replica there does not serve it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicId, TopicPartition
from ropewalk.base.limits import (
    CLIENT_CHUNKS_AHEAD,
    CLIENT_FETCH_SHORT_WAIT_MS,
    CLIENT_LEADER_ONLY_MS,
    CLIENT_STALE_EPOCH_ATTEMPTS,
)
from ropewalk.client.connections.cluster import Lane, PartitionView, TopicView
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.session import Session, version_max_for
from ropewalk.client.consuming.asking import Asked, fetch_request
from ropewalk.client.consuming.assignment import Assignment, Held
from ropewalk.client.consuming.chunk import Chunk
from ropewalk.client.consuming.histories import Agreement, find_agreement
from ropewalk.client.consuming.message import Message
from ropewalk.client.consuming.settings import ConsumerSettings
from ropewalk.client.consuming.stuck import Stuck
from ropewalk.client.errors import STALE_METADATA, ConnectionLost, RemoteError, is_retriable
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch as wire


class Owner(Protocol):
    """Whose positions these are, and who decides what becomes of one that makes no sense any more."""

    def on_out_of_range(self, held: Held) -> None: ...

    def on_other_history(self, held: Held, agreement: Agreement, reason: str) -> RopewalkError | None:
        """Go where the two agree, or give the error that the application hears until it has decided."""


class Fetcher:
    def __init__(
        self,
        session: Session,
        assignment: Assignment,
        settings: ConsumerSettings,
        tasks: Supervisor,
        on_news: Callable[[], None],
        owner: Owner,
    ) -> None:
        self._session = session
        self._assignment = assignment
        self._settings = settings
        self._tasks = tasks
        self._on_news = on_news
        self._owner = owner
        self._ready: dict[TopicPartition, deque[tuple[int, Chunk]]] = {}
        """For each partition the chunks at hand, each with the version of the position it belongs to."""
        self._ready_bytes = 0
        self._asking: set[NodeId] = set()
        self._asked: set[TopicPartition] = set()
        self._resting: set[TopicPartition] = set()
        """Refused a moment ago."""
        self._stuck = Stuck(assignment)
        self._named_rack: dict[NodeId, bool] = {}
        """Whether the latest request to a node named the rack."""
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
        self._stuck.tell()
        taken: list[Message] = []
        for partition in list(self._ready):
            held = self._assignment.get(partition)
            chunks = self._ready[partition]
            if held is not None and (held.is_paused or partition in self._stuck):
                continue
            while chunks and len(taken) < count_max:
                version, chunk = chunks[0]
                if held is None or held.version != version:
                    self._drop(chunks)
                    continue
                taken += chunk.take(count_max - len(taken))
                held.position = chunk.position
                if chunk.leader_epoch >= 0:
                    held.leader_epoch = chunk.leader_epoch
                if chunk.failure is not None:
                    self._stuck.add(partition, chunk.failure)
                    break
                if chunk.is_empty:
                    self._drop(chunks)
            if not chunks:
                del self._ready[partition]
            else:
                self._ready[partition] = self._ready.pop(partition)  # the others come first next time
            if len(taken) >= count_max:
                break
        if not taken:
            self._stuck.tell()
        return taken

    def tell_again(self) -> None:
        """A call is about to return nothing: raise what keeps a partition from being read, if something does."""
        self._stuck.tell_again()

    def start(self) -> None:
        """Ask every node that is not being asked for what is wanted of it."""
        if self._is_stopped or self._ready_bytes >= self._settings.fetch_max_bytes:
            return
        by_node: dict[NodeId, dict[bool, list[Asked]]] = {}
        """For each node what it is asked for with this reader's rack named, and without."""
        full: set[NodeId] = set()
        """Nodes with partitions that are left out, because enough of them lies ready."""
        for held in self._assignment.all():
            asked = self._wanted(held)
            if asked is None:
                continue
            if self._is_full(held):
                full.add(asked.node)
            elif asked.node not in self._asking:
                by_node.setdefault(asked.node, {}).setdefault(asked.names_rack, []).append(asked)
        for node, groups in by_node.items():
            names_rack = True in groups
            if (
                len(groups) > 1
            ):  # one request says one thing: they take turns, and neither waits long for the other
                names_rack = not self._named_rack.get(node, False)
                full.add(node)
            wanted = groups[names_rack]
            connection = self._session.cluster.open_connection(node, Lane.POLLS)
            if connection is None:
                self._run(node, partial(self._reach, node, wanted))
            elif connection.is_writable:
                self._named_rack[node] = names_rack
                self._ask(node, connection, wanted, is_short=node in full)

    def forget(self, partition: TopicPartition) -> None:
        """It is no longer read, or from elsewhere: what is at hand of it is dropped, and what was wrong with it."""
        self._stuck.remove(partition)
        chunks = self._ready.pop(partition, None)
        while chunks:
            self._drop(chunks)

    def _drop(self, chunks: deque[tuple[int, Chunk]]) -> None:
        _, chunk = chunks.popleft()
        self._ready_bytes -= chunk.size_bytes

    def _is_full(self, held: Held) -> bool:
        return not held.is_paused and len(self._ready.get(held.partition, ())) >= CLIENT_CHUNKS_AHEAD

    def _wanted(self, held: Held) -> Asked | None:
        partition = held.partition
        if (
            held.position is None
            or held.is_paused
            or partition in self._asked
            or partition in self._resting
            or partition in self._stuck
            or (held.refused_offset == held.fetch_offset != held.position)
        ):
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
            self._run(partition, partial(self._find_leader, partition))
            return None
        view = topic.partitions[partition.partition]
        if not self._is_same_history(held, topic, view):
            return None
        node = self._node_for(held, view)
        names_rack = bool(self._settings.client_rack) and (
            node != view.leader or self._session.clock.monotonic_ms() >= held.leader_only_until_ms
        )
        return Asked(
            held, held.version, held.fetch_offset, topic, view.leader, view.leader_epoch, node, names_rack
        )

    def _is_same_history(self, held: Held, topic: TopicView, view: PartitionView) -> bool:
        """Whether what was read so far is known to lie in this leader's log; if not, somebody is asked."""
        if held.topic_id is None:
            held.topic_id = topic.topic_id
        elif held.topic_id != topic.topic_id:
            self._on_other_history(held, Agreement(0, -1), "the topic was deleted and made anew")
            return False
        if view.leader_epoch <= held.validated_epoch:
            return True
        if held.fetch_epoch >= 0:
            self._run(held.partition, partial(self._validate, held, held.version, view))
            return False
        held.on_validated(view.leader_epoch)
        return True

    def _node_for(self, held: Held, view: PartitionView) -> NodeId:
        replica, now_ms = held.replica, self._session.clock.monotonic_ms()
        if replica is None:
            return view.leader
        if now_ms >= held.replica_until_ms:
            held.replica = None  # let the leader say again who is near
        elif not self._session.cluster.knows(replica) or replica not in view.isr:
            held.leave_replica(now_ms + CLIENT_LEADER_ONLY_MS)
        return view.leader if held.replica is None else held.replica

    def _ask(self, node: NodeId, connection: Connection, wanted: Sequence[Asked], *, is_short: bool) -> None:
        settings = self._settings
        wait_ms = min(settings.fetch_max_wait_ms, CLIENT_FETCH_SHORT_WAIT_MS if is_short else 1 << 30)
        request = fetch_request(wanted, settings, wait_ms=wait_ms)
        version_max = version_max_for(asked.topic for asked in wanted)
        deadline_ms = self._session.deadline_ms(settings.fetch_max_wait_ms + settings.request_timeout_ms)
        try:
            version = connection.versions.choose(wire.API, version_max=version_max)
            answer = connection.send(wire.API, version, request, deadline_ms=deadline_ms)
        except ConnectionLost:
            return  # the next `start` makes another connection
        self._asking.add(node)
        self._asked |= {asked.held.partition for asked in wanted}
        answer.add_done_callback(partial(self._on_answer, node, wanted))

    def _on_answer(
        self, node: NodeId, wanted: Sequence[Asked], answer: "asyncio.Future[wire.FetchResponse]"
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
            self._leave(node, wanted)
            self._rest(node)
            return
        self._asking.discard(node)
        self._failures.pop(node, None)
        self._take_in(wanted, answer.result())
        self.start()
        self._on_news()

    def _leave(self, node: NodeId, wanted: Sequence[Asked]) -> None:
        """It cannot be reached, or refuses: perhaps somebody else leads by now, and a replica was only a favour."""
        now_ms = self._session.clock.monotonic_ms()
        for asked in wanted:
            self._session.cluster.forget(asked.topic.name)
            if asked.leader != node and asked.held.replica == node:
                asked.held.leave_replica(now_ms + CLIENT_LEADER_ONLY_MS)

    def _take_in(self, wanted: Sequence[Asked], response: wire.FetchResponse) -> None:
        names = {asked.topic.topic_id: asked.topic.name for asked in wanted}
        by_partition = {asked.held.partition: asked for asked in wanted}
        for topic in response.topics:
            name = topic.name or names.get(TopicId(bytes(topic.topic_id)), "")
            for answer in topic.partitions:
                asked = by_partition.pop(TopicPartition(name, answer.index), None)
                if asked is None or not self._is_current(asked):
                    continue
                if answer.error_code == ErrorCode.NONE:
                    self._keep(asked, answer)
                else:
                    error = RemoteError(answer.error_code, about=str(asked.held.partition))
                    self._on_refused(asked, error)
        for asked in by_partition.values():
            self._rest_partition(asked.held.partition)  # nothing was said of it

    def _on_refused(self, asked: Asked, error: RemoteError) -> None:
        held = asked.held
        if asked.node != asked.leader:
            # It may be behind, or no replica any more. What the leader says counts.
            self._leave(asked.node, [asked])
        elif error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if asked.offset != held.position:
                held.refused_offset = asked.offset
            elif held.is_doubted:
                self._owner.on_out_of_range(held)
                self.forget(held.partition)
            else:
                held.is_doubted = True
                self._session.cluster.forget(asked.topic.name)
        elif error.code in STALE_METADATA or is_retriable(error):
            self._session.cluster.forget(asked.topic.name)
        else:
            self._error = error
        self._rest_partition(held.partition)

    def _is_current(self, asked: Asked) -> bool:
        held = self._assignment.get(asked.held.partition)
        return held is asked.held and held.version == asked.version

    def _keep(self, asked: Asked, answer: wire.PartitionData) -> None:
        partition, held = asked.held.partition, asked.held
        held.is_doubted = False
        is_committed = self._settings.isolation_level == "read_committed"
        self.ends[partition] = answer.last_stable_offset if is_committed else answer.high_watermark
        if not answer.records:
            if answer.preferred_read_replica >= 0:
                self._follow(asked, NodeId(answer.preferred_read_replica))
            else:
                self._failures.pop(partition, None)
            return
        chunk = Chunk(
            partition,
            answer.records,
            fetch_offset=asked.offset,
            aborted=[(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
            if is_committed
            else (),
            checks_crcs=self._settings.check_crcs,
        )
        if chunk.is_empty:
            self._rest_partition(partition)  # bytes, and nothing in them: as good as a refusal
            return
        self._failures.pop(partition, None)
        held.on_fetched(chunk.end_offset, chunk.epochs)
        self._ready.setdefault(partition, deque()).append((asked.version, chunk))
        self._ready_bytes += chunk.size_bytes

    def _follow(self, asked: Asked, replica: NodeId) -> None:
        now_ms = self._session.clock.monotonic_ms()
        if asked.node == asked.leader != replica and self._session.cluster.knows(replica):
            asked.held.follow(replica, now_ms + self._settings.metadata_max_age_ms)
        else:
            asked.held.leave_replica(now_ms + CLIENT_LEADER_ONLY_MS)
            self._rest_partition(asked.held.partition)

    def _on_other_history(self, held: Held, agreement: Agreement, reason: str) -> None:
        self.forget(held.partition)
        error = self._owner.on_other_history(held, agreement, reason)
        if error is not None:
            self._stuck.add(held.partition, error)
        self._on_news()

    def _rest(self, node: NodeId) -> None:
        """Leave the broker alone for a while."""
        count = self._failures[node] = self._failures.get(node, 0) + 1

        def again() -> None:
            self._asking.discard(node)
            self.start()

        asyncio.get_running_loop().call_later(self._pause_ms(count) / 1000, again)

    def _rest_partition(self, partition: TopicPartition) -> None:
        """Leave the partition alone for a while: a broker answers at once when one is in error."""
        count = self._failures[partition] = self._failures.get(partition, 0) + 1
        self._resting.add(partition)

        def again() -> None:
            self._resting.discard(partition)
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

    async def _find_leader(self, partition: TopicPartition) -> None:
        """That nobody leads it is a failure like others: it is asked for again after a while."""
        cluster = self._session.cluster
        cluster.forget(partition.topic)
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        await cluster.partition(partition.topic, partition.partition, deadline_ms=deadline_ms)

    async def _reach(self, node: NodeId, wanted: Sequence[Asked]) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        try:
            await self._session.cluster.connection(node, deadline_ms=deadline_ms, lane=Lane.POLLS)
        except RopewalkError:
            self._leave(node, wanted)
            raise

    async def _validate(self, held: Held, version: int, view: PartitionView) -> None:
        """Find what was read in the log of another leader, or learn where the two part."""
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        leader_epoch = held.fetch_epoch
        try:
            agreement = await find_agreement(
                self._session,
                held.partition,
                view,
                offset=held.fetch_offset,
                epochs=held.epochs,
                deadline_ms=deadline_ms,
            )
        except RemoteError as error:
            self._session.cluster.forget(held.partition.topic)
            failure_count = self._failures.get(held.partition, 0)
            if (
                error.code is ErrorCode.UNKNOWN_LEADER_EPOCH
                and failure_count
                and failure_count % CLIENT_STALE_EPOCH_ATTEMPTS == 0
            ):
                self._error = error  # it is tried on, but not for ever without a word
                self._on_news()
            raise
        except RopewalkError:
            self._session.cluster.forget(held.partition.topic)
            raise
        if self._assignment.get(held.partition) is not held or held.version != version:
            return  # it is read from elsewhere by now
        if agreement.end_offset >= held.fetch_offset:
            held.on_validated(view.leader_epoch)
        elif held.position is not None and agreement.end_offset >= held.position:
            # Only what nobody has seen yet was of another history.
            self.forget(held.partition)
            held.go_back(held.position, held.leader_epoch)
        else:
            reason = (
                f"records of epoch {leader_epoch} are not in the log that leads in epoch {view.leader_epoch}"
            )
            self._on_other_history(held, agreement, reason)
