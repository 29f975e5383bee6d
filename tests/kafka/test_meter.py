"""What a request costs its client: the time it keeps the event loop, and the bytes of Produce and Fetch."""

import pytest

from ropewalk.base.errors import Throttled
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.controller.client_quotas import Quota, decide_alter_client_quotas
from ropewalk.kafka.meter import Meter
from ropewalk.metadata.image import Image
from ropewalk.wire.messages import api_versions, fetch, metadata, produce

ANONYMOUS = "ANONYMOUS"


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.at_ms = 1_000_000.0

    def now_ms(self) -> int:
        return int(self.at_ms)

    def monotonic_ms(self) -> float:
        return self.at_ms


def quotas_with(quota: Quota, rate: float) -> ClientQuotas:
    image = Image()
    for record in decide_alter_client_quotas(image, [("user", ANONYMOUS)], {quota: rate}):
        image.apply(record)
    return ClientQuotas(image)


def test_only_the_time_on_the_event_loop_counts() -> None:
    clock = HandClock()
    quotas = quotas_with(Quota.REQUEST, 10)  # 100 ms in a second, of which 25 ms are saved up
    meter = Meter(quotas, clock, metadata.API.key, "c", ANONYMOUS)
    clock.at_ms += 15
    meter.on_decoded(100)
    clock.at_ms += 20
    meter.on_wait()
    assert meter.throttle_ms == pytest.approx(100), "10 ms too many take 100 ms to work off"
    clock.at_ms += 60_000
    meter.throttle_ms = 0
    meter.on_encoding()
    clock.at_ms += 25
    meter.on_answer(100)
    assert meter.throttle_ms == 0, "the wait was nobody's time"


@pytest.mark.parametrize(
    ("quota", "api_key", "expected"),
    [
        pytest.param(Quota.PRODUCE, produce.API.key, 1_750, id="what is produced, by the request"),
        pytest.param(Quota.FETCH, fetch.API.key, 3_750, id="what is fetched, by the answer"),
        pytest.param(Quota.PRODUCE, fetch.API.key, 0, id="fetching is not producing"),
        pytest.param(Quota.FETCH, metadata.API.key, 0, id="other answers"),
    ],
)
def test_bytes_are_charged(quota: Quota, api_key: int, expected: float) -> None:
    meter = Meter(quotas_with(quota, 1000), HandClock(), api_key, "c", ANONYMOUS)
    meter.on_decoded(2_000)
    meter.on_wait()
    meter.on_encoding()
    meter.on_answer(4_000)
    assert meter.throttle_ms == expected


def test_the_answer_tells_it_where_there_is_a_place() -> None:
    meter = Meter(quotas_with(Quota.FETCH, 1000), HandClock(), fetch.API.key, "c", ANONYMOUS)
    meter.on_answer(2_250)
    told = meter.told(api_versions.ApiVersionsResponse(error_code=0, api_keys=()))
    assert isinstance(told, api_versions.ApiVersionsResponse)
    assert told.throttle_ms == 2_000


def test_endless_client_ids_share_what_they_begin_with() -> None:
    quotas = quotas_with(Quota.PRODUCE, 1000)
    for record in decide_alter_client_quotas(
        quotas.image, [("user", ANONYMOUS), ("client-id", None)], {Quota.PRODUCE: 1000}
    ):
        quotas.image.apply(record)
    for number in range(3):
        Meter(quotas, HandClock(), produce.API.key, "x" * 30_000 + str(number), ANONYMOUS).on_decoded(1)
    assert quotas.share_count == 1


def test_whoever_changed_the_cluster_too_often_is_refused() -> None:
    meter = Meter(quotas_with(Quota.MUTATION, 1), HandClock(), metadata.API.key, None, ANONYMOUS)
    meter.check_mutations()
    meter.charge_mutations(11)
    with pytest.raises(Throttled, match="1000 ms"):
        meter.check_mutations()


@pytest.mark.parametrize(
    ("entity", "user", "is_charged"),
    [
        pytest.param([("user", "alice")], "alice", True, id="the user that the quota is for"),
        pytest.param([("user", "alice")], "bob", False, id="another user"),
        pytest.param([("user", "alice")], ANONYMOUS, False, id="whoever said no name"),
        pytest.param([("user", None)], "bob", True, id="by default for every user"),
        pytest.param([("user", None)], ANONYMOUS, True, id="who said no name is a user as well"),
        pytest.param(
            [("user", "alice"), ("client-id", "c")], "alice", True, id="the user with that client id"
        ),
        pytest.param([("user", "alice"), ("client-id", "d")], "alice", False, id="with another client id"),
    ],
)
def test_a_quota_of_a_user_is_charged_to_whoever_has_that_name(
    entity: list[tuple[str, str | None]], user: str, is_charged: bool
) -> None:
    image = Image()
    for record in decide_alter_client_quotas(image, entity, {Quota.PRODUCE: 1000}):
        image.apply(record)
    meter = Meter(ClientQuotas(image), HandClock(), produce.API.key, "c", user)
    meter.on_decoded(10_000)
    assert (meter.throttle_ms > 0) is is_charged
