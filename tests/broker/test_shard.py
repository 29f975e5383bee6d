"""The host of replicated state, with a counter as its tenant: what is answered is in the log, for good."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

import pytest
from msgspec import Struct

from ropewalk.base.errors import (
    InvalidRecord,
    InvalidRequest,
    InvalidTransactionState,
    ProducerFenced,
    RopewalkError,
    ShardLoading,
    ShardUnavailable,
)
from ropewalk.base.ids import Offset, ProducerEpoch, ProducerId
from ropewalk.base.limits import SHARD_BATCH_BYTES
from ropewalk.base.state_machine import Reply, Step
from ropewalk.broker.hosting.event_batches import Enrolment
from ropewalk.broker.hosting.keyed import Keyed
from ropewalk.broker.hosting.shard import Shard
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.partition import node_stopping
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.records.batch import iterate
from ropewalk.records.marker import TransactionMarker
from ropewalk.records.record import decode_records
from tests.broker.partition_bench import Bench, at_the_bench

T = TypeVar("T")
COMMIT_TIMEOUT_MS = 5000


class Added(Struct, frozen=True):
    amount: int
    padding: bytes = b""


class Counter:
    """Commands: a number is added, "read" is answered with the total, "pending" with what may come to it, "wait" is answered by the next addition, "no" is refused."""

    def __init__(self) -> None:
        self.total = 0
        self.pending: dict[int, int] = {}
        self.waiting: list[int] = []
        self.due_ms: float | None = None

    def apply(self, event: Added, now_ms: int) -> None:
        del now_ms
        self.total += event.amount

    def apply_pending(self, producer_id: int, event: Added, now_ms: int) -> None:
        del now_ms
        self.pending[producer_id] = self.pending.get(producer_id, 0) + event.amount

    def apply_end(self, producer_id: int, committed: bool, now_ms: int) -> None:
        del now_ms
        amount = self.pending.pop(producer_id, 0)
        self.total += amount if committed else 0

    def on_loaded(self, now_ms: int) -> None:
        del now_ms

    def decide(
        self, token: int, command: int | str | Added, now_ms: int
    ) -> "Step[Added, int | RopewalkError]":
        if command == "wait":
            self.waiting.append(token)
            self.due_ms = now_ms + 1000
            return Step()
        if command == "no":
            return Step(replies=(Reply(token, InvalidRequest("no")),))
        if command == "read":
            return Step(replies=(Reply(token, self.total),))
        if command == "pending":
            return Step(replies=(Reply(token, sum(self.pending.values())),))
        added = command if isinstance(command, Added) else Added(int(command))
        total = self.total + added.amount
        waiting, self.waiting = self.waiting, []
        return Step((added,), tuple(Reply(each, total) for each in [*waiting, token]))

    def tick(self, now_ms: int) -> "Step[Added, int | RopewalkError]":
        """Whoever waits too long makes the counter go up by a hundred."""
        if self.due_ms is None or now_ms < self.due_ms:
            return Step()
        self.due_ms = None
        waiting, self.waiting = self.waiting, []
        return Step((Added(100),), tuple(Reply(token, self.total + 100) for token in waiting))

    def deadline_ms(self) -> float | None:
        return self.due_ms

    def forget(self, token: int) -> None:
        self.waiting.remove(token)


class CounterKind:
    """No addition replaces another, so each has a key of its own."""

    keys_called = "counter"
    topic = "counters"
    numbers = count()

    def __init__(self) -> None:
        self.log: Keyed[Added] = Keyed(self._encode, self._decode)

    def new_core(self) -> Counter:
        return Counter()

    def only_writes(self, command: int | str | Added) -> bool:
        return isinstance(command, int)

    def new_topic(self, settings: BrokerSettings) -> CreateTopic:
        raise AssertionError("there is one")

    def _encode(self, event: Added) -> tuple[bytes, bytes | None]:
        return b"added %d" % next(self.numbers), str(event.amount).encode() + b" " + event.padding

    def _decode(self, key: bytes, value: bytes | None) -> Added | None:
        if not key.startswith(b"added"):
            return None
        if value is None:
            raise InvalidRecord("a number is missing")
        amount, _, padding = value.partition(b" ")
        return Added(int(amount), padding)


Hosted = Shard[int | str | Added, Added, int]


class Host:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.thrown_away: list[Hosted] = []
        self.shard: Hosted = Shard(
            CounterKind(),
            bench.partition,
            SteadyTime(bench.ports.clock),
            bench.ports.pool,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            on_thrown_away=self.thrown_away.append,
        )

    def ask(self, command: int | str | Added) -> "asyncio.Future[int]":
        return self.shard.ask(command).answer

    def send(self, amount: int, producer_id: int = 7, *, epoch: int = 0) -> "asyncio.Future[int]":
        """Add, if the transaction of the producer is committed. Whoever verifies transactions says yes."""
        enrolment = Enrolment(ProducerId(producer_id), ProducerEpoch(epoch))
        guard = self.shard.verification_needed(enrolment)
        return self.shard.ask_in_transaction(amount, enrolment, guard).answer

    def finish(
        self, producer_id: int = 7, *, committed: bool = True, epoch: int = 0
    ) -> "asyncio.Future[None]":
        marker = TransactionMarker(
            ProducerId(producer_id), ProducerEpoch(epoch), committed=committed, coordinator_epoch=0
        )
        return self.shard.end_transaction(marker)


def hosting(story: Callable[[Host], Awaitable[T]], *, durable_first: bool = True) -> T:
    async def at_bench(bench: Bench) -> T:
        host = Host(bench)
        await host.shard.load()
        return await story(host)

    return at_the_bench(at_bench, durable_first=durable_first)


async def a_turn() -> None:
    """Until the loop has done what is due by now."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_an_answer_waits_for_its_event_to_be_durable() -> None:
    async def story(host: Host) -> None:
        answer = host.ask(5)
        await a_turn()
        assert not answer.done()
        await host.bench.commits.commit()
        assert await answer == 5

    hosting(story)


