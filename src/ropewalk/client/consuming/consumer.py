"""The consumer, for asyncio: `from ropewalk.aio import Consumer`.

    async with Consumer("127.0.0.1:9092", group="billing") as consumer:
        consumer.subscribe("orders")
        async for message in consumer:
            ...

What a reader could get wrong
    What was returned counts as processed when the next `poll` begins, or the next message of the loop is asked for: that is
    what auto-commit commits. A message that is being worked on is never committed by itself.
    Callbacks of a rebalance run inside `poll`, and so does nothing else of the application.
    Without a group there is `assign`, and nothing is committed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from inspect import isawaitable
from typing import Any, Self

from msgspec.structs import replace

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import ClientPorts
from ropewalk.client.calls import group_offsets
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed, GroupIdentity, OffsetToCommit
from ropewalk.client.calls.list_offsets import ListedOffset, OffsetQuery
from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.connections.coordinators import Coordinators
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.consuming.assignment import Assignment
from ropewalk.client.consuming.classic import ClassicMember
from ropewalk.client.consuming.committing import Commit, Commits
from ropewalk.client.consuming.fetcher import Fetcher
from ropewalk.client.consuming.managed import ManagedMember
from ropewalk.client.consuming.message import Message
from ropewalk.client.consuming.settings import consumer_settings
from ropewalk.client.consuming.starting import Positions
from ropewalk.client.consuming.subscription import Callback, Change, Membership, subscription
from ropewalk.client.errors import Misuse
from ropewalk.client.formats import Format
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.runtime.tasks import Supervisor

CallBack = Callable[[Callback, list[TopicPartition]], Awaitable[None]]
"""How a callback is called: on the loop, or in the thread that polls."""


class Consumer:
    """Owned by one event loop, and by one task at a time."""

    def __init__(
        self,
        bootstrap: str,
        *,
        group: str | None = None,
        key_format: Format | None = None,
        value_format: Format | None = None,
        ports: ClientPorts | None = None,
        **settings: SettingValue,
    ) -> None:
        self.settings = consumer_settings(settings)
        used = ports or SystemClientPorts()
        self._client = Client(
            used.network, used.clock, used.rng, parse_addresses(bootstrap), self.settings.for_client()
        )
        self._session = self._client.session
        self._clock = used.clock
        self._group = group
        self._key_format = key_format
        self._value_format = value_format
        self._tasks = Supervisor(self._on_bug, are_errands=True)
        self._bug: BaseException | None = None
        self._assignment = Assignment()
        self._news: asyncio.Event = asyncio.Event()
        self._coordinators = Coordinators(self._session)
        self._positions = Positions(
            self._client, self._assignment, self.settings, self._tasks, self._news.set, self._committed_of
        )
        self._fetcher = Fetcher(
            self._session, self._assignment, self.settings, self._tasks, self._news.set, self._positions
        )
        self._membership: Membership | None = None
        self._callbacks: tuple[Callback | None, Callback | None, Callback | None] = (None, None, None)
        self.call_back: CallBack = _call_here
        self._undelivered: deque[Message] = deque()
        """Taken from the fetcher for a loop that has not asked for them yet."""
        self._committed_at_ms = 0.0
        self._commits = Commits(
            self._session,
            self._coordinators,
            self._assignment,
            self._tasks,
            self.group_identity,
            timeout_ms=self.settings.request_timeout_ms,
        )
        self._is_running = False

    async def start(self) -> None:
        """Connect; `async with` does it."""
        await self._client.__aenter__()
        self._is_running = True
        self._committed_at_ms = self._clock.monotonic_ms()

    async def close(self) -> None:
        """Commit what was returned, if that is automatic, and leave the group."""
        await self._leave(commits=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """With an exception on its way nothing is committed: who knows how far the last messages were processed."""
        if kind is None or issubclass(kind, Exception | KeyboardInterrupt):
            await self._leave(commits=kind is None)
        else:
            await self._stop()

    def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Share the topics with the other members of the group. The partitions come with the first polls.

        `on_revoked` is told before partitions are given up, when they can still be committed; `on_lost` when others may have
        them already (`on_revoked` is told where there is no `on_lost`).
        """
        self._check_running()
        if self._group is None:
            raise Misuse(
                "a consumer without a group has nobody to share with: give it a group, or assign partitions"
            )
        if self._membership is None and self._assignment.partitions:
            raise Misuse("partitions were assigned by hand; use another consumer to subscribe")
        wanted = subscription(topics, pattern, on_assigned, on_revoked, on_lost)
        self._callbacks = (wanted.on_assigned, wanted.on_revoked, wanted.on_lost)
        if self._membership is None:
            kind = ManagedMember if self.settings.group_protocol == "consumer" else ClassicMember
            self._membership = kind(self._client, self._group, self.settings, self._tasks, self._news.set)
        self._membership.subscribe(wanted)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these, with nobody else's say."""
        self._check_running()
        if self._membership is not None:
            raise Misuse("the group decides what a subscribed consumer reads")
        wanted = frozenset(partitions)
        self._drop(self._assignment.partitions - wanted)
        self._assignment.add(wanted)
        self._news.set()

    async def poll(self, *, timeout_ms: int = 500, max_records: int | None = None) -> list[Message]:
        """What there is, as soon as there is something; an empty list when there was nothing for so long.

        A partition that cannot be read on (`UnreadableBatch`, `HistoryChanged`) raises at the call after the one that met it, and
        instead of an empty list. Its position stays; the other partitions are read on by those who poll again.
        """
        count_max = max_records or self.settings.max_poll_records
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            self._check_running()
            self._news.clear()
            if self._membership is not None:
                await self._follow_group(self._membership)
                self._commit_when_due()
            self._positions.look_up_missing()
            messages = self._take(count_max)
            self._fetcher.start()
            if messages:
                return messages
            remaining_ms = deadline_ms - self._clock.monotonic_ms()
            if remaining_ms <= 0:
                self._fetcher.tell_again()
                return []
            await self._wait_for_news(remaining_ms)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        while not self._undelivered:
            self._undelivered.extend(await self.poll())
        return self._undelivered.popleft()

    def put_back(self, messages: Iterable[Message]) -> None:
        """Messages that were polled and not looked at: they are returned again, first, and do not count as processed."""
        self._undelivered.extendleft(
            message for message in reversed(list(messages)) if message.topic_partition in self._assignment
        )

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._assignment.partitions

    def group_identity(self) -> GroupIdentity:
        """For `Producer.send_offsets_to_transaction`."""
        if self._membership is not None:
            return self._membership.identity
        return GroupIdentity(self._the_group())

    def positions(self) -> dict[TopicPartition, OffsetToCommit]:
        """Of each partition the offset after the last message that was returned."""
        positions = self._assignment.positions()
        for message in reversed(self._undelivered):
            if message.topic_partition in positions:
                positions[message.topic_partition] = OffsetToCommit(message.offset)
        return positions

    def position(self, partition: TopicPartition) -> int | None:
        """None as long as it is not known where reading begins."""
        self._assignment.held(partition)
        found = self.positions().get(partition)
        return None if found is None else found.offset

    def seek(self, partition: TopicPartition, offset: int) -> None:
        if offset < 0:
            raise Misuse(f"offset {offset} is below 0; seek_to_beginning and seek_to_end find theirs")
        self._assignment.held(partition).seek(offset)
        self._forget(partition)
        self._news.set()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._seek_to(partitions, OffsetQuery.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._seek_to(partitions, OffsetQuery.LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Nothing is returned of them until `resume`; they stay this consumer's."""
        for partition in partitions:
            self._assignment.held(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._assignment.held(partition).is_paused = False
        self._news.set()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(held.partition for held in self._assignment.all() if held.is_paused)

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets lie between the position and the partition's end, as it last answered."""
        position, end = self.position(partition), self._fetcher.ends.get(partition)
        return None if position is None or end is None else max(0, end - position)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetToCommit] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """The group has processed what was returned so far, or what lies below these offsets.

        Raises `CommitFailed` when the group has gone on without this member: others read these partitions again.
        """
        self._check_running()
        deadline_ms = self._session.deadline_ms(timeout_ms)
        await self._commits.send(self._commit_of(offsets), deadline_ms=deadline_ms)

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, int | OffsetToCommit] | None = None,
        *,
        on_done: Callable[[RopewalkError | None], None] | None = None,
    ) -> None:
        """As `commit`, without waiting. While one is on its way those that follow are gathered into the next."""
        self._check_running()
        self._commits.send_soon(self._commit_of(offsets), on_done)

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Committed]:
        """What the group has committed; partitions of which it has nothing are left out."""
        wanted = self._assignment.partitions if partitions is None else frozenset(partitions)
        return await group_offsets.fetch(
            self._coordinators,
            self._the_group(),
            partitions=wanted,
            require_stable=True,
            deadline_ms=self._session.deadline_ms(timeout_ms),
        )

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """Of each partition the first record that is not older than its time; None where there is none."""
        found = await self._client.list_known_offsets(times_ms, isolation=self.settings.isolation)
        return {
            partition: found[partition] if partition in found and found[partition].offset >= 0 else None
            for partition in times_ms
        }

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._ends(partitions, OffsetQuery.EARLIEST)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset of each; with read_committed, the first that is not decided yet."""
        return await self._ends(partitions, OffsetQuery.LATEST)

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        view = await self._client.topic(topic)
        return [TopicPartition(topic, partition.index) for partition in view.partitions]

    async def _leave(self, *, commits: bool) -> None:
        if not self._is_running:
            return
        deadline_ms = self._session.deadline_ms(self.settings.request_timeout_ms)
        try:
            if commits:
                await self._commit_automatically(deadline_ms)
            if self._membership is not None:
                held = sorted(self._assignment.partitions)
                if held and self._callbacks[1] is not None:
                    await self.call_back(self._callbacks[1], held)
                with suppress(RopewalkError):  # its session ends all the same
                    await self._membership.leave(deadline_ms=deadline_ms)
        finally:
            await self._stop()

    async def _follow_group(self, membership: Membership) -> None:
        membership.on_poll(self._clock.monotonic_ms())
        while (change := membership.next_change()) is not None:
            await self._carry_out(change)
            membership.on_done(change)
            membership.on_poll(self._clock.monotonic_ms())

    async def _carry_out(self, change: Change) -> None:
        on_assigned, on_revoked, on_lost = self._callbacks
        if change.lost:
            self._drop(change.lost)
            if on_lost is not None:
                await self.call_back(on_lost, sorted(change.lost))
        if change.revoked:
            await self._commit_automatically(self._session.deadline_ms(self.settings.request_timeout_ms))
            if on_revoked is not None:
                await self.call_back(on_revoked, sorted(change.revoked))
            self._drop(change.revoked)
        if change.added or change.is_rebalance:
            self._assignment.add(change.added)
            if on_assigned is not None:
                await self.call_back(on_assigned, sorted(change.added))

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        gone = frozenset(partitions)
        self._assignment.remove(gone)
        for partition in gone:
            self._fetcher.forget(partition)
        if self._undelivered:
            self._undelivered = deque(
                message for message in self._undelivered if message.topic_partition not in gone
            )

    def _take(self, count_max: int) -> list[Message]:
        if self._undelivered:
            count = min(count_max, len(self._undelivered))
            return [self._undelivered.popleft() for _ in range(count)]
        messages = self._fetcher.take(count_max)
        if messages and (self._key_format is not None or self._value_format is not None):
            return self._decoded(messages)
        return messages

    def _decoded(self, messages: list[Message]) -> list[Message]:
        """A message that cannot be read stops the consumer at it; whoever wants to go on seeks past it."""
        decoded: list[Message] = []
        for number, message in enumerate(messages):
            key, value = message.key, message.value
            try:
                if self._key_format is not None and key is not None:
                    key = self._key_format.decode(key)
                if self._value_format is not None and value is not None:
                    value = self._value_format.decode(value)
            except RopewalkError as error:
                for later in reversed(messages[number:]):
                    held = self._assignment.held(later.topic_partition)
                    held.go_back(later.offset)
                    self._fetcher.forget(later.topic_partition)
                if decoded:
                    return decoded
                error.add_note(f"at {message.topic_partition}, offset {message.offset}")
                raise
            decoded.append(replace(message, key=key, value=value))
        return decoded

    def _commit_when_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if (
            self.settings.enable_auto_commit
            and now_ms - self._committed_at_ms >= self.settings.auto_commit_interval_ms
        ):
            self._committed_at_ms = now_ms
            if self._assignment.partitions:
                self.commit_soon()

    async def _commit_automatically(self, deadline_ms: float) -> None:
        """Before partitions are given up. What cannot be committed will be read again, which is what is promised."""
        if self.settings.enable_auto_commit and self._group is not None and self._assignment.partitions:
            try:
                await self._commits.send(self._commit_of(None), deadline_ms=deadline_ms)
            except RopewalkError:
                return

    def _commit_of(self, offsets: Mapping[TopicPartition, int | OffsetToCommit] | None) -> Commit:
        chosen = self.positions() if offsets is None else _to_commit(offsets)
        return self._commits.ask(chosen, is_members=self._membership is not None)

    async def _committed_of(
        self, partitions: Iterable[TopicPartition], deadline_ms: float
    ) -> dict[TopicPartition, Committed]:
        if self._group is None:
            return {}
        return await group_offsets.fetch(
            self._coordinators,
            self._group,
            partitions=partitions,
            member=self.group_identity() if self.settings.group_protocol == "consumer" else None,
            require_stable=True,
            deadline_ms=deadline_ms,
        )

    async def _ends(
        self, partitions: Iterable[TopicPartition], query: OffsetQuery
    ) -> dict[TopicPartition, int]:
        found = await self._client.list_known_offsets(
            dict.fromkeys(partitions, query), isolation=self.settings.isolation
        )
        return {partition: listed.offset for partition, listed in sorted(found.items())}

    def _seek_to(self, partitions: Iterable[TopicPartition], query: OffsetQuery) -> None:
        for partition in list(partitions) or sorted(self._assignment.partitions):
            self._assignment.held(partition).lose_position(query)
            self._forget(partition)
        self._news.set()

    def _forget(self, partition: TopicPartition) -> None:
        self._fetcher.forget(partition)
        self._undelivered = deque(
            message for message in self._undelivered if message.topic_partition != partition
        )

    async def _wait_for_news(self, timeout_ms: float) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._news.wait()
        except TimeoutError:
            return

    def _the_group(self) -> str:
        if self._group is None:
            raise Misuse("a consumer without a group commits nothing: give it a group")
        return self._group

    def _check_running(self) -> None:
        if self._bug is not None:
            raise RuntimeError("the consumer's background work failed") from self._bug
        if not self._is_running:
            raise Misuse("the consumer is closed, or was not started: use it as a context manager")

    def _on_bug(self, name: str, error: BaseException) -> None:
        del name
        self._bug = error
        self._news.set()

    async def _stop(self) -> None:
        self._is_running = False
        self._fetcher.stop()
        await self._tasks.stop()
        self._client.close()


async def _call_here(callback: Callback, partitions: list[TopicPartition]) -> None:
    outcome = callback(partitions)
    if isawaitable(outcome):
        await outcome


def _to_commit(offsets: Mapping[TopicPartition, Any]) -> dict[TopicPartition, OffsetToCommit]:
    return {
        partition: offset if isinstance(offset, OffsetToCommit) else OffsetToCommit(offset)
        for partition, offset in offsets.items()
    }
