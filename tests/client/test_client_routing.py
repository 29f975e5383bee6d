"""Finding the cluster and the leader, and what is tried again."""

import asyncio

import pytest

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.produce import Acks
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.errors import ConnectionLost, RemoteError, Unreachable
from ropewalk.records.record import Record, build
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import api_versions, fetch, list_offsets, metadata, produce
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import Stage, on_stage

PLAIN = bytes(build([Record(value=b"v")]))
NUMBERED = bytes(
    build([Record(value=b"v")], producer_id=ProducerId(7), producer_epoch=ProducerEpoch(0), base_sequence=0)
)


def test_one_living_bootstrap_address_is_enough() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        async with stage.client("nobody", "b0", "nowhere") as client:
            assert (await client.metadata()).cluster_id == "fake"

    on_stage(story)


def test_a_cluster_nobody_answers_for_is_reported_at_once_with_every_address() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(Unreachable) as caught:
            async with stage.client("nobody", "nowhere"):
                pass
        assert "nobody:9092" in str(caught.value)
        assert "nowhere:9092" in str(caught.value)
        assert stage.now_ms < 200

    on_stage(story)


def test_a_leader_is_found_and_followed_when_it_moves() -> None:
    async def story(stage: Stage) -> None:
        first, second = await stage.add_broker(), await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 1)
        async with stage.client() as client:
            assert (await client.produce("orders", 0, PLAIN)).base_offset == 0
            topic.partitions[0].leader, topic.partitions[0].leader_epoch = 0, 1
            assert (await client.produce("orders", 0, PLAIN)).base_offset == 1
        assert (first.asked(produce.ProduceRequest), second.asked(produce.ProduceRequest)) == (1, 2)

    on_stage(story)


def test_an_older_view_of_the_leader_does_not_replace_a_newer_one() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 1)
        topic.partitions[0].leader_epoch = 5
        async with stage.client() as client:
            await client.topic("orders")
            topic.partitions[0].leader, topic.partitions[0].leader_epoch = 0, 4
            client.session.cluster.forget("orders")
            view = await client.topic("orders")
        assert (view.partitions[0].leader, view.partitions[0].leader_epoch) == (1, 5)

    on_stage(story)


def test_metadata_is_asked_for_once_and_again_when_it_is_old() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with stage.client(settings=ClientSettings(metadata_max_age_ms=1_000)) as client:
            asked = broker.asked(metadata.MetadataRequest)
            await asyncio.gather(*(client.produce("orders", 0, PLAIN) for _ in range(5)))
            assert broker.asked(metadata.MetadataRequest) == asked + 1
            await asyncio.sleep(1.1)
            await client.produce("orders", 0, PLAIN)
            assert broker.asked(metadata.MetadataRequest) == asked + 2

    on_stage(story)


def test_connections_are_shared_and_polls_have_their_own() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            poll = asyncio.ensure_future(client.fetch({TopicPartition("orders", 0): 0}, wait_ms=5_000))
            started_ms = stage.now_ms
            await asyncio.gather(*(client.produce("orders", 0, PLAIN) for _ in range(3)))
            assert stage.now_ms - started_ms < 1_000, "a long poll does not hold up a produce"
            await poll
        assert broker.connection_count == 2

    on_stage(story)


