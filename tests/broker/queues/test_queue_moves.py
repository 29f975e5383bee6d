"""Dead letters on their way from a hosted queue: what they say of themselves when they arrive."""

import asyncio
from typing import Any

from ropewalk.base.ids import ProducerId, TopicId
from ropewalk.broker.queues.headers import RECEIVE_COUNT
from ropewalk.broker.queues.moves import Moves
from ropewalk.queues.commands import ProvideProducer
from ropewalk.queues.messages import Arrival, Arrived, Shipment
from ropewalk.queues.settings import DeadLetterTarget, QueueSettings
from tests.broker.queues.queue_bench import Host, a_turn, hosting

TARGET = TopicId(b"t" * 16)
RECEIVES_MAX = 2
SETTINGS = QueueSettings(dead_letters=DeadLetterTarget(RECEIVES_MAX, TARGET, 0))


class Facts:
    """An image in which the target is."""

    def __init__(self) -> None:
        self.topics_by_id = {TARGET: object()}
        self.queues = self

    def by_topic(self, _: TopicId) -> None:
        """The target is no queue of anybody's."""


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


def begin_moves(host: Host, carrier: Carrier) -> None:
    facts: Any = Facts()
    moves = Moves(
        facts,
        Ids(),
        carrier.ship,
        pool=host.bench.ports.pool,
        begin=asyncio.ensure_future,
        remembered_ms=lambda: 60_000,
    )
    moves.begin(host.hosted)


async def make_dead_letters(host: Host, *bodies: str, is_last_committed: bool = True) -> None:
    """Of the last turn, in which they become dead, it may be left to the caller when it is committed."""
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
