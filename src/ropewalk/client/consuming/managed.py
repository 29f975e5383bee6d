"""A member of a group whose server assigns the partitions (KIP-848): heartbeats are all it ever sends.

What a reader could get wrong
    The answer to a heartbeat may carry a target. The member walks towards it when the application polls: it gives up first,
    says so with its next heartbeat, and is only then given what others have given up.
    A member makes its own id and keeps it for life. Fenced, it has lost its partitions and joins again with epoch 0.
    Targets name topics by id: one that is not known yet waits until it is.
    What the application commits belongs to the epoch that it knows (`identity`). A member that was fenced is back with another
    one before the application has heard that it lost everything.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicId, TopicPartition, format_id
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import GroupIdentity
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.coordinators import Coordinators
from ropewalk.client.consuming.settings import ConsumerSettings
from ropewalk.client.consuming.subscription import Change, Subscription
from ropewalk.client.errors import LASTING, RemoteError, is_retriable
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import consumer_group_heartbeat as wire

_JOINING: Final = 0
_LEAVING: Final = -1
_LEAVING_FOR_A_WHILE: Final = -2
_AS_BEFORE: Final = -1

_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_NOTHING: Final[frozenset[TopicPartition]] = frozenset()


class ManagedMember:
    def __init__(
        self,
        client: Client,
        group: str,
        settings: ConsumerSettings,
        tasks: Supervisor,
        on_news: Callable[[], None],
    ) -> None:
        self._client = client
        self._session = client.session
        self._group: Final = group
        self._settings: Final = settings
        self._tasks = tasks
        self._on_news = on_news
        self._coordinators = Coordinators(client.session)
        self._subscription = Subscription()
        self._member_id: Final = format_id(client.session.rng.randbytes(16))
        self._epoch = _JOINING
        self._interval_ms = settings.heartbeat_interval_ms
        self._owned: frozenset[TopicPartition] = _NOTHING
        self._target: frozenset[TopicPartition] | None = None
        self._unnamed: tuple[wire.TopicPartitions, ...] | None = None
        """A target with topics that are not known by name yet."""
        self._lost: frozenset[TopicPartition] = _NOTHING
        self._names: dict[TopicId, str] = {}
        self._ids: dict[str, TopicId] = {}
        self._says_all = True
        self._was_told: frozenset[TopicPartition] | None = None
        """What the coordinator knows this member to own."""
        self._is_beating = False
        self._has_left = False
        self._polled_at_ms = 0.0
        self._failure: RopewalkError | None = None
        self._bell = asyncio.Event()
        self._known_epoch = _JOINING
        """The epoch in which the application holds what it holds."""

    @property
    def identity(self) -> GroupIdentity:
        return GroupIdentity(
            self._group, self._known_epoch, self._member_id, self._settings.group_instance_id
        )

    def subscribe(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._says_all = True
        self._bell.set()

    def on_poll(self, now_ms: float) -> None:
        self._polled_at_ms = now_ms
        if not self._is_beating and self._failure is None:
            self._is_beating = True
            self._has_left = False
            self._tasks.start(f"membership of {self._group} at {now_ms}", self._heartbeats())

    def next_change(self) -> Change | None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._lost:
            return Change(lost=self._lost)
        target = self._target
        if target is None:
            return None
        revoked = self._owned - target
        if revoked:
            return Change(revoked=revoked)
        return Change(added=target - self._owned, is_rebalance=True)

    def on_done(self, change: Change) -> None:
        if change.lost:
            self._lost = _NOTHING
        elif change.revoked:
            self._owned -= change.revoked
        else:
            self._owned |= change.added
            self._target = None
            self._known_epoch = self._epoch
        self._bell.set()  # the coordinator waits to hear of it

    async def leave(self, *, deadline_ms: float) -> None:
        self._has_left = True
        self._bell.set()
        if self._epoch == _JOINING:
            return
        is_static = self._settings.group_instance_id is not None
        epoch = _LEAVING_FOR_A_WHILE if is_static else _LEAVING
        self._epoch = _JOINING
        request = wire.ConsumerGroupHeartbeatRequest(
            self._group, self._member_id, epoch, instance_id=self._settings.group_instance_id
        )

        async def once(connection: Connection) -> None:
            await connection.call(wire.API, request, deadline_ms=deadline_ms)

        await self._coordinators.ask(self._group, once, deadline_ms=deadline_ms)

    async def _heartbeats(self) -> None:
        try:
            while not self._has_left and self._failure is None:
                await self._beat()
                await self._wait_for_next()
                now_ms = self._session.clock.monotonic_ms()
                if now_ms - self._polled_at_ms > self._settings.max_poll_interval_ms and not self._has_left:
                    await self._fall_out()
                    return
        finally:
            self._is_beating = False

    async def _wait_for_next(self) -> None:
        try:
            async with asyncio.timeout(self._interval_ms / 1000):
                await self._bell.wait()
        except TimeoutError:
            pass
        self._bell.clear()

    async def _beat(self) -> None:
        until_ms = self._session.deadline_ms(self._settings.session_timeout_ms)
        request = self._request()
        owned = self._owned

        async def once(connection: Connection) -> wire.ConsumerGroupHeartbeatResponse:
            response = await connection.call(wire.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, response.error_message, about=self._group)
            return response

        try:
            response = await self._coordinators.ask(self._group, once, deadline_ms=until_ms)
            if self._has_left:
                return
            self._says_all = False
            self._was_told = owned
            self._epoch = response.member_epoch
            if self._owned:  # held without a break since the epoch before
                self._known_epoch = self._epoch
            self._interval_ms = response.heartbeat_interval_ms or self._interval_ms
            if response.assignment is not None:
                self._unnamed = response.assignment.topic_partitions
            await self._name_target()
        except RopewalkError as error:
            self._on_error(error)

    def _on_error(self, error: RopewalkError) -> None:
        code = error.code if isinstance(error, RemoteError) else None
        self._says_all = True
        if isinstance(error, LASTING):
            self._failure = error
        elif code in _FENCED or code is None or code is ErrorCode.STALE_MEMBER_EPOCH:
            if self._epoch != _JOINING:
                self._bell.set()  # join again; but who is refused as it joins does not ask again at once
            self._epoch = _JOINING
            self._lost |= self._owned
            self._owned = _NOTHING
            self._target = self._unnamed = self._was_told = None
        elif not is_retriable(error) and code is not ErrorCode.UNRELEASED_INSTANCE_ID:
            self._failure = error
        self._on_news()

    def _request(self) -> wire.ConsumerGroupHeartbeatRequest:
        settings, subscription = self._settings, self._subscription
        says_all = self._says_all or self._epoch == _JOINING
        owned = None
        if says_all or self._owned != self._was_told:
            owned = _by_id(self._owned, self._ids)
        return wire.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=settings.group_instance_id,
            rack_id=(settings.client_rack or None) if says_all else None,
            rebalance_timeout_ms=settings.max_poll_interval_ms if says_all else _AS_BEFORE,
            subscribed_topic_names=(
                (tuple(sorted(subscription.topics)) if subscription.pattern is None else ())
                if says_all
                else None
            ),
            subscribed_topic_regex=(subscription.pattern or "")
            if says_all and subscription.pattern
            else None,
            server_assignor=settings.server_assignor if says_all else None,
            topic_partitions=owned,
        )

    async def _name_target(self) -> None:
        if self._unnamed is None:
            return
        if any(TopicId(bytes(topic.topic_id)) not in self._names for topic in self._unnamed):
            names = None if self._subscription.pattern is not None else sorted(self._subscription.topics)
            view = await self._client.metadata(names)
            self._names |= {topic.topic_id: topic.name for topic in view.topics if topic.name}
            self._ids |= {name: identifier for identifier, name in self._names.items()}
        unnamed = self._unnamed
        if all(TopicId(bytes(topic.topic_id)) in self._names for topic in unnamed):
            self._unnamed = None
            self._target = frozenset(
                TopicPartition(self._names[TopicId(bytes(topic.topic_id))], index)
                for topic in unnamed
                for index in topic.partitions
            )
            self._on_news()

    async def _fall_out(self) -> None:
        """The application does not poll: let others have its partitions, and join again when it does."""
        with suppress(RopewalkError):  # its session will end all the same
            await self.leave(deadline_ms=self._session.deadline_ms(self._settings.request_timeout_ms))
        self._epoch = _JOINING
        self._says_all = True
        self._lost |= self._owned
        self._owned = _NOTHING
        self._target = self._unnamed = self._was_told = None
        self._on_news()


def _by_id(
    partitions: frozenset[TopicPartition], ids: dict[str, TopicId]
) -> tuple[wire.TopicPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return tuple(wire.TopicPartitions(ids[topic], tuple(indexes)) for topic, indexes in by_topic.items())
