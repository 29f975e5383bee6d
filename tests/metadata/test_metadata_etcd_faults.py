"""Controllers that compete for a faulty etcd: whatever happens, there is one log, and each heard a part of it.

Every record is unlike any other, so that the log itself shows what happened: what was acknowledged is there, once and
where it was said to be; what was refused is not there; what nobody knows is there once or not at all.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import pytest
from msgspec import structs

from ropewalk.base.errors import CorruptMetadata, MetadataUnavailable
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.base.limits import ETCD_TELL_MS_MAX
from ropewalk.metadata.etcd.client import Access, EtcdClient, parse_members
from ropewalk.metadata.etcd.keys import Batch
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.etcd.messages import Message
from ropewalk.metadata.etcd.mirror import Seat
from ropewalk.metadata.etcd.store import Store
from ropewalk.metadata.log import Committed, Raced, Snapshot, Unknown
from ropewalk.metadata.records import MetadataRecord, ProducerIdsAllocated
from ropewalk.sim.machines.etcd import EXPECTED, EtcdFaults, ModelledEtcd
from ropewalk.sim.machines.world import World

M = TypeVar("M")

FAULTS = EtcdFaults(
    request_lost=0.02,
    answer_lost=0.03,
    done_late=0.03,
    watch_cancelled=0.03,
    watch_deaf=0.03,
    watch_delay_s_max=0.2,
)
SNAPSHOT_SHARE = 0.1
"""Of appends, which are followed by a snapshot."""

OFTEN_LATE = structs.replace(FAULTS, done_late=0.3)
CONTROLLERS = 3
SECONDS = 40.0
SEEDS = range(8)


class Contest:
    """One world, its controllers, and what they were told."""

    def __init__(self, world: World, faults: EtcdFaults, snapshot_share: float) -> None:
        self.world = world
        self.snapshot_share = snapshot_share
        self.etcd = ModelledEtcd(world, faults=faults)
        self.rng = world.rng_for("contest")
        self.number_next = 0
        self.committed: dict[int, MetadataRecord] = {}
        self.refused: set[MetadataRecord] = set()
        self.known: dict[int, MetadataRecord] = {}
        """What anybody ever heard to be at an offset."""

    def fresh(self) -> MetadataRecord:
        self.number_next += 1
        return ProducerIdsAllocated(NodeId(0), ProducerId(self.number_next))

    def heard(self, offset: int, records: tuple[MetadataRecord, ...]) -> None:
        for position, record in enumerate(records, offset):
            assert self.known.setdefault(position, record) == record, "two controllers heard different logs"

    async def open(self, name: str) -> EtcdMetadataLog:
        while True:
            with suppress(MetadataUnavailable):
                return await EtcdMetadataLog.open(
                    self.world.network.host(name),
                    self.world.machine(f"{name}-{self.number_next}-{self.world.now_s}").clock,
                    self.world.rng_for(f"{name}-{self.world.now_s}"),
                    Access(parse_members(self.etcd.urls)),
                    prefix="/contest/",
                )

    async def compete(self, number: int) -> None:
        """Take over now and then; append while one can; read the tail whenever an outcome is not known."""
        log = await self.open(f"node{number}")
        listening = asyncio.get_running_loop().create_task(log.run())
        try:
            offset = 0
            while self.world.now_s < SECONDS:
                offset = await self.follow(log, offset)
                is_holder = log.holder is not None and log.holder.node_id == number
                if not is_holder and self.rng.random() < (0.01 if log.holder else 0.5):
                    with suppress(MetadataUnavailable):
                        await log.take_over(
                            NodeId(number), expected_epoch=log.holder.epoch if log.holder else 0
                        )
                        offset = await self.read(log, offset)
                elif log.epoch and self.rng.random() < 0.8:
                    offset = await self.append(log, offset)
                await asyncio.sleep(self.rng.uniform(0, 0.2))
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            log.close()

    async def append(self, log: EtcdMetadataLog, offset: int) -> int:
        records = tuple(self.fresh() for _ in range(self.rng.randrange(1, 4)))
        try:
            outcome = await log.append(records, expected_epoch=log.epoch, expected_end_offset=offset)
        except MetadataUnavailable:
            self.refused.update(records)
            return offset
        match outcome:
            case Committed(end_offset=end_offset):
                assert end_offset == offset + len(records)
                self.committed.update(enumerate(records, offset))
                self.heard(offset, records)
                with suppress(MetadataUnavailable):
                    if self.rng.random() < self.snapshot_share and log.end_offset == end_offset:
                        await log.write_snapshot(Snapshot(log.epoch, end_offset, self.facts(end_offset)))
                return end_offset
            case Raced():
                self.refused.update(records)
            case Unknown():
                pass
        with suppress(MetadataUnavailable):
            offset = await self.read(log, offset)
        return offset

    def facts(self, end_offset: int) -> tuple[MetadataRecord, ...]:
        """Every record there was, so that a snapshot shows whether it stands for the right ones."""
        return tuple(self.known[offset] for offset in range(end_offset))

    async def follow(self, log: EtcdMetadataLog, offset: int) -> int:
        records = log.heard(offset)
        if records is None:
            with suppress(MetadataUnavailable):
                return await self.read(log, offset)
            return offset
        self.heard(offset, records)
        return offset + len(records)

    async def read(self, log: EtcdMetadataLog, offset: int) -> int:
        while (records := await log.tail(offset)) is None:
            snapshot = await log.snapshot()
            self.heard(0, snapshot.facts)
            assert len(snapshot.facts) == snapshot.end_offset
            offset = snapshot.end_offset
        self.heard(offset, records)
        return offset + len(records)

    async def disturb(self) -> None:
        while self.world.now_s < SECONDS:
            await asyncio.sleep(self.rng.uniform(1, 4))
            number = self.rng.randrange(0, 3)
            match self.rng.randrange(0, 9):
                case 0 if self.etcd.machines[number].is_running:
                    self.etcd.kill_member(number)
                case 1:
                    self.etcd.isolate(number)
                case 2:
                    self.etcd.expire_leases()
                case 3:
                    self.world.network.partition(f"node{number}", f"etcd{self.rng.randrange(0, 3)}")
                case 4:
                    self.etcd.compact()
                case 5:
                    self.etcd.state.fill(on_its_way_count=self.rng.randrange(0, 3))
                case _:
                    await self.heal()
        await self.heal()

    async def heal(self) -> None:
        self.etcd.mend()
        self.etcd.state.make_room()
        self.world.network.mend_all()
        for number, machine in enumerate(self.etcd.machines):
            if not machine.is_running:
                await self.etcd.start_member(number)

    async def run(self) -> None:
        await self.etcd.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.disturb())
            for number in range(CONTROLLERS):
                tasks.create_task(self.compete(number))
        self.etcd.faults = EtcdFaults()
        await asyncio.sleep(10)  # for whatever etcd is still to do
        log = await self.open("judge")
        snapshot = await log.snapshot()
        records = (*snapshot.facts, *(await log.tail(snapshot.end_offset) or ()))
        log.close()
        self.judge(records)

    def judge(self, records: tuple[MetadataRecord, ...]) -> None:
        assert max(Counter(records).values(), default=0) <= 1, "a record is in the log twice"
        for offset, record in self.known.items():
            assert records[offset] == record, "what was heard is not what is there"
        for offset, record in self.committed.items():
            assert records[offset] == record, "what was acknowledged is not there"
        assert not self.refused & set(records), "what was refused is there"


def test_whatever_happens_there_is_one_log() -> None:
    happened: Counter[str] = Counter()
    committed = 0
    for seed in SEEDS:
        contest = contested(seed)
        happened += contest.etcd.happened
        committed += len(contest.committed)
    assert committed > 100 * len(SEEDS)
    assert [name for name in EXPECTED if not happened[name]] == []


def test_there_is_one_log_where_snapshots_are_many_and_late() -> None:
    for seed in SEEDS:
        late_snapshots(seed)


def without_comparing_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that comes late overwrites what was appended since."""
    whole = EtcdMetadataLog._appending

    def broken(self: EtcdMetadataLog, batch: Batch, value: bytes, seat: Seat) -> Message:
        return {**whole(self, batch, value, seat), "compare": []}

    monkeypatch.setattr(EtcdMetadataLog, "_appending", broken)


