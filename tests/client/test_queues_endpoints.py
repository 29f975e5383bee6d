"""Whom a client of queues asks, and as whom: what was given before what the cluster says, and that before the environment."""

import asyncio

import pytest

from ropewalk.client.errors import Misuse
from ropewalk.client.queues.endpoints import AmongNodes, Endpoint, credentials, finder, parse_endpoint, region
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.security.sigv4_signing import Credentials

AWS = {"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_SQS": "http://sqs:2"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://localhost:9324", Endpoint("localhost", 9324)),
        ("http://localhost", Endpoint("localhost", 80)),
        ("https://sqs.example/", Endpoint("sqs.example", 443, has_tls=True)),
        ("127.0.0.1:9324", Endpoint("127.0.0.1", 9324)),
        ("http://[::1]:9324", Endpoint("::1", 9324)),
    ],
)
def test_endpoints_are_read(text: str, expected: Endpoint) -> None:
    assert parse_endpoint(text) == expected
    assert parse_endpoint(str(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "ftp://a", "http://", "http://a:b", "http://a/queue", "http://a?x=1", "http://a:99999"]
)
def test_what_is_not_an_endpoint_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="is not an endpoint"):
        parse_endpoint(text)


@pytest.mark.parametrize(
    ("endpoint", "authority"),
    [
        ("http://a:80", "a"),
        ("https://a:443", "a"),
        ("http://a:443", "a:443"),
        ("http://a:9324", "a:9324"),
        ("http://[::1]:80", "[::1]"),
    ],
)
def test_a_port_that_goes_without_saying_is_not_said(endpoint: str, authority: str) -> None:
    assert parse_endpoint(endpoint).authority == authority


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ("http://mine:3", AWS, "http://mine:3"),
        (None, AWS, "http://sqs:2"),
        (None, {"AWS_ENDPOINT_URL": "http://all:1"}, "http://all:1"),
    ],
)
def test_the_nearest_word_counts(given: str | None, environment: dict[str, str], expected: str) -> None:
    found = finder(given, None, SystemClientPorts(), environment, timeout_ms=1)
    assert [str(each) for each in asyncio.run(_found(found))] == [expected]


async def _found(of: object) -> list[Endpoint]:
    return list(await of.find())  # type: ignore[attr-defined]


def test_a_cluster_that_was_named_counts_more_than_the_environment() -> None:
    assert isinstance(finder(None, "a:1", SystemClientPorts(), AWS, timeout_ms=1), AmongNodes)


def test_without_any_word_it_says_what_to_say() -> None:
    with pytest.raises(Misuse, match="AWS_ENDPOINT_URL_SQS"):
        finder(None, None, SystemClientPorts(), {}, timeout_ms=1)


@pytest.mark.parametrize(
    ("key", "secret", "environment", "expected"),
    [
        ("a", "b", {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}, Credentials("a", "b")),
        (None, None, {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}, Credentials("x", "y")),
        (None, None, {"AWS_ACCESS_KEY_ID": "x"}, Credentials("ropewalk", "ropewalk")),
    ],
)
def test_keys_come_together_or_not_at_all(
    key: str | None, secret: str | None, environment: dict[str, str], expected: Credentials
) -> None:
    assert credentials(key, secret, None, environment) == expected


def test_half_a_pair_of_keys_is_refused() -> None:
    with pytest.raises(Misuse, match="together"):
        credentials("a", None, None, {})


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ("eu-north-1", {"AWS_REGION": "x"}, "eu-north-1"),
        (None, {"AWS_REGION": "x", "AWS_DEFAULT_REGION": "y"}, "x"),
        (None, {"AWS_DEFAULT_REGION": "y"}, "y"),
        (None, {}, "us-east-1"),
    ],
)
def test_the_region_is_found_likewise(given: str | None, environment: dict[str, str], expected: str) -> None:
    assert region(given, environment) == expected
