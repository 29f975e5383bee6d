"""The producer: `from ropewalk import Producer`.

    with Producer("127.0.0.1:9092") as producer:
        producer.send("orders", b"...", key=b"customer-7")
        producer.flush()

What a reader could get wrong
    It says and does what `ropewalk.aio.Producer` does. Any number of threads may send at the same time; transactions belong
    to one of them.
    `send` waits only while the producer's memory is full. `Delivery.result` waits for the acknowledgement.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.group_offsets import Committed, GroupIdentity, OffsetToCommit
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.errors import BufferFull, Misuse, TransactionFailed
from ropewalk.client.formats import Format
from ropewalk.client.producing.batch import Acknowledged, Delivery
from ropewalk.client.producing.partitioners import Partitioner
from ropewalk.client.producing.producer import NO_HEADERS, FinishedBatch, HeadersLike
from ropewalk.client.producing.producer import Producer as AsyncProducer
from ropewalk.client.producing.topics import Addressed
from ropewalk.records.record import Record
from ropewalk.runtime.loop_thread import LoopThread
from ropewalk.runtime.mailbox import Mailbox


class Producer:
    def __init__(
        self,
        bootstrap: str,
        *,
        partitioner: str | Partitioner = "keyed",
        salt: int | None = None,
        key_format: Format | None = None,
        value_format: Format | None = None,
        **settings: SettingValue,
    ) -> None:
        """`partitioner` is keyed, round_robin, by_load or one of your own; `salt=N` spreads each key over N partitions."""
        self._producer = AsyncProducer(
            bootstrap,
            partitioner=partitioner,
            salt=salt,
            key_format=key_format,
            value_format=value_format,
            ports=None,
            **settings,
        )
        self.settings = self._producer.settings
        self._block_s = self.settings.max_block_ms / 1000
        self._thread: LoopThread | None = None
        self._mail: Mailbox[Addressed] = Mailbox(
            bytes_max=self.settings.buffer_memory, held_bytes=self._held_bytes, wake=self._wake
        )

    def start(self) -> None:
        """Connect; with a transactional id, take it over. `with` does it."""
        self._thread = LoopThread()
        self._producer.on_room = self._mail.on_room
        try:
            self._thread.run(self._producer.start())
        except BaseException:
            self._thread.stop()
            self._thread = None
            raise

    def close(self) -> None:
        """Flush, and end. An open transaction is aborted."""
        self._end(None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(kind)

    def send(
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
        self._producer.check_sending()
        addressed = self._producer.address(topic, value, key, headers, partition, timestamp_ms)
        addressed[0].waits_in(self._wait)
        if not self._mail.put(addressed, addressed[4], timeout_s=self._block_s):
            self._the_thread()
            raise BufferFull(
                f"buffer_memory is {self.settings.buffer_memory} bytes; no room within {self.settings.max_block_ms} ms"
            )
        return addressed[0]

    def send_batches(self, batches: Iterable[FinishedBatch]) -> None:
        """Take in batches that are packed already; waits while the memory is full."""
        self._the_thread().run(self._producer.send_batches(batches))

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions each topic has by now; without those that are not there."""
        return self._the_thread().run(self._producer.partition_counts(topics))

    def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicView]:
        """Ids and partitions of topics, asked for and not from memory; without those that are not there."""
        return self._the_thread().run(self._producer.describe_topics(topics))

    def newest(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, Record]:
        """The newest record of each key that counts; see `ropewalk.aio.Producer.newest`."""
        return self._the_thread().run(self._producer.newest(topic, keys))

    def committed(
        self, group: str, partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, Committed]:
        """What a group has committed; with `stable`, once no transaction is about to commit more."""
        return self._the_thread().run(self._producer.committed(group, partitions, stable=stable))

    def flush(self) -> None:
        """Return when everything sent so far is acknowledged; raise the first failure since the last flush."""
        self._the_thread().run(self._producer.flush())

    def begin_transaction(self) -> None:
        self._the_thread().run(self._producer.begin_transaction())

    def commit_transaction(self) -> None:
        """Returns when everything that was sent, and every offset, counts."""
        self._the_thread().run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        self._the_thread().run(self._producer.abort_transaction())

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetToCommit], group: str | GroupIdentity
    ) -> None:
        """The transaction commits these offsets, the next to be read, for the group; see `Consumer.group_identity`."""
        self._the_thread().run(self._producer.send_offsets_to_transaction(offsets, group))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """`with producer.transaction():` commits at its end, and aborts when it is left with an exception."""
        self.begin_transaction()
        try:
            yield
        except BaseException:
            self.abort_transaction()
            raise
        try:
            self.commit_transaction()
        except TransactionFailed:
            self.abort_transaction()
            raise

    def wait_processed(
        self, group: str, records: Iterable[Acknowledged] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Return when the group has committed past these records; past all this producer had acknowledged, by default."""
        self._the_thread().run(self._producer.wait_processed(group, records, timeout_ms=timeout_ms))

    def _held_bytes(self) -> int:
        return self._producer.held_bytes

    def _wake(self) -> None:
        self._the_thread().call_soon(self._on_mail)

    def _on_mail(self) -> None:
        """On the loop: take in everything that lies in the box."""
        take = self._producer.take
        size_bytes = 0
        for addressed in self._mail.take():
            size_bytes += addressed[4]
            try:
                take(addressed)
            except RopewalkError as error:
                self._producer.refuse(addressed, error)
        self._mail.on_taken(size_bytes)

    def _wait(self, delivery: Delivery, timeout_s: float | None) -> None:
        try:
            self._the_thread().run(delivery.settled(), timeout_s=timeout_s)
        except TimeoutError:
            raise TimedOut(
                f"the record is not acknowledged after {timeout_s} s; it is still on its way"
            ) from None

    def _end(self, kind: type[BaseException] | None) -> None:
        thread = self._thread
        if thread is None:
            return
        try:
            thread.run(self._producer.__aexit__(kind))
        finally:
            self._thread = None
            self._mail.close()
            thread.stop()

    def _the_thread(self) -> LoopThread:
        if self._thread is None:
            raise Misuse("the producer is closed, or was not started: use it as a context manager")
        return self._thread