def with_appends_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done the first time looks refused the second time."""
    monkeypatch.setattr(EtcdClient, "tell", EtcdClient.ask)


def with_silence_taken_for_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropewalk.metadata.etcd.log.Unknown", lambda _: Raced(1, 0))


def with_no_space_taken_for_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What etcd carried out as it ran full is said to be not there."""

    async def broken(self: EtcdClient, path: str, request: Message, kind: type[M]) -> M:
        return await self._call(path, request, kind, attempt_ms=ETCD_TELL_MS_MAX)

    monkeypatch.setattr(EtcdClient, "tell", broken)


def with_snapshots_switched_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pointer that nobody waits for any more replaces one whose log is gone."""
    whole = Store.write_as

    async def broken(
        self: Store, revision: int, operations: Sequence[Message], *, compare: Sequence[Message] = ()
    ) -> int | None:
        return await whole(self, revision, operations)

    monkeypatch.setattr(Store, "write_as", broken)


def contested(seed: int, faults: EtcdFaults = FAULTS, snapshot_share: float = SNAPSHOT_SHARE) -> Contest:
    with World(f"contest-{seed}") as world:
        contest = Contest(world, faults, snapshot_share)
        world.run(contest.run(), limit_s=200)
        return contest


def late_snapshots(seed: int) -> Contest:
    """With a switch that is late in one of a hundred contests or two, a break of that takes a minute to be found."""
    return contested(seed, OFTEN_LATE, snapshot_share=0.9)


@pytest.mark.parametrize(
    ("broken", "contest"),
    [
        (without_comparing_the_end, contested),
        (with_appends_sent_again, contested),
        (with_silence_taken_for_refusal, contested),
        (with_no_space_taken_for_refusal, contested),
        (with_snapshots_switched_late, late_snapshots),
    ],
)
def test_a_log_that_is_broken_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None],
    contest: Callable[[int], Contest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(monkeypatch)
    for seed in range(150):  # which one it is changes with everything that is sent
        try:
            contest(seed)
        except (AssertionError, CorruptMetadata, ExceptionGroup):
            return
    pytest.fail("nobody noticed")
