"""Requests that are well formed and mean no good, or are sent in odd ways. The fuzzer met each of these first."""

import asyncio
import gc
from typing import cast

import pytest
from structlog.testing import capture_logs

from ropewalk.base.budget import ByteBudget
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.kafka.caller import Caller, Holdable
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.peer.apis import PEER_APIS
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.image import Image
from ropewalk.sim.machines.world import World
from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.frames import FrameReader, frame
from ropewalk.wire.headers import encode_request_header
from ropewalk.wire.messages import (
    api_versions,
    create_topics,
    describe_client_quotas,
    describe_configs,
    describe_groups,
    describe_user_scram_credentials,
    find_coordinator,
    incremental_alter_configs,
    metadata,
    produce,
)
from ropewalk.wire.types import Message
from tests.kafka.door import NODE, Door, at_the_door, batch_of, produce_request

PRIVATE_APIS = [api for api in PEER_APIS if api.key >= 10_000]


class Bare(asyncio.Protocol):
    """A connection without a client: bytes go out as given, frames come in."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reader = FrameReader(frame_bytes_max=1 << 20)

    @classmethod
    async def open(cls, door: Door) -> tuple[asyncio.Transport, "Bare"]:
        door.world.machine("bare")
        transport, bare = await door.world.network.host("bare").connect(cls, NODE.host, NODE.port)
        assert isinstance(transport, asyncio.Transport)
        assert isinstance(bare, cls)
        return transport, bare

    def data_received(self, data: bytes) -> None:
        self.answers += [bytes(answer) for answer in self._reader.feed(data)]

    def connection_lost(self, _: Exception | None) -> None:
        self.closed.set_result(None)


def framed(api: AnyApi, version: int, request: Message) -> bytes:
    header = encode_request_header(api, version, 1, None)
    return b"".join(frame([header, *api.encode_request(version, request)]))


def test_a_half_closed_connection_ends_when_its_last_answer_took_time() -> None:
    """The answer to a Produce waits for the disk, so it comes when nothing else happens on the connection."""

    async def story(door: Door) -> int:
        await door.create("t")
        transport, bare = await Bare.open(door)
        transport.write(framed(produce.API, 9, produce_request("t", batch_of("a"))))
        transport.write_eof()
        async with asyncio.timeout(60):
            await bare.closed
        return len(bare.answers)

    assert at_the_door(story) == 1


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_is_refused_where_the_answer_could_not_leave_the_name_out(version: int) -> None:
    async def story(door: Door) -> tuple[int, str | None]:
        asked = metadata.MetadataRequest((metadata.MetadataRequestTopic(bytes(range(16)), None),))
        (topic,) = (await door.call(metadata.API, version, asked)).topics
        return topic.error_code, topic.name

    assert at_the_door(story) == (ErrorCode.INVALID_REQUEST, "")


LONGEST = "x" * 32_767


@pytest.mark.parametrize(
    ("api", "request_"),
    [
        pytest.param(
            create_topics.API,
            create_topics.CreateTopicsRequest((create_topics.CreatableTopic(LONGEST, 1, 1),)),
            id="a topic to create",
        ),
        pytest.param(
            incremental_alter_configs.API,
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                (incremental_alter_configs.AlterConfigsResource(2, LONGEST, ()),), validate_only=False
            ),
            id="a topic to configure",
        ),
        pytest.param(
            describe_client_quotas.API,
            describe_client_quotas.DescribeClientQuotasRequest(
                (describe_client_quotas.ComponentData(LONGEST, 0, None),), strict=False
            ),
            id="a kind of client",
        ),
        pytest.param(
            describe_user_scram_credentials.API,
            describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
                (describe_user_scram_credentials.UserName(LONGEST),)
            ),
            id="a user",
        ),
    ],
)
def test_an_error_that_quotes_the_longest_name_can_still_be_answered(api: AnyApi, request_: Message) -> None:
    async def story(door: Door) -> Message:
        answer: Message = await door.call(api, api.version_max, request_)
        return answer

    assert "xxx" in repr(at_the_door(story))


@pytest.mark.parametrize(
    ("api", "request_", "answers"),
    [
        pytest.param(
            metadata.API,
            metadata.MetadataRequest((metadata.MetadataRequestTopic(name="t"),) * 50_000),
            "topics",
            id="a topic",
        ),
        pytest.param(
            describe_configs.API,
            describe_configs.DescribeConfigsRequest(
                (describe_configs.DescribeConfigsResource(2, "t", ("retention.ms",) * 9),) * 20_000
            ),
            "results",
            id="the settings of a topic",
        ),
        pytest.param(
            describe_groups.API,
            describe_groups.DescribeGroupsRequest(("g",) * 50_000),
            "groups",
            id="a group",
        ),
        pytest.param(
            find_coordinator.API,
            find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",) * 50_000),
            "coordinators",
            id="who looks after a group",
        ),
    ],
)
def test_what_is_asked_for_again_and_again_is_answered_once(
    api: AnyApi, request_: Message, answers: str
) -> None:
    async def story(door: Door) -> Message:
        await door.create("t")
        answer: Message = await door.call(api, api.version_max, request_)
        return answer

    answer = at_the_door(story)
    assert len(getattr(answer, answers)) == 1
    assert repr(answer).count("'retention.ms'") <= 1


def test_a_long_list_gives_others_a_turn_now_and_then() -> None:
    """The caller is asked before every item; it lets the loop run after each hundred and holds the connection meanwhile."""

    class Connection:
        held = 0
        turns = 0

        def hold(self) -> None:
            self.held += 1

        def release(self) -> None:
            self.held -= 1
            self.turns += 1

    connection = Connection()
    caller = Caller(cast(Holdable, connection), client_id=None, host="h", version=0)

    async def list_items() -> list[int]:
        others = 0

        def on_turn() -> None:
            nonlocal others
            others += 1

        for _ in range(250):
            asyncio.get_running_loop().call_soon(on_turn)
            await caller.next_item()
        return [others, connection.turns, connection.held]

    assert asyncio.run(list_items()) == [200, 2, 0]


def test_a_produce_to_countless_partitions_ends_the_connection() -> None:
    async def story(door: Door) -> int:
        transport, bare = await Bare.open(door)
        partitions = tuple(produce.PartitionProduceData(number, b"") for number in range(20_000))
        asked = produce.ProduceRequest(
            None, -1, 1000, (produce.TopicProduceData("t", partitions=partitions),)
        )
        transport.write(framed(produce.API, 9, asked))
        await bare.closed
        return len(bare.answers)

    assert at_the_door(story) == 0


def test_more_topics_than_one_request_may_create_are_all_refused() -> None:
    async def story(door: Door) -> set[int]:
        topics = tuple(create_topics.CreatableTopic(f"t{number}", 1, 1) for number in range(5_001))
        answer = await door.call(create_topics.API, 7, create_topics.CreateTopicsRequest(topics))
        return {topic.error_code for topic in answer.topics}

    assert at_the_door(story) == {ErrorCode.INVALID_REQUEST}


def test_a_request_whose_wait_was_forgotten_does_not_release_its_connection() -> None:
    """Its coroutine would be ended by the garbage collection, in whichever thread that runs."""

    async def handle(_: api_versions.ApiVersionsRequest, caller: Caller) -> None:
        with caller.hold():
            await asyncio.get_running_loop().create_future()  # nobody else knows it

    async def main(world: World) -> list[bytes]:
        api = api_versions.API
        machine = world.machine("node")
        connections = Connections(
            machine.clock,
            ClientQuotas(Image()),
            flexible_since={api.key: api.flexible_since},
            frame_bytes_max=1000,
            count_max=10,
            count_per_host_max=10,
            idle_ms_max=60_000,
        )
        served = {api.key: ServedApi(api, 0, 3, handle)}
        await KafkaListener.start(
            world.network.host("node"),
            NODE.host,
            NODE.port,
            connections=connections,
            served=served,
            budget=ByteBudget(1 << 20),
        )
        world.machine("bare")
        transport, bare = await world.network.host("bare").connect(Bare, NODE.host, NODE.port)
        assert isinstance(transport, asyncio.Transport)
        assert isinstance(bare, Bare)
        # The second is no request at all: whoever handles it ends the connection.
        transport.write(framed(api, 0, api_versions.ApiVersionsRequest()) + bytes(4))
        await asyncio.sleep(1)
        gc.collect()
        await asyncio.sleep(1)
        assert not bare.closed.done()
        return bare.answers

    with World(0) as world:
        assert world.run(main(world), limit_s=60) == []


@pytest.mark.parametrize("api", PRIVATE_APIS, ids=lambda api: api.name)
def test_a_client_listener_does_not_know_what_nodes_say_to_each_other(api: AnyApi) -> None:
    """Not advertised, and closed with a line in the log like any key that is not served."""

    async def story(door: Door) -> list[str]:
        assert not door.connection.versions.offers(api)
        transport, bare = await Bare.open(door)
        with capture_logs() as logs:
            transport.write(b"".join(frame([encode_request_header(api, 0, 1, None), bytes(64)])))
            async with asyncio.timeout(60):
                await bare.closed
        assert bare.answers == []
        return [entry["reason"] for entry in logs]

    assert at_the_door(story) == [f"API key {api.key} is not served"]
