"""Requests that are well formed and mean no good, or are sent in odd ways. The fuzzer met each of these first."""

import asyncio

import pytest

from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.frames import FrameReader, frame
from ropewalk.wire.headers import encode_request_header
from ropewalk.wire.messages import (
    create_topics,
    describe_client_quotas,
    describe_user_scram_credentials,
    incremental_alter_configs,
    metadata,
    produce,
)
from ropewalk.wire.types import Message
from tests.kafka.door import NODE, Door, at_the_door, batch_of, produce_request


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
