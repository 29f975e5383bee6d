"""What a front end does with each API that it advertises is decided on purpose, and once."""

from ropewalk.kafka.apis import advertised
from ropewalk.kafka.proxy.routed import ANSWERED_HERE, ROUTED
from ropewalk.kafka.refusals import REFUSALS

TABLES = {"passed on": ROUTED, "answered here": ANSWERED_HERE.keys(), "forwarded": REFUSALS.keys()}


def test_every_advertised_api_is_in_exactly_one_table() -> None:
    wrong = {
        api.api_key: found
        for api in advertised()
        if len(found := [name for name, keys in TABLES.items() if api.api_key in keys]) != 1
    }
    assert not wrong, "say in kafka/proxy/routed.py what a front end does with these"


def test_no_table_names_an_api_that_is_not_served() -> None:
    served = {api.api_key for api in advertised()}
    assert {key for keys in TABLES.values() for key in keys} <= served
