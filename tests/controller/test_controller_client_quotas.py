"""Client quotas: what may be set for whom, and what a filter finds."""

import math

import pytest

from ropewalk.base.errors import InvalidRequest, PolicyViolation
from ropewalk.controller import client_quotas
from ropewalk.controller.client_quotas import (
    CLIENT_ID,
    IP,
    USER,
    Match,
    decide_alter_client_quotas,
    find_client_quotas,
)
from ropewalk.metadata.image import Image

Parts = list[tuple[str, str | None]]

RATE = "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"


def with_quotas(*settings: tuple[Parts, dict[str, float | None]]) -> Image:
    image = Image()
    for parts, changes in settings:
        for record in decide_alter_client_quotas(image, parts, changes):
            image.apply(record)
    return image


def test_quotas_are_set_changed_and_taken_away() -> None:
    user: Parts = [(USER, "u")]
    image = with_quotas(
        (user, {RATE: 1000.0, "request_percentage": 12.5}),
        (user, {RATE: 2000.0}),
        (user, {"request_percentage": None, "no_such": None}),
    )
    assert image.client_quotas == {((USER, "u"),): {RATE: 2000.0}}
    assert decide_alter_client_quotas(image, user, {RATE: 2000.0}) == [], "it is so already"
    for record in decide_alter_client_quotas(image, user, {RATE: None}):
        image.apply(record)
    assert image.client_quotas == {}


def test_an_entity_is_the_same_in_any_order_and_spelling() -> None:
    image = with_quotas(
        ([(USER, "u"), (CLIENT_ID, None)], {RATE: 1.0}),
        ([(CLIENT_ID, None), (USER, "u")], {RATE: 2.0}),
        ([(IP, "2001:db8:0::1")], {CONNECTIONS: 1.0}),
        ([(IP, "2001:DB8::1")], {CONNECTIONS: 2.0}),
    )
    assert list(image.client_quotas.values()) == [{RATE: 2.0}, {CONNECTIONS: 2.0}]


@pytest.mark.parametrize(
    ("parts", "name", "value"),
    [
        pytest.param([], RATE, 1.0, id="for nobody"),
        pytest.param([("host", "x")], RATE, 1.0, id="for an unknown kind"),
        pytest.param([(USER, "")], RATE, 1.0, id="for an empty user"),
        pytest.param([(CLIENT_ID, "")], RATE, 1.0, id="for an empty client id"),
        pytest.param([(USER, "u"), (USER, "v")], RATE, 1.0, id="for two users"),
        pytest.param([(IP, "192.0.2.1"), (USER, "u")], CONNECTIONS, 1.0, id="for an address and a user"),
        pytest.param([(IP, "not an address")], CONNECTIONS, 1.0, id="for no address"),
        pytest.param([(IP, "192.0.2.1")], RATE, 1.0, id="bytes of an address"),
        pytest.param([(USER, "u")], CONNECTIONS, 1.0, id="connections of a user"),
        pytest.param([(USER, "u")], "no_such", 1.0, id="unknown"),
        pytest.param([(USER, "u")], RATE, 0.0, id="nothing"),
        pytest.param([(USER, "u")], RATE, -1.0, id="less than nothing"),
        pytest.param([(USER, "u")], "request_percentage", 0.0, id="no time"),
        pytest.param([(USER, "u")], RATE, 1.5, id="half a byte"),
        pytest.param([(IP, None)], CONNECTIONS, 1.5, id="half a connection"),
        pytest.param([(USER, "u")], RATE, 1e30, id="too many bytes"),
        pytest.param([(USER, "u" * 1_025)], RATE, 1.0, id="for a user with an endless name"),
        pytest.param([(USER, "u")], RATE, math.nan, id="no number"),
        pytest.param([(USER, "u")], "request_percentage", math.inf, id="all the time there is"),
        pytest.param([(USER, "u")], "controller_mutation_rate", math.nan, id="no number of changes"),
    ],
)
def test_quotas_that_are_refused(parts: Parts, name: str, value: float) -> None:
    with pytest.raises(InvalidRequest):
        decide_alter_client_quotas(Image(), parts, {"request_percentage": None, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("request_percentage", 200.5, id="more time than there is"),
        pytest.param("controller_mutation_rate", 0.5, id="half a change"),
        pytest.param(RATE, 1.0000001, id="nearly a whole number"),
        pytest.param("consumer_byte_rate", 1.0, id="one byte"),
    ],
)
def test_quotas_that_are_allowed(name: str, value: float) -> None:
    assert with_quotas(([(USER, "u")], {name: value})).client_quotas == {((USER, "u"),): {name: value}}


def test_there_is_a_limit_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "CLIENT_QUOTAS_MAX", 2)
    image = with_quotas(([(USER, "a")], {RATE: 1.0}), ([(USER, "b")], {RATE: 1.0}))
    assert decide_alter_client_quotas(image, [(USER, "b")], {RATE: 2.0})
    with pytest.raises(PolicyViolation):
        decide_alter_client_quotas(image, [(USER, "c")], {RATE: 1.0})


@pytest.mark.parametrize(
    ("matches", "strict", "found"),
    [
        pytest.param([], False, ["u", "u+c", "*", "*+c", "c", "ip"], id="everything"),
        pytest.param([], True, [], id="everything, strictly, is nothing"),
        pytest.param([Match(USER, "u")], False, ["u", "u+c"], id="a user"),
        pytest.param([Match(USER, "u")], True, ["u"], id="a user alone"),
        pytest.param([Match(USER)], False, ["*", "*+c"], id="the default user"),
        pytest.param([Match(USER, is_any=True)], True, ["u", "*"], id="any user alone"),
        pytest.param([Match(USER, "u"), Match(CLIENT_ID, "c")], True, ["u+c"], id="both"),
        pytest.param([Match(CLIENT_ID, is_any=True)], False, ["u+c", "*+c", "c"], id="any client"),
        pytest.param([Match(IP, is_any=True)], False, ["ip"], id="any address"),
        pytest.param([Match(USER, "nobody")], False, [], id="somebody else"),
    ],
)
def test_what_a_filter_finds(matches: list[Match], strict: bool, found: list[str]) -> None:
    entities: dict[str, Parts] = {
        "u": [(USER, "u")],
        "u+c": [(USER, "u"), (CLIENT_ID, "c")],
        "*": [(USER, None)],
        "*+c": [(USER, None), (CLIENT_ID, "c")],
        "c": [(CLIENT_ID, "c")],
        "ip": [(IP, None)],
    }
    image = Image()
    for name, parts in entities.items():
        for record in decide_alter_client_quotas(image, parts, {CONNECTIONS if name == "ip" else RATE: 1.0}):
            image.apply(record)
    expected = [tuple(sorted(entities[name], key=lambda part: part[0])) for name in found]
    assert [entity for entity, _ in find_client_quotas(image, matches, strict=strict)] == expected


@pytest.mark.parametrize(
    "matches",
    [
        pytest.param([Match(USER, "u"), Match(USER, "v")], id="two users"),
        pytest.param([Match(USER, "u"), Match(IP)], id="a user and an address"),
    ],
)
def test_filters_that_are_refused(matches: list[Match]) -> None:
    with pytest.raises(InvalidRequest):
        list(find_client_quotas(Image(), matches, strict=False))
