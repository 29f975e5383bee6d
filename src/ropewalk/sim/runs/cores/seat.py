"""The controller's seat on one node: the real decisions, committed one at a time through the modelled home.

A controller decides on its image and appends at the end of it; the home takes that only if nothing has come between. After an
unknown outcome it reads what there is and decides again. It never sends the same records a second time, and from then on
an error is no definite answer to whoever asked, because the first attempt may still count.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from ropewalk.base.errors import NotController, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.agreement import decide_agreement
from ropewalk.controller.brokers import Registration, decide_create_cluster, decide_register_broker
from ropewalk.controller.membership import Heartbeat, decide_fence_broker, decide_heartbeat, may_stop
from ropewalk.controller.sessions import Sessions
from ropewalk.metadata.changes import appends_of
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import AppendOutcome, Committed, Raced, Unknown
from ropewalk.metadata.records import BrokerState, ChangeAbandoned, ControllerChanged, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.home import Home, Reading, Taken
from ropewalk.sim.runs.cores.machine import Machine
from ropewalk.sim.runs.cores.network import Network

T = TypeVar("T")

ANSWER_US: Final = 1_500_000
"""After so long without an answer of the home the outcome is unknown."""

Decide: TypeAlias = Callable[[Image], Sequence[MetadataRecord]]


class Indefinite(RopewalkError):
    """It may take effect, or have taken effect."""


Done: TypeAlias = Callable[[RopewalkError | None], None]
"""Told how a proposal ended: None if it is committed."""


class SeatHost(Protocol):
    node_id: NodeId
    home: Home
    network: Network
    sometimes: Sometimes
    rng: random.Random
    machine: Machine

    @property
    def append_bytes_max(self) -> int: ...
    @property
    def image(self) -> Image: ...
    @property
    def settings(self) -> AppliedSettings: ...
    @property
    def now_us(self) -> int: ...
    @property
    def wall_ms(self) -> int: ...
    def guarded(self, action: Callable[[T], None]) -> Callable[[T], None]:
        """`action` for as long as the process lives."""

    def on_records(self, start_offset: int, records: tuple[MetadataRecord, ...]) -> None: ...
    def on_reading(self, reading: Reading) -> None: ...


class _Proposal:
    __slots__ = ("decide", "done", "is_doubtful", "parts")

    def __init__(self, decide: Decide, done: Done) -> None:
        self.decide, self.done = decide, done
        self.is_doubtful = False
        self.parts: deque[tuple[MetadataRecord, ...]] = deque()
        """Appends that are left of what was decided."""


class _Append:
    """One that is under way."""

    __slots__ = ("expected_end_offset", "records", "sent_at_us")

    def __init__(
        self, expected_end_offset: int, records: tuple[MetadataRecord, ...], sent_at_us: int
    ) -> None:
        self.expected_end_offset, self.records, self.sent_at_us = expected_end_offset, records, sent_at_us


class ControllerSeat:
    def __init__(self, host: SeatHost, *, session_timeout_ms: int) -> None:
        self._host = host
        self.epoch = 0
        """0: this node does not decide, as far as it knows."""
        self.is_active = False
        self.sessions: Sessions[None] = Sessions(
            session_timeout_ms=session_timeout_ms, connection_grace_ms=500, take_over_grace_ms=2000
        )
        self._lives: dict[NodeId, int] = {}
        self._proposals: deque[_Proposal] = deque()
        self._append: _Append | None = None
        self._asked_at_us: int | None = None
        """When the tail was asked for, while its answer is awaited."""
        self._taking_since_us: int | None = None
        self._catch_up_to = 0

    # Taking the seat, and losing it.

    def take_over(self, expected_epoch: int) -> None:
        host = self._host
        if self.epoch or (self._taking_since_us and host.now_us - self._taking_since_us < ANSWER_US):
            return
        self._taking_since_us = host.now_us
        host.network.send_once(
            host.node_id,
            host.home.address,
            host.home.take_over,
            host.node_id,
            expected_epoch,
            host.guarded(self._on_taken),
        )

    def step_down(self) -> None:
        proposals, self._proposals = self._proposals, deque()
        self.epoch, self.is_active = 0, False
        self._append = self._asked_at_us = self._taking_since_us = None
        for proposal in proposals:
            proposal.done(Indefinite("another decides"))

    def _on_taken(self, taken: Taken | None) -> None:
        self._taking_since_us = None
        if taken is None or self.epoch:
            return
        self.epoch = taken.epoch
        self._host.sometimes.note("another controller took over")
        self._catch_up_to = taken.end_offset
        self._read()

    def _begin(self) -> None:
        """The log is read to where it ended when the epoch was taken; nobody else can append any more."""
        epoch = self.epoch

        def decide(image: Image) -> list[MetadataRecord]:
            if image.controller_epoch == epoch:
                return []
            created = decide_create_cluster(image, self._host.rng)
            configuration = self._host.machine.configuration
            settled = decide_agreement(image, configuration=configuration, is_alone=False)
            if not created and any(
                image.agreed_settings.get(name) != value for name, value in configuration.items()
            ):
                self._host.sometimes.note("a controller's file differed from the cluster's")
            return [*created, ControllerChanged(self._host.node_id, epoch, settled)]

        def done(error: RopewalkError | None) -> None:
            if error is None:
                self.is_active = True
                image = self._host.image
                brokers = [(broker.node_id, broker.epoch) for broker in image.brokers.values()]
                self.sessions.begin(brokers, self._host.now_us // 1000)
                self._lives = {}

        self.propose(decide, done)

    # What nodes and administrators ask for.

    def register(self, registration: Registration, life: int, done: Done) -> None:
        node_id = registration.node_id

        def decide(image: Image) -> list[MetadataRecord]:
            host = self._host
            return decide_register_broker(
                image,
                registration,
                settings=host.settings,
                now_ms=host.wall_ms,
                is_live=self.sessions.is_live(node_id, host.now_us // 1000),
            )

        def committed(error: RopewalkError | None) -> None:
            if error is None:
                self._note_doubts(registration)
                broker = self._host.image.brokers[node_id]
                self.sessions.on_registered(node_id, broker.epoch, self._host.now_us // 1000)
                self._connect(node_id, life)
            done(error)

        self.propose(decide, committed)

    def _note_doubts(self, registration: Registration) -> None:
        host = self._host
        topics = [host.image.topics_by_id.get(topic_id) for topic_id, _ in registration.unsynced or ()]
        settings = [host.settings.of_topic(topic) for topic in topics if topic is not None]
        if not registration.is_clean and any(each.flush == "group" for each in settings):
            host.sometimes.note("a replica was doubted whose topic is set to group by now")

    def heartbeat(self, heartbeat: Heartbeat, life: int) -> bool:
        """Whether the broker may stop."""
        host = self._host
        broker = host.image.brokers.get(heartbeat.node_id)
        if broker is None or broker.epoch != heartbeat.broker_epoch:
            return False
        self.sessions.on_heartbeat(broker.node_id, broker.epoch, host.now_us // 1000)
        self._connect(broker.node_id, life)

        def decide(image: Image) -> list[MetadataRecord]:
            return decide_heartbeat(image, heartbeat, settings=host.settings, now_ms=host.wall_ms)

        if broker.state is not BrokerState.ACTIVE or heartbeat.wants_to_stop:
            self.propose(decide, _ignore)
        return heartbeat.wants_to_stop and may_stop(host.image, broker.node_id)

    def on_connection_lost(self, node_id: NodeId, life: int) -> None:
        if self._lives.get(node_id) == life:
            del self._lives[node_id]
            self.sessions.on_connection_lost(node_id, self._host.now_us // 1000)

    def propose(self, decide: Decide, done: Done) -> None:
        if not self.epoch:
            done(NotController("this node does not decide"))
            return
        self._proposals.append(_Proposal(decide, done))
        self._pump()

    def tick(self) -> None:
        host = self._host
        if not self.epoch:
            return
        if self._append is not None and host.now_us - self._append.sent_at_us > ANSWER_US:
            self._on_outcome(self._append, Unknown("no answer"))
        if self._asked_at_us is not None and host.now_us - self._asked_at_us > ANSWER_US:
            self._read()
        if not self.is_active:
            return
        host.network.send(host.node_id, host.home.address, host.home.keep_alive, self.epoch)
        for node_id, broker_epoch in self.sessions.missed(host.now_us // 1000):
            broker = host.image.brokers.get(node_id)
            if broker is None:
                self.sessions.on_removed(node_id)
            elif broker.epoch == broker_epoch and broker.state is not BrokerState.FENCED:
                self._fence(node_id, broker_epoch)

    def _fence(self, node_id: NodeId, broker_epoch: int) -> None:
        host = self._host
        self.propose(
            lambda image: decide_fence_broker(
                image, node_id, broker_epoch, settings=host.settings, now_ms=host.wall_ms
            ),
            _ignore,
        )

    def _connect(self, node_id: NodeId, life: int) -> None:
        known = self._lives.get(node_id)
        if known == life:
            return
        self._lives[node_id] = life
        self.sessions.on_connected(node_id)
        if known is not None:
            self.sessions.on_connection_lost(node_id, self._host.now_us // 1000)

    # One append at a time.

    def _pump(self) -> None:
        while self._proposals and self._append is None and self._asked_at_us is None:
            host, proposal = self._host, self._proposals[0]
            if not proposal.parts and not host.image.is_amid_change:
                try:
                    decided = tuple(proposal.decide(host.image))
                except RopewalkError as error:
                    self._conclude(Indefinite(str(error)) if proposal.is_doubtful else error)
                    continue
                if not decided:
                    self._conclude(None)
                    continue
                parts = appends_of(decided, bytes_max=host.append_bytes_max)
                if len(parts) > 1:
                    host.sometimes.note("a change was cut into several appends")
                proposal.parts.extend(tuple(part) for part in parts)
            if not proposal.parts:
                host.sometimes.note("a change was given up half way")
            records = proposal.parts[0] if proposal.parts else (ChangeAbandoned(),)
            append = self._append = _Append(host.image.end_offset, records, host.now_us)

            def reply(outcome: AppendOutcome, append: _Append = append) -> None:
                self._on_outcome(append, outcome)

            host.network.send_once(
                host.node_id,
                host.home.address,
                host.home.append,
                host.node_id,
                records,
                self.epoch,
                append.expected_end_offset,
                host.guarded(reply),
            )

    def _on_part_committed(self) -> None:
        """With its last part a proposal is done. Before its first, what somebody had begun was given up."""
        parts = self._proposals[0].parts
        if parts:
            parts.popleft()
            if not parts:
                self._conclude(None)

    def _conclude(self, error: RopewalkError | None) -> None:
        self._proposals.popleft().done(error)

    def _on_outcome(self, append: _Append, outcome: AppendOutcome) -> None:
        if append is not self._append:
            return
        match outcome:
            case Committed():
                self._append = None
                self._host.on_records(append.expected_end_offset, append.records)
                self._on_part_committed()
                self._pump()
            case Raced(epoch=epoch):
                self._host.sometimes.note("a metadata append lost a race")
                self._append = None
                self._proposals[0].parts.clear()
                if epoch != self.epoch:
                    self.step_down()
                else:
                    self._read()
            case Unknown():
                self._proposals[0].is_doubtful = True
                append.sent_at_us = self._host.now_us + 60_000_000  # from here on the tail will tell
                self._read()

    def _read(self) -> None:
        """The tail, from where the append under way would stand."""
        host = self._host
        self._asked_at_us = host.now_us
        start = host.image.end_offset if self._append is None else self._append.expected_end_offset
        host.network.send(
            host.node_id,
            host.home.address,
            host.home.read,
            host.node_id,
            start,
            host.guarded(self._on_tail),
        )

    def _on_tail(self, reading: Reading) -> None:
        if self._asked_at_us is None or not self.epoch:
            return
        self._asked_at_us = None
        self._host.on_reading(reading)
        append, self._append = self._append, None
        if reading.epoch != self.epoch:
            self.step_down()
            return
        if append is not None:
            at = append.expected_end_offset - reading.start_offset
            found = reading.records[at : at + len(append.records)] if at >= 0 else ()
            if found == append.records:
                self._on_part_committed()
            else:
                self._proposals[0].parts.clear()
        if self._host.image.end_offset < self._catch_up_to:
            self._read()
        elif not self.is_active and not self._proposals:
            self._begin()
        else:
            self._pump()


def _ignore(_: RopewalkError | None) -> None:
    """Nobody waits for it: the next tick or heartbeat asks again."""
