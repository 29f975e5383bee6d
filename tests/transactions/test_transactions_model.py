"""Producers, a finisher and a coordinator that loses power, in random order: what was promised is kept.

The host keeps a log of which only a part is committed. Replies are held until everything before them is, and a power cut
takes the rest away, as a failover does. Producers are processes of two kinds under one transactional id: those that
begin fence the others, those that go on do not. Some producers begin near the last epoch.
"""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.answers import (
    Answer,
    Ended,
    MarkersNoted,
    PartitionsAdded,
    ProducerIdWanted,
    ProducerInitialised,
    Unfinished,
)
from ropewalk.transactions.commands import (
    AddPartitions,
    AnyCommand,
    EndTransaction,
    InitProducer,
    ListUnfinished,
    MarkersWritten,
)
from ropewalk.transactions.core import TransactionsCore
from ropewalk.transactions.errors import TransactionalProducerFenced, TransactionError, UnknownProducerMapping
from ropewalk.transactions.event_codec import decode_event, encode_event
from ropewalk.transactions.events import Event, TransactionalIdRemoved, TransactionRecorded, TransactionState
from ropewalk.transactions.identity import EPOCH_MAX
from ropewalk.transactions.settings import TransactionSettings
from ropewalk.transactions.step import TransactionReply as Reply
from ropewalk.transactions.step import TransactionStep as Step

TIMEOUT_MS = 1_000
EXPIRATION_MS = 20_000
PLACES = tuple(TopicPartition("p", index) for index in range(3))
NAMES = ("t", "u")

Who = tuple[int, int]
Finished = tuple[str, int, int, int]
"""A transaction: its transactional id, its producer id, the epoch of its markers, and when it began."""


def _finished(what: MarkersWritten | TransactionRecorded) -> Finished:
    return (what.transactional_id, what.producer_id, what.producer_epoch, what.started_at_ms)


class Host:
    """A shard with a log of which a part is committed."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.records: list[tuple[bytes, bytes | None]] = []
        self.committed_count = 0
        self.held: list[tuple[int, Reply]] = []
        self.core = self._loaded()

    def carry_out(self, step: Step) -> None:
        for event in step.events:
            self.records.append(encode_event(event))
            self.core.apply(event, self.now_ms)
        self.held += [(len(self.records), reply) for reply in step.replies]

    def commit_more(self, count: int) -> list[Reply]:
        self.committed_count = min(len(self.records), self.committed_count + count)
        released = [reply for end, reply in self.held if end <= self.committed_count]
        self.held = [(end, reply) for end, reply in self.held if end > self.committed_count]
        return released

    def cut_power(self) -> None:
        del self.records[self.committed_count :]
        self.held = []
        self.core = self._loaded()

    def events(self) -> list[Event]:
        events = [decode_event(*record) for record in self.records]
        return [event for event in events if event is not None]

    def _loaded(self) -> TransactionsCore:
        core = TransactionsCore(TransactionSettings(timeout_ms_max=TIMEOUT_MS, expiration_ms=EXPIRATION_MS))
        for event in self.events():
            core.apply(event, self.now_ms)
        core.on_loaded(self.now_ms)
        return core


class Process:
    """A producer as a program sees it: it remembers who it is, and who it was."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.known: list[Who] = []


