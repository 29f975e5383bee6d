"""One connection: negotiation, order, deadlines, and brokers that do not behave."""

import asyncio

import pytest

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ApiNotOffered, ConnectionLost, Unreachable
from ropewalk.wire.messages import api_versions, describe_cluster, metadata, produce
from tests.client.fake_broker import Fault
from tests.client.fake_cluster import PORT, Stage, on_stage

ALL_TOPICS = metadata.MetadataRequest(topics=None)


async def connect(stage: Stage, *, timeout_ms: float = 1_000) -> Connection:
    return await Connection.open(
        stage.world.network.host("client"),
        stage.clock,
        Address("b0", PORT),
        client_id="test",
        deadline_ms=stage.now_ms + timeout_ms,
    )


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        pytest.param(99, metadata.API.version_max, id="a newer broker is spoken to in our newest"),
        pytest.param(7, 7, id="an older broker in its newest"),
        pytest.param(1, 1, id="the oldest that can ask for all topics"),
    ],
)
@pytest.mark.parametrize("discovery_version", [0, 3, api_versions.API.version_max])
def test_the_newest_common_version_is_used(offered: int, expected: int, discovery_version: int) -> None:
    async def story(stage: Stage) -> None:
        caps = {metadata.API.key: offered, api_versions.API.key: discovery_version}
        broker = await stage.add_broker(version_max=caps)
        connection = await connect(stage)
        await connection.call(metadata.API, ALL_TOPICS, deadline_ms=stage.now_ms + 100)
        assert broker.versions_used["Metadata"] == expected

    on_stage(story)


def test_an_api_that_is_not_offered_is_refused_before_anything_is_sent() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker(version_max={describe_cluster.API.key: -1})
        connection = await connect(stage)
        request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False)
        with pytest.raises(ApiNotOffered, match="does not offer DescribeCluster"):
            await connection.call(describe_cluster.API, request, deadline_ms=stage.now_ms + 100)
        assert broker.requests == []

    on_stage(story)


def test_a_version_below_ours_is_refused_with_both_ranges() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        connection = await connect(stage)
        with pytest.raises(ApiNotOffered, match="versions 3 to 13, this client speaks 3 to 13"):
            connection.versions.choose(produce.API, version_max=2)

    on_stage(story)


def test_answers_come_to_those_who_asked_in_any_number() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        names = [f"topic-{number}" for number in range(50)]
        for name in names:
            stage.cluster.add_topic(name, 0)
        connection = await connect(stage)
        version = connection.versions.choose(metadata.API)
        futures = [
            connection.send(
                metadata.API,
                version,
                metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name=name),)),
                deadline_ms=stage.now_ms + 1_000,
            )
            for name in names
        ]
        assert [answer.topics[0].name for answer in await asyncio.gather(*futures)] == names

    on_stage(story)


def test_nobody_at_the_address_is_said_in_words() -> None:
    async def story(stage: Stage) -> str:
        with pytest.raises(Unreachable) as caught:
            await connect(stage)
        return str(caught.value)

    assert on_stage(story).startswith("cannot reach b0:9092: connection refused")


def test_a_host_that_swallows_everything_is_given_up_at_the_deadline() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        stage.world.network.partition("client", "b0")
        with pytest.raises(Unreachable, match="no answer within 500 ms"):
            await connect(stage, timeout_ms=500)
        assert stage.now_ms == pytest.approx(500, abs=1)

    on_stage(story)


def test_a_late_answer_times_out_its_request_and_loses_the_connection_for_the_others() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        broker.fail(metadata.API, Fault(count=2, is_silent=True))
        connection = await connect(stage)
        started_ms = stage.now_ms
        outcomes = await asyncio.gather(
            connection.call(metadata.API, ALL_TOPICS, deadline_ms=started_ms + 300),
            connection.call(metadata.API, ALL_TOPICS, deadline_ms=started_ms + 9_000),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [TimedOut, ConnectionLost]
        assert stage.now_ms - started_ms == pytest.approx(300, abs=1)
        assert not connection.is_open

    on_stage(story)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        pytest.param(Fault(count=1, hang_up=True), "closed by the broker", id="hangs up"),
        pytest.param(Fault(count=1, is_garbled=True), "not its protocol", id="answers something else"),
        pytest.param(
            Fault(count=1, handled_first=True, is_misnumbered=True), "came where", id="answers somebody else"
        ),
    ],
)
def test_a_broker_that_misbehaves_loses_the_connection(fault: Fault, text: str) -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        broker.fail(metadata.API, fault)
        connection = await connect(stage)
        with pytest.raises(ConnectionLost, match=text):
            await connection.call(metadata.API, ALL_TOPICS, deadline_ms=stage.now_ms + 1_000)
        with pytest.raises(RopewalkError):
            await connection.call(metadata.API, ALL_TOPICS, deadline_ms=stage.now_ms + 1_000)

    on_stage(story)


def test_closing_tells_those_who_wait() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        broker.fail(metadata.API, Fault(count=1, is_silent=True))
        connection = await connect(stage)
        version = connection.versions.choose(metadata.API)
        future = connection.send(metadata.API, version, ALL_TOPICS, deadline_ms=stage.now_ms + 1_000)
        connection.close()
        with pytest.raises(ConnectionLost, match="was closed"):
            await future

    on_stage(story)


def test_an_abandoned_request_does_not_disturb_the_next() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        connection = await connect(stage)
        version = connection.versions.choose(metadata.API)
        connection.send(metadata.API, version, ALL_TOPICS, deadline_ms=stage.now_ms + 1_000).cancel()
        answer = await connection.call(metadata.API, ALL_TOPICS, deadline_ms=stage.now_ms + 1_000)
        assert answer.cluster_id == "fake"

    on_stage(story)
