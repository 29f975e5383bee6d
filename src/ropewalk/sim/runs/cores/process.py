"""One process of a node: an image that lags, replicas in their roles, heartbeats, and perhaps the controller's seat.

Everything that decides is the real core; what is here carries messages and waits. A process that is killed runs nothing
more. One that is paused runs nothing until it goes on, and then everything that came meanwhile, still believing what it
believed: that is how zombies are made.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration, decide_alter_partition
from ropewalk.controller.brokers import Registration
from ropewalk.controller.membership import Heartbeat
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerRemoved,
    BrokerSettingsChanged,
    BrokerStateChanged,
    ControllerChanged,
    Endpoint,
    MetadataRecord,
    PartitionChanged,
    PartitionCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.effective import SettingsView
from ropewalk.replication.follower import Answer, Question, Refusal
from ropewalk.replication.leader import Outcome, Proposal
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from ropewalk.sim.runs.cores.following import Following
from ropewalk.sim.runs.cores.home import Home, Reading
from ropewalk.sim.runs.cores.judge import Judge
from ropewalk.sim.runs.cores.leading import Leading
from ropewalk.sim.runs.cores.machine import Key, Machine
from ropewalk.sim.runs.cores.network import Network
from ropewalk.sim.runs.cores.queue import EventQueue
from ropewalk.sim.runs.cores.replica_log import Entry
from ropewalk.sim.runs.cores.replicas import Replicas
from ropewalk.sim.runs.cores.seat import ControllerSeat, Done, Indefinite
from ropewalk.sim.runs.cores.written import Produced, Write

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TICK_US: Final = 250_000
STOP_US: Final = 5_000_000
"""A process that wants to stop waits so long for its leave."""

EPOCH_MS: Final = 1_800_000_000_000


class Timing(NamedTuple):
    """Drawn per run: short enough that a minute sees everything."""

    session_timeout_ms: int
    lag_ms_max: int
    straggler_ms: int | None
    """With a number: `ack.policy=quorum` for all topics."""


class Surroundings:
    """What all processes of a run share."""

    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        home: Home,
        judge: Judge,
        sometimes: Sometimes,
        trace: Trace,
        timing: Timing,
        rng: random.Random,
        *,
        append_bytes_max: int,
    ) -> None:
        """`append_bytes_max`: what the metadata home takes at once."""
        self.append_bytes_max = append_bytes_max
        self.queue, self.network, self.home, self.judge = queue, network, home, judge
        self.sometimes, self.trace, self.timing, self.rng = sometimes, trace, timing, rng
        self.processes: dict[NodeId, Process] = {}
        self.has_local_home = home.address >= 0

    def call(
        self, source: int, target: NodeId, method: Callable[["Process", *Ts], None], *arguments: *Ts
    ) -> None:
        """Have the process of `target`, if there is one then, do `method`."""
        self.network.send(source, target, self._deliver, target, method, arguments)

    def call_once(
        self, source: int, target: NodeId, method: Callable[["Process", *Ts], None], *arguments: *Ts
    ) -> None:
        self.network.send_once(source, target, self._deliver, target, method, arguments)

    def _deliver(self, target: NodeId, method: Callable[..., None], arguments: tuple[object, ...]) -> None:
        process = self.processes.get(target)
        if process is not None:
            process.run(method, process, *arguments)


class Process:
    def __init__(self, around: Surroundings, machine: Machine) -> None:
        self.around, self.machine = around, machine
        self.node_id = machine.node_id
        self.life = machine.life
        self.judge, self.sometimes, self.home = around.judge, around.sometimes, around.home
        self.network, self.rng = around.network, around.rng
        self.image = Image()
        self.view = SettingsView(self.image, self.node_id, machine.configuration)
        self.settings = AppliedSettings(self.view)
        self._unsynced = frozenset(machine.marked)
        self._registered_epoch = -1
        """Of the last registration that was answered."""
        self._is_to_register = True
        self.replicas = Replicas(
            self, lag_ms_max=around.timing.lag_ms_max, straggler_ms=around.timing.straggler_ms
        )
        self.is_running, self.is_paused = True, False
        self.wants_to_stop_since_us: int | None = None
        self.seat = ControllerSeat(self, session_timeout_ms=around.timing.session_timeout_ms)
        self._is_clean = machine.is_clean
        self._held: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self._tick_count = self.rng.randrange(4)
        self._epoch_heard = 0
        self._controller_at_us = self.now_us
        self._patience_us = self.rng.randrange(1_300_000, 3_000_000)
        machine.is_clean = False
        self._poll()
        self.after(self.rng.randrange(TICK_US), self._tick)

    # Life.

    @property
    def now_us(self) -> int:
        return self.around.queue.now_us

    @property
    def append_bytes_max(self) -> int:
        return self.around.append_bytes_max

    @property
    def wall_ms(self) -> int:
        return EPOCH_MS + self.around.queue.now_ms + self.machine.clock_offset_ms

    def after(self, delay_us: int, action: Callable[[*Ts], None], *arguments: *Ts) -> None:
        self.around.queue.after(delay_us, self.run, action, *arguments)

    def run(self, action: Callable[..., None], *arguments: object) -> None:
        """Now if the process runs, later if it is paused, never if it has ended."""
        if not self.is_running:
            return
        if self.is_paused:
            self._held.append((action, arguments))
        else:
            action(*arguments)

    def guarded(self, action: Callable[[T], None]) -> Callable[[T], None]:
        return partial(self.run, action)

    def pause(self) -> None:
        self.is_paused = True

    def go_on(self) -> None:
        if self.is_paused:
            self.is_paused = False
            held, self._held = self._held, []
            for action, arguments in held:
                self.around.queue.after(self.rng.randrange(1, 2_000), self.run, action, *arguments)

    def end(self) -> None:
        """Killed, or stopped. The machine notices; others do if its connections get to be closed."""
        self.is_running = False
        del self.around.processes[self.node_id]
        for other in self.around.processes.values():
            self.network.send_once(
                self.node_id, other.node_id, other.run, other.seat.on_connection_lost, self.node_id, self.life
            )

    # Time.

    def _tick(self) -> None:
        self.after(TICK_US, self._tick)
        self._tick_count += 1
        self.replicas.tick()
        self._propose()
        self.seat.tick()
        if self._tick_count % 2 == 0:
            self._check_in()
        if self._tick_count % 4 == 0:
            self._poll()
            self.replicas.write_back()
        self._mind_controller()
        if self.wants_to_stop_since_us is not None and self.now_us - self.wants_to_stop_since_us > STOP_US:
            self._stop()

    def _poll(self) -> None:
        """Watches are lost without a word, so everybody looks now and then, and watches again."""
        address = self.home.address
        self.network.send(
            self.node_id,
            address,
            self.home.read,
            self.node_id,
            self.image.end_offset,
            self.guarded(self.on_reading),
        )
        self.network.send(self.node_id, address, self.home.watch, self.node_id, self._on_watch)

    # Membership.

    @property
    def broker_epoch(self) -> int:
        """Of this process; -1 before its registration has taken effect in the image."""
        return self._registered_epoch if self._registered_epoch < self.image.settled_offset else -1

    def _check_in(self) -> None:
        controller = self.image.controller_id
        if controller is None:
            return
        if self._is_to_register:
            if self._tick_count % 4 == 0 and self.wants_to_stop_since_us is None:
                is_first = self._registered_epoch < 0
                registration = Registration(
                    node_id=self.node_id,
                    directory=self.machine.directory,
                    endpoints=(Endpoint("PEER", f"node-{self.node_id}", self.life),),
                    rack=self.machine.rack,
                    clock_ms=self.wall_ms,
                    is_clean=self._is_clean or not is_first,
                    damaged=frozenset(self.machine.damaged),
                    unsynced=self._unsynced if is_first else frozenset(),
                )
                self.around.call_once(self.node_id, controller, Process.on_register, registration, self.life)
            return
        heartbeat = Heartbeat(
            node_id=self.node_id,
            broker_epoch=self.broker_epoch,
            metadata_offset=self.image.settled_offset,
            wants_to_stop=self.wants_to_stop_since_us is not None,
        )
        self.around.call_once(self.node_id, controller, Process.on_heartbeat, heartbeat, self.life)

    def _mind_controller(self) -> None:
        """Whoever has not heard of the controller for a while tries to take its place. That may be wrong, and is safe."""
        if self.seat.epoch:
            self._controller_at_us = self.now_us
        elif self.around.has_local_home:
            if self.node_id == self.home.address:
                self.seat.take_over(self._epoch_heard)
        elif self.now_us - self._controller_at_us > self._patience_us and self.wants_to_stop_since_us is None:
            self._controller_at_us = self.now_us
            self.seat.take_over(self._epoch_heard)

    def on_register(self, registration: Registration, life: int) -> None:
        def done(error: RopewalkError | None) -> None:
            if error is not None and "clock" in str(error):
                self.sometimes.note("a broker was refused for its clock")
            if error is None:
                node_id = registration.node_id
                self.around.call(
                    self.node_id, node_id, Process.on_registered, life, self.image.brokers[node_id].epoch
                )

        if self.seat.is_active:
            self.seat.register(registration, life, done)
            self.around.call(
                self.node_id, registration.node_id, Process.on_heard, life, self.image.controller_epoch, False
            )

    def on_registered(self, life: int, broker_epoch: int) -> None:
        if life == self.life and broker_epoch > self._registered_epoch:
            self._registered_epoch = broker_epoch
            self._is_to_register = False
            self.replicas.refresh(None)

    def on_unknown(self, life: int, broker_epoch: int) -> None:
        """The controller has another epoch of this node, or none."""
        if life == self.life and broker_epoch == self._registered_epoch:
            self._is_to_register = True

    def on_heartbeat(self, heartbeat: Heartbeat, life: int) -> None:
        if self.seat.is_active:
            broker = self.image.brokers.get(heartbeat.node_id)
            if broker is None or broker.epoch != heartbeat.broker_epoch:
                self.around.call(
                    self.node_id, heartbeat.node_id, Process.on_unknown, life, heartbeat.broker_epoch
                )
                return
            leave = self.seat.heartbeat(heartbeat, life)
            self.around.call(
                self.node_id, heartbeat.node_id, Process.on_heard, life, self.image.controller_epoch, leave
            )

    def on_heard(self, life: int, controller_epoch: int, leave: bool) -> None:
        if life != self.life or controller_epoch < self.image.controller_epoch:
            return
        self._controller_at_us = self.now_us
        if leave and self.wants_to_stop_since_us is not None:
            self._stop()

    def stop(self) -> None:
        """In order: leaders elsewhere first, then everything to disk."""
        self.wants_to_stop_since_us = self.now_us

    def _stop(self) -> None:
        for log in self.machine.logs.values():
            log.durable_end = log.end
        # A process that has not told of an unclean start must not make the next one look clean.
        self.machine.is_clean = self._is_clean or self.replicas.is_in
        self.sometimes.note("a broker stopped in order")
        self.replicas.retire()
        self.end()

    # Metadata.

    def _on_watch(self, start_offset: int, records: tuple[MetadataRecord, ...]) -> None:
        self.run(self.on_records, start_offset, records)

    def on_reading(self, reading: Reading) -> None:
        self._epoch_heard = max(self._epoch_heard, reading.epoch)
        if reading.facts is not None and reading.start_offset > self.image.end_offset:
            self.image.replace(reading.facts, reading.start_offset)
            self.sometimes.note("an image was loaded from a snapshot")
            self.replicas.refresh(None)
        self.on_records(reading.start_offset, reading.records)
        if reading.is_vacant and not self.around.has_local_home and not self.seat.epoch:
            self.seat.take_over(self._epoch_heard)

    def on_records(self, start_offset: int, records: tuple[MetadataRecord, ...]) -> None:
        image = self.image
        if start_offset > image.end_offset:
            return  # something is missing; the next look will bring it
        touched: dict[Key, None] = {}
        is_all = False
        controller_epoch = image.controller_epoch
        for record in records[image.end_offset - start_offset :]:
            for fact in image.apply(record):
                match fact:
                    case PartitionChanged() | PartitionCreated():
                        touched[fact.topic_id, fact.index] = None
                    case BrokerRegistered() | BrokerStateChanged() | BrokerRemoved():
                        is_all = is_all or fact.node_id == self.node_id
                    case TopicDeleted() | TopicSettingsChanged() | BrokerSettingsChanged():
                        is_all = True
                    case ControllerChanged(settings=settled):
                        is_all = is_all or bool(settled)
                    case _:
                        pass
        if image.controller_epoch != controller_epoch:
            self._controller_at_us = self.now_us
            self._epoch_heard = max(self._epoch_heard, image.controller_epoch)
        if touched or is_all:
            self.replicas.refresh(None if is_all else touched)

    # Between replicas.

    def sync(self, key: Key) -> None:
        self.replicas.sync(key)

    def note_role(self, what: str, key: Key, leader_epoch: int) -> None:
        self.around.trace.note(self.now_us, self.node_id, what, key[0], key[1], leader_epoch)

    def send_question(self, target: NodeId, key: Key, question: Question) -> None:
        self.around.call(
            self.node_id, target, Process.on_question, self.node_id, self.broker_epoch, key, question
        )

    def send_answer(
        self, target: NodeId, key: Key, question: Question, answer: Answer, entries: tuple[Entry, ...]
    ) -> None:
        self.around.call(self.node_id, target, Process.on_answer, key, question, answer, entries)

    def on_question(self, source: NodeId, broker_epoch: int, key: Key, question: Question) -> None:
        role = self.replicas.roles.get(key)
        if isinstance(role, Leading):
            role.fetch(source, broker_epoch, question)
            return
        is_ahead = role is None or role.core.leader_epoch < question.leader_epoch
        self.send_answer(source, key, question, Refusal.NOT_YET if is_ahead else Refusal.FENCED, ())

    def on_answer(self, key: Key, question: Question, answer: Answer, entries: tuple[Entry, ...]) -> None:
        role = self.replicas.roles.get(key)
        if isinstance(role, Following):
            role.on_answer(question, answer, entries)

    # Who is in sync.

    def _propose(self) -> None:
        """Ask the controller for what the leaders here want, in one message."""
        controller, wanted = self.image.controller_id, self.replicas.proposals()
        if wanted and controller is not None:
            self.around.call_once(
                self.node_id, controller, Process.on_alteration, self.node_id, self.broker_epoch, wanted
            )

    def on_alteration(self, source: NodeId, broker_epoch: int, wanted: list[tuple[Key, Proposal]]) -> None:
        if not self.seat.is_active:
            self._answer_alteration(source, [(key, proposal, Outcome.UNKNOWN) for key, proposal in wanted])
            return
        alterations = [_alteration(key, proposal) for key, proposal in wanted]
        results: list[AlteredPartition] = []

        def decide(image: Image) -> list[MetadataRecord]:
            nonlocal results
            records, results = decide_alter_partition(
                image, source, broker_epoch, alterations, settings=self.settings, now_ms=self.wall_ms
            )
            return records

        def done(error: RopewalkError | None) -> None:
            if isinstance(error, Indefinite):
                outcomes = [Outcome.UNKNOWN] * len(wanted)
            elif error is not None:
                outcomes = [Outcome.REFUSED] * len(wanted)
            else:
                outcomes = [
                    Outcome.REFUSED if isinstance(result.outcome, RopewalkError) else Outcome.ACCEPTED
                    for result in results
                ]
            if Outcome.REFUSED in outcomes:
                self.sometimes.note("a change of the ISR was refused")
            self._answer_alteration(
                source, [(*asked, outcome) for asked, outcome in zip(wanted, outcomes, strict=True)]
            )

        self.seat.propose(decide, done)

    def _answer_alteration(self, target: NodeId, outcomes: list[tuple[Key, Proposal, Outcome]]) -> None:
        self.around.call_once(self.node_id, target, Process.on_altered, outcomes)

    def on_altered(self, outcomes: list[tuple[Key, Proposal, Outcome]]) -> None:
        for key, proposal, outcome in outcomes:
            role = self.replicas.roles.get(key)
            if isinstance(role, Leading):
                role.on_outcome(proposal, outcome)

    # Clients.

    def on_produce(self, client: int, key: Key, write: Write, reply: Callable[[Produced], None]) -> None:
        role = self.replicas.roles.get(key)
        if isinstance(role, Leading):
            role.produce(write, lambda said: self.network.send(self.node_id, client, reply, said))
        else:
            self.network.send(self.node_id, client, reply, Produced.refused("this node does not lead"))

    def on_consume(
        self, client: int, key: Key, offset: int, reply: Callable[[int, tuple[Entry, ...]], None]
    ) -> None:
        """Whoever holds a copy serves what is below the high watermark that it knows of."""
        role = self.replicas.roles.get(key)
        if role is None:
            return
        if isinstance(role, Following) and role.readable_end > offset:
            self.sometimes.note("a follower served a consumer")
        entries = tuple(role.log.entries[offset : min(role.readable_end, offset + 20)])
        self.network.send(self.node_id, client, reply, offset, entries)

    def on_command(
        self, client: int, decide: Callable[["Process", Image], list[MetadataRecord]], reply: Done
    ) -> None:
        """Something an administrator wants. A node that does not decide says nothing, and another is asked."""

        def decide_here(image: Image) -> list[MetadataRecord]:
            return decide(self, image)

        if self.seat.is_active:
            self.seat.propose(
                decide_here, lambda error: self.network.send(self.node_id, client, reply, error)
            )


def _alteration(key: Key, proposal: Proposal) -> PartitionAlteration:
    return PartitionAlteration(
        topic_id=TopicId(key[0]),
        index=key[1],
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch,
        isr=[(member.node_id, member.broker_epoch) for member in proposal.isr],
    )
