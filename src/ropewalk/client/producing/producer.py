"""The producer, for asyncio: `from ropewalk.aio import Producer`.

    async with Producer("127.0.0.1:9092") as producer:
        delivery = await producer.send("orders", b"...", key=b"customer-7")
        print((await delivery).offset)

What a reader could get wrong
    `send` returns when the record is taken in, not when it is acknowledged: wait for its `Delivery`, or for `flush`. It
    waits only while the producer's memory is full.
    `flush` raises the first failure since the last `flush`, so that a sender who never looks at deliveries still hears of it.
    Leaving `async with` flushes; with an exception on its way it aborts the open transaction and drops what is not sent.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import ClientPorts
from ropewalk.client.calls import group_offsets, newest
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed, GroupIdentity, OffsetToCommit
from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.connections.coordinators import Coordinators
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.errors import BufferFull, DeliveryFailed, Misuse, RecordTooLarge, TransactionFailed
from ropewalk.client.formats import Format
from ropewalk.client.producing.batch import Acknowledged, Batch, Delivery
from ropewalk.client.producing.outbox import Outbox
from ropewalk.client.producing.partitioners import ByLoad, Keyed, Partitioner, RoundRobin, Salted
from ropewalk.client.producing.processed import wait_processed
from ropewalk.client.producing.sender import Sender
from ropewalk.client.producing.settings import producer_settings
from ropewalk.client.producing.topics import Addressed, Topics
from ropewalk.client.producing.transaction import Transactions
from ropewalk.records.packing import Headers, entry_bytes
from ropewalk.records.record import Record
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.runtime.tasks import Supervisor

HeadersLike = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]
NO_HEADERS: Headers = ()
FinishedBatch = tuple[TopicPartition, bytearray | memoryview, int]
"""Where it goes, the record batch as on the wire, and how many records it holds. Its bytes belong to the producer from then on."""


class Producer:
    """Owned by one event loop. Any number of tasks may send at the same time."""

    def __init__(
        self,
        bootstrap: str,
        *,
        partitioner: str | Partitioner = "keyed",
        salt: int | None = None,
        key_format: Format | None = None,
        value_format: Format | None = None,
        ports: ClientPorts | None = None,
        **settings: SettingValue,
    ) -> None:
        """`partitioner` is keyed, round_robin, by_load or one of your own; `salt=N` spreads each key over N partitions."""
        self.settings = producer_settings(settings)
        used = ports or SystemClientPorts()
        self._client = Client(
            used.network, used.clock, used.rng, parse_addresses(bootstrap), self.settings.for_client()
        )
        self._session = self._client.session
        self._key_format = key_format
        self._value_format = value_format
        self._tasks = Supervisor(self._on_bug, are_errands=True)
        self._bug: BaseException | None = None
        self._outbox = Outbox(self.settings, self._on_settled)
        self._transactions: Transactions | None = None
        if self.settings.transactional_id is not None:
            self._transactions = Transactions(
                self._session, self._outbox, self.settings, self._tasks, self._wake
            )
        self._sender = Sender(self._session, self._outbox, self.settings, self._tasks, self._transactions)
        chosen = self._partitioner(partitioner, salt)
        self._topics = Topics(self._session.cluster, self._outbox, chosen, self._look_up, self._on_refused)
        self._waiting_for_room: deque[asyncio.Future[None]] = deque()
        self._failure: RopewalkError | None = None
        self.on_room: Callable[[], None] | None = None
        """Called when records were acknowledged, for who waits in another thread."""
        self._ends: dict[TopicPartition, int] = {}
        self._is_running = False

    async def start(self) -> None:
        """Connect; with a transactional id, take it over. `async with` does it."""
        try:
            await self._client.__aenter__()
            if self._transactions is not None:
                await self._transactions.start()
        except BaseException:
            await self._stop()
            raise
        self._is_running = True

    async def close(self) -> None:
        """Flush, and end. An open transaction is aborted."""
        if not self._is_running:
            return
        try:
            if self._transactions is None:
                await self.flush()
            elif self._transactions.is_open:
                await self._transactions.end(committed=False)
        finally:
            await self._stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.close()
            return
        try:
            if self._transactions is not None and self._transactions.is_open and issubclass(kind, Exception):
                await self._transactions.end(committed=False)
        except RopewalkError:
            pass  # the exception on its way says what went wrong; the coordinator's timeout ends the transaction
        finally:
            await self._stop()

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: HeadersLike = NO_HEADERS,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Take a record in. Raises what can be said at once; all else is the delivery's to tell."""
        addressed = self.address(topic, value, key, headers, partition, timestamp_ms)
        if self.held_bytes + addressed[4] > self.settings.buffer_memory:
            await self._room(addressed[4])
        self.take(addressed)
        return addressed[0]

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: HeadersLike = NO_HEADERS,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Acknowledged:
        delivery = await self.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return await delivery

    async def send_batches(self, batches: Iterable[FinishedBatch]) -> None:
        """Take in batches that are packed already, in their order. Whoever packed them chose their partitions.

        Waits while the memory is full; raises the first failure since the last flush, so that nobody goes on in vain.
        """
        for partition, encoded, record_count in batches:
            if self.held_bytes + len(encoded) > self.settings.buffer_memory:
                await self._room(len(encoded))
            self.check_sending()
            if self._failure is not None:
                break
            now_ms = self._session.clock.monotonic_ms()
            self._outbox.add_encoded(self._outbox.queue(partition), encoded, record_count, now_ms)
            self._sender.wake()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions each topic has by now, asked for and not from memory; without those that are not there."""
        self._check_running()
        view = await self._client.metadata(topics)
        return {topic.name: len(topic.partitions) for topic in view.topics if topic.partitions}

    async def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicView]:
        """Ids and partitions of topics, asked for and not from memory; without those that are not there."""
        self._check_running()
        view = await self._client.metadata(topics)
        return {topic.name: topic for topic in view.topics if topic.partitions}

    async def newest(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, Record]:
        """The newest record of each key that counts: of a topic that is kept by key, what a transactional producer has written last.

        It waits for nobody: what other producers have not decided does not count yet.
        """
        self._check_running()
        known = await self._client.topic(topic)
        return await newest.newest(self._client, topic, len(known.partitions), keys)

    async def committed(
        self, group: str, partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, Committed]:
        """What a group has committed: where a transactional producer goes on.

        With `stable` it waits until no transaction is about to commit more; without, it answers with what counts by now.
        """
        self._check_running()
        return await group_offsets.fetch(
            Coordinators(self._session),
            group,
            deadline_ms=self._session.deadline_ms(),
            partitions=partitions,
            require_stable=stable,
        )

    async def flush(self) -> None:
        """Return when everything sent so far is acknowledged; raise the first failure since the last flush."""
        self._outbox.flushing += 1
        self._sender.wake()
        try:
            for delivery in self._topics.unplaced:
                await delivery.settled()
            for batch in self._outbox.unsettled():
                await batch.wait()
        finally:
            self._outbox.flushing -= 1
        self._check_running()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def begin_transaction(self) -> None:
        self._check_running()
        self._in_transactions().begin()
        self._failure = None

    async def commit_transaction(self) -> None:
        """Returns when everything that was sent, and every offset, counts. See `transaction` for what it raises."""
        self._check_running()
        for delivery in self._topics.unplaced:
            await delivery.settled()
        await self._in_transactions().end(committed=True)
        self._failure = None

    async def abort_transaction(self) -> None:
        self._check_running()
        self._topics.refuse_all(Misuse("the transaction was aborted"))
        await self._in_transactions().end(committed=False)
        self._failure = None

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetToCommit], group: str | GroupIdentity
    ) -> None:
        """The transaction commits these offsets, the next to be read, for the group; see `Consumer.group_identity`."""
        self._check_running()
        await self._in_transactions().add_offsets(
            {
                partition: offset if isinstance(offset, OffsetToCommit) else OffsetToCommit(offset)
                for partition, offset in offsets.items()
            },
            group if isinstance(group, GroupIdentity) else GroupIdentity(group),
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """`async with producer.transaction():` commits at its end, and aborts when it is left with an exception."""
        await self.begin_transaction()
        try:
            yield
        except BaseException:
            await self.abort_transaction()
            raise
        try:
            await self.commit_transaction()
        except TransactionFailed:
            await self.abort_transaction()
            raise

    async def wait_processed(
        self, group: str, records: Iterable[Acknowledged] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Return when the group has committed past these records; past all this producer had acknowledged, by default."""
        self._check_running()
        ends = dict(self._ends)
        if records is not None:
            ends = {}
            for record in records:
                partition = TopicPartition(record.topic, record.partition)
                ends[partition] = max(ends.get(partition, 0), record.offset + 1)
        await wait_processed(self._session, group, ends, timeout_ms=timeout_ms)

    @property
    def held_bytes(self) -> int:
        """Of records that are not acknowledged."""
        return self._outbox.held_bytes + self._topics.unplaced_bytes

    def address(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: HeadersLike,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> Addressed:
        """The record as the producer's insides want it; touches nothing that belongs to the loop."""
        if self._key_format is not None and key is not None:
            key = self._key_format.encode(key)
        if self._value_format is not None and value is not None:
            value = self._value_format.encode(value)
        if not (value is None or isinstance(value, bytes)) or not (key is None or isinstance(key, bytes)):
            key, value = _as_bytes(key, "key"), _as_bytes(value, "value")
        written: Headers = ()
        if headers:
            written = tuple(headers.items() if isinstance(headers, Mapping) else headers)
        size_bytes = entry_bytes(key, value, written)
        if size_bytes > self.settings.max_request_size:
            raise RecordTooLarge(
                f"a record of {size_bytes} bytes for {topic}; max_request_size is {self.settings.max_request_size}"
            )
        if timestamp_ms is None:
            timestamp_ms = self._session.clock.now_ms()
        return Delivery(), topic, partition, (key, value, timestamp_ms, written), size_bytes

    def check_sending(self) -> None:
        """Raises unless records may be sent now. Reads only, so that any thread may ask."""
        if not self._is_running or self._bug is not None:
            self._check_running()
        if self._transactions is not None:
            self._transactions.check_sending()

    def refuse(self, addressed: Addressed, error: RopewalkError) -> None:
        addressed[0].refuse(error)
        self._on_refused(error)

    def take(self, addressed: Addressed) -> None:
        """Have the record sent, whether or not there is room."""
        self.check_sending()
        if self._topics.take(addressed, self._session.clock.monotonic_ms()):
            self._sender.wake()

    async def _room(self, size_bytes: int) -> None:
        until_s = asyncio.get_running_loop().time() + self.settings.max_block_ms / 1000
        try:
            async with asyncio.timeout_at(until_s):
                while self.held_bytes and self.held_bytes + size_bytes > self.settings.buffer_memory:
                    room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting_for_room.append(room)
                    await room
        except TimeoutError:
            held, allowed = self.held_bytes, self.settings.buffer_memory
            raise BufferFull(
                f"{held} bytes are waiting to be acknowledged, buffer_memory is {allowed}; "
                f"no room within {self.settings.max_block_ms} ms"
            ) from None

    def _on_settled(self, batch: Batch) -> None:
        outcome = batch.outcome
        if isinstance(outcome, DeliveryFailed):
            if self._failure is None:
                self._failure = outcome
            if self._transactions is not None:
                self._transactions.on_lost(outcome.cause)
        elif outcome is not None and not isinstance(outcome, RopewalkError) and outcome.base_offset >= 0:
            end = outcome.base_offset + batch.record_count
            self._ends[batch.partition] = max(self._ends.get(batch.partition, 0), end)
        self._make_room()

    def _on_refused(self, error: RopewalkError) -> None:
        if self._failure is None:
            self._failure = error
        self._make_room()

    def _make_room(self) -> None:
        if self.on_room is not None:
            self.on_room()
        while self._waiting_for_room:
            room = self._waiting_for_room.popleft()
            if not room.done():
                room.set_result(None)

    def _look_up(self, topic: str) -> None:
        self._tasks.start(f"look up {topic!r}", self._looked_up(topic))

    async def _looked_up(self, topic: str) -> None:
        is_known = False
        while not is_known:  # it may be forgotten again in the turn between
            try:
                await self._client.topic(topic, may_create=self.settings.may_create_topics)
            except RopewalkError as error:
                self._topics.refuse(topic, error)
                return
            is_known = self._topics.on_known(topic, self._session.clock.monotonic_ms())
        self._sender.wake()

    def _wake(self) -> None:
        self._sender.wake()

    def _partitioner(self, chosen: str | Partitioner, salt: int | None) -> Partitioner:
        rng, bytes_each = self._session.rng, self.settings.batch_size
        if salt is not None:
            if salt < 1 or chosen != "keyed":
                raise Misuse("salt is a number of partitions, for the partitioner keyed")
            return Salted(rng, bytes_each, salt=salt)
        match chosen:
            case "keyed":
                return Keyed(rng, bytes_each)
            case "round_robin":
                return RoundRobin()
            case "by_load":
                return ByLoad(rng, bytes_each)
            case str():
                raise Misuse(f"{chosen!r} is no partitioner; there are keyed, round_robin and by_load")
            case _:
                return chosen

    def _in_transactions(self) -> Transactions:
        if self._transactions is None:
            raise Misuse("a producer without transactional_id has no transactions")
        return self._transactions

    def _check_running(self) -> None:
        if self._bug is not None:
            raise RuntimeError("the producer's background work failed") from self._bug
        if not self._is_running:
            raise Misuse("the producer is closed, or was not started: use it as a context manager")

    def _on_bug(self, name: str, error: BaseException) -> None:
        """A broken promise in our own code: nobody may wait for ever because of it."""
        self._bug = error
        closed = Misuse(f"the producer's {name} failed: {error!r}")
        self._topics.refuse_all(closed)
        self._outbox.give_up_all(closed)

    async def _stop(self) -> None:
        self._is_running = False
        self._sender.stop()
        closed = Misuse("the producer was closed before the record was acknowledged")
        self._topics.refuse_all(closed)
        self._outbox.give_up_all(closed)
        await self._tasks.stop()
        self._client.close()


def _as_bytes(data: Any, what: str) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise Misuse(f"the {what} is a {type(data).__name__}; give bytes, or choose a format with {what}_format")
