"""Receives that front ends on other nodes have left with this leader, and what has come of them.

A front end has a session here. What is given to one of its receives waits in the session's outbox for its standing poll, which also says how much
of what it was told before it has taken.

Invariants
    A delivery is kept until the front end says that it has taken it, or the session ends.
    When a session ends, what it was given and had not taken is visible again at once and not counted on a standard queue. A FIFO queue waits for the deadline:
    a client may have it.

What a reader could get wrong
    A withdrawal may cross a delivery. What is in the outbox is given back here; what is on its way is given back by the front end.
    An answer that nobody polls for keeps its session alive for a while only: a front end that is gone may not have said goodbye.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from ropewalk.base.errors import QueueNotReady, RopewalkError, Throttled
from ropewalk.base.ids import NodeId, OwnerId
from ropewalk.base.limits import (
    QUEUE_CREDITS_PER_SESSION_MAX,
    QUEUE_DELIVERIES_BYTES_MAX,
    QUEUE_SESSION_SILENCE_MS_MAX,
    QUEUE_SESSIONS_MAX,
)
from ropewalk.broker.queues.hosted_queue import Asked, HostedQueue
from ropewalk.queues.answers import Received
from ropewalk.queues.messages import Credit, Delivered, Delivery
from ropewalk.runtime.steps import begin

Find = Callable[[OwnerId, int], HostedQueue]
"""By the queue's id and the partition's index; raises `UnknownQueue` or `QueueNotReady`."""


class _Pending(Struct, frozen=True):
    hosted: HostedQueue
    asked: Asked[Received]


class _Outgoing(Struct, frozen=True):
    delivery: Delivery
    hosted: HostedQueue | None
    received: Received
    size_bytes: int


class _Session:
    def __init__(self) -> None:
        self.is_over = False
        self.pending: dict[int, _Pending] = {}
        self.outbox: list[_Outgoing] = []
        """Those at the beginning may have been told, and are kept until they are taken."""
        self.told_count = 0
        """Of the outbox."""
        self.taken_count = 0
        """In all."""
        self.poll: asyncio.Future[None] | None = None
        self.silence: asyncio.TimerHandle | None = None


class Credits:
    def __init__(self, find: Find) -> None:
        self._find = find
        self._sessions: dict[bytes, _Session] = {}

    def leave(self, node_id: NodeId, session_id: bytes, credits: Iterable[Credit]) -> None:
        """Each is asked and noted in one step; a refusal is a delivery, too. Raises `Throttled` where there are too many."""
        session = self._session(session_id)
        for credit in credits:
            if len(session.pending) + len(session.outbox) >= QUEUE_CREDITS_PER_SESSION_MAX:
                raise Throttled(
                    f"node {node_id} has left {QUEUE_CREDITS_PER_SESSION_MAX} receives here already"
                )
            self._leave(session, credit)

    def withdraw(self, session_id: bytes, tokens: Sequence[int]) -> None:
        session = self._sessions.get(session_id)
        if session is None:
            return
        for token in tokens:
            pending = session.pending.pop(token, None)
            if pending is not None:
                pending.hosted.forget(pending.asked.token)
        withdrawn = set(tokens)
        kept = session.outbox[: session.told_count]
        for each in session.outbox[session.told_count :]:
            if each.delivery.token in withdrawn:
                _give_back(each)
            else:
                kept.append(each)
        session.outbox = kept

    async def poll(self, node_id: NodeId, session_id: bytes, *, taken: int, wait_ms: int) -> list[Delivery]:
        """What was not told yet, at once if there is something. May be awaited where there is no task."""
        if taken > 0 and session_id not in self._sessions:
            raise QueueNotReady(f"node {node_id} was silent for too long: what it left here is forgotten")
        session = self._session(session_id)
        newly_taken = min(max(taken - session.taken_count, 0), len(session.outbox))
        del session.outbox[:newly_taken]
        session.taken_count += newly_taken
        session.told_count = 0  # what was told and not taken is told again
        if not session.outbox and wait_ms > 0:
            await self._wait(session, wait_ms)
        self._await_next_poll(session_id, session)
        told: list[Delivery] = []
        size_bytes = 0
        for each in session.outbox:
            if told and size_bytes + each.size_bytes > QUEUE_DELIVERIES_BYTES_MAX:
                break
            told.append(each.delivery)
            size_bytes += each.size_bytes
        session.told_count = len(told)
        return told

    def end(self, session_id: bytes) -> None:
        """The front end is gone, as far as anybody can tell."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        session.is_over = True
        if session.silence is not None:
            session.silence.cancel()
        if session.poll is not None and not session.poll.done():
            session.poll.set_result(None)
        for pending in session.pending.values():
            pending.hosted.forget(pending.asked.token)
        session.pending = {}
        for each in session.outbox:
            _give_back_untaken(each)
        session.outbox = []

    def stop(self) -> None:
        for session_id in list(self._sessions):
            self.end(session_id)

    def _session(self, session_id: bytes) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            if len(self._sessions) >= QUEUE_SESSIONS_MAX:
                raise Throttled(f"{QUEUE_SESSIONS_MAX} front ends receive from here already")
            session = self._sessions[session_id] = _Session()
            self._await_next_poll(session_id, session)
        return session

    def _leave(self, session: _Session, credit: Credit) -> None:
        try:
            hosted = self._find(credit.queue_id, credit.partition)
            asked = hosted.receive(credit.receive)
        except RopewalkError as error:
            self._put(
                session, _Outgoing(Delivery(credit.token, credit.queue_id, error), None, Received(0), 0)
            )
            return
        session.pending[credit.token] = _Pending(hosted, asked)
        asked.answer.add_done_callback(partial(self._on_answered, session, credit.token, hosted))

    def _on_answered(
        self, session: _Session, token: int, hosted: HostedQueue, answer: "asyncio.Future[Received]"
    ) -> None:
        if answer.cancelled():
            return
        is_wanted = session.pending.pop(token, None) is not None
        failure = answer.exception()
        if failure is not None:
            if not isinstance(failure, RopewalkError):
                raise failure
            if is_wanted:
                self._put(
                    session, _Outgoing(Delivery(token, hosted.queue.queue_id, failure), None, Received(0), 0)
                )
        elif not is_wanted:
            hosted.release(answer.result())
        else:
            received = answer.result()
            begin(hosted.deliver(received), partial(self._on_read, session, token, hosted, received))

    def _on_read(
        self,
        session: _Session,
        token: int,
        hosted: HostedQueue,
        received: Received,
        delivered: list[Delivered] | None,
        failure: BaseException | None,
    ) -> None:
        queue_id = hosted.queue.queue_id
        if failure is not None:
            if not isinstance(failure, RopewalkError):
                raise failure
            hosted.release(received)
            self._put(session, _Outgoing(Delivery(token, queue_id, failure), None, received, 0))
            return
        messages = tuple(delivered or ())
        size_bytes = sum([_size_of(each) for each in messages])
        self._put(session, _Outgoing(Delivery(token, queue_id, messages), hosted, received, size_bytes))

    def _put(self, session: _Session, outgoing: _Outgoing) -> None:
        if session.is_over:  # while it was read from the disk
            _give_back_untaken(outgoing)
            return
        session.outbox.append(outgoing)
        if session.poll is not None and not session.poll.done():
            session.poll.set_result(None)

    def _wait(self, session: _Session, wait_ms: int) -> "asyncio.Future[None]":
        if session.silence is not None:
            session.silence.cancel()
            session.silence = None
        if session.poll is not None and not session.poll.done():
            session.poll.set_result(None)  # only one stands at a time
        loop = asyncio.get_running_loop()
        poll: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(wait_ms / 1000, _let_go, poll)
        poll.add_done_callback(lambda _: timer.cancel())
        session.poll = poll
        return poll

    def _await_next_poll(self, session_id: bytes, session: _Session) -> None:
        if session.is_over:
            return
        if session.silence is not None:
            session.silence.cancel()
        loop = asyncio.get_running_loop()
        session.silence = loop.call_later(QUEUE_SESSION_SILENCE_MS_MAX / 1000, self.end, session_id)


def _give_back(outgoing: _Outgoing) -> None:
    if outgoing.hosted is not None:
        outgoing.hosted.release(outgoing.received)


def _give_back_untaken(outgoing: _Outgoing) -> None:
    """Of a session that is over. On a FIFO queue a client may have it."""
    if outgoing.hosted is not None and not outgoing.hosted.settings.is_fifo:
        outgoing.hosted.release(outgoing.received)


def _size_of(delivered: Delivered) -> int:
    record = delivered.record
    size_bytes = 100 + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size_bytes += len(name) + len(value or b"") + 8
    return size_bytes


def _let_go(poll: "asyncio.Future[None]") -> None:
    if not poll.done():
        poll.set_result(None)
