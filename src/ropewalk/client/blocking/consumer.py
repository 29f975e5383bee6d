"""The consumer: `from ropewalk import Consumer`.

    with Consumer("127.0.0.1:9092", group="billing") as consumer:
        consumer.subscribe("orders")
        for message in consumer:
            ...

What a reader could get wrong
    It says and does what `ropewalk.aio.Consumer` does, and belongs to one thread at a time.
    Callbacks of a rebalance run inside `poll`, in the thread that polls, and may call the consumer.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Self, TypeVar

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.group_offsets import Committed, GroupIdentity, OffsetToCommit
from ropewalk.client.calls.list_offsets import ListedOffset
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.consuming.consumer import Consumer as AsyncConsumer
from ropewalk.client.consuming.message import Message
from ropewalk.client.consuming.subscription import Callback
from ropewalk.client.errors import Misuse
from ropewalk.client.formats import Format
from ropewalk.runtime.loop_thread import CallingThread, LoopThread

T = TypeVar("T")

RebalanceCallback = Callable[[list[TopicPartition]], None]


class Consumer:
    def __init__(
        self,
        bootstrap: str,
        *,
        group: str | None = None,
        key_format: Format | None = None,
        value_format: Format | None = None,
        **settings: SettingValue,
    ) -> None:
        self._consumer = AsyncConsumer(
            bootstrap, group=group, key_format=key_format, value_format=value_format, ports=None, **settings
        )
        self.settings = self._consumer.settings
        self._thread: LoopThread | None = None
        self._polled: list[Message] = []
        self._next = 0
        """Of what was polled for the loop, the first that it has not asked for."""

    def start(self) -> None:
        """Connect; `with` does it."""
        self._thread = LoopThread()
        try:
            self._thread.run(self._consumer.start())
        except BaseException:
            self._thread.stop()
            self._thread = None
            raise

    def close(self) -> None:
        """Commit what was processed, if that is automatic, and leave the group."""
        self._end(None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(kind)

    def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Share the topics with the other members of the group. The partitions come with the first polls."""
        self._call(
            lambda: self._consumer.subscribe(
                topics, pattern=pattern, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost
            )
        )

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these, with nobody else's say."""
        self._call(lambda: self._consumer.assign(partitions))

    def poll(self, *, timeout_ms: int = 500, max_records: int | None = None) -> list[Message]:
        """What there is, as soon as there is something; an empty list when there was nothing for so long."""
        self._put_back()
        return self._calling_back(lambda: self._consumer.poll(timeout_ms=timeout_ms, max_records=max_records))

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        while self._next >= len(self._polled):
            self._polled, self._next = [], 0
            self._polled = self._calling_back(self._consumer.poll)
        message = self._polled[self._next]
        self._next += 1
        return message

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._call(lambda: self._consumer.assignment)

    def group_identity(self) -> GroupIdentity:
        """For `Producer.send_offsets_to_transaction`."""
        return self._call(self._consumer.group_identity)

    def positions(self) -> dict[TopicPartition, OffsetToCommit]:
        """Of each partition the offset after the last message that was returned."""
        return self._call(self._consumer.positions)

    def position(self, partition: TopicPartition) -> int | None:
        """None as long as it is not known where reading begins."""
        return self._call(lambda: self._consumer.position(partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._call(lambda: self._consumer.seek(partition, offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._call(lambda: self._consumer.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._call(lambda: self._consumer.seek_to_end(*partitions))

    def pause(self, *partitions: TopicPartition) -> None:
        """Nothing is returned of them until `resume`; they stay this consumer's."""
        self._call(lambda: self._consumer.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        self._call(lambda: self._consumer.resume(*partitions))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return self._call(lambda: self._consumer.paused)

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets lie between the position and the partition's end, as it last answered."""
        return self._call(lambda: self._consumer.lag(partition))

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetToCommit] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """The group has processed what was returned so far, or what lies below these offsets.

        Raises `CommitFailed` when the group has gone on without this member: others read these partitions again.
        """
        self._put_back()
        self._the_thread().run(self._consumer.commit(offsets, timeout_ms=timeout_ms))

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, int | OffsetToCommit] | None = None,
        *,
        on_done: Callable[[RopewalkError | None], None] | None = None,
    ) -> None:
        """As `commit`, without waiting. `on_done` is called in another thread."""
        self._call(lambda: self._consumer.commit_soon(offsets, on_done=on_done))

    def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Committed]:
        """What the group has committed; partitions of which it has nothing are left out."""
        return self._the_thread().run(self._consumer.committed(partitions, timeout_ms=timeout_ms))

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """Of each partition the first record that is not older than its time; None where there is none."""
        return self._the_thread().run(self._consumer.offsets_for_times(times_ms))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._the_thread().run(self._consumer.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset of each; with read_committed, the first that is not decided yet."""
        return self._the_thread().run(self._consumer.end_offsets(partitions))

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return self._the_thread().run(self._consumer.partitions_of(topic))

    def _call(self, function: Callable[[], T]) -> T:
        self._put_back()
        return self._the_thread().call(function)

    def _put_back(self) -> None:
        """What was polled for the loop and not asked for does not count as returned."""
        if self._next < len(self._polled):
            left, self._polled, self._next = self._polled[self._next :], [], 0
            self._the_thread().call(lambda: self._consumer.put_back(left))

    def _calling_back(self, begin: Callable[[], Coroutine[object, object, T]]) -> T:
        async def work(caller: CallingThread) -> T:
            async def call_back(callback: Callback, partitions: list[TopicPartition]) -> None:
                await caller.call(lambda: callback(partitions))

            self._consumer.call_back = call_back
            return await begin()

        return self._the_thread().run_calling_back(work)

    def _end(self, kind: type[BaseException] | None) -> None:
        thread = self._thread
        if thread is None:
            return
        try:
            self._put_back()
            self._calling_back(lambda: self._consumer.__aexit__(kind))
        finally:
            self._thread = None
            thread.stop()

    def _the_thread(self) -> LoopThread:
        if self._thread is None:
            raise Misuse("the consumer is closed, or was not started: use it as a context manager")
        return self._thread