class World:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.host = Host()
        self.processes: list[Process] = []
        self.asked: dict[int, tuple[Process | None, AnyCommand]] = {}
        self.token = 0
        self.producer_id = 100
        self.owners: dict[tuple[str, Who], int] = {}
        self.fenced: dict[tuple[str, Who], int] = {}
        """Identities that another process has taken over from, with the token after which they must fail."""
        self.outcomes: dict[tuple[str, int, int], bool] = {}
        """By transactional id, producer id and the epoch of the markers: what was told to be written."""
        self.promised: dict[tuple[str, int, int], bool] = {}
        self.to_finish: list[MarkersWritten] = []
        self.written: set[tuple[Finished, TopicPartition]] = set()
        self.counts: dict[str, int] = {}
        for name in NAMES:
            if self.chance.random() < 0.5:
                self._begin_near_the_last_epoch(name)

    def act(self) -> None:
        deed = self.chance.choices(
            ["start", "go on", "add", "verify", "end", "list", "finish", "wait", "power", "commit", "stray"],
            [4, 4, 40, 4, 40, 30, 40, 10, 2, 90, 8],
        )[0]
        process = self._somebody()
        match deed:
            case "start":
                self.processes.append(Process(len(self.processes), self.chance.choice(NAMES)))
                self._init(self.processes[-1], None)
            case "list":
                self._ask(None, ListUnfinished(waits=self.chance.random() < 0.5))
            case "finish" if self.to_finish:
                self._finish(self.chance.choice(self.to_finish[-4:]))
            case "wait":
                self.wait(self.chance.choices([1, 10, 300, 1_100, 25_000], [20, 20, 10, 2, 1])[0])
            case "power":
                self.host.cut_power()
                self.asked.clear()
            case "commit":
                self.release(self.host.commit_more(self.chance.choice([1, 2, 10])))
            case _ if process is not None and process.known:
                # Now and then something that was sent long ago arrives.
                old = deed == "stray" or self.chance.random() < 0.15
                who = self.chance.choice(process.known) if old else process.known[-1]
                self._act_as(process, who, deed)

    def _somebody(self) -> Process | None:
        """Mostly one of those who came last."""
        if not self.processes:
            return None
        return self.chance.choice(self.processes[-3:] if self.chance.random() < 0.8 else self.processes)

    def _act_as(self, process: Process, who: Who, deed: str) -> None:
        bumps = process.number % 3 != 0
        match deed:
            case "go on":
                self._init(process, who)
            case "add" | "verify" | "stray":
                places = tuple(self.chance.sample(PLACES, self.chance.randint(1, 2)))
                patience_ms = self.chance.choice([0, 50])
                add = AddPartitions(
                    process.name, *who, places, deed == "verify", 2 if bumps else 0, patience_ms
                )
                self._ask(process, add)
            case "end":
                self._ask(
                    process,
                    EndTransaction(
                        process.name, *who, committed=self.chance.random() < 0.6, bumps_epoch=bumps
                    ),
                )

    def _begin_near_the_last_epoch(self, name: str) -> None:
        self.producer_id += 1
        record = TransactionRecorded(
            transactional_id=name,
            producer_id=self.producer_id,
            producer_epoch=EPOCH_MAX - self.chance.randint(1, 9),
            state=TransactionState.EMPTY,
            timeout_ms=TIMEOUT_MS,
            partitions=(),
            started_at_ms=-1,
            updated_at_ms=0,
            version=0,
            previous_producer_id=self.producer_id,
        )
        self.host.carry_out(Step(events=(record,)))
        self.host.commit_more(1)

    def _init(self, process: Process, who: Who | None) -> None:
        producer_id, epoch = who or (-1, -1)
        patience_ms = self.chance.choice([0, 50])
        self._ask(
            process, InitProducer(process.name, TIMEOUT_MS, producer_id, epoch, patience_ms=patience_ms)
        )

    def _ask(self, process: Process | None, command: AnyCommand) -> None:
        self.token += 1
        self.asked[self.token] = (process, command)
        self.host.carry_out(self.host.core.decide(self.token, command, self.host.now_ms))

    def release(self, replies: list[Reply]) -> None:
        for reply in replies:
            process, command = self.asked.pop(reply.token)
            self.hear(process, reply.token, command, reply.answer)

    def hear(
        self, process: Process | None, token: int, command: AnyCommand, answer: Answer | TransactionError
    ) -> None:
        self.counts[type(answer).__name__] = self.counts.get(type(answer).__name__, 0) + 1
        match answer:
            case ProducerIdWanted():
                assert isinstance(command, InitProducer | EndTransaction)
                assert command.fresh_producer_id is None
                self.producer_id += 1
                self._ask(process, replace(command, fresh_producer_id=self.producer_id))
            case ProducerInitialised(producer_id, epoch):
                assert isinstance(command, InitProducer)
                assert process is not None
                if command.producer_id == -1:
                    self._take_over(process, token)
                elif epoch > 0 or not self._is_forgotten(process.name):
                    self._check_not_fenced(process, (command.producer_id, command.producer_epoch), token)
                self._own(process, (producer_id, epoch))
            case Ended(producer_id, epoch):
                assert isinstance(command, EndTransaction)
                assert process is not None
                who = (command.producer_id, command.producer_epoch)
                self._check_not_fenced(process, who, token)
                if command.bumps_epoch:
                    self._promise((process.name, who[0], who[1] + 1), committed=command.committed)
                    self._own(process, (producer_id, epoch))
            case PartitionsAdded(results):
                assert isinstance(command, AddPartitions)
                assert process is not None
                if None in results:
                    self._check_not_fenced(process, (command.producer_id, command.producer_epoch), token)
            case Unfinished(transactions):
                for entry in transactions:
                    key = (entry.transactional_id, entry.producer_id, entry.producer_epoch)
                    if entry.version == 2:
                        known = self.outcomes.setdefault(key, entry.committed)
                        assert known == entry.committed, f"{key} was to be committed, and aborted"
                    self.to_finish.append(MarkersWritten(*key, entry.started_at_ms, entry.partitions))
            case _:
                pass

    def _take_over(self, process: Process, token: int) -> None:
        """From here on, nobody who was anybody before succeeds."""
        for other in self.processes:
            if other is not process and other.name == process.name:
                for who in other.known:
                    self.fenced.setdefault((other.name, who), max(token, self.token))

    def _check_not_fenced(self, process: Process, who: Who, token: int) -> None:
        after = self.fenced.get((process.name, who))
        assert after is None or token <= after, f"{who} was fenced and succeeded"

    def _is_forgotten(self, name: str) -> bool:
        """Once a transactional id has expired, one that goes on begins: there is nothing left to be fenced by."""
        return TransactionalIdRemoved(name) in self.host.events()

    def _own(self, process: Process, who: Who) -> None:
        assert who[1] < EPOCH_MAX, "the last epoch is for markers"
        owner = self.owners.setdefault((process.name, who), process.number)
        assert owner == process.number, f"{who} was given to two processes"
        process.known.append(who)

    def _promise(self, key: tuple[str, int, int], *, committed: bool) -> None:
        known = self.promised.setdefault(key, committed)
        assert known == committed, f"both ends of {key} succeeded"

    def _finish(self, command: MarkersWritten) -> None:
        kept = tuple(place for place in command.partitions if self.chance.random() < 0.8)
        self._write_markers(replace(command, partitions=kept))

    def _write_markers(self, command: MarkersWritten) -> None:
        self.written.update((_finished(command), place) for place in command.partitions)
        self._ask(None, command)

    def wait(self, duration_ms: int) -> None:
        host, end_ms = self.host, self.host.now_ms + duration_ms
        while (due_ms := host.core.deadline_ms()) is not None and due_ms <= end_ms:
            host.now_ms = max(host.now_ms, int(due_ms))
            host.carry_out(host.core.tick(host.now_ms))
        host.now_ms = end_ms

    def end(self) -> None:
        """Time passes and markers are written, and everything that was promised comes."""
        for _ in range(6):
            self.wait(2 * TIMEOUT_MS)
            self._ask(None, ListUnfinished())
            self.release(self.host.commit_more(len(self.host.records)))
            for command in self.to_finish[-len(NAMES) :]:
                self._write_markers(command)
            self.release(self.host.commit_more(len(self.host.records)))
        waiting = [command for _, command in self.asked.values()]
        assert all(isinstance(command, ListUnfinished) and command.waits for command in waiting)
        check_log(self.host.events(), self.outcomes, self.promised, self.written)
        state: dict[str, TransactionRecorded] = {}
        for event in self.host.events():
            if isinstance(event, TransactionRecorded):
                state[event.transactional_id] = event
            else:
                del state[event.transactional_id]
        assert state == self.host.core.transactions
        assert not any(record.state.is_open for record in state.values()), "a transaction hangs"


