"""Receives that this node leaves with leaders of queues on other nodes, and what comes of them.

With each leader there is a session: receives are left and taken back by requests that are answered at once, and one standing poll brings what the leader has
acquired against them. What comes for a receive that is no longer there, since its client has gone or another leader was quicker, is given back
at once and not counted.

What a reader could get wrong
    A session ends with its first failed call. Everyone who waits in it hears `QueueNotReady`, and may leave its receive with whoever leads
    by then; the leader gives what was not taken to others.
    A leader that hangs breaks nothing: who waits at one that leads no more is sent away when the image says so (`on_leaders_changed`).
    The poll goes on until the leader knows what was taken, also when nobody waits any more.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import NodeStopping, QueueNotReady, RopewalkError
from ropewalk.base.ids import NodeId, OwnerId
from ropewalk.base.limits import QUEUE_CALL_MS_MAX, QUEUE_CREDITS_TOGETHER_MAX, QUEUE_POLL_MS
from ropewalk.base.ports import Rng
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.peers.calls.queue_credits import leave_credits, take_deliveries
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Credit, Delivered, Delivery
from ropewalk.runtime.errands import Errands

_SESSION_BYTES: Final = 16


class Left(Struct, frozen=True):
    """A receive that was left with a leader. Await `answer`: messages, perhaps none."""

    node_id: NodeId
    token: int
    answer: "asyncio.Future[tuple[Delivered, ...]]"


class _Waiting(Struct, frozen=True):
    queue_id: OwnerId
    partition: int
    answer: "asyncio.Future[tuple[Delivered, ...]]"


class _Session:
    def __init__(self, session_id: bytes) -> None:
        self.session_id = session_id
        self.waiting: dict[int, _Waiting] = {}
        self.to_leave: dict[int, Credit] = {}
        self.to_withdraw: list[int] = []
        self.is_telling = False
        self.is_polling = False
        self.taken = 0
        self.is_told = True
        """Whether the leader knows what was taken."""


class QueuePolls:
    def __init__(
        self,
        dispatch: Dispatch,
        errands: Errands,
        rng: Rng,
        give_back: Callable[[NodeId, OwnerId, tuple[Delivered, ...]], None],
    ) -> None:
        """`give_back` has messages released at their leader, and waits for nothing."""
        self._dispatch = dispatch
        self._errands = errands
        self._rng = rng
        self._give_back = give_back
        self._sessions: dict[NodeId, _Session] = {}
        self._tokens = count(1)

    def leave(self, node_id: NodeId, queue_id: OwnerId, partition: int, receive: Receive) -> Left:
        """Raises `Throttled` where too much is under way."""
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = _Session(self._rng.randbytes(_SESSION_BYTES))
        token = next(self._tokens)
        credit = Credit(token, queue_id, partition, receive)
        answer: asyncio.Future[tuple[Delivered, ...]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_forget)
        session.waiting[token] = _Waiting(queue_id, partition, answer)
        session.to_leave[token] = credit
        try:
            self._keep_going(node_id, session)
        except RopewalkError:
            del session.waiting[token]
            session.to_leave.pop(token, None)
            raise
        return Left(node_id, token, answer)

    def withdraw(self, left: Left) -> None:
        """Its client does not wait any more. Of what was delivered already the caller disposes."""
        session = self._sessions.get(left.node_id)
        if session is None or session.waiting.pop(left.token, None) is None:
            return
        if session.to_leave.pop(left.token, None) is None:
            session.to_withdraw.append(left.token)
            with suppress(RopewalkError):  # the receive ends by itself, at the leader
                self._keep_going(left.node_id, session)

    def on_leaders_changed(self, leads: Callable[[NodeId, OwnerId, int], bool]) -> None:
        """Those who wait at a node that does not lead any more may leave their receives with the next."""
        for node_id, session in list(self._sessions.items()):
            for token, waiting in list(session.waiting.items()):
                if not leads(node_id, waiting.queue_id, waiting.partition):
                    self.withdraw(Left(node_id, token, waiting.answer))
                    if not waiting.answer.done():
                        waiting.answer.set_exception(
                            QueueNotReady(f"node {node_id} does not lead it any more")
                        )

    def _keep_going(self, node_id: NodeId, session: _Session) -> None:
        if not session.is_telling and (session.to_leave or session.to_withdraw):
            self._errands.begin(self._tell(node_id, session))
            session.is_telling = True
        if not session.is_polling and (session.waiting or not session.is_told):
            self._errands.begin(self._poll(node_id, session))
            session.is_polling = True

    async def _tell(self, node_id: NodeId, session: _Session) -> None:
        """One request at a time: what comes up meanwhile goes with the next."""
        try:
            while session.to_leave or session.to_withdraw:
                tokens = list(session.to_leave)[:QUEUE_CREDITS_TOGETHER_MAX]
                credits = [session.to_leave.pop(token) for token in tokens]
                withdrawn, session.to_withdraw = session.to_withdraw, []
                call = leave_credits(session.session_id, credits, withdrawn)
                await self._dispatch.over_link(node_id, call, timeout_ms=QUEUE_CALL_MS_MAX)
        except RopewalkError as error:
            self._break(node_id, session, error)
        except asyncio.CancelledError:
            self._break(node_id, session, NodeStopping("the node is shutting down"))
            raise
        finally:
            session.is_telling = False

    async def _poll(self, node_id: NodeId, session: _Session) -> None:
        try:
            while self._sessions.get(node_id) is session and (session.waiting or not session.is_told):
                call = take_deliveries(
                    session.session_id, taken=session.taken, wait_ms=QUEUE_POLL_MS if session.waiting else 0
                )
                deliveries = await self._dispatch.over_link(
                    node_id, call, timeout_ms=QUEUE_POLL_MS + QUEUE_CALL_MS_MAX
                )
                session.is_told = True
                for delivery in deliveries:
                    self._on_delivery(node_id, session, delivery)
            if self._sessions.get(node_id) is session:
                del self._sessions[node_id]  # the next receive begins another: the leader forgets this one
        except RopewalkError as error:
            self._break(node_id, session, error)
        except asyncio.CancelledError:
            self._break(node_id, session, NodeStopping("the node is shutting down"))
            raise
        finally:
            session.is_polling = False

    def _on_delivery(self, node_id: NodeId, session: _Session, delivery: Delivery) -> None:
        session.taken += 1
        session.is_told = False
        waiting = session.waiting.pop(delivery.token, None)
        answer = None if waiting is None else waiting.answer
        if answer is None or answer.done():
            if not isinstance(delivery.outcome, RopewalkError) and delivery.outcome:
                self._give_back(node_id, delivery.queue_id, delivery.outcome)
        elif isinstance(delivery.outcome, RopewalkError):
            answer.set_exception(delivery.outcome)
        else:
            answer.set_result(delivery.outcome)

    def _break(self, node_id: NodeId, session: _Session, error: RopewalkError) -> None:
        """Whatever the leader does with what was left there, nobody here hears of it."""
        if self._sessions.get(node_id) is session:
            del self._sessions[node_id]
        waiting, session.waiting = session.waiting, {}
        session.to_leave, session.to_withdraw, session.is_told = {}, [], True
        for each in waiting.values():
            if not each.answer.done():
                each.answer.set_exception(
                    QueueNotReady(f"node {node_id}, which leads it, was not heard: {error}")
                )


def _forget(answer: "asyncio.Future[tuple[Delivered, ...]]") -> None:
    """A refusal that nobody came for, since its client has gone, is not worth asyncio's complaint."""
    if not answer.cancelled():
        answer.exception()
