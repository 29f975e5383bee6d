"""Some seconds of hostile SQS requests against a live node; `tests/fuzz/sqs_campaign.py` goes on for as long as one has patience for."""

import pytest

from tests.fuzz.sqs_campaign import run
from tests.fuzz.sqs_volleys import request


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("is_signed", [False, True], ids=["any key", "signed"])
def test_a_node_lives_through_hostile_sqs_requests(*, is_signed: bool) -> None:
    report = run(seed=20261118, seconds=10, is_signed=is_signed)
    assert report.violations == []
    assert report.request_count > 500
    assert report.neighbour_count > 10
    assert {200, 400} <= report.by_status.keys()


def test_a_request_follows_from_its_number() -> None:
    assert request(1, 2) == request(1, 2) != request(1, 3)
