"""What is counted of requests: every error code, wherever it stands, and each answer's time."""

import pytest

from ropewalk.kafka.tally import Tally
from ropewalk.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ropewalk.wire.messages.heartbeat import HeartbeatResponse
from ropewalk.wire.messages.metadata import MetadataResponse
from ropewalk.wire.types import Message


def fetched(*codes: int, error_code: int = 0) -> FetchResponse:
    partitions = tuple(PartitionData(index, code, 0) for index, code in enumerate(codes))
    return FetchResponse(0, error_code, topics=(FetchableTopicResponse("t", partitions=partitions),))


@pytest.mark.parametrize(
    ("responses", "errors"),
    [
        ([fetched(0, 0)], {}),
        ([fetched(3, 0, 3, 6)], {3: 2, 6: 1}),
        ([fetched(0, error_code=70), fetched(3), fetched()], {70: 1, 3: 1}),
        ([HeartbeatResponse(0, 27)], {27: 1}),
        ([MetadataResponse(brokers=(), cluster_id=None, controller_id=-1, topics=())], {}),
        ([None], {}),
    ],
)
def test_errors_are_counted_by_code(responses: list[Message | None], errors: dict[int, int]) -> None:
    tally = Tally()
    for response in responses:
        tally.on_answered(response, 1.0)
    assert tally.errors == errors
    assert tally.durations.count == len(responses)


def test_an_answer_is_bad_once_and_only_for_errors_that_are_ours() -> None:
    tally = Tally()
    for response in (
        fetched(0, 0),
        fetched(3, 6, 29),
        fetched(56, 56, 0),
        fetched(19),
        fetched(error_code=-1),
    ):
        tally.on_answered(response, 1.0)
    assert (tally.bad_count, tally.durations.count) == (3, 5)


def test_a_wait_on_purpose_is_no_work() -> None:
    tally = Tally()
    tally.on_answered(fetched(0), 500.0, 499.0, 20.0)
    tally.on_answered(fetched(0), 1.0, 0.0)
    assert tally.working is not None
    assert (tally.working.count, tally.working.total_ms) == (2, 2.0)
    assert tally.measured is not None
    assert (tally.measured.count, tally.measured.total_ms) == (1, 20.0)
    assert tally.durations.total_ms == 501.0