def check_log(
    events: list[Event],
    outcomes: dict[tuple[str, int, int], bool],
    promised: dict[tuple[str, int, int], bool],
    written: set[tuple[Finished, TopicPartition]],
) -> None:
    """One outcome for every transaction, whatever was told to be written or answered to a producer, in the log."""
    ends = {
        TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
        TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
    }
    prepared: dict[str, TransactionRecorded] = {}
    recorded: dict[tuple[str, int, int], bool] = {}
    for event in events:
        before = prepared.pop(event.transactional_id, None)
        if isinstance(event, TransactionalIdRemoved):
            assert before is None, "a prepared transaction was forgotten"
            continue
        if before is not None:
            assert event.state is ends[before.state], f"{before.state} was followed by {event.state}"
            for place in before.partitions:
                assert (_finished(before), place) in written, f"{place} has no marker of {before}"
        if event.state.is_prepared:
            prepared[event.transactional_id] = event
        if event.version == 2 and event.state not in (TransactionState.EMPTY, TransactionState.ONGOING):
            is_committed = event.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
            epoch = event.producer_epoch
            has_moved = epoch == 0
            key = (
                event.transactional_id,
                event.previous_producer_id if has_moved else event.producer_id,
                EPOCH_MAX if has_moved else epoch,
            )
            assert recorded.setdefault(key, is_committed) == is_committed
    for key, committed in {**outcomes, **promised}.items():
        assert recorded[key] == committed, f"{key} was to be {'committed' if committed else 'aborted'}"


def run(seed: int, step_count: int) -> World:
    world = World(seed)
    for _ in range(step_count):
        world.act()
    world.end()
    return world


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_no_schedule_breaks_a_promise(seed: int) -> None:
    run(seed, 300)


def test_schedules_reach_what_they_are_meant_to_test() -> None:
    worlds = [run(seed, 600) for seed in range(12)]
    wanted = (
        Ended,
        PartitionsAdded,
        ProducerIdWanted,
        MarkersNoted,
        TransactionalProducerFenced,
        UnknownProducerMapping,
    )
    for kind in wanted:
        assert sum(world.counts.get(kind.__name__, 0) for world in worlds) > 20, kind.__name__
    outcomes = [committed for world in worlds for committed in world.outcomes.values()]
    assert outcomes.count(True) > 20
    assert outcomes.count(False) > 20
    assert any(key[2] == EPOCH_MAX for world in worlds for key in world.outcomes)
