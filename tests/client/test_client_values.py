"""Addresses, settings and partitioners: tables, and agreement with other clients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.calls.partitioner import Partitioner, murmur2, partition_for_key
from ropewalk.client.connections.address import Address, parse_addresses
from ropewalk.client.connections.settings import ClientSettings, settings_from


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", [("a", 1)]),
        ("a", [("a", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_read(text: str, expected: list[tuple[str, int]]) -> None:
    assert [(address.host, address.port) for address in parse_addresses(text)] == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no broker address"),
        (",", "no broker address"),
        (":9092", "the host is missing"),
        ("a:b", "'b' is not a port"),
        ("a:0", "'0' is not a port"),
        ("a:65536", "'65536' is not a port"),
        ("a:-1", "'-1' is not a port"),
        ("::1", r"\[::1\]:PORT"),
        ("[::1", r"\[IPv6\]:PORT"),
        ("[::1]x", r"\[IPv6\]:PORT"),
    ],
)
def test_what_is_not_an_address_is_named(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_addresses(text)


@given(st.sampled_from(["a", "b.example", "::1", "10.0.0.1"]), st.integers(1, 65535))
def test_an_address_reads_back_as_it_is_shown(host: str, port: int) -> None:
    assert parse_addresses(str(Address(host, port))) == (Address(host, port),)


def test_settings_go_by_the_names_kafkas_clients_use() -> None:
    settings = settings_from({"request.timeout.ms": "5000", "client.id": "me"})
    assert (settings.request_timeout_ms, settings.client_id) == (5000, "me")
    assert settings_from({}) == ClientSettings()


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("no.such", "1", "no.such is not a client setting; there are batch.size"),
        ("retry.backoff.ms", "soon", "retry.backoff.ms=soon"),
        ("batch.size", "0", "batch.size is 0, must be positive"),
        ("batch.size", "-4", "batch.size is -4, must be positive"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str, named: str) -> None:
    with pytest.raises(InvalidSetting, match=named):
        settings_from({name: value})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_numbers_in_kafkas_own_test(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


@given(st.binary(max_size=64))
def test_murmur2_agrees_with_another_client(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


@given(st.binary(max_size=20), st.integers(1, 100))
def test_a_key_has_one_partition_and_it_exists(key: bytes, partition_count: int) -> None:
    chosen = Partitioner().choose(key, partition_count)
    assert chosen == partition_for_key(key, partition_count)
    assert 0 <= chosen < partition_count


def test_records_without_a_key_take_turns() -> None:
    partitioner = Partitioner()
    assert [partitioner.choose(None, 3) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert partitioner.choose(None, 1) == 0
