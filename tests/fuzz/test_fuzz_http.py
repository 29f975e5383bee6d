"""Some seconds of hostile HTTP against a live node; `tests/fuzz/http_campaign.py` goes on for as long as one has patience for."""

import pytest

from tests.fuzz.http_campaign import is_as_due, run
from tests.fuzz.http_volleys import Due, forecast, taken_apart, volley

GET = b"GET /livez HTTP/1.1\r\nHost: n\r\n\r\n"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_node_lives_through_hostile_http() -> None:
    report = run(seed=20261118, seconds=15)
    assert report.violations == []
    assert report.volley_count > 200
    assert {200, 400, 404, 405, 413, 431, 501} <= report.by_status.keys()


def test_a_volley_follows_from_its_number() -> None:
    assert volley(1, 2) == volley(1, 2) != volley(1, 3)


@pytest.mark.parametrize(
    ("statuses", "expected", "sent_bytes", "due"),
    [
        ([200, 404], [200, 404], 100, True),
        ([200, 431], [200, 400], 100, False),
        ([200, 431], [200, 400], 20_000, True),
        ([200, 200], [200, 400], 20_000, False),
        ([404, 431], [200, 400], 20_000, False),
        ([200], [200, 400], 20_000, False),
        ([], [], 20_000, True),
    ],
)
def test_only_a_head_that_is_too_large_may_be_refused_for_either(
    statuses: list[int], expected: list[int], sent_bytes: int, due: bool
) -> None:
    assert is_as_due(statuses, expected, sent_bytes) == due


def test_the_forecast_ends_where_the_connection_does() -> None:
    assert forecast(GET + GET.replace(b"GET", b"HEAD")) == (Due(200, True), Due(200, False))
    assert forecast(GET.replace(b"Host: n", b"Host: n\r\nConnection: close") + GET) == (Due(200, True),)
    assert forecast(GET + b"nonsense\r\n\r\n" + GET) == (Due(200, True), Due(400, True))


@pytest.mark.parametrize(
    "received",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nmore",
        2 * b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"nonsense",
    ],
)
def test_what_is_no_answer_is_noticed(received: bytes) -> None:
    with pytest.raises(ValueError):
        taken_apart(received, (Due(200, True),))