def test_whoever_reads_what_is_not_durable_waits_for_it_too() -> None:
    async def story(host: Host) -> None:
        host.ask(5)
        in_the_same_turn = host.ask("read")
        await a_turn()
        later = host.ask("read")
        await a_turn()
        assert not in_the_same_turn.done()
        assert not later.done()
        await host.bench.commits.commit()
        assert (await in_the_same_turn, await later) == (5, 5)
        at_once = host.ask("read")
        assert at_once.done()

    hosting(story)


def test_where_nobody_waits_for_the_disk_answers_come_at_once() -> None:
    async def story(host: Host) -> None:
        assert await host.ask(5) == 5

    hosting(story, durable_first=False)


def test_events_of_one_turn_share_a_batch_and_keep_their_order() -> None:
    async def story(host: Host) -> list[list[bytes | None]]:
        answers = [host.ask(amount) for amount in (1, 2, 3)]
        await a_turn()
        answers.append(host.ask(4))
        await a_turn()
        await host.bench.commits.commit()
        assert [await answer for answer in answers] == [1, 3, 6, 10]
        log = host.bench.partition.log
        span = log.locate(Offset(0), limit_offset=log.end_offset, bytes_max=1 << 20)
        assert span is not None
        view = memoryview(span.read())
        return [
            [record.value for record in decode_records(view[start : start + header.size_bytes])]
            for start, header in iterate(view)
        ]

    assert hosting(story) == [[b"1 ", b"2 ", b"3 "], [b"4 "]]


def test_a_refusal_is_released_like_an_answer() -> None:
    async def story(host: Host) -> None:
        host.ask(1)
        refused = host.ask("no")
        await a_turn()
        assert not refused.done()
        await host.bench.commits.commit()
        with pytest.raises(InvalidRequest):
            await refused

    hosting(story)


def test_another_core_reads_all_of_it_back() -> None:
    async def story(host: Host) -> int:
        for amount in range(1, 30):
            host.ask(amount)
            await a_turn()
        await host.bench.commits.commit()
        second = Host(host.bench)
        await second.shard.load()
        return await second.ask("read")

    assert hosting(story) == sum(range(1, 30))


def test_what_was_read_back_and_is_not_durable_is_waited_for() -> None:
    async def story(host: Host) -> None:
        host.ask(5)
        await a_turn()
        second = Host(host.bench)
        await second.shard.load()
        answer = second.ask("read")
        await a_turn()
        assert not answer.done()
        await host.bench.commits.commit()
        assert await answer == 5

    hosting(story)


def test_a_failed_append_throws_the_state_away_and_says_that_nobody_knows() -> None:
    async def story(host: Host) -> None:
        platters = host.bench.platters
        kept = host.ask(5)
        waiting = host.ask("wait")
        await a_turn()
        platters.capacity_bytes = platters.used_bytes
        uncertain = host.ask(7), host.ask("no")
        await a_turn()
        for answer in (waiting, *uncertain):
            with pytest.raises(ShardUnavailable):
                await answer
        assert host.thrown_away == [host.shard]
        with pytest.raises(ShardLoading):
            host.ask("read")
        await host.bench.commits.commit()
        assert await kept == 5  # it was in the log before anything went wrong
        platters.make_room()
        await host.shard.load()
        assert await host.ask("read") == 5

    hosting(story)


