"""What clients use of their quotas: rates are held exactly, whoever shares one shares it, and nobody else waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.limits import THROTTLE_MS_MAX
from ropewalk.broker.administration import quotas
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.controller.client_quotas import Quota, decide_alter_client_quotas
from ropewalk.metadata.image import Image

Parts = tuple[tuple[str, str | None], ...]

CLIENT: Parts = (("client-id", "c"),)


def quotas_of(entities: dict[Parts, float], quota: Quota = Quota.PRODUCE) -> ClientQuotas:
    image = Image()
    for entity, rate in entities.items():
        set_quota(image, entity, rate, quota)
    return ClientQuotas(image)


def set_quota(image: Image, entity: Parts, rate: float | None, quota: Quota = Quota.PRODUCE) -> None:
    for record in decide_alter_client_quotas(image, entity, {quota: rate}):
        image.apply(record)


@given(
    rate=st.integers(100, 10**9),
    sizes=st.lists(st.floats(0.05, 2.0), min_size=50, max_size=100),
    pause_ms=st.floats(0, 100_000),
)
def test_a_client_that_goes_on_as_fast_as_it_may_is_held_to_its_quota(
    rate: int, sizes: list[float], pause_ms: float
) -> None:
    """Whatever the sizes, given as seconds' worth, and however long it was silent before."""
    held = quotas_of({CLIENT: rate})
    started_at_ms = 1_000.0 + pause_ms
    held.charge(Quota.PRODUCE, "u", "c", 1, 0.0)
    now_ms = started_at_ms
    used = 0.0
    for size in sizes:
        now_ms += held.charge(Quota.PRODUCE, "u", "c", size * rate, now_ms)
        used += size * rate
    elapsed_s = (now_ms - started_at_ms) / 1000
    assert used == pytest.approx(rate * (elapsed_s + 0.25), rel=0.001), "the rate, and what was saved up"


@given(rate=st.integers(1, 10**9), count=st.integers(2, 5))
def test_clients_that_share_a_quota_are_held_to_it_together(rate: int, count: int) -> None:
    held = quotas_of({(("user", "u"),): rate})
    waiting = [(0.0, f"client-{number}") for number in range(count)]
    used = 0.0
    until_ms = 20_000.0
    while True:
        now_ms, client_id = min(waiting)
        if now_ms > until_ms:
            break
        waiting.remove((now_ms, client_id))
        used += 0.1 * rate
        throttle_ms = held.charge(Quota.PRODUCE, "u", client_id, 0.1 * rate, now_ms)
        waiting.append((now_ms + throttle_ms + 0.001, client_id))
    assert used == pytest.approx(20 * rate, rel=0.1)


def test_a_client_below_its_quota_never_waits() -> None:
    held = quotas_of({CLIENT: 1000})
    assert [held.charge(Quota.PRODUCE, "u", "c", 200, at_ms) for at_ms in range(0, 10_000, 200)] == [0] * 50


def test_quota_is_saved_up_for_a_moment_only() -> None:
    held = quotas_of({CLIENT: 1000})
    assert held.charge(Quota.PRODUCE, "u", "c", 250, 0) == 0
    assert held.charge(Quota.PRODUCE, "u", "c", 350, 1_000_000) == pytest.approx(100)


def test_nobody_waits_longer_than_clients_are_patient() -> None:
    held = quotas_of({CLIENT: 1})
    assert held.charge(Quota.PRODUCE, "u", "c", 10**9, 0) == THROTTLE_MS_MAX
    assert held.charge(Quota.PRODUCE, "u", "c", 0, THROTTLE_MS_MAX) == 0


_MOST_PARTICULAR_FIRST: list[Parts] = [
    (("user", "u"), ("client-id", "c")),
    (("user", "u"), ("client-id", None)),
    (("user", "u"),),
    (("user", None), ("client-id", "c")),
    (("user", None), ("client-id", None)),
    (("user", None),),
    (("client-id", "c"),),
    (("client-id", None),),
]


@pytest.mark.parametrize("position", range(len(_MOST_PARTICULAR_FIRST)))
def test_the_most_particular_quota_applies(position: int) -> None:
    entities = _MOST_PARTICULAR_FIRST[position:]
    held = quotas_of({entity: rate for rate, entity in enumerate(entities, start=7)})
    assert held.rate(Quota.PRODUCE, "u", "c") == 7
    assert held.rate(Quota.FETCH, "u", "c") is None, "each kind is looked up by itself"


@pytest.mark.parametrize(
    ("entity", "shares", "does_not"),
    [
        pytest.param((("user", None),), ("u", "d"), ("v", "c"), id="all clients of a user"),
        pytest.param((("client-id", None),), ("v", "c"), ("u", "d"), id="all users of a client id"),
        pytest.param((("user", None), ("client-id", None)), ("u", "c"), ("u", "d"), id="neither"),
    ],
)
def test_who_shares_a_quota(entity: Parts, shares: tuple[str, str], does_not: tuple[str, str]) -> None:
    held = quotas_of({entity: 1000})
    assert held.charge(Quota.PRODUCE, "u", "c", 1250, 0) == 1000
    assert held.charge(Quota.PRODUCE, *does_not, 1, 0) == 0
    assert held.charge(Quota.PRODUCE, *shares, 1, 0) == pytest.approx(1001)


def test_a_change_applies_at_once_and_what_was_used_stays_used() -> None:
    held = quotas_of({CLIENT: 1000})
    assert held.charge(Quota.PRODUCE, "u", "c", 2250, 0) == 2000
    set_quota(held.image, CLIENT, 2000)
    assert held.charge(Quota.PRODUCE, "u", "c", 0, 0) == 1000
    set_quota(held.image, CLIENT, None)
    assert held.charge(Quota.PRODUCE, "u", "c", 10**9, 0) == 0


def test_requests_are_limited_to_a_part_of_the_event_loop() -> None:
    held = quotas_of({CLIENT: 1.0}, Quota.REQUEST)
    assert held.charge(Quota.REQUEST, "u", "c", 2.5, 0) == 0, "a quarter of a second's worth is saved up"
    assert held.charge(Quota.REQUEST, "u", "c", 10, 0) == pytest.approx(1000), "1 % is 10 ms in a second"


def test_addresses_have_quotas_of_their_own() -> None:
    held = quotas_of({(("ip", "192.0.2.1"),): 1, (("ip", None),): 5}, Quota.CONNECTION)
    assert [held.charge_connection("192.0.2.1", 0) for _ in range(3)] == [0, 1000, 1000], (
        "refused, not counted"
    )
    assert held.charge_connection("192.0.2.1", 1000) == 0
    assert [held.charge_connection("192.0.2.2", 0) for _ in range(6)] == [0] * 5 + [200]


def test_memory_stays_bounded_however_many_clients_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "QUOTA_SHARES_MAX", 100)
    held = quotas_of({(("client-id", None),): 1000})
    for number in range(1000):
        held.charge(Quota.PRODUCE, "u", "often", 1, number)
        held.charge(Quota.PRODUCE, "u", f"once-{number}", 1, number)
    assert held.share_count == 100
    assert held.charge(Quota.PRODUCE, "u", "often", 1000, 1000) > 0
