"""A member of a classic group: join, be given a share, keep saying that one is alive.

    nobody ── join ──▶ joining ──▶ settled ──▶ stable
       ▲                                │ a rebalance, or another subscription
       └──────────── lost ◀─────────────┘

What a reader could get wrong
    Joining waits for the other members, so it runs in the background, on a connection of its own. What it brings is applied
    when the application polls: callbacks run there and nowhere else.
    A member with an eager assignor gives everything up before it joins. A cooperative one keeps what it has, gives up only
    what it is not given again, and then joins once more so that others can have it.
    Whoever hears that it is no longer a member has lost its partitions already: there is nothing to give up.
    What the application commits belongs to the generation that it knows (`identity`). The member itself may be ahead of it: thrown
    out, or in a later generation whose partitions the application has not been given yet.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import GroupIdentity
from ropewalk.client.connections.cluster import Lane
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.coordinators import Coordinators
from ropewalk.client.consuming.assignors import Candidate, assign
from ropewalk.client.consuming.settings import ConsumerSettings
from ropewalk.client.consuming.subscription import Change, Subscription
from ropewalk.client.errors import RemoteError, is_retriable
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire import consumer_protocol
from ropewalk.wire.consumer_protocol import StickyPast, TopicPartitions
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import heartbeat, join_group, leave_group, sync_group

_SUBSCRIPTION_VERSION: Final = 2
_ASSIGNMENT_VERSION: Final = 1
_JOIN_LATE_MS: Final = 5_000
"""How much longer than the rebalance may take the answer to a JoinGroup may take."""

_FORMER: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
"""The group goes on without this member."""

_NOTHING: Final[frozenset[TopicPartition]] = frozenset()


class ClassicMember:
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
        self._is_cooperative: Final = settings.assignor == "cooperative-sticky"
        self._calls = Coordinators(client.session)
        self._joins = Coordinators(client.session, lane=Lane.JOINS)
        self._subscription = Subscription()
        self._member_id = ""
        self._generation = -1
        self._owned: frozenset[TopicPartition] = _NOTHING
        self._lost: frozenset[TopicPartition] = _NOTHING
        self._given: frozenset[TopicPartition] | None = None
        """The outcome of a rebalance that the application has not been told of yet."""
        self._must_join = False
        self._is_joining = False
        self._is_leader = False
        self._known_counts: dict[str, int] = {}
        self._polled_at_ms = 0.0
        self._failure: RopewalkError | None = None
        self._round = 0
        self._is_beating = False
        self._remembered: frozenset[TopicPartition] = _NOTHING
        """What it was given last, also when it has given it up: the sticky assignor asks."""
        self._has_left = False
        self._known = self._present()
        """The member and generation in which the application was given what it holds."""

    @property
    def identity(self) -> GroupIdentity:
        return self._known

    def _present(self) -> GroupIdentity:
        return GroupIdentity(self._group, self._generation, self._member_id, self._settings.group_instance_id)

    def subscribe(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._must_join = True

    def on_poll(self, now_ms: float) -> None:
        self._polled_at_ms = now_ms
        if self._must_join and not self._is_joining and not self._waits_for_application():
            self._is_joining = True
            self._must_join = False
            self._round += 1
            self._tasks.start(f"join {self._round} of {self._group}", self._join())

    def next_change(self) -> Change | None:
        if self._failure is not None:
            failure = self._failure
            if not isinstance(failure, RemoteError) or failure.code is not ErrorCode.FENCED_INSTANCE_ID:
                self._failure = None  # worth another try, if the application wants one
                self._must_join = True
            raise failure
        if self._lost:
            return Change(lost=self._lost)
        if self._given is not None and not self._is_joining:
            given = self._given
            return Change(revoked=self._owned - given, added=given - self._owned, is_rebalance=True)
        if self._must_join and not self._is_joining and not self._is_cooperative and self._owned:
            return Change(revoked=self._owned)
        return None

    def on_done(self, change: Change) -> None:
        if change.lost:
            self._lost = _NOTHING
        elif change.is_rebalance:
            given, self._given = self._given, None
            self._owned = given if given is not None else self._owned
            if given is not None:
                self._known = self._present()
            if change.revoked:
                self._must_join = True  # so that others can be given what was given up
        else:
            self._owned -= change.revoked

    async def leave(self, *, deadline_ms: float) -> None:
        """A static member stays in the group until its session ends: it is expected back."""
        self._has_left = True
        if not self._member_id or self._settings.group_instance_id is not None:
            return
        member = leave_group.MemberIdentity(member_id=self._member_id, reason="the consumer was closed")
        request = leave_group.LeaveGroupRequest(
            group_id=self._group, member_id=self._member_id, members=(member,)
        )
        self._member_id, self._generation = "", -1

        async def once(connection: Connection) -> None:
            await connection.call(leave_group.API, request, deadline_ms=deadline_ms)

        await self._calls.ask(self._group, once, deadline_ms=deadline_ms)

    def _waits_for_application(self) -> bool:
        return bool(self._lost) or self._given is not None or (not self._is_cooperative and bool(self._owned))

    async def _join(self) -> None:
        """Until there is a share, or a reason why there will be none."""
        try:
            given = await self._join_once()
            while given is None:
                given = await self._join_once()
                if given is None:  # more than a member id was missing
                    await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
            self._given = given
        except RopewalkError as error:
            if is_retriable(error):
                self._must_join = True  # with the next poll
            else:
                self._failure = error
        finally:
            self._is_joining = False
        self._on_news()

    async def _join_once(self) -> frozenset[TopicPartition] | None:
        try:
            joined = await self._ask_to_join()
            self._member_id, self._generation = joined.member_id, joined.generation_id
            if self._owned:
                # Held through the rebalance, which nobody else is given before the application has let go of it.
                self._known = self._present()
            if not self._is_beating:
                self._beat()
            self._is_leader = joined.leader == joined.member_id
            shares: tuple[sync_group.SyncGroupRequestAssignment, ...] = ()
            if self._is_leader and not joined.skip_assignment:
                shares = await self._share_out(joined)
            return await self._sync(joined, shares)
        except RemoteError as error:
            if error.code is ErrorCode.MEMBER_ID_REQUIRED:
                return None
            if error.code in _FORMER:
                self._on_former()
                return None
            if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
                return None
            raise

    async def _ask_to_join(self) -> join_group.JoinGroupResponse:
        settings = self._settings
        rebalance_timeout_ms = settings.max_poll_interval_ms
        until_ms = self._session.deadline_ms(rebalance_timeout_ms + _JOIN_LATE_MS)
        topics = await self._topics(until_ms)

        async def once(connection: Connection) -> join_group.JoinGroupResponse:
            request = join_group.JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=settings.session_timeout_ms,
                rebalance_timeout_ms=rebalance_timeout_ms,
                member_id=self._member_id,
                instance_id=settings.group_instance_id,
                protocol_type=consumer_protocol.CONSUMER_PROTOCOL_TYPE,
                protocols=(
                    join_group.JoinGroupRequestProtocol(settings.assignor, self._introduction(topics)),
                ),
            )
            response = await connection.call(join_group.API, request, deadline_ms=until_ms)
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=self._group)
            return response

        return await self._joins.ask(self._group, once, deadline_ms=until_ms)

    def _introduction(self, topics: Iterable[str]) -> bytes:
        owned = _grouped(self._owned)
        past = None
        if self._settings.assignor == "sticky":
            past = consumer_protocol.encode_sticky_past(StickyPast(self._past(), self._generation))
        return consumer_protocol.encode(
            consumer_protocol.Subscription(
                topics=tuple(sorted(topics)),
                user_data=past,
                owned_partitions=owned,
                generation_id=self._generation if owned else -1,
            ),
            _SUBSCRIPTION_VERSION,
        )

    def _past(self) -> tuple[TopicPartitions, ...]:
        return _grouped(self._remembered)

    async def _topics(self, until_ms: float) -> list[str]:
        if self._subscription.pattern is None:
            return sorted(self._subscription.topics)
        view = await self._client.metadata(None, deadline_ms=until_ms)
        return sorted(
            topic.name
            for topic in view.topics
            if not topic.is_internal and self._subscription.matches(topic.name)
        )

    async def _share_out(
        self, joined: join_group.JoinGroupResponse
    ) -> tuple[sync_group.SyncGroupRequestAssignment, ...]:
        candidates = [_candidate(member, self._settings.assignor) for member in joined.members]
        wanted = sorted({topic for candidate in candidates for topic in candidate.topics})
        self._known_counts = await self._counts(wanted)
        shares = assign(joined.protocol_name or self._settings.assignor, candidates, self._known_counts)
        return tuple(
            sync_group.SyncGroupRequestAssignment(
                member,
                consumer_protocol.encode(consumer_protocol.Assignment(_grouped(share)), _ASSIGNMENT_VERSION),
            )
            for member, share in shares.items()
        )

    async def _counts(self, topics: list[str]) -> dict[str, int]:
        view = await self._client.metadata(topics)
        return {topic.name: len(topic.partitions) for topic in view.topics if topic.partitions}

    async def _sync(
        self,
        joined: join_group.JoinGroupResponse,
        shares: tuple[sync_group.SyncGroupRequestAssignment, ...],
    ) -> frozenset[TopicPartition]:
        until_ms = self._session.deadline_ms(self._settings.max_poll_interval_ms + _JOIN_LATE_MS)
        request = sync_group.SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            instance_id=self._settings.group_instance_id,
            protocol_type=consumer_protocol.CONSUMER_PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=shares,
        )

        async def once(connection: Connection) -> sync_group.SyncGroupResponse:
            response = await connection.call(sync_group.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=self._group)
            return response

        response = await self._joins.ask(self._group, once, deadline_ms=until_ms)
        assignment = consumer_protocol.decode_assignment(response.assignment)
        given = frozenset(
            TopicPartition(topic.topic, index)
            for topic in (assignment.assigned_partitions if assignment is not None else ())
            for index in topic.partitions
        )
        self._remembered = given
        return given

    def _beat(self) -> None:
        self._is_beating = True
        self._tasks.start(f"heartbeats {self._round} of {self._group}", self._heartbeats())

    async def _heartbeats(self) -> None:
        settings, clock = self._settings, self._session.clock
        looked_at_ms = clock.monotonic_ms()
        while True:
            await asyncio.sleep(settings.heartbeat_interval_ms / 1000)
            if self._has_left:
                return
            now_ms = clock.monotonic_ms()
            if self._generation < 0 or self._is_joining:
                continue  # JoinGroup itself says that the member is alive
            if now_ms - self._polled_at_ms > settings.max_poll_interval_ms:
                await self._fall_out()
                continue
            await self._beat_once()
            if self._is_leader and now_ms - looked_at_ms >= settings.metadata_max_age_ms:
                looked_at_ms = now_ms
                await self._look_for_growth()

    async def _beat_once(self) -> None:
        identity = self._present()
        until_ms = self._session.deadline_ms(self._settings.session_timeout_ms)

        async def once(connection: Connection) -> None:
            request = heartbeat.HeartbeatRequest(
                self._group, identity.generation, identity.member_id, identity.instance_id
            )
            response = await connection.call(heartbeat.API, request, deadline_ms=until_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=self._group)

        try:
            await self._calls.ask(self._group, once, deadline_ms=until_ms)
        except RopewalkError as error:
            if self._present() != identity or self._is_joining:
                return  # about a generation that is over
            code = error.code if isinstance(error, RemoteError) else None
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                self._must_join = True
            elif code in _FORMER or is_retriable(error) or code is None:
                self._on_former()  # told so, or nobody reached for a whole session
                self._must_join = True
            else:
                self._failure = error
            self._on_news()

    async def _look_for_growth(self) -> None:
        """Topics grow, and new ones match a pattern: the leader looks, and has everything shared out anew."""
        try:
            topics = await self._topics(self._session.deadline_ms())
            counts = await self._counts(sorted({*self._known_counts, *topics}))
        except RopewalkError:
            return  # it will look again
        if counts != self._known_counts:
            self._must_join = True
            self._on_news()

    async def _fall_out(self) -> None:
        """The application does not poll: let others have its partitions, and join again when it does."""
        try:
            await self._leave_for_now()
        finally:
            self._on_former()
            self._must_join = True
            self._on_news()

    async def _leave_for_now(self) -> None:
        has_left = self._has_left
        try:
            await self.leave(deadline_ms=self._session.deadline_ms(self._settings.request_timeout_ms))
        except RopewalkError:
            return  # its session will end all the same
        finally:
            self._has_left = has_left

    def _on_former(self) -> None:
        self._member_id, self._generation = "", -1
        self._given = None
        self._lost |= self._owned
        self._owned = _NOTHING
        self._remembered = _NOTHING


def _candidate(member: join_group.JoinGroupResponseMember, assignor: str) -> Candidate:
    subscription = consumer_protocol.decode_subscription(member.metadata)
    if subscription is None:
        return Candidate(member.member_id, frozenset(), member.instance_id)
    owned, generation = subscription.owned_partitions, subscription.generation_id
    if assignor == "sticky":
        past = consumer_protocol.decode_sticky_past(subscription.user_data)
        owned, generation = ((), -1) if past is None else (past.previous_assignment, past.generation)
    return Candidate(
        member.member_id,
        frozenset(subscription.topics),
        member.instance_id,
        tuple(TopicPartition(topic.topic, index) for topic in owned for index in topic.partitions),
        generation,
    )


def _grouped(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return tuple(TopicPartitions(topic, tuple(indexes)) for topic, indexes in by_topic.items())
