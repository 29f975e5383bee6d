"""What the active controller answers to nodes, and does about those it no longer hears."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ropewalk.base.errors import NotController, StaleBrokerEpoch, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import CONNECTION_GRACE_MS, TAKE_OVER_GRACE_MS
from ropewalk.broker.cluster.metadata_feed import MetadataFeed
from ropewalk.broker.cluster.registry import Registry
from ropewalk.controller.brokers import Registration
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import Heartbeat
from ropewalk.controller.sessions import Sessions
from ropewalk.metadata.lineage import Position
from ropewalk.metadata.records import decode_records
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.effective import SettingsView
from ropewalk.runtime.tasks import Supervisor
from ropewalk.sim.machines.world import World
from tests.broker.shared_log import SharedLog
from tests.broker.test_controller_seat import Candidate, allocate

T = TypeVar("T")

SESSION_MS = 6_000


class Controller(Candidate):
    """A candidate that also answers nodes."""

    def __init__(self, node_id: int, shared: SharedLog, world: World) -> None:
        super().__init__(node_id, shared)
        self.clock = world.machine(f"controller{node_id}").clock
        view = SettingsView(self.facts.image, self.node_id, {})
        sessions: Sessions[NodeLoad] = Sessions(
            session_timeout_ms=SESSION_MS,
            connection_grace_ms=CONNECTION_GRACE_MS,
            take_over_grace_ms=TAKE_OVER_GRACE_MS,
        )
        self.registry = Registry(
            self.node_id, self.cluster, AppliedSettings(view), sessions, self.clock, is_alone=False
        )
        self.seat.on_seated(self.registry.on_seated)
        self.feed = MetadataFeed(self.log, self.facts)

    async def serve(self, supervisor: Supervisor) -> "Controller":
        await self.start(supervisor)
        supervisor.start(f"sessions of {self.node_id}", self.registry.run())
        return self

    async def register(self, node_id: int) -> int:
        registered = await self.registry.register(
            Registration(
                node_id=NodeId(node_id),
                directory=bytes([node_id]) * 16,
                endpoints=(),
                clock_ms=self.clock.now_ms(),
            )
        )
        return registered.broker_epoch

    async def beat(self, node_id: int, epoch: int, *, followed: int | None = None) -> bool:
        """Whether the node is in service."""
        offset = self.facts.image.end_offset if followed is None else followed
        heartbeat = Heartbeat(node_id=NodeId(node_id), broker_epoch=epoch, metadata_offset=offset)
        return not (await self.registry.heartbeat(heartbeat)).is_fenced

    def is_active(self, node_id: int) -> bool:
        return self.facts.image.brokers[NodeId(node_id)].is_active


def tell(story: Callable[[World, SharedLog, Supervisor], Awaitable[T]]) -> T:
    failures: list[BaseException] = []

    async def main(world: World) -> T:
        supervisor = Supervisor(lambda _, error: failures.append(error))
        told = await story(world, SharedLog(), supervisor)
        await supervisor.stop()
        assert not failures
        return told

    with World(0) as world:
        return world.run(main(world), limit_s=600)


def test_a_node_is_in_service_once_it_has_followed_its_registration() -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> list[bool]:
        controller = await Controller(0, shared, world).serve(supervisor)
        epoch = await controller.register(1)
        return [await controller.beat(1, epoch, followed=epoch), await controller.beat(1, epoch)]

    assert tell(story) == [False, True]


def test_a_heartbeat_of_a_former_life_or_of_nobody_is_refused() -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> None:
        controller = await Controller(0, shared, world).serve(supervisor)
        former = await controller.register(1)
        await controller.register(1)
        with pytest.raises(StaleBrokerEpoch):
            await controller.beat(1, former)
        with pytest.raises(UnknownBroker):
            await controller.beat(2, former)

    tell(story)


def test_a_heartbeat_that_changes_nothing_costs_no_record() -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> int:
        controller = await Controller(0, shared, world).serve(supervisor)
        epoch = await controller.register(1)
        await controller.beat(1, epoch)
        before = len(shared.records)
        for _ in range(10):
            await controller.beat(1, epoch)
        return len(shared.records) - before

    assert tell(story) == 0


@pytest.mark.parametrize(
    ("event", "gone_s"),
    [
        pytest.param("closed", CONNECTION_GRACE_MS / 1000, id="soon after its connection was lost"),
        pytest.param("silent", SESSION_MS / 1000, id="when its session ends"),
    ],
)
def test_a_node_is_missed(event: str, gone_s: float) -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> float:
        controller = await Controller(0, shared, world).serve(supervisor)
        await controller.beat(1, await controller.register(1))
        began_s = world.now_s
        if event == "closed":
            controller.registry.on_disconnected(NodeId(1))
        while controller.is_active(1):
            await asyncio.sleep(0.01)
        return world.now_s - began_s

    assert gone_s <= tell(story) < gone_s + 0.2


def test_a_node_that_comes_back_in_time_was_never_gone() -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> int:
        controller = await Controller(0, shared, world).serve(supervisor)
        epoch = await controller.register(1)
        await controller.beat(1, epoch)
        for _ in range(5):
            controller.registry.on_disconnected(NodeId(1))
            await asyncio.sleep(0.9 * CONNECTION_GRACE_MS / 1000)
            await controller.beat(1, epoch)
        await asyncio.sleep(1)
        return controller.registry.fenced_count

    assert tell(story) == 0


def test_who_takes_over_grants_all_a_session_but_the_one_it_took_over_from() -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> tuple[bool, bool]:
        first = await Controller(0, shared, world).serve(supervisor)
        for node_id in range(3):
            await first.beat(node_id, await first.register(node_id))
        second = await Controller(1, shared, world).serve(supervisor)
        second.seat.on_connection_lost(NodeId(0))
        while not second.cluster.decides:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        with pytest.raises(NotController):
            await first.beat(2, first.facts.image.brokers[NodeId(2)].epoch)
        return second.is_active(0), second.is_active(2)

    assert tell(story) == (False, True)


def test_the_feed_gives_what_is_there_waits_for_what_comes_and_says_when_nothing_does() -> None:
    async def story(world: World, shared: SharedLog, supervisor: Supervisor) -> None:
        controller = await Controller(0, shared, world).serve(supervisor)
        page = await controller.feed.fetch(Position(0), 0)
        assert page.end_offset == controller.facts.image.end_offset
        assert page.records is not None
        assert list(decode_records(page.records)) == shared.records
        waiting = asyncio.ensure_future(controller.feed.fetch(Position(page.end_offset), 5_000))
        await asyncio.sleep(1)
        assert not waiting.done()
        await controller.cluster.propose(allocate, None)
        news = await waiting
        assert news.records is not None
        assert decode_records(news.records) == tuple(shared.records[page.end_offset :])
        began_s = world.now_s
        nothing = await controller.feed.fetch(Position(news.end_offset), 3_000)
        assert nothing.records == b""
        assert world.now_s - began_s == pytest.approx(3, abs=0.1)

    tell(story)
