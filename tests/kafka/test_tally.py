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
