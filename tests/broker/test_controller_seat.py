"""One seat and several who would sit there: who decides, who stands by, and who steps down."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ropewalk.base.errors import InvalidRequest, NotController
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_seat import ControllerSeat
from ropewalk.broker.cluster.decisions import Decisions
from ropewalk.broker.cluster.facts import Facts
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Holder
from ropewalk.metadata.records import ClusterCreated, ControllerChanged, MetadataRecord, ProducerIdsAllocated
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.tasks import Supervisor
from ropewalk.sim.machines.world import World
from tests.broker.shared_log import SharedLog

T = TypeVar("T")


def create(image: Image) -> list[MetadataRecord]:
    return [] if image.cluster_id is not None else [ClusterCreated("the cluster")]


def allocate(image: Image) -> list[MetadataRecord]:
    return [ProducerIdsAllocated(NodeId(0), ProducerId(image.end_producer_id + 10))]


class Candidate:
    def __init__(
        self,
        node_id: int,
        shared: SharedLog,
        create_cluster: Callable[[Image], list[MetadataRecord]] = create,
    ) -> None:
        self.node_id = NodeId(node_id)
        self.facts = Facts()
        self.log = shared.handle()
        self.decisions = Decisions(self.log, self.facts, SystemClock())
        self.cluster = Cluster(self.facts, self.decisions)
        self.seat = ControllerSeat(
            self.node_id,
            self.log,
            self.facts,
            self.decisions,
            settle_settings=lambda _image: {},
            settle_level=lambda _image: [],
            create_cluster=create_cluster,
            others_agree=self._others_agree,
            name_reign=lambda: f"{node_id} {self.log.epoch}",
        )
        self.others_agree = True
        self.seated_after: list[NodeId | None] = []
        self.seat.on_seated(self.seated_after.append)

    async def _others_agree(self, _holder: Holder) -> bool:
        return self.others_agree

    async def start(self, supervisor: Supervisor) -> "Candidate":
        await self.decisions.load()
        supervisor.start(f"decisions of {self.node_id}", self.decisions.run())
        supervisor.start(f"following of {self.node_id}", self.facts.run_following())
        supervisor.start(f"seat of {self.node_id}", self.seat.run())
        await self.seat.settled()
        return self


def tell(story: Callable[[SharedLog, Supervisor], Awaitable[T]]) -> T:
    failures: list[BaseException] = []

    async def main() -> T:
        supervisor = Supervisor(lambda _, error: failures.append(error))
        told = await story(SharedLog(), supervisor)
        await supervisor.stop()
        assert not failures
        return told

    with World(0) as world:
        return world.run(main(), limit_s=600)


def test_the_first_decides_and_the_second_stands_by() -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        first = await Candidate(0, shared).start(supervisor)
        second = await Candidate(1, shared).start(supervisor)
        assert (first.cluster.decides, second.cluster.decides) == (True, False)
        await first.cluster.propose(allocate, None)
        await second.facts.reached(first.facts.image.end_offset)
        assert list(second.facts.image.facts()) == list(first.facts.image.facts())
        with pytest.raises(NotController, match="node 0 decides"):
            await second.cluster.propose(allocate, None)
        assert shared.records[:2] == [
            ClusterCreated("the cluster"),
            ControllerChanged(NodeId(0), 1, reign="0 1"),
        ]

    tell(story)


@pytest.mark.parametrize("how", ["its lease runs out", "its connection is lost"])
def test_a_standby_takes_over_from_a_holder_that_is_gone_and_that_one_changes_nothing(how: str) -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        first = await Candidate(0, shared).start(supervisor)
        second = await Candidate(1, shared).start(supervisor)
        if how == "its lease runs out":
            shared.lose_the_holder()
        else:
            second.seat.on_connection_lost(NodeId(0))
        while not second.cluster.decides:
            await asyncio.sleep(0.01)
        assert second.seated_after == [NodeId(0)]
        await second.cluster.propose(allocate, None)
        with pytest.raises(NotController):
            await first.cluster.propose(allocate, None)
        await asyncio.sleep(1)
        assert (first.cluster.decides, second.cluster.decides) == (False, True)
        assert list(first.facts.image.facts()) == list(second.facts.image.facts())

    tell(story)


def test_a_standby_that_is_alone_in_missing_the_holder_does_not_take_over() -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        first = await Candidate(0, shared).start(supervisor)
        second = await Candidate(1, shared).start(supervisor)
        second.others_agree = False
        second.seat.on_connection_lost(NodeId(0))
        await asyncio.sleep(5)
        assert (first.cluster.decides, second.cluster.decides) == (True, False)
        second.seat.on_connection_back()
        second.others_agree = True  # too late: it is heard of again
        await asyncio.sleep(5)
        assert (first.cluster.decides, second.cluster.decides) == (True, False)
        second.seat.on_connection_lost(NodeId(0))
        while not second.cluster.decides:
            await asyncio.sleep(0.01)

    tell(story)


def test_a_lost_connection_to_who_decided_before_is_no_reason_to_take_over() -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        first = await Candidate(0, shared).start(supervisor)
        second = await Candidate(1, shared).start(supervisor)
        second.seat.on_connection_lost(NodeId(2))
        await asyncio.sleep(5)
        assert (first.cluster.decides, second.cluster.decides) == (True, False)

    tell(story)


def test_of_several_who_take_over_at_once_one_decides() -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        candidates = [await Candidate(node_id, shared).start(supervisor) for node_id in range(4)]
        for _ in range(5):
            shared.lose_the_holder()
            await asyncio.sleep(2)
            assert [candidate.cluster.decides for candidate in candidates].count(True) == 1
        epochs = [record.epoch for record in shared.records if isinstance(record, ControllerChanged)]
        assert epochs == sorted(set(epochs))

    tell(story)


@pytest.mark.parametrize("outcome", ["unknown", "unknown but written"])
def test_a_first_record_of_unknown_outcome_is_looked_for_before_anything_is_decided(outcome: str) -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        candidate = Candidate(0, shared)
        candidate.log.outcomes = [outcome]
        await candidate.start(supervisor)
        await candidate.cluster.propose(allocate, None)
        changes = [record for record in shared.records if isinstance(record, ControllerChanged)]
        assert changes[-1].epoch == candidate.log.epoch
        assert shared.records.count(ClusterCreated("the cluster")) == 1

    tell(story)


def test_a_holder_that_cannot_reach_the_log_keeps_the_seat_and_goes_on_when_it_can() -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        candidate = await Candidate(0, shared).start(supervisor)
        shared.is_reachable = False
        for _ in range(3):
            with pytest.raises(Exception, match="nobody answers"):
                await candidate.cluster.propose(allocate, None)
            await asyncio.sleep(5)
        assert candidate.cluster.decides
        shared.is_reachable = True
        await candidate.cluster.propose(allocate, None)
        assert candidate.log.epoch == 1

    tell(story)


def test_a_cluster_that_must_not_be_created_is_said_to_who_waits() -> None:
    def refuse(_: Image) -> list[MetadataRecord]:
        raise InvalidRequest("the data directory belongs to another cluster")

    async def story(shared: SharedLog, supervisor: Supervisor) -> None:
        with pytest.raises(InvalidRequest, match="another cluster"):
            await Candidate(0, shared, refuse).start(supervisor)
        assert not shared.records

    tell(story)


def test_what_is_refused_before_anybody_looked_at_it_ends_nothing() -> None:
    async def story(shared: SharedLog, supervisor: Supervisor) -> int:
        candidate = Candidate(0, shared)
        decisions = candidate.decisions
        await candidate.log.take_over(NodeId(0), expected_epoch=0)
        decisions.accept()
        supervisor.start("decisions", decisions.run())
        await asyncio.sleep(0.1)
        asking = decisions.ask(allocate, None, until_followed=False)
        asking.send(None)  # up to where it waits
        decisions.refuse(NotController("another node decides"))
        with pytest.raises(NotController):
            asking.send(None)
        await asyncio.sleep(0.1)
        decisions.accept()
        await decisions.ask(allocate, None, until_followed=False)
        return candidate.facts.image.end_producer_id

    assert tell(story) == 10
