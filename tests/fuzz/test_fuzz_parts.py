"""The fuzzer itself: the same seed is the same bytes, forecasts hold, and a node that misbehaves is found out."""

import asyncio
from collections.abc import Callable
from struct import pack
from typing import Final

import pytest

from ropewalk.wire.frames import FrameReader, frame
from ropewalk.wire.headers import encode_request_header
from ropewalk.wire.messages import (
    alter_client_quotas,
    api_versions,
    delete_topics,
    fetch,
    heartbeat,
    produce,
)
from ropewalk.wire.types import Message
from tests.fuzz.forecast import Due, Forecaster, Then
from tests.fuzz.hostile_values import LASTING
from tests.fuzz.sender import Sender, Tally
from tests.fuzz.volley import Battery, Manner, Volley
from tests.wire.invented import DIRECTIONS

APIS = [direction.api for direction in DIRECTIONS if direction.name == "request"]
FORECASTER = Forecaster({api.key: api for api in APIS}, {api.key: api.versions for api in APIS})
PAIRS = [(api, version) for api in APIS for version in api.versions]


def framed(request: Message, version: int) -> bytes:
    (api,) = [api for api in APIS if api.request is type(request)]
    header = encode_request_header(api, version, 7, "test")
    return b"".join(frame([header, *api.encode_request(version, request)]))


def test_a_volley_is_the_same_whenever_and_wherever_it_is_made() -> None:
    one, other = Battery(PAIRS, FORECASTER, seed=3), Battery(PAIRS, FORECASTER, seed=3)
    one.volley(0)
    assert one.volley(1) == other.volley(1)
    assert Battery(PAIRS, FORECASTER, seed=4).volley(1) != other.volley(1)


def test_volleys_end_in_every_way_there_is() -> None:
    battery = Battery(PAIRS, FORECASTER, seed=0)
    volleys = [battery.volley(number) for number in range(3000)]
    assert {volley.then for volley in volleys} == set(Then) - {Then.UNFAIR}
    assert {volley.manner for volley in volleys} == set(Manner)
    asked = {due.api.name for volley in volleys for due in volley.due}
    assert asked == {api.name for api in APIS} - {"JoinGroup", "SyncGroup"}  # these may wait


VERSIONS_ASKED: Final = framed(api_versions.ApiVersionsRequest("a", "1"), 3)
QUOTA_FOR_ALL: Final = alter_client_quotas.AlterClientQuotasRequest(
    (alter_client_quotas.EntryData((alter_client_quotas.EntityData("client-id", None),), ()),), False
)


