"""Clients at a listener with SASL that keep no rules but their own, and a node that has one, on simulated ports."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from scramp import ScramClient

from ropewalk.node.options import NodeOptions
from ropewalk.security.scram import Mechanism, salted
from ropewalk.sim.machines.world import World
from ropewalk.wire.api import Api
from ropewalk.wire.headers import encode_request_header
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import sasl_authenticate, sasl_handshake
from ropewalk.wire.types import Message
from tests.kafka.door import Door

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
T = TypeVar("T")

SASL_PORT = 9093
HERE = "127.0.0.1"
ELSEWHERE = "192.0.2.7"
SALT = b"sixteen bytes or"
ITERATIONS = 4096


class Closed(Exception):
    """The node has closed the connection."""


class Visitor(asyncio.Protocol):
    """One connection, frame by frame."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._news = asyncio.Event()
        self.is_closed = False
        self.transport: asyncio.Transport

    @classmethod
    async def come(cls, door: Door, host: str = HERE) -> "Visitor":
        return await cls.come_to(door.world, "node", host)

    @classmethod
    async def come_to(cls, world: World, node: str, host: str = HERE) -> "Visitor":
        _, visitor = await world.network.host(host).connect(cls, node, SASL_PORT)
        assert isinstance(visitor, cls)
        return visitor

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._news.set()

    def connection_lost(self, _: Exception | None) -> None:
        self.is_closed = True
        self._news.set()

    def send_frame(self, body: bytes) -> None:
        self.transport.write(len(body).to_bytes(4, "big") + body)

    def send(self, api: Api[Q, R], version: int, request: Q) -> None:
        header = encode_request_header(api, version, 7, "visitor")
        self.send_frame(header + b"".join(api.encode_request(version, request)))

    async def frame(self) -> bytes:
        """The next one; raises `Closed` where none comes."""
        while True:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) >= 4 + size and len(self._received) >= 4:
                body = bytes(self._received[4 : 4 + size])
                del self._received[: 4 + size]
                return body
            if self.is_closed:
                raise Closed
            self._news.clear()
            await self._news.wait()

    async def ask(self, api: Api[Q, R], version: int, request: Q) -> R:
        self.send(api, version, request)
        return await self.answer(api, version)

    async def answer(self, api: Api[Q, R], version: int) -> R:
        body = memoryview(await self.frame())
        has_tags = api.is_flexible(version) and api.key != 18
        return api.decode_response(version, body, 5 if has_tags else 4, len(body))

    async def more(self) -> None:
        """Return when something else has come, be it the end."""
        self._news.clear()
        await self._news.wait()

    async def closes(self) -> bool:
        """Whether nothing more comes but the end."""
        try:
            await self.frame()
        except Closed:
            return True
        return False

    async def handshake(self, mechanism: str, version: int = 1) -> sasl_handshake.SaslHandshakeResponse:
        return await self.ask(sasl_handshake.API, version, sasl_handshake.SaslHandshakeRequest(mechanism))

    async def token(self, token: bytes, version: int = 2) -> sasl_authenticate.SaslAuthenticateResponse:
        return await self.ask(
            sasl_authenticate.API, version, sasl_authenticate.SaslAuthenticateRequest(token)
        )

    async def log_in(
        self, name: str, password: str, mechanism: str = "SCRAM-SHA-256", version: int = 2
    ) -> sasl_authenticate.SaslAuthenticateResponse:
        """The last answer, be it a refusal."""
        shaken = await self.handshake(mechanism)
        assert shaken.error_code == 0
        if mechanism == "PLAIN":
            return await self.token(f"\0{name}\0{password}".encode(), version)
        client = ScramClient([mechanism], name, password)
        first = await self.token(client.get_client_first().encode(), version)
        if first.error_code:
            return first
        client.set_server_first(first.auth_bytes.decode())
        final = await self.token(client.get_client_final().encode(), version)
        if not final.error_code:
            client.set_server_final(final.auth_bytes.decode())
        return final


async def set_user(
    door: Door, name: str, password: str, mechanism: Mechanism = Mechanism.SHA_256, salt: bytes = SALT
) -> None:
    """By the listener without SASL."""
    salted_password = salted(mechanism, password.encode(), salt, ITERATIONS)
    upsertion = alter.ScramCredentialUpsertion(name, mechanism, ITERATIONS, salt, salted_password)
    request = alter.AlterUserScramCredentialsRequest((), (upsertion,))
    (result,) = (await door.call(alter.API, 0, request)).results
    assert result.error_code == 0, result.error_message


async def remove_user(door: Door, name: str, mechanism: Mechanism = Mechanism.SHA_256) -> None:
    request = alter.AlterUserScramCredentialsRequest((alter.ScramCredentialDeletion(name, mechanism),), ())
    (result,) = (await door.call(alter.API, 0, request)).results
    assert result.error_code == 0, result.error_message


async def _nothing(_: World) -> None:
    pass


def with_logins(
    story: Callable[[Door], Awaitable[T]],
    *settings: str,
    limit_s: float = 600,
    before: Callable[[World], Awaitable[object]] = _nothing,
) -> T:
    """Run `story`, after what must come `before` the node starts, against a node with a listener for whoever comes and one with SASL, and with a user alice whose password is `secret`."""

    async def main(world: World) -> T:
        machine = world.machine("node")
        listeners = f"listeners=PLAINTEXT://node:9092,SASL_PLAINTEXT://node:{SASL_PORT}"
        quiet = ("node.reserve.bytes=65536", "telemetry.interval.ms=0", "audit.topic=false", listeners)
        options = NodeOptions(http="none", sqs="none", data="/data", settings=(*quiet, *settings))
        for name in ("client", HERE, ELSEWHERE):
            world.machine(name)
        await before(world)
        door = Door(world, machine, options)
        await door.open()
        await set_user(door, "alice", "secret")
        return await story(door)

    with World(0) as world:
        return world.run(main(world), limit_s=limit_s)
