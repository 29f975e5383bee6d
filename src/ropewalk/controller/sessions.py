"""Which brokers are alive, as far as one controller can tell.

Sessions are kept in memory by the active controller alone. They are a failure detector and prove nothing: to be wrong about
a broker costs an election, never a record.

Behaviour worth knowing
    A broker is missed when its heartbeats have been silent for the session timeout, or when the last connection they came by
    has closed and none has opened for a short while: a process that was killed closes its connections at once.
    A controller that takes over has heard from nobody yet. Everybody has a short while to find it: a broker that died
    together with the former controller has no connection here whose end could tell.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

from ropewalk.base.ids import NodeId

L = TypeVar("L")


class _Session:
    __slots__ = ("awaited_until_ms", "broker_epoch", "connection_count", "heard_at_ms", "lost_at_ms")

    def __init__(self, broker_epoch: int, now_ms: int, awaited_until_ms: int | None = None) -> None:
        self.broker_epoch = broker_epoch
        self.heard_at_ms = now_ms
        self.awaited_until_ms = awaited_until_ms
        """By when it must have been heard at all; None once it has."""
        self.connection_count = 0
        self.lost_at_ms: int | None = None
        """When the last connection closed, while none is open."""


class Sessions(Generic[L]):
    """`L` is what brokers report of their load."""

    __slots__ = ("_loads", "_sessions", "connection_grace_ms", "session_timeout_ms", "take_over_grace_ms")

    def __init__(self, *, session_timeout_ms: int, connection_grace_ms: int, take_over_grace_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.connection_grace_ms = connection_grace_ms
        self.take_over_grace_ms = take_over_grace_ms
        self._sessions: dict[NodeId, _Session] = {}
        self._loads: dict[NodeId, L] = {}

    def begin(self, brokers: Iterable[tuple[NodeId, int]], now_ms: int) -> None:
        """This controller decides from here on: every broker, with its epoch, has a session that has just begun."""
        until_ms = now_ms + self.take_over_grace_ms
        self._sessions = {
            node_id: _Session(broker_epoch, now_ms, until_ms) for node_id, broker_epoch in brokers
        }

    def on_registered(self, node_id: NodeId, broker_epoch: int, now_ms: int) -> None:
        former = self._sessions.get(node_id)
        session = self._sessions[node_id] = _Session(broker_epoch, now_ms)
        if former is not None:
            session.connection_count = former.connection_count

    def on_heartbeat(self, node_id: NodeId, broker_epoch: int, now_ms: int, load: L | None = None) -> None:
        """Call once the heartbeat is known to be of the broker's present epoch."""
        session = self._sessions.get(node_id)
        if session is None or session.broker_epoch < broker_epoch:
            self.on_registered(node_id, broker_epoch, now_ms)
            session = self._sessions[node_id]
        if session.broker_epoch > broker_epoch:
            return
        session.heard_at_ms = now_ms
        session.awaited_until_ms = None
        if session.connection_count:
            session.lost_at_ms = None
        if load is not None:
            self._loads[node_id] = load

    def on_connected(self, node_id: NodeId) -> None:
        """A connection by which the node will send heartbeats."""
        session = self._sessions.get(node_id)
        if session is not None:
            session.connection_count += 1
            session.lost_at_ms = None

    def on_connection_lost(self, node_id: NodeId, now_ms: int) -> None:
        """A connection of `on_connected` has closed. Another may be open already."""
        session = self._sessions.get(node_id)
        if session is None or session.connection_count == 0:
            return
        session.connection_count -= 1
        if session.connection_count == 0:
            session.lost_at_ms = now_ms

    def on_removed(self, node_id: NodeId) -> None:
        self._sessions.pop(node_id, None)
        self._loads.pop(node_id, None)

    def is_live(self, node_id: NodeId, now_ms: int) -> bool:
        session = self._sessions.get(node_id)
        return session is not None and now_ms < self._ends_at_ms(session)

    def missed(self, now_ms: int) -> list[tuple[NodeId, int]]:
        """Brokers, with their epochs, whose sessions have ended; the same ones each time until they are heard again."""
        return [
            (node_id, session.broker_epoch)
            for node_id, session in self._sessions.items()
            if now_ms >= self._ends_at_ms(session)
        ]

    def due_at_ms(self, now_ms: int) -> int | None:
        """When the next session ends that has not yet ended, if nothing is heard; None where there is none."""
        ends = (self._ends_at_ms(session) for session in self._sessions.values())
        return min((at_ms for at_ms in ends if at_ms > now_ms), default=None)

    def load(self, node_id: NodeId) -> L | None:
        """What the broker reported last."""
        return self._loads.get(node_id)

    def _ends_at_ms(self, session: _Session) -> int:
        ends_at_ms = session.heard_at_ms + self.session_timeout_ms
        if session.awaited_until_ms is not None:
            ends_at_ms = min(ends_at_ms, session.awaited_until_ms)
        if session.lost_at_ms is not None:
            ends_at_ms = min(ends_at_ms, session.lost_at_ms + self.connection_grace_ms)
        return ends_at_ms