def test_what_is_not_committed_in_time_is_uncertain_and_stays() -> None:
    async def story(host: Host) -> None:
        answer = host.ask(5)
        await a_turn()
        host.bench.partition.expire(host.bench.ports.clock.monotonic_ms() + COMMIT_TIMEOUT_MS)
        with pytest.raises(ShardUnavailable):
            await answer
        second = host.ask("read")
        await a_turn()
        assert not second.done()
        await host.bench.commits.commit()
        assert await second == 5

    hosting(story)


def test_the_core_is_woken_when_it_said_so() -> None:
    async def story(host: Host) -> None:
        answer = host.ask("wait")
        while not host.bench.partition.log.end_offset:
            await asyncio.sleep(0.1)
        assert not answer.done()
        await host.bench.commits.commit()
        assert await answer == 100

    hosting(story)


def test_nobody_is_owed_an_answer_that_was_forgotten() -> None:
    async def story(host: Host) -> None:
        asked = host.shard.ask("wait")
        host.shard.forget(asked.token)
        host.shard.forget(asked.token)
        host.ask(1)
        await a_turn()
        await host.bench.commits.commit()
        with pytest.raises(ShardUnavailable, match="nobody waits"):
            await asked.answer

    hosting(story)


def test_an_event_larger_than_a_batch_has_one_of_its_own() -> None:
    async def story(host: Host) -> int:
        log = host.bench.partition.log
        log.settings = type(log.settings)(segment_bytes=1 << 24)
        answers = [host.ask(Added(1, b"x" * SHARD_BATCH_BYTES * 2)), host.ask(2), host.ask(3)]
        await a_turn()
        await host.bench.commits.commit()
        assert [await answer for answer in answers] == [1, 3, 6]
        second = Host(host.bench)
        await second.shard.load()
        return await second.ask("read")

    assert hosting(story) == 6


def test_a_shard_that_ends_sends_everyone_away() -> None:
    async def story(host: Host) -> None:
        waiting, undecided = host.ask("wait"), host.ask(5)
        host.shard.end(ShardUnavailable("gone"))
        await a_turn()
        for answer in (waiting, undecided):
            with pytest.raises(ShardUnavailable, match="gone"):
                await answer
        assert host.bench.partition.log.end_offset == 0

    hosting(story)


def test_a_partition_that_ends_leaves_its_answers_uncertain() -> None:
    async def story(host: Host) -> None:
        answer = host.ask(5)
        await a_turn()
        host.bench.partition.end(node_stopping(host.bench.partition.name))
        with pytest.raises(ShardUnavailable, match="not known"):
            await answer

    hosting(story)


def test_whoever_asks_after_its_partition_has_ended_is_not_left_waiting() -> None:
    """A topic is deleted partition first, and its shards hear of it a moment later."""

    async def story(host: Host) -> None:
        first = host.ask(5)
        await a_turn()
        host.bench.partition.end(node_stopping(host.bench.partition.name))
        await a_turn()
        late = host.ask("read")
        await a_turn()
        assert late.done()
        for answer in (first, late):
            with pytest.raises(ShardUnavailable, match="not known"):
                await answer

    hosting(story)


def test_what_was_committed_is_not_told_either_once_another_may_lead() -> None:
    async def story(host: Host) -> None:
        assert await host.ask(5) == 5
        host.bench.partition.end(node_stopping(host.bench.partition.name))
        with pytest.raises(ShardUnavailable):
            await host.ask("read")

    hosting(story, durable_first=False)


def test_an_answer_that_nobody_came_for_is_no_complaint() -> None:
    async def story(host: Host) -> list[dict[str, object]]:
        complaints: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        host.ask(5)
        await a_turn()
        host.bench.partition.end(node_stopping(host.bench.partition.name))
        await a_turn()
        gc.collect()
        return complaints

    assert hosting(story) == []


def test_what_is_sent_with_a_transaction_counts_when_it_is_committed() -> None:
    async def story(host: Host) -> None:
        host.ask(1)
        sent = host.send(5)
        await a_turn()
        assert not sent.done()
        await host.bench.commits.commit()
        await sent
        assert (await host.ask("read"), await host.ask("pending")) == (1, 5)
        finished = host.finish()
        read = host.ask("read")
        await a_turn()
        assert not finished.done()
        assert not read.done()
        await host.bench.commits.commit()
        await finished
        assert await read == 6
        assert await host.ask("pending") == 0

    hosting(story)


