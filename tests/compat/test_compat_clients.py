"""What every client must be able to do, client by client: produce, consume by partition, list and create topics."""

import shutil
import time
from collections.abc import Callable

import pytest

from tests.compat.clients import CLIENTS, Client, Kcat, Message, Refused

pytestmark = pytest.mark.compat

MakeTopic = Callable[..., str]

CODECS = [
    pytest.param(client, codec, id=f"{client.name} {codec}") for client in CLIENTS for codec in client.codecs
]


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    return _connect(request.param, bootstrap)


def _connect(kind: type[Client], bootstrap: str) -> Client:
    if kind is Kcat and shutil.which("kcat") is None:
        pytest.skip("kcat is missing (Debian: kcat)")
    return kind(bootstrap)


@pytest.mark.parametrize(("kind", "codec"), CODECS)
def test_messages_come_back_in_order_at_their_offsets(
    kind: type[Client], codec: str, bootstrap: str, topic: str
) -> None:
    client = _connect(kind, bootstrap)
    sent = [b"%05d " % number + b"strand " * 20 for number in range(200)]
    client.produce(topic, [Message(value) for value in sent], codec=codec)
    received = client.consume(topic, offset=0, count=len(sent))
    assert [(message.offset, message.value) for message in received] == list(enumerate(sent))


@pytest.fixture(scope="module")
def written_by_all(bootstrap: str) -> dict[str, list[bytes]]:
    """One topic per codec, each holding what every client that knows the codec wrote, in that order."""
    written: dict[str, list[bytes]] = {}
    for kind in CLIENTS:
        client = _connect(kind, bootstrap)
        for codec in kind.codecs:
            values = [f"{kind.name} {codec} {number} ".encode() * 30 for number in range(20)]
            client.produce(f"written-by-all-{codec}", [Message(value) for value in values], codec=codec)
            written.setdefault(codec, []).extend(values)
    return written


def test_every_client_reads_what_all_the_others_wrote(
    client: Client, written_by_all: dict[str, list[bytes]]
) -> None:
    for codec in client.codecs:
        expected = written_by_all[codec]
        received = client.consume(f"written-by-all-{codec}", offset=0, count=len(expected))
        assert [message.value for message in received] == expected


def test_keys_headers_and_timestamps_survive(client: Client, topic: str) -> None:
    headers = (("trace", b"1"), ("origin", b"quay"), ("trace", b"2"))
    timestamp_ms = int(time.time() * 1000) - 60_000
    client.produce(topic, [Message(b"hemp", b"strand", headers, timestamp_ms)])
    (received,) = client.consume(topic, offset=0, count=1)
    assert (received.value, received.key, received.headers) == (b"hemp", b"strand", headers)
    if client.name != "kcat":  # which stamps messages with its own clock
        assert received.timestamp_ms == timestamp_ms


def test_a_message_without_a_value_is_not_an_empty_one(client: Client, topic: str) -> None:
    client.produce(topic, [Message(None, b"gone"), Message(b"there", b"kept")])
    received = client.consume(topic, offset=0, count=2)
    assert [(message.key, message.value) for message in received] == [(b"gone", None), (b"kept", b"there")]


def test_an_idempotent_producer_writes_each_message_once(client: Client, topic: str) -> None:
    sent = [b"%d" % number for number in range(300)]
    client.produce(topic, [Message(value) for value in sent[:150]], idempotent=True)
    client.produce(topic, [Message(value) for value in sent[150:]], idempotent=True)
    received = client.consume(topic, offset=0, count=300)
    assert [(message.offset, message.value) for message in received] == list(enumerate(sent))


def test_reading_may_start_in_the_middle_of_a_batch(client: Client, topic: str) -> None:
    client.produce(topic, [Message(b"%d" % number) for number in range(100)])
    for offset in (1, 57, 99):
        (received,) = client.consume(topic, offset=offset, count=1)
        assert (received.offset, received.value) == (offset, b"%d" % offset)


def test_a_message_of_nearly_a_mebibyte_passes(client: Client, topic: str) -> None:
    value = b"x" * 1_000_000
    client.produce(topic, [Message(value), Message(b"after")])
    received = client.consume(topic, offset=0, count=2)
    assert [message.value for message in received] == [value, b"after"]


def test_a_message_above_the_limit_is_refused_and_the_topic_goes_on(client: Client, topic: str) -> None:
    client.produce(topic, [Message(b"before")])
    with pytest.raises(Refused, match=r"(?i)too.?large"):
        client.produce(topic, [Message(b"x" * 2_000_000)])
    client.produce(topic, [Message(b"after")])
    received = client.consume(topic, offset=0, count=2)
    assert [message.value for message in received] == [b"before", b"after"]


def test_a_topic_made_on_first_use_is_listed_with_its_partitions(client: Client, topic: str) -> None:
    assert topic not in client.topics()
    client.produce(topic, [Message(b"first")])
    assert client.topics()[topic] == 1


def test_every_partition_of_a_created_topic_is_listed(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(7)
    assert client.topics()[topic] == 7


def test_offsets_are_found_by_time(client: Client, bootstrap: str, topic: str) -> None:
    start_ms = int(time.time() * 1000) - 100_000
    writer = _connect(
        CLIENTS[1], bootstrap
    )  # kcat cannot choose timestamps, so another client writes for all
    writer.produce(
        topic, [Message(b"%d" % number, timestamp_ms=start_ms + number * 1000) for number in range(50)]
    )
    assert client.offset_at(topic, start_ms - 1) == 0
    assert client.offset_at(topic, start_ms + 20_000) == 20
    assert client.offset_at(topic, start_ms + 20_001) == 21  # exact to the record, inside a batch too
    assert client.offset_at(topic, start_ms + 60_000) is None