@pytest.mark.parametrize(
    ("fault", "batch", "expected"),
    [
        pytest.param(Fault(2, ErrorCode.NOT_LEADER_OR_FOLLOWER), PLAIN, None, id="moved leader, plain"),
        pytest.param(Fault(2, ErrorCode.NOT_ENOUGH_REPLICAS), PLAIN, None, id="too few replicas, plain"),
        pytest.param(Fault(2, ErrorCode.REQUEST_TIMED_OUT), NUMBERED, None, id="timed out there, numbered"),
        pytest.param(
            Fault(1, ErrorCode.REQUEST_TIMED_OUT),
            PLAIN,
            ErrorCode.REQUEST_TIMED_OUT,
            id="timed out there, plain",
        ),
        pytest.param(
            Fault(1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
            PLAIN,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            id="appended with too few replicas, plain",
        ),
        pytest.param(
            Fault(1, ErrorCode.MESSAGE_TOO_LARGE),
            NUMBERED,
            ErrorCode.MESSAGE_TOO_LARGE,
            id="refused for good",
        ),
        pytest.param(Fault(1, hang_up=True), PLAIN, ConnectionLost, id="hung up, plain"),
        pytest.param(Fault(1, hang_up=True), NUMBERED, None, id="hung up, numbered"),
        pytest.param(
            Fault(1, hang_up=True, handled_first=True), NUMBERED, None, id="appended then hung up, numbered"
        ),
        pytest.param(Fault(1, is_silent=True), NUMBERED, TimedOut, id="no answer"),
    ],
)
def test_a_batch_is_sent_again_only_where_that_cannot_append_it_twice(
    fault: Fault, batch: bytes, expected: ErrorCode | type[RopewalkError] | None
) -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        broker.fail(produce.API, Fault(**vars(fault)))
        async with stage.client() as client:
            if expected is None:
                assert (await client.produce("orders", 0, batch)).base_offset == 0
                assert partition.values() == [b"v"]
                return
            with pytest.raises(RopewalkError) as caught:
                await client.produce("orders", 0, batch)
        error = caught.value
        assert (error.code if isinstance(error, RemoteError) else type(error)) == expected
        assert broker.asked(produce.ProduceRequest) == 1

    on_stage(story)


def test_trying_again_ends_at_the_deadline_with_the_last_reason() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        broker.fail(produce.API, Fault(1_000, ErrorCode.NOT_ENOUGH_REPLICAS))
        async with stage.client() as client:
            started_ms = stage.now_ms
            with pytest.raises(RemoteError, match="NOT_ENOUGH_REPLICAS"):
                await client.produce("orders", 0, PLAIN, deadline_ms=started_ms + 5_000)
            assert 3_500 < stage.now_ms - started_ms <= 5_000
        assert 6 < broker.asked(produce.ProduceRequest) < 12, "pauses grow and are bounded"

    on_stage(story)


def test_a_broker_that_comes_back_is_found_again() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            await client.produce("orders", 0, PLAIN)
            broker.stop()
            stage.world.loop.call_later(2, lambda: asyncio.ensure_future(stage.start(broker)))
            assert (await client.produce("orders", 0, NUMBERED)).base_offset == 1

    on_stage(story)


def test_a_topic_is_made_by_producing_and_not_by_asking() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        async with stage.client() as client:
            started_ms = stage.now_ms
            with pytest.raises(RemoteError, match=r"orders: .*UNKNOWN_TOPIC_OR_PARTITION"):
                await client.topic("orders")
            assert stage.now_ms - started_ms < 1_000, "what is not there is not waited for"
            assert stage.cluster.topics == {}
            await client.produce("orders", 0, PLAIN)
        assert list(stage.cluster.topics) == ["orders"]

    on_stage(story)


def test_a_topic_that_needs_a_moment_to_be_made_is_waited_for() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        async with stage.client() as client:
            broker.fail(metadata.API, Fault(3, ErrorCode.LEADER_NOT_AVAILABLE))
            assert (await client.produce("orders", 0, PLAIN)).base_offset == 0

    on_stage(story)


def test_a_partition_that_is_not_there_is_refused_with_the_count() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.cluster.add_topic("orders", 0, 0)
        async with stage.client() as client:
            with pytest.raises(RemoteError, match="orders-2: the topic has 2 partitions, counted from 0"):
                await client.produce("orders", 2, PLAIN)

    on_stage(story)


def test_with_acks_0_nothing_is_waited_for() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        partition = stage.cluster.add_topic("orders", 0).partitions[0]
        async with stage.client() as client:
            produced = await client.produce("orders", 0, PLAIN, acks=Acks.NONE)
            assert produced.base_offset == -1
            await client.produce("orders", 0, PLAIN)  # answered after everything before it
        assert partition.values() == [b"v", b"v"]

    on_stage(story)


@pytest.mark.parametrize("uses_topic_ids", [True, False])
def test_topics_are_spoken_of_by_id_where_they_have_one_and_by_name_elsewhere(uses_topic_ids: bool) -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        stage.cluster.uses_topic_ids = uses_topic_ids
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            await client.produce("orders", 0, PLAIN)
            (fetched,) = await client.fetch({TopicPartition("orders", 0): 0})
        assert fetched.partition == TopicPartition("orders", 0)
        assert bytes(fetched.records)
        named = {"Produce": 12, "Fetch": 12}
        newest = {"Produce": produce.API.version_max, "Fetch": fetch.API.version_max}
        used = {name: broker.versions_used[name] for name in named}
        assert used == (newest if uses_topic_ids else named)

    on_stage(story)


def test_offsets_are_looked_up_at_every_leader() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(3):
            await stage.add_broker()
        stage.cluster.add_topic("orders", 2, 0, 1)
        async with stage.client() as client:
            for partition, count in ((0, 1), (2, 3)):
                for _ in range(count):
                    await client.produce("orders", partition, PLAIN)
            listed = await client.list_offsets("orders", dict.fromkeys(range(3), OffsetQuery.LATEST))
        assert {partition: answer.offset for partition, answer in listed.items()} == {0: 1, 1: 0, 2: 3}

    on_stage(story)


def test_one_partitions_refusal_among_several_leaders_is_raised_as_it_is() -> None:
    async def story(stage: Stage) -> None:
        brokers = [await stage.add_broker() for _ in range(2)]
        stage.cluster.add_topic("orders", 0, 1)
        brokers[1].fail(list_offsets.API, Fault(1, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        async with stage.client() as client:
            with pytest.raises(RemoteError, match=r"orders-1: .*TOPIC_AUTHORIZATION_FAILED"):
                await client.list_offsets("orders", {0: -1, 1: -1})

    on_stage(story)


def test_a_client_works_with_a_broker_that_only_speaks_the_first_api_versions() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(version_max={api_versions.API.key: 0, produce.API.key: 3, fetch.API.key: 4})
        stage.cluster.add_topic("orders", 0)
        async with stage.client() as client:
            await client.produce("orders", 0, PLAIN)
            assert len(await client.fetch({TopicPartition("orders", 0): 0})) == 1

    on_stage(story)


def test_the_same_seed_gives_the_same_run() -> None:
    async def story(stage: Stage) -> str:
        broker = await stage.add_broker()
        stage.cluster.add_topic("orders", 0)
        broker.fail(produce.API, Fault(5, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        async with stage.client() as client:
            await client.produce("orders", 0, PLAIN)
        return f"{stage.now_ms:.6f}"

    assert on_stage(story, seed=3) == on_stage(story, seed=3) != on_stage(story, seed=4)


def test_leaving_the_client_closes_its_connections() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        kept: Client | None = None
        async with stage.client() as client:
            kept = client
            connection = await client.session.cluster.any_connection(deadline_ms=stage.now_ms + 100)
            assert connection.is_open
        assert kept is not None
        assert not connection.is_open

    on_stage(story)


def test_offsets_of_many_topics_take_one_request_to_each_leader_and_leave_out_what_is_gone() -> None:
    async def story(stage: Stage) -> None:
        first, second = await stage.add_broker(), await stage.add_broker()
        for name in ("orders", "bills"):
            topic = stage.cluster.add_topic(name, 0, 1, 7)
            topic.partitions[1].append(PLAIN)
        second.disowned.append(stage.cluster.topics["bills"].partitions[1])
        asked = {
            TopicPartition(name, index): int(OffsetQuery.LATEST)
            for name in ("orders", "bills", "gone")
            for index in (0, 1, 2, 9)
        }
        async with stage.client() as client:
            listed = await client.list_known_offsets(asked)
            assert await client.list_known_offsets({}) == {}
        assert {str(partition): answer.offset for partition, answer in listed.items()} == {
            "bills-0": 0,
            "orders-0": 0,
            "orders-1": 1,
        }
        for broker in (first, second):
            assert broker.asked(list_offsets.ListOffsetsRequest) == 1

    on_stage(story)
