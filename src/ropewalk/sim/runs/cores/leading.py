"""A replica that leads, as a broker would host it: the real `Leader` over a log that is a list.

It carries out what the core decides and holds no rule of its own: writes wait for the high watermark (acks=all) or for
their own disk (acks=1), fetches of followers wait for something to fetch.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Broker, Partition
from ropewalk.replication.follower import Answer, Diverging, Elsewhere, Question, Records, Refusal
from ropewalk.replication.leader import Leader, LeaderSettings, Outcome, Proposal
from ropewalk.replication.lineage import OutOfRange, find_divergence
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.judge import Judge
from ropewalk.sim.runs.cores.machine import Key
from ropewalk.sim.runs.cores.replica_log import NOBODY, Entry, ReplicaLog
from ropewalk.sim.runs.cores.written import Produced, Write

FETCH_ENTRIES_MAX: Final = 8
"""So few that a follower which is far behind takes several turns."""

PARKED_US: Final = 500_000


class Host(Protocol):
    """What a role needs of the process that hosts it."""

    node_id: NodeId
    judge: Judge
    sometimes: Sometimes

    @property
    def now_us(self) -> int: ...
    @property
    def broker_epoch(self) -> int: ...
    def sync(self, key: Key) -> None:
        """Something was written; `on_synced` will be called when it is durable."""

    def send_answer(
        self, target: NodeId, key: Key, question: Question, answer: Answer, entries: tuple[Entry, ...]
    ) -> None: ...
    def send_question(self, target: NodeId, key: Key, question: Question) -> None: ...


class _Waiter(NamedTuple):
    offset: int
    write: Write
    reply: Callable[[Produced], None]


class _Parked(NamedTuple):
    broker_epoch: int
    question: Question
    until_us: int


class Leading:
    __slots__ = (
        "_for_all",
        "_for_disk",
        "_host",
        "_parked",
        "core",
        "key",
        "log",
        "proposed",
        "proposed_at_us",
    )

    def __init__(
        self, host: Host, key: Key, log: ReplicaLog, partition: Partition, settings: LeaderSettings
    ) -> None:
        self.key, self.log = key, log
        self._host = host
        self._for_all: deque[_Waiter] = deque()
        self._for_disk: deque[_Waiter] = deque()
        self._parked: dict[NodeId, _Parked] = {}
        self.proposed: Proposal | None = None
        """What was asked for last, while no outcome is known."""
        self.proposed_at_us = 0
        host.judge.on_office(key, host.node_id, partition.leader_epoch, log)
        self.core = Leader(
            partition,
            node_id=host.node_id,
            broker_epoch=host.broker_epoch,
            end_offset=log.end_offset,
            durable_offset=log.counted_offset,
            high_watermark=log.checkpoint,
            settings=settings,
            now_ms=host.now_us // 1000,
        )
        self._after(log.checkpoint)

    @property
    def readable_end(self) -> int:
        return self.core.high_watermark

    def produce(self, write: Write, reply: Callable[[Produced], None]) -> None:
        if write.acks == -1 and self.core.is_below_minimum:
            self._host.sometimes.note("a write was refused for want of replicas")
            reply(Produced.refused("too few are in sync"))
            return
        if write.producer != NOBODY:
            known = self.log.last_sequences.get(write.producer, {}).get(write.sequence)
            if known is not None:
                self._host.sometimes.note("an idempotent write sent again had been written already")
                self._await(_Waiter(known, write, reply))
                return
            if write.sequence != self.log.last_sequence(write.producer) + 1:
                reply(Produced.out_of_order())
                return
        entry = Entry(self.core.leader_epoch, write.value, write.producer, write.sequence)
        offset = self.log.append(entry)
        self._host.judge.on_written(self.key, offset, entry)
        before = self.core.high_watermark
        self.core.on_appended(self.log.end_offset, self._host.now_us // 1000)
        self.core.on_durable(self.log.counted_offset)
        self._host.sync(self.key)
        if write.acks == 0:
            reply(Produced.taken())
        else:
            self._await(_Waiter(offset, write, reply))
        self._after(before)
        self._wake()

    def fetch(self, node_id: NodeId, broker_epoch: int, question: Question) -> None:
        """A follower asks. What is asked in another epoch, or continues another history, says nothing about progress."""
        host = self._host
        if question.leader_epoch != self.core.leader_epoch:
            is_old = question.leader_epoch < self.core.leader_epoch
            refusal = Refusal.FENCED if is_old else Refusal.NOT_YET
            if not is_old:
                host.sometimes.note("a zombie leader was refused")
            host.send_answer(node_id, self.key, question, refusal, ())
            return
        parting = find_divergence(
            self.log, fetch_offset=question.fetch_offset, last_fetched_epoch=question.last_fetched_epoch
        )
        if parting is not None:
            answer = (
                Elsewhere(parting.start_offset) if isinstance(parting, OutOfRange) else Diverging(parting)
            )
            host.send_answer(node_id, self.key, question, answer, ())
            return
        before = self.core.high_watermark
        self.core.on_fetch(
            node_id,
            broker_epoch=broker_epoch,
            fetch_offset=question.fetch_offset,
            now_ms=host.now_us // 1000,
        )
        self._after(before)
        if question.fetch_offset < self.log.end:
            self._answer(node_id, question)
        else:
            self._parked[node_id] = _Parked(broker_epoch, question, host.now_us + PARKED_US)

    def on_synced(self) -> None:
        before = self.core.high_watermark
        self.core.on_durable(self.log.counted_offset)
        self._after(before)
        self._release(self._for_disk, self.log.counted_end)

    def on_facts(self, partition: Partition, settings: LeaderSettings) -> None:
        before = self.core.high_watermark
        isr = self.core.isr
        self.core.on_facts(partition, self._host.now_us // 1000, settings=settings)
        if isr - self.core.isr:
            self._host.sometimes.note("a follower fell out of sync")
        if self.core.isr - isr:
            self._host.sometimes.note("a follower came back in sync")
        self._after(before)

    def propose(self, brokers: Mapping[NodeId, Broker]) -> Proposal | None:
        proposal = self.core.propose(brokers, self._host.now_us // 1000)
        if proposal is not None:
            self.proposed, self.proposed_at_us = proposal, self._host.now_us
        return proposal

    def on_outcome(self, proposal: Proposal, outcome: Outcome) -> None:
        before = self.core.high_watermark
        if proposal is self.proposed:
            self.proposed = None
        self.core.on_outcome(proposal, outcome, self._host.now_us // 1000)
        self._after(before)

    def tick(self) -> None:
        """Fetches that have waited long enough are answered with nothing."""
        now_us = self._host.now_us
        for node_id, parked in list(self._parked.items()):
            if now_us >= parked.until_us:
                del self._parked[node_id]
                self._answer(node_id, parked.question)

    def retire(self) -> None:
        """Another leads, or this process does not know. Nobody can say what becomes of writes that wait."""
        for waiter in (*self._for_all, *self._for_disk):
            waiter.reply(Produced.unknown("the leader retired"))
        for node_id, parked in self._parked.items():
            self._host.send_answer(node_id, self.key, parked.question, Refusal.FENCED, ())

    def _await(self, waiter: _Waiter) -> None:
        if waiter.write.acks == -1:
            if self.core.high_watermark > waiter.offset:
                waiter.reply(Produced.at(waiter.offset))
            else:
                self._for_all.append(waiter)
        elif self.log.counted_end > waiter.offset:
            waiter.reply(Produced.at(waiter.offset))
        else:
            self._for_disk.append(waiter)

    def _after(self, before: int) -> None:
        """Whatever follows from a high watermark that may have moved."""
        after = self.core.high_watermark
        if after == before:
            return
        self._host.judge.on_high_watermark(
            self.key,
            self._host.node_id,
            self.core.leader_epoch,
            self.log,
            before,
            after,
            partition_epoch=self.core.partition_epoch,
        )
        self.log.high_watermark = after
        self._release(self._for_all, after)

    def _release(self, waiters: deque[_Waiter], end: int) -> None:
        kept: list[_Waiter] = []
        while waiters:
            waiter = waiters.popleft()
            if waiter.offset < end:
                waiter.reply(Produced.at(waiter.offset))
            else:
                kept.append(waiter)
        waiters.extend(kept)

    def _wake(self) -> None:
        parked, self._parked = self._parked, {}
        for node_id, waiting in parked.items():
            self._answer(node_id, waiting.question)

    def _answer(self, node_id: NodeId, question: Question) -> None:
        start = question.fetch_offset
        entries = tuple(self.log.entries[start : start + FETCH_ENTRIES_MAX])
        answer = Records(self.core.high_watermark, self.log.start_offset)
        self._host.send_answer(node_id, self.key, question, answer, entries)
