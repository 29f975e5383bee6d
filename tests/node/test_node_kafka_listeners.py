"""Where a node listens for Kafka's clients, by either way of saying it, and what of that is refused."""

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import KAFKA_LISTENERS_MAX
from ropewalk.metadata.records import KAFKA_LISTENER
from ropewalk.node.config import load
from ropewalk.node.kafka_listeners import ListenerPlan
from ropewalk.node.options import NodeOptions
from ropewalk.security.protocols import SecurityProtocol

PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL
Told = tuple[str, SecurityProtocol, str, int, tuple[str, int] | None]


def plans(*settings: str) -> tuple[ListenerPlan, ...]:
    return load(NodeOptions(settings=settings), {}).kafka_listeners


def told(plan: ListenerPlan) -> Told:
    return plan.registered_as, plan.protocol, plan.host, plan.port, plan.advertised


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param((), [(KAFKA_LISTENER, PLAINTEXT, "127.0.0.1", 9092, None)], id="nothing said"),
        pytest.param(("kafka.listen=none",), [], id="no door"),
        pytest.param(
            ("kafka.listen=h:1", "kafka.advertise=out:2"),
            [(KAFKA_LISTENER, PLAINTEXT, "h", 1, ("out", 2))],
            id="the short form",
        ),
        pytest.param(
            ("kafka.listen=h:1", "advertised.listeners=PLAINTEXT://out:0"),
            [(KAFKA_LISTENER, PLAINTEXT, "h", 1, ("out", 0))],
            id="the short form, told by Kafka's setting",
        ),
        pytest.param(
            ("kafka.listen=h:1", "kafka.security.protocol=SSL"),
            [("SSL", SSL, "h", 1, None)],
            id="the short form, encrypted",
        ),
        pytest.param(
            ("listeners=plaintext://h:1, SSL://:2", "advertised.listeners=SSL://out:9"),
            [(KAFKA_LISTENER, PLAINTEXT, "h", 1, None), ("SSL", SSL, "0.0.0.0", 2, ("out", 9))],
            id="called by their protocols",
        ),
        pytest.param(
            ("listeners=IN://[::1]:0,OUT://h:0", "listener.security.protocol.map=IN:PLAINTEXT,out:ssl"),
            [("IN", PLAINTEXT, "::1", 0, None), ("OUT", SSL, "h", 0, None)],
            id="names of one's own",
        ),
        pytest.param(
            ("listeners=PLAINTEXT://h:1", "listener.security.protocol.map=PLAINTEXT:SSL"),
            [("PLAINTEXT", SSL, "h", 1, None)],
            id="a name that lies is not registered as what it says",
        ),
    ],
)
def test_settings_say_where(settings: tuple[str, ...], expected: list[Told]) -> None:
    assert [told(plan) for plan in plans(*settings)] == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("listeners=SSL://h:1", "kafka.listen=h:2"), "kafka.listen and listeners are both set"),
        (("listeners=SSL://h:1", "kafka.security.protocol=SSL"), "kafka.security.protocol and listeners"),
        (("kafka.advertise=o:1", "advertised.listeners=PLAINTEXT://o:2"), "both set"),
        (("listeners=SSL://h:1,SSL://h:2",), "names SSL twice"),
        (("listeners=SSL://h:1,PLAINTEXT://h:1",), "SSL and PLAINTEXT have the same address h:1"),
        (("listeners=SSL://h",), "'h' is not HOST:PORT"),
        (("listeners=h:1",), "'h:1' is not NAME://HOST:PORT"),
        (("listeners=a b://h:1",), "no name of a listener"),
        (("listeners=OUT://h:1",), "OUT is no security protocol, and listener.security.protocol.map"),
        (("listeners=OUT://h:1", "listener.security.protocol.map=OUT:TLS"), "is not NAME:PROTOCOL"),
        (("listeners=PEER://h:1", "listener.security.protocol.map=PEER:SSL"), "another door"),
        (("advertised.listeners=SSL://h:1",), "names SSL, on which this node does not listen"),
        (("advertised.listeners=PLAINTEXT://0.0.0.0:1",), "no address that a client can reach"),
        (("kafka.security.protocol=TLS",), "must be one of PLAINTEXT, SSL"),
        (
            (
                f"listeners={','.join(f'L{n}://h:{n + 1}' for n in range(KAFKA_LISTENERS_MAX + 1))}",
                f"listener.security.protocol.map={','.join(f'L{n}:SSL' for n in range(KAFKA_LISTENERS_MAX + 1))}",
            ),
            f"at most {KAFKA_LISTENERS_MAX}",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        load(NodeOptions(settings=settings), {})
