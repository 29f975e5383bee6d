"""Queues at an endpoint over https: whose authority is trusted, and what is said where it is not."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ropewalk.aio import Queue
from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ports import Networks, TlsContexts
from ropewalk.client.connections.security import NO_SECURITY
from ropewalk.client.errors import TlsFailed
from ropewalk.client.queues.endpoints import take_security
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpListener, TcpNetwork
from tests.client.fake_queues import FakeQueue, FakeQueues
from tests.security.authority import authority


class EncryptedNetwork(TcpNetwork):
    """Whoever listens does so with TLS."""

    def __init__(self, contexts: TlsContexts) -> None:
        self._contexts = contexts

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
        takes_plain: Callable[[], bool] | None = None,
        proxies: Networks = (),
    ) -> TcpListener:
        return await super().listen(
            factory, host, port, tls=tls or self._contexts, takes_plain=takes_plain, proxies=proxies
        )


def at_https(story: Callable[[str], Awaitable[None]]) -> None:
    """With the address of a server that has the queue `jobs`, and a certificate of our authority."""

    async def play() -> None:
        server = FakeQueues(SystemClock())
        server.queues["jobs"] = FakeQueue("jobs", {})
        address = await server.start(EncryptedNetwork(authority().server))
        try:
            await story(address.replace("http:", "https:"))
        finally:
            server.stop()

    asyncio.run(play())


@pytest.fixture
def ca(tmp_path: Path) -> str:
    return str(authority().trust(tmp_path / "ca.pem"))


def test_an_authority_of_ones_own_is_enough(ca: str) -> None:
    async def story(endpoint: str) -> None:
        async with Queue("jobs", endpoint=endpoint, ssl_ca_location=ca) as queue:
            await queue.send("cut the rope")

    at_https(story)


def test_the_authority_may_be_said_as_for_awss_tools(ca: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", ca)

    async def story(endpoint: str) -> None:
        async with Queue("jobs", endpoint=endpoint) as queue:
            await queue.send("cut the rope")

    at_https(story)


def test_an_unknown_authority_is_refused_at_once_with_what_to_set() -> None:
    async def story(endpoint: str) -> None:
        with pytest.raises(TlsFailed, match=r"is not trusted .*: set ssl_ca_location"):
            async with Queue("jobs", endpoint=endpoint):
                pass

    at_https(story)


def test_a_file_of_authorities_that_is_not_there_is_named() -> None:
    async def story(endpoint: str) -> None:
        with pytest.raises(InvalidSetting, match=r"ssl_ca_location: /no/ca.pem cannot be read"):
            async with Queue("jobs", endpoint=endpoint, ssl_ca_location="/no/ca.pem"):
                pass

    at_https(story)


def test_who_says_nothing_but_certificates_speaks_of_endpoints_alone() -> None:
    of_brokers, of_https = take_security({"ssl_ca_location": "/ca.pem"})
    assert of_brokers == NO_SECURITY
    assert of_https.ssl_ca_location == "/ca.pem"
    said = {"security_protocol": "SSL", "ssl_ca_location": "/ca.pem"}
    of_brokers, of_https = take_security(said)
    assert of_brokers == of_https
    assert of_brokers.has_tls
    with pytest.raises(InvalidSetting, match="a Queue does not know ssl_colour"):
        take_security({"ssl_colour": "red"})
