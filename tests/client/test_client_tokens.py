"""Tokens for a client's own credentials: how they are asked for, how long they are kept, and endpoints that do not give any."""

import asyncio
import base64
from typing import cast
from urllib.parse import parse_qs

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.client.connections.secret import GivenSecret
from ropewalk.client.connections.security import security_from
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.connections.tokens import ClientCredentials
from ropewalk.client.errors import AuthenticationFailed, Unreachable
from tests.client.fake_cluster import Stage, on_stage
from tests.client.fake_login import TOKEN, FakeLogin

SECRET = "s/e:cret"
URL = "http://issuer:8080/realms/rope/token?kind=x"
GRANTED = f'{{"access_token": "{TOKEN}", "token_type": "Bearer", "expires_in": 100}}'


class Endpoint(asyncio.Protocol):
    """Answers every request with what it is told to, one connection for each."""

    def __init__(self, issuer: "Issuer") -> None:
        self._issuer = issuer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._issuer.requests.append(data.decode())
        if not self._issuer.is_silent:
            status, body = self._issuer.status, self._issuer.body.encode()
            self._transport.write(
                f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
            )


class Issuer:
    def __init__(self, body: str = GRANTED, status: int = 200, *, is_silent: bool = False) -> None:
        self.body = body
        self.status = status
        self.is_silent = is_silent
        self.requests: list[str] = []

    async def start(self, stage: Stage) -> None:
        await stage.world.network.host("issuer").listen(lambda: Endpoint(self), "issuer", 8080)


def credentials(stage: Stage, scope: str | None = "kafka read") -> ClientCredentials:
    return ClientCredentials(
        stage.world.network.host("client"),
        stage.clock,
        url=URL,
        client_id="a b",
        client_secret=GivenSecret(SECRET),
        scope=scope,
        ca_location=None,
    )


def test_a_token_is_asked_for_as_oauth_has_it() -> None:
    async def story(stage: Stage) -> None:
        issuer = Issuer()
        await issuer.start(stage)
        assert await credentials(stage).token(deadline_ms=stage.now_ms + 1_000) == TOKEN
        head, _, body = issuer.requests[0].partition("\r\n\r\n")
        assert head.startswith("POST /realms/rope/token?kind=x HTTP/1.1\r\nhost: issuer:8080\r\n")
        encoded = head.partition("authorization: Basic ")[2].partition("\r\n")[0]
        assert base64.b64decode(encoded).decode() == "a%20b:s%2Fe%3Acret"
        assert parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}

    on_stage(story)


def test_a_token_is_kept_for_most_of_its_life_and_asked_for_once_by_all() -> None:
    async def story(stage: Stage) -> None:
        issuer = Issuer()
        await issuer.start(stage)
        source = credentials(stage)

        async def ask() -> str:
            return await source.token(deadline_ms=stage.now_ms + 1_000)

        assert set(await asyncio.gather(*(ask() for _ in range(10)))) == {TOKEN}
        await asyncio.sleep(79)
        await ask()
        assert len(issuer.requests) == 1
        await asyncio.sleep(2)
        await ask()
        assert len(issuer.requests) == 2

    on_stage(story)


@pytest.mark.parametrize(
    ("issuer", "kind", "said"),
    [
        pytest.param(
            Issuer('{"error": "invalid_client", "error_description": "no such client"}', 401),
            AuthenticationFailed,
            "it gives no token: invalid_client: no such client",
            id="a refusal",
        ),
        pytest.param(Issuer("<html>", 403), AuthenticationFailed, "status 403", id="a page"),
        pytest.param(Issuer("{}"), AuthenticationFailed, "what is no token", id="no token"),
        pytest.param(
            Issuer('{"access_token": "x", "token_type": "mac"}'),
            AuthenticationFailed,
            "type mac",
            id="another type",
        ),
        pytest.param(Issuer("", 302), AuthenticationFailed, "status 302", id="sent elsewhere"),
        pytest.param(Issuer("", 503), Unreachable, "status 503", id="a fault"),
        pytest.param(Issuer(is_silent=True), Unreachable, "no token in time", id="silence"),
    ],
)
def test_an_endpoint_that_gives_no_token_is_told_with_its_address_and_without_the_secret(
    issuer: Issuer, kind: type[RopewalkError], said: str
) -> None:
    async def story(stage: Stage) -> None:
        await issuer.start(stage)
        with pytest.raises(kind, match=said) as told:
            await credentials(stage).token(deadline_ms=stage.now_ms + 1_000)
        assert "issuer:8080" in str(told.value)
        assert SECRET not in str(told.value)

    on_stage(story)


def settings() -> ClientSettings:
    named = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/token",
        "sasl_oauthbearer_client_id": "a b",
        "sasl_oauthbearer_client_secret": SECRET,
    }
    return ClientSettings(security=security_from(named))


def test_sessions_that_end_get_tokens_of_their_own_and_wait_for_an_endpoint_that_is_away() -> None:
    async def story(stage: Stage) -> None:
        login = FakeLogin(lifetime_ms=20_000)
        broker = await stage.add_broker(login=login)
        issuer = Issuer(GRANTED.replace("100", "1"))
        await stage.world.network.host("client").listen(lambda: Endpoint(issuer), "127.0.0.1", 1)
        async with stage.client(settings=settings()) as client:
            issuer.status = 503
            await asyncio.sleep(19)
            issuer.status = 200
            await asyncio.sleep(5)
            await client.metadata([])
        assert len(login.logins) == 2
        assert broker.connection_count == 1

    on_stage(story)
