"""What strangers send before they log in: nothing of it ends, holds or enters the node, and others go on."""

import random

from structlog.testing import capture_logs

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import api_versions, metadata, sasl_authenticate, sasl_handshake
from tests.kafka.door import Door
from tests.kafka.visitors import Visitor, with_logins

STRANGERS = 400


def requests(visitor: Visitor, rng: random.Random) -> None:
    """What a client could say, in an order that it would not."""
    for _ in range(rng.randrange(1, 5)):
        match rng.randrange(6):
            case 0:
                mechanism = rng.choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "", "x" * 1000))
                visitor.send(
                    sasl_handshake.API, rng.randrange(2), sasl_handshake.SaslHandshakeRequest(mechanism)
                )
            case 1:
                token = rng.choice(
                    (b"\0alice\0guess", b"n,,n=alice,r=abc", b"c=biws,r=abc,p=AAAA", b"", b"\0")
                )
                version = rng.randrange(3)
                visitor.send(sasl_authenticate.API, version, sasl_authenticate.SaslAuthenticateRequest(token))
            case 2:
                visitor.send(api_versions.API, 3, api_versions.ApiVersionsRequest("s", "1"))
            case 3:
                visitor.send(metadata.API, 12, metadata.MetadataRequest(None))
            case 4:
                visitor.send_frame(rng.randbytes(rng.randrange(1, 60)))
            case _:
                visitor.transport.write(rng.randbytes(rng.randrange(1, 30)))


class Mutating(Visitor):
    """Some bytes are others when they are sent."""

    rng: random.Random

    def send_frame(self, body: bytes) -> None:
        changed = bytearray(len(body).to_bytes(4, "big") + body)
        while self.rng.random() < 0.4:
            changed[self.rng.randrange(len(changed))] = self.rng.randrange(256)
        self.transport.write(bytes(changed))


def test_strangers_get_nowhere_and_nobody_minds() -> None:
    async def story(door: Door) -> None:
        rng = random.Random(7)
        neighbour = await Visitor.come(door)
        await neighbour.log_in("alice", "secret", "PLAIN")
        visitors: list[Visitor] = []
        with capture_logs() as said:
            for number in range(STRANGERS):
                visitor = await Mutating.come(door)
                visitor.rng = rng  # type: ignore[attr-defined]
                requests(visitor, rng)
                visitors.append(visitor)
                if number % 50 == 0:
                    answer = await neighbour.ask(metadata.API, 12, metadata.MetadataRequest(None))
                    assert len(answer.brokers) == 1
            for visitor in visitors:
                assert await ends(visitor), "nobody stays who has not logged in"
        assert [line for line in said if "failed:" in str(line.get("reason"))] == [], "no handler broke"
        late = await Visitor.come(door)
        assert (await late.log_in("alice", "secret")).error_code == ErrorCode.NONE

    with_logins(story)


async def ends(visitor: Visitor) -> bool:
    """Within the time that a login may take; answers on the way are let pass."""
    while not visitor.is_closed:
        await visitor.more()
    return True
