"""A shard's log in another form than keyed: events that build on each other, with snapshots among them, need no change of the host."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.base.ports import Pool
from ropewalk.base.state_machine import Command, Reply, Step
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.host import ask
from ropewalk.broker.hosting.replay import Happened, Passage
from ropewalk.broker.hosting.shard import LEGAL, Life, Shard
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.records.batch import decode_header, iterate
from ropewalk.records.record import build_keyed, decode_records
from tests.broker.partition_bench import Bench, at_the_bench

SNAPSHOT_EVERY = 5


class Added(Struct, frozen=True):
    number: int


class Total(Struct, frozen=True):
    """A snapshot: what all additions before it come to."""

    total: int


Event = Added | Total


class Add(Command[int], frozen=True):
    number: int


class Sum:
    """Answers every addition with the total. The core itself decides when a snapshot is due."""

    def __init__(self) -> None:
        self.total = 0
        self.applied_count = 0

    def apply(self, event: Event, now_ms: int) -> None:
        del now_ms
        self.applied_count += 1
        self.total = event.total if isinstance(event, Total) else self.total + event.number

    def on_loaded(self, now_ms: int) -> None:
        del now_ms

    def decide(self, token: int, command: Add, now_ms: int) -> Step[Event, int]:
        del now_ms
        total = self.total + command.number
        events: tuple[Event, ...] = (Added(command.number),)
        if (self.applied_count + 1) % SNAPSHOT_EVERY == 0:
            events += (Total(total),)
        return Step(events, (Reply(token, total),))

    def tick(self, now_ms: int) -> Step[Event, int]:
        del now_ms
        return Step()

    def deadline_ms(self) -> float | None:
        return None

    def forget(self, token: int) -> None:
        del token


class Deltas:
    """Everything from the last snapshot on counts, in order; what is before it does not."""

    def batches(
        self, events: Sequence[Event], *, now_ms: int, enrolment: Enrolment | None = None
    ) -> Iterator[Prepared]:
        assert enrolment is None, "this kind takes no part in transactions"
        entries = [
            (b"total", b"%d" % each.total) if isinstance(each, Total) else (b"added", b"%d" % each.number)
            for each in events
        ]
        batch = build_keyed(entries, timestamp=now_ms)
        yield Prepared(memoryview(batch), decode_header(batch))

    async def replay(
        self, partition: Partition, *, end_offset: Offset, pool: Pool
    ) -> AsyncIterator[Passage[Event]]:
        log, offset = partition.log, partition.log.start_offset
        events: list[Event] = []
        while offset < end_offset:
            span = log.locate(offset, limit_offset=end_offset, bytes_max=1 << 20)
            assert span is not None
            data = bytes(await pool.run(span.read))
            for position, header in iterate(data):
                batch = memoryview(data)[position : position + header.size_bytes]
                for record in decode_records(batch):
                    number = int(record.value or b"")
                    if record.key == b"total":
                        events = [Total(number)]
                    else:
                        events.append(Added(number))
                offset = header.end_offset
        yield Happened(events)


class SumKind:
    keys_called = "sum"
    topic = "sums"
    log = Deltas()

    def new_topic(self, settings: BrokerSettings) -> CreateTopic:
        raise AssertionError("there is one")

    def new_core(self) -> Sum:
        return Sum()

    def only_writes(self, command: Add) -> bool:
        del command
        return True


def _shard(bench: Bench) -> Shard[Add, Event, int]:
    return Shard(
        SumKind(),
        bench.partition,
        SteadyTime(bench.ports.clock),
        bench.ports.pool,
        commit_timeout_ms=5000,
        on_thrown_away=lambda _: None,
    )


def test_a_kind_with_snapshots_is_read_from_the_last_of_them() -> None:
    async def story(bench: Bench) -> None:
        shard = _shard(bench)
        await shard.load()
        answers = [await ask(shard, Add(number)).answer for number in range(1, 13)]
        assert answers == [sum(range(1, number + 1)) for number in range(1, 13)]
        shard.end(RopewalkError("it moves"))

        again = _shard(bench)
        await again.load()
        core = again.core
        assert isinstance(core, Sum)
        assert core.total == sum(range(1, 13))
        assert core.applied_count < 1 + SNAPSHOT_EVERY, "what is before the snapshot was not applied again"
        again.end(RopewalkError("over"))

    at_the_bench(story, durable_first=False)


@pytest.mark.parametrize("life", Life)
def test_a_shard_that_has_ended_stays_so(life: Life) -> None:
    assert Life.ENDED in LEGAL[life]
    assert LEGAL[Life.ENDED] == {Life.ENDED}


def test_a_shard_that_ends_while_it_is_read_does_not_come_to_serve() -> None:
    async def story(bench: Bench) -> None:
        shard = _shard(bench)
        await shard.load()
        await ask(shard, Add(1)).answer
        shard.end(RopewalkError("it moves"))
        again = _shard(bench)
        again.end(RopewalkError("the node stops"))
        await again.load()
        assert not again.is_serving

    at_the_bench(story, durable_first=False)


def test_a_shard_that_serves_cannot_be_loaded_beside_it() -> None:
    async def story(bench: Bench) -> None:
        shard = _shard(bench)
        await shard.load()
        with pytest.raises(AssertionError, match="from SERVING to SERVING"):
            await shard.load()
        shard.end(RopewalkError("over"))

    at_the_bench(story, durable_first=False)