@pytest.mark.parametrize(
    ("stream", "then", "due_count"),
    [
        pytest.param(VERSIONS_ASKED * 3, Then.OPEN, 3, id="three requests"),
        pytest.param(VERSIONS_ASKED + VERSIONS_ASKED[:9], Then.UNFINISHED, 1, id="and a part of one"),
        pytest.param(VERSIONS_ASKED + b"\0\0", Then.UNFINISHED, 1, id="not even a length"),
        pytest.param(VERSIONS_ASKED + bytes(4), Then.CLOSED, 1, id="a frame of no bytes"),
        pytest.param(pack(">ihhi", 8, 18, 99, 7), Then.CLOSED, 0, id="half a header"),
        pytest.param(pack(">ihhihb", 11, 18, 99, 7, -1, 0), Then.OPEN, 1, id="a version to come of ApiVersions"),
        pytest.param(pack(">ihhih", 10, 12, 99, 7, -1), Then.CLOSED, 0, id="and of another API"),
        pytest.param(pack(">ihhih", 10, 999, 0, 7, -1), Then.CLOSED, 0, id="an API that is none"),
        pytest.param(pack(">ih", (1 << 23) + 1, 0), Then.UNFINISHED, 0, id="a large Produce"),
        pytest.param(pack(">ih", (1 << 23) + 1, 1), Then.CLOSED, 0, id="anything else as large"),
        pytest.param(framed(heartbeat.HeartbeatRequest("g", 1, "m"), 0)[:-1] + b"\xff", Then.CLOSED, 0, id="not UTF-8"),
        pytest.param(framed(produce.ProduceRequest(acks=0), 9), Then.SILENT, 0, id="acks=0"),
        pytest.param(framed(produce.ProduceRequest(acks=1), 9), Then.OPEN, 1, id="acks=1"),
        pytest.param(framed(fetch.FetchRequest(max_wait_ms=9999, min_bytes=1), 4), Then.WAITING, 0, id="a wait"),
        pytest.param(framed(fetch.FetchRequest(max_wait_ms=9999), 4), Then.OPEN, 1, id="no wait without bytes to wait for"),
        pytest.param(framed(delete_topics.DeleteTopicsRequest(topic_names=("t",)), 1), Then.OPEN, 1, id="a deletion"),
        pytest.param(framed(delete_topics.DeleteTopicsRequest(topic_names=LASTING), 1), Then.UNFAIR, 0, id="of what must last"),
        pytest.param(framed(QUOTA_FOR_ALL, 1), Then.UNFAIR, 0, id="a quota for everybody"),
    ],
)  # fmt: skip
def test_forecasts(stream: bytes, then: Then, due_count: int) -> None:
    forecast = FORECASTER.forecast(stream)
    assert (forecast.then, len(forecast.due)) == (then, due_count)


class Impostor(asyncio.Protocol):
    """A broker that answers each frame with what `answer` makes of it; None closes the connection."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self._answer = answer
        self._reader = FrameReader(frame_bytes_max=1 << 20)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        for request in self._reader.feed(data):
            answer = self._answer(bytes(request))
            if answer is None:
                self._transport.close()
                return
            self._transport.write(answer)


RIGHT: Final = pack(">iihihhhi", 20, 7, 0, 1, 18, 0, 4, 0)  # one API, no throttling
ONE_REQUEST: Final = Volley(
    number=1,
    body=framed(api_versions.ApiVersionsRequest(), 1),
    due=(Due(api_versions.API, 1, 7),),
    ending=b"",
    ending_due=(),
    then=Then.OPEN,
    manner=Manner.LEAVE,
    hurried=False,
    dripping=False,
    frame_count=1,
)


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        pytest.param(lambda _: RIGHT, None, id="a right answer"),
        pytest.param(
            lambda _: RIGHT[:4] + b"\0\0\0\x08" + RIGHT[8:], "correlation id 8", id="another's answer"
        ),
        pytest.param(lambda _: b"\0\0\0\x06" + RIGHT[4:10], "cut short", id="an answer cut short"),
        pytest.param(lambda _: RIGHT + RIGHT, "nothing asked for", id="two answers"),
        pytest.param(lambda _: None, "closed the connection", id="a close"),
        pytest.param(lambda _: b"", "nothing came", id="silence"),
        pytest.param(
            lambda _: pack(">iihii", 14, 7, -1, 0, 0), "UNKNOWN_SERVER_ERROR", id="an error that says nothing"
        ),
    ],
)
def test_a_node_that_misbehaves_is_found_out(
    answer: Callable[[bytes], bytes | None], finding: str | None
) -> None:
    async def attempt() -> list[str]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Impostor(answer), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        sender = Sender(
            address,
            iter([ONE_REQUEST]),
            Tally(),
            topic_ids={},
            forecaster=FORECASTER,
            connection_count=1,
            patience_s=0.5,
        )
        sending = asyncio.ensure_future(sender.run())
        while not sending.done():
            await asyncio.wait([sending], timeout=0.1)
            sender.check_patience()
        server.close()
        return sender.tally.findings

    findings = asyncio.run(attempt())
    if finding is None:
        assert findings == []
    else:
        assert finding in findings[0]
