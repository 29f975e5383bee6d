"""Dead letters on their way from a hosted queue: what they say of themselves when they arrive."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from ropewalk.base.errors import ShardUnavailable, Throttled
from ropewalk.base.ids import ProducerId, TopicId
from ropewalk.broker.queues.headers import RECEIVE_COUNT
from ropewalk.broker.queues.moves import Moves
from ropewalk.queues.commands import ProvideProducer
from ropewalk.queues.messages import Arrival, Arrived, Shipment
from ropewalk.queues.settings import DeadLetterTarget, QueueSettings
from tests.broker.queues.queue_bench import Host, a_turn, bodies_of, hosting

TARGET = TopicId(b"t" * 16)
RECEIVES_MAX = 2
SETTINGS = QueueSettings(dead_letters=DeadLetterTarget(RECEIVES_MAX, TARGET, 0))


class Facts:
    """An image in which the target is."""

    def __init__(self) -> None:
        self.topics_by_id = {TARGET: object()}
        self.queues = self

        self.is_queue = True

    def by_topic(self, _: TopicId) -> object | None:
        return object() if self.is_queue else None


class Ids:
    async def next(self) -> ProducerId:
        return ProducerId(7)


class Carrier:
    """Takes everything, once it may."""

    def __init__(self) -> None:
        self.may_go = asyncio.Event()
        self.receive_counts: list[bytes | None] = []

    async def ship(self, shipment: Shipment) -> Arrived:
        await self.may_go.wait()
        self.receive_counts += [dict(entry[3]).get(RECEIVE_COUNT) for entry in shipment.entries]
        return Arrived(Arrival.ARRIVED, shipment.first_index + len(shipment.entries))


def begin_moves(
    host: Host, carrier: Carrier, facts: Any = None, begin: Callable[[Any], object] = asyncio.ensure_future
) -> Moves:
    image: Any = facts or Facts()
    moves = Moves(
        image,
        Ids(),
        carrier.ship,
        pool=host.bench.ports.pool,
        begin=begin,
        remembered_ms=lambda: 60_000,
    )
    moves.begin(host.hosted)
    return moves


async def make_dead_letters(
    host: Host, *bodies: str, is_last_committed: bool = True, has_producer: bool = True
) -> None:
    """Of the last turn, in which they become dead, it may be left to the caller when it is committed."""
    if has_producer:
        host.hosted.ask(ProvideProducer(7, 0))
    await host.send(*bodies)
    for _ in range(RECEIVES_MAX - 1):
        assert len(await host.receive(visibility_ms=1_000)) == len(bodies)
        await host.pass_time(1_100)
    assert len(await host.receive(visibility_ms=1_000)) == len(bodies)
    await asyncio.sleep(1.1)
    if is_last_committed:
        await host.commit()


def test_a_dead_letter_says_how_often_it_was_received() -> None:
    async def story(host: Host) -> list[bytes | None]:
        carrier = Carrier()
        begin_moves(host, carrier)
        carrier.may_go.set()
        await make_dead_letters(host, "one", "two")
        await host.pass_time(100)
        return carrier.receive_counts

    assert hosting(story, SETTINGS) == [b"2", b"2"]


def test_a_dead_letter_that_is_purged_on_its_way_says_how_often_it_was_received() -> None:
    async def story(host: Host) -> list[bytes | None]:
        carrier = Carrier()
        begin_moves(host, carrier)
        await make_dead_letters(host, "one")
        await host.told(host.hosted.purge().answer)
        carrier.may_go.set()
        await a_turn()
        await host.pass_time(100)
        return carrier.receive_counts

    assert hosting(story, SETTINGS) == [b"2"]


def test_a_move_whose_intent_is_committed_late_is_carried_out() -> None:
    async def story(host: Host) -> list[bytes | None]:
        carrier = Carrier()
        carrier.may_go.set()
        begin_moves(host, carrier)
        await make_dead_letters(host, "one", is_last_committed=False)
        await asyncio.sleep(10)
        host.partition.acknowledgements.expire(host.bench.ports.clock.monotonic_ms())
        await a_turn()
        await host.commit()
        await host.pass_time(3_000)
        return carrier.receive_counts

    assert hosting(story, SETTINGS) == [b"2"]


def test_what_was_to_go_to_a_queue_that_is_deleted_stays_and_can_be_received() -> None:
    """The topic had been adopted, so it is still there, and nobody looks for messages in it."""

    async def story(host: Host) -> tuple[list[bytes | None], list[str], int]:
        carrier, facts = Carrier(), Facts()
        carrier.may_go.set()
        facts.is_queue = False
        moves = begin_moves(host, carrier, facts)
        await make_dead_letters(host, "one")
        await host.pass_time(1_000)
        return carrier.receive_counts, bodies_of(await host.receive()), moves.refused_count

    assert hosting(story, SETTINGS) == ([], ["one"], 1)


def test_a_producer_is_asked_for_again_where_too_much_was_under_way() -> None:
    async def story(host: Host) -> list[bytes | None]:
        carrier, refusals = Carrier(), [Throttled("too much is under way")]
        carrier.may_go.set()

        def begin(work: Coroutine[Any, Any, None]) -> object:
            if refusals:
                work.close()
                raise refusals.pop()
            return asyncio.ensure_future(work)

        moves = begin_moves(host, carrier, begin=begin)
        await make_dead_letters(host, "one", has_producer=False)
        for each in host.wanting_producers:
            moves.provide(each)
        await host.pass_time(5_000)
        await host.pass_time(5_000)
        assert not refusals
        return carrier.receive_counts

    assert hosting(story, SETTINGS) == [b"2"]


def test_a_move_that_targets_may_have_forgotten_is_not_repeated_and_ends_when_the_queue_is_purged() -> None:
    async def story(host: Host) -> None:
        carrier, target_answers = Carrier(), asyncio.Event()
        carrier.may_go.set()

        async def ship(shipment: Shipment) -> Arrived:
            arrived = await carrier.ship(shipment)
            if not target_answers.is_set():
                raise ShardUnavailable("nobody was heard")
            return arrived

        carried: Any = SimpleNamespace(ship=ship)
        moves = begin_moves(host, carried)
        await make_dead_letters(host, "one")
        assert moves.knows_end(host.hosted)
        await host.pass_time(60_000)
        target_answers.set()
        asked_count = len(carrier.receive_counts)
        await host.pass_time(10_000)
        assert not moves.knows_end(host.hosted)
        assert len(carrier.receive_counts) == asked_count, "nobody brings it again"
        assert await host.receive() == []

        await host.told(host.hosted.purge().answer)
        await host.pass_time(2_000)
        assert moves.knows_end(host.hosted)
        assert host.hosted.serving().state.move is None
        await make_dead_letters(host, "two", has_producer=False)
        for each in host.wanting_producers:
            moves.provide(each)
        await host.pass_time(5_000)
        assert moves.moved_count == 1

    hosting(story, SETTINGS)