def test_what_is_aborted_never_counts() -> None:
    async def story(host: Host) -> None:
        await host.send(5)
        await host.finish(committed=False)
        assert (await host.ask("read"), await host.ask("pending")) == (0, 0)

    hosting(story, durable_first=False)


def test_an_end_that_is_sent_again_is_taken_and_changes_nothing() -> None:
    async def story(host: Host) -> None:
        await host.send(5)
        await host.finish()
        await host.finish()
        assert await host.ask("read") == 5

    hosting(story, durable_first=False)


@pytest.mark.parametrize(
    "steps", [("send",), ("send", "commit"), ("send", "abort"), ("send", "commit", "send")]
)
def test_transactions_are_read_back_open_or_ended(steps: tuple[str, ...]) -> None:
    async def story(host: Host) -> None:
        host.ask(1)
        for step in steps:
            if step == "send":
                await host.send(5)
            else:
                await host.finish(committed=step == "commit")
        host.ask(2)
        await a_turn()
        second = Host(host.bench)
        await second.shard.load()
        for question in ("read", "pending"):
            assert await second.ask(question) == await host.ask(question)
        if steps[-1] == "send":
            await second.finish()
            assert await second.ask("read") == 3 + 5 * steps.count("send")

    hosting(story, durable_first=False)


def test_what_was_decided_before_is_in_the_log_before() -> None:
    async def story(host: Host) -> list[tuple[int, int]]:
        host.ask(1)
        host.send(5)
        host.ask(2)
        host.finish()
        await a_turn()
        log = host.bench.partition.log
        span = log.locate(Offset(0), limit_offset=log.end_offset, bytes_max=1 << 20)
        assert span is not None
        return [(header.producer_id, header.is_control) for _, header in iterate(span.read())]

    assert hosting(story) == [(-1, False), (7, False), (-1, False), (7, True)]


def test_a_producer_that_the_partition_refuses_hears_so_and_nobody_else_does() -> None:
    async def story(host: Host) -> None:
        await host.send(5, epoch=1)
        with pytest.raises(ProducerFenced):
            host.send(7, epoch=0)
        with pytest.raises(ProducerFenced):
            host.finish(epoch=0)
        with pytest.raises(InvalidTransactionState):
            host.shard.ask_in_transaction(3, Enrolment(ProducerId(8), ProducerEpoch(0)))
        assert not host.thrown_away
        assert await host.ask("pending") == 5
        await host.finish(epoch=1)
        assert await host.ask("read") == 5

    hosting(story, durable_first=False)


def test_leave_to_begin_that_was_given_before_an_end_is_none_after_it() -> None:
    async def story(host: Host) -> None:
        enrolment = Enrolment(ProducerId(7), ProducerEpoch(0))
        guard = host.shard.verification_needed(enrolment)
        assert guard is not None
        await host.finish(committed=False)
        with pytest.raises(InvalidTransactionState):
            host.shard.ask_in_transaction(5, enrolment, guard)
        assert await host.ask("pending") == 0

    hosting(story, durable_first=False)


def test_an_end_that_cannot_be_written_leaves_the_transaction_as_the_log_has_it() -> None:
    async def story(host: Host) -> None:
        platters = host.bench.platters
        await host.send(5)
        platters.capacity_bytes = platters.used_bytes
        with pytest.raises(ShardUnavailable):
            host.finish()
        assert host.thrown_away == [host.shard]
        platters.make_room()
        await host.shard.load()
        assert (await host.ask("read"), await host.ask("pending")) == (0, 5)

    hosting(story, durable_first=False)


def test_something_sent_that_cannot_be_written_is_uncertain() -> None:
    async def story(host: Host) -> None:
        platters = host.bench.platters
        platters.capacity_bytes = platters.used_bytes
        answer = host.send(5)
        with pytest.raises(ShardUnavailable):
            await answer
        assert host.thrown_away == [host.shard]

    hosting(story, durable_first=False)


def test_an_answer_that_is_waited_for_no_more_hinders_nobody() -> None:
    """A task that is cancelled cancels what it waits for, as tasks do when a node stops."""

    async def story(host: Host) -> None:
        host.ask("wait").cancel()
        host.ask(1).cancel()
        kept = host.ask("wait")
        host.shard.end(ShardUnavailable("the node is stopping"))
        with pytest.raises(ShardUnavailable):
            await kept

    hosting(story)
