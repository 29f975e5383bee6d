"""The keys of an authority: when they are asked for, what becomes of tokens meanwhile, and authorities that fail."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import JWKS_BYTES_MAX, JWKS_UNKNOWN_KEY_MS
from ropewalk.security.bearer import Token, knows, parse_token
from ropewalk.security.jwks import Jwks, JwksSource, check_url
from ropewalk.sim.machines.world import EPOCH_MS, NodePorts, World
from tests.security.issuing import Issuer
from tests.security.signing import EC, ED, RSA, AnyKey, claims, jwks, sign

REFRESH_S = 3_600
SOURCE = JwksSource(url="", ca_location="", refresh_ms=REFRESH_S * 1000, retry_ms=100, retry_ms_max=10_000)


class Stage:
    def __init__(self, world: World) -> None:
        self.world = world
        self.issuer = Issuer()
        self._machine = world.machine("node")
        world.machine("issuer")

    async def begin(self) -> None:
        async def take(ports: NodePorts) -> None:
            self._ports = ports

        await self._machine.start(take)

    def keys(self, url: str) -> Jwks:
        ports = self._ports
        return Jwks(structs.replace(SOURCE, url=url), ports.network, ports.pool, ports.clock)

    async def open(self) -> Jwks:
        """With what keeps them fresh."""
        await self.issuer.start(self.world)
        keys = self.keys(self.issuer.url)
        await keys.open()
        self.task = asyncio.get_running_loop().create_task(keys.run())
        return keys


def on_stage(story: Callable[[Stage], Awaitable[None]]) -> None:
    with World(0) as world:

        async def play() -> None:
            stage = Stage(world)
            await stage.begin()
            await story(stage)
            if hasattr(stage, "task"):
                assert not stage.task.done(), "it goes on for as long as the node does"
                stage.task.cancel()

        world.run(play(), limit_s=20_000)


def token(key: AnyKey = RSA, alg: str = "RS256") -> Token:
    return parse_token(sign(claims(EPOCH_MS), key, alg))


def test_keys_are_asked_for_at_the_start_and_once_in_a_while() -> None:
    async def story(stage: Stage) -> None:
        keys = await stage.open()
        assert knows(keys.keys, token())
        assert stage.issuer.requests[0].startswith(
            "GET /realms/rope/certs?kind=all HTTP/1.1\r\nHost: issuer:8080\r\n"
        )
        before = keys.version
        await asyncio.sleep(REFRESH_S + 1)
        assert len(stage.issuer.requests) == 2
        assert keys.version == before, "they are the same"
        stage.issuer.show(EC)
        await asyncio.sleep(REFRESH_S + 1)
        assert not knows(keys.keys, token())
        assert keys.version == before + 1

    on_stage(story)


def test_a_token_with_a_new_key_waits_until_that_is_shown() -> None:
    async def story(stage: Stage) -> None:
        keys = await stage.open()
        stage.issuer.show(RSA, EC)
        found = await asyncio.gather(*(keys.knowing(token(EC, "ES256")) for _ in range(20)))
        assert all(knows(each, token(EC, "ES256")) for each in found)
        assert len(stage.issuer.requests) == 2, "all have it asked for once"

    on_stage(story)


def test_tokens_with_unknown_keys_have_an_authority_asked_only_so_often() -> None:
    async def story(stage: Stage) -> None:
        keys = await stage.open()
        for number in range(200):
            stranger = parse_token(sign(claims(EPOCH_MS), RSA, kid=f"key {number}"))
            assert not knows(await keys.knowing(stranger), stranger)
            await asyncio.sleep(0.1)
        assert len(stage.issuer.requests) <= 1 + 20_000 / JWKS_UNKNOWN_KEY_MS + 1
        stage.issuer.show(RSA, ED)
        await asyncio.sleep(JWKS_UNKNOWN_KEY_MS / 1000)
        assert knows(await keys.knowing(token(ED, "Ed25519")), token(ED, "Ed25519"))

    on_stage(story)


def test_a_client_that_goes_away_takes_nothing_with_it() -> None:
    async def story(stage: Stage) -> None:
        keys = await stage.open()
        stage.issuer.show(RSA, EC)
        loop = asyncio.get_running_loop()
        first, second = (loop.create_task(keys.knowing(token(EC, "ES256"))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert knows(await second, token(EC, "ES256"))

    on_stage(story)


async def fails(issuer: Issuer) -> None:
    issuer.status = 503


async def sends_elsewhere(issuer: Issuer) -> None:
    issuer.status = 302


async def shows_a_page(issuer: Issuer) -> None:
    issuer.body = b"<html>"


async def shows_nothing(issuer: Issuer) -> None:
    issuer.body = b'{"keys": []}'


async def is_endless(issuer: Issuer) -> None:
    issuer.body = b" " * (JWKS_BYTES_MAX + 1)


async def says_nothing(issuer: Issuer) -> None:
    issuer.is_silent = True


async def is_gone(issuer: Issuer) -> None:
    issuer.stop()


Trouble = Callable[[Issuer], Awaitable[None]]
TROUBLES: tuple[tuple[Trouble, str], ...] = (
    (fails, "status 503"),
    (sends_elsewhere, "status 302"),
    (shows_a_page, "malformed"),
    (shows_nothing, "no key that can be used"),
    (is_endless, "larger than"),
    (says_nothing, "no answer in 5000 ms"),
    (is_gone, "nobody listens"),
)


@pytest.mark.parametrize(("trouble", "words"), TROUBLES)
def test_an_authority_in_trouble_keeps_a_node_from_starting_and_takes_nothing_from_one_that_runs(
    trouble: Trouble, words: str
) -> None:
    async def story(stage: Stage) -> None:
        keys = await stage.open()
        good = stage.issuer.body
        await trouble(stage.issuer)
        with pytest.raises(InvalidSetting, match=words):
            await stage.keys(stage.issuer.url).open()
        with capture_logs() as lines:
            await asyncio.sleep(REFRESH_S + 6)
        assert knows(keys.keys, token()), "it goes on with what it had"
        assert words in (keys.trouble() or "")
        (line,) = [line for line in lines if line["event"] == "keys of tokens stay as they were"]
        assert words in line["reason"]
        asked = len(stage.issuer.requests)
        await asyncio.sleep(100)
        assert len(stage.issuer.requests) - asked <= 30, "in growing steps"
        stage.issuer.body, stage.issuer.status, stage.issuer.is_silent = good, 200, False
        if trouble is is_gone:
            await stage.issuer.start(stage.world)
        await asyncio.sleep(20)
        assert keys.trouble() is None

    on_stage(story)


def test_an_unknown_key_is_refused_in_time_where_the_authority_is_silent() -> None:
    async def story(stage: Stage) -> None:
        keys = await stage.open()
        stage.issuer.is_silent = True
        before_s = stage.world.now_s
        assert not knows(await keys.knowing(token(EC, "ES256")), token(EC, "ES256"))
        assert stage.world.now_s - before_s <= 6
        assert knows(await keys.knowing(token()), token()), "and others do not wait for it"

    on_stage(story)


def test_keys_in_a_file_are_read_again_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(RSA))

    async def story(stage: Stage) -> None:
        keys = stage.keys(path.as_uri())
        await keys.open()
        stage.task = asyncio.get_running_loop().create_task(keys.run())
        path.write_bytes(b"half a fi")
        await asyncio.sleep(11)
        assert knows(keys.keys, token())
        assert "malformed" in (keys.trouble() or "")
        path.write_bytes(jwks(EC))
        await asyncio.sleep(11)
        assert knows(keys.keys, token(EC, "ES256"))
        assert not knows(keys.keys, token())
        assert keys.trouble() is None

    on_stage(story)


@pytest.mark.parametrize(
    "url",
    [
        "https://issuer.example/certs",
        "https://issuer.example:8443/",
        "http://127.0.0.1:8080/certs",
        "http://localhost/certs",
        "http://[::1]:80/certs",
        "file:///etc/jwks.json",
        "file:/etc/jwks.json",
    ],
)
def test_addresses_that_keys_can_be_had_from(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://issuer.example/certs", "use https"),
        ("http://127.0.0.1.example/certs", "use https"),
        ("ftp://issuer.example/certs", "must be an https"),
        ("issuer.example/certs", "must be an https"),
        ("https:///certs", "must be an https"),
        ("https://issuer.example:99999/", "no URL"),
        ("https://a:b@issuer.example/", "has a password"),
        ("file://issuer.example/jwks.json", "a file of this machine"),
        ("file:", "a file of this machine"),
    ],
)
def test_addresses_that_they_cannot(url: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        check_url(url)
