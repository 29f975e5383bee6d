"""Groups as an administrator sees them, against the fake cluster, refusals and moves included."""

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.groups import Groups
from ropewalk.client.errors import ConnectionLost, RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    delete_groups,
    describe_groups,
    find_coordinator,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import Stage, on_stage
from tests.client.fake_groups import FakeGroup, FakeMember

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OLDEST = {
    api.key: api.version_min for api in (describe_groups.API, find_coordinator.API, list_groups.API)
} | {
    offset_fetch.API.key: 2,  # the first in which "all topics" can be asked for
    offset_commit.API.key: offset_commit.API.version_min,
    delete_groups.API.key: 0,
}


def two_members() -> FakeGroup:
    return FakeGroup(
        coordinator=1,
        members=[
            FakeMember("m1", ("orders",), {"orders": (1, 0)}, instance_id="static-1"),
            FakeMember("m2", ("orders", "bills"), {}, version=0),
        ],
    )


def test_groups_of_all_brokers_are_listed() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            await stage.add_broker()
        stage.cluster.groups = {"b": two_members(), "a": FakeGroup(0)}
        async with stage.client() as client:
            listed = await Groups(client).list()
        assert [(each.group, each.state, each.coordinator) for each in listed] == [
            ("a", "Empty", 0),
            ("b", "Stable", 1),
        ]

    on_stage(story)


@pytest.mark.parametrize("version_max", [{}, OLDEST], ids=["newest", "oldest"])
def test_a_group_is_described_in_every_version(version_max: dict[int, int]) -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            await stage.add_broker(version_max=version_max)
        stage.cluster.groups["billing"] = two_members()
        async with stage.client() as client:
            described = await Groups(client).describe("billing")
            with pytest.raises(RemoteError) as caught:
                await Groups(client).describe("nobody")
        assert (described.state, described.protocol, str(described.coordinator)) == (
            "Stable",
            "range",
            "b1:9092",
        )
        first, second = described.members
        assert (first.host, first.topics, first.partitions) == (
            "/10.0.0.1",
            ("orders",),
            (ORDERS_0, ORDERS_1),
        )
        assert (second.topics, second.partitions) == (("bills", "orders"), ())
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND

    on_stage(story)


@pytest.mark.parametrize("version_max", [{}, OLDEST], ids=["newest", "oldest"])
def test_offsets_are_read_set_and_removed(version_max: dict[int, int]) -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(version_max=version_max)
        async with stage.client() as client:
            groups = Groups(client)
            assert await groups.committed("billing") == {}
            assert await groups.commit("billing", {ORDERS_1: 7, ORDERS_0: 3}) == {
                ORDERS_0: None,
                ORDERS_1: None,
            }
            committed = await groups.committed("billing")
            assert {partition: each.offset for partition, each in committed.items()} == {
                ORDERS_0: 3,
                ORDERS_1: 7,
            }
            assert await groups.delete_offsets("billing", [ORDERS_0]) == {ORDERS_0: None}
            assert list(await groups.committed("billing")) == [ORDERS_1]
            assert await groups.commit("billing", {}) == await groups.delete_offsets("billing", []) == {}

    on_stage(story)


def test_a_group_with_members_keeps_its_offsets_to_itself() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            await stage.add_broker()
        stage.cluster.groups["billing"] = two_members()
        async with stage.client() as client:
            groups = Groups(client)
            refused = (await groups.commit("billing", {ORDERS_0: 1}))[ORDERS_0]
            assert refused is not None
            assert refused.code is ErrorCode.UNKNOWN_MEMBER_ID
            in_use = (await groups.delete_offsets("billing", [ORDERS_0]))[ORDERS_0]
            assert in_use is not None
            assert in_use.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            outcomes = await groups.delete(["billing", "nobody"])
        assert {name: error and error.code for name, error in outcomes.items()} == {
            "billing": ErrorCode.NON_EMPTY_GROUP,
            "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        }

    on_stage(story)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
@pytest.mark.parametrize(
    "api",
    [
        find_coordinator.API,
        describe_groups.API,
        offset_fetch.API,
        offset_commit.API,
        offset_delete.API,
        delete_groups.API,
    ],
    ids=lambda api: api.name,
)
def test_a_coordinator_that_is_not_ready_is_asked_again(api: object, code: ErrorCode) -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.groups["billing"] = FakeGroup(0, offsets={("orders", 0): 1})
        broker.fail(api, Fault(2, code))  # type: ignore[arg-type]  # one of those above
        async with stage.client() as client:
            groups = Groups(client)
            assert (await groups.describe("billing")).state == "Empty"
            assert await groups.commit("billing", {ORDERS_0: 2}) == {ORDERS_0: None}
            assert (await groups.committed("billing"))[ORDERS_0].offset == 2
            assert await groups.delete_offsets("billing", [ORDERS_0]) == {ORDERS_0: None}
            assert await groups.delete(["billing"]) == {"billing": None}

    on_stage(story)


def test_a_group_that_moves_is_followed_and_one_that_stays_is_looked_up_once() -> None:
    async def story(stage: Stage) -> None:
        first, second = await stage.add_broker(), await stage.add_broker()
        group = stage.cluster.groups["billing"] = FakeGroup(1)
        async with stage.client() as client:
            groups = Groups(client)
            await groups.describe("billing")
            await groups.committed("billing")
            brokers = (first, second)
            assert sum(broker.asked(find_coordinator.FindCoordinatorRequest) for broker in brokers) == 1
            group.coordinator = 0
            assert (await groups.describe("billing")).state == "Empty"
        assert first.asked(describe_groups.DescribeGroupsRequest) == 1
        assert second.asked(describe_groups.DescribeGroupsRequest) == 2

    on_stage(story)


def test_a_coordinator_that_joined_lately_is_found() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        async with stage.client() as client:
            await stage.add_broker()
            stage.cluster.groups["billing"] = FakeGroup(1)
            assert str((await Groups(client).describe("billing")).coordinator) == "b1:9092"

    on_stage(story)


def test_a_deletion_that_may_have_happened_is_not_repeated() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.groups["billing"] = FakeGroup(0)
        broker.fail(delete_groups.API, Fault(1, hang_up=True, handled_first=True))
        async with stage.client() as client:
            with pytest.raises(ConnectionLost):
                await Groups(client).delete(["billing"])
        assert broker.asked(delete_groups.DeleteGroupsRequest) == 1

    on_stage(story)


def test_members_of_another_protocol_are_shown_without_their_bytes() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        member = FakeMember("w1", ("orders",), {"orders": (0,)})
        stage.cluster.groups["workers"] = FakeGroup(0, [member], protocol_type="connect")
        async with stage.client() as client:
            (shown,) = (await Groups(client).describe("workers")).members
        assert (shown.topics, shown.partitions) == (None, ())

    on_stage(story)
