"""Our client against Apache Kafka and against a node of ours, by every kind of door and every mechanism: it produces, consumes in a group, transacts and administers, and
is told why where it may not."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ropewalk import Admin, Consumer, Producer, TopicPartition
from ropewalk.client.errors import AuthenticationFailed, NotAdmitted, TlsFailed
from tests.compat.node_process import StartNode
from tests.compat.secured_kafka import PASSWORD, SESSION_MS, USER, Doors, KafkaProcess, unsigned_token
from tests.compat.secured_ropewalk import start_secured

pytestmark = pytest.mark.compat

Way = Callable[[Doors], tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    process = KafkaProcess(tmp_path_factory.mktemp("kafka"))
    yield process.doors
    process.stop()


@pytest.fixture(scope="module")
def ours(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> Doors:
    return start_secured(start_node, tmp_path_factory.mktemp("ours"))


@pytest.fixture(params=[pytest.param("apache", marks=pytest.mark.slow), "ours"])
def doors(request: pytest.FixtureRequest) -> Doors:
    opened: Doors = request.getfixturevalue(request.param)
    return opened


def login(mechanism: str) -> dict[str, Any]:
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauthbearer_token": unsigned_token}
    return {"sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": PASSWORD}


def safe(mechanism: str) -> Way:
    return lambda doors: (
        doors.safe,
        {"security_protocol": "SASL_SSL", "ssl_ca_location": str(doors.ca), **login(mechanism)},
    )


def plain(mechanism: str) -> Way:
    return lambda doors: (doors.open, {"security_protocol": "SASL_PLAINTEXT", **login(mechanism)})


def mutual(doors: Doors) -> tuple[str, dict[str, Any]]:
    named = {"security_protocol": "SSL", "ssl_ca_location": str(doors.ca)}
    return doors.mutual, {**named, "ssl_certificate_location": str(doors.client)}


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(safe("PLAIN"), id="PLAIN over TLS"),
        pytest.param(safe("SCRAM-SHA-256"), id="SCRAM-SHA-256 over TLS"),
        pytest.param(safe("SCRAM-SHA-512"), id="SCRAM-SHA-512 over TLS"),
        pytest.param(plain("SCRAM-SHA-256"), id="SCRAM-SHA-256 without TLS"),
        pytest.param(plain("PLAIN"), id="PLAIN without TLS"),
        pytest.param(mutual, id="a certificate"),
    ],
)
def test_everything_is_done_by_every_door(doors: Doors, topic: str, group: str, way: Way) -> None:
    use(doors, topic, group, way)


@pytest.mark.slow
def test_a_token_is_a_login_to_apache_kafka(apache: Doors, topic: str, group: str) -> None:
    use(apache, topic, group, safe("OAUTHBEARER"))


def use(doors: Doors, topic: str, group: str, way: Way) -> None:
    bootstrap, security = way(doors)
    with Admin(bootstrap, **security) as admin:
        admin.create_topic(topic, partitions=2)
        assert len(admin.describe_cluster().brokers) == 1
    with Producer(bootstrap, transactional_id=f"of-{topic}", **security) as producer, producer.transaction():
        for number in range(20):
            producer.send(topic, b"%d" % number, partition=number % 2)
    with Consumer(bootstrap, group=group, auto_offset_reset="earliest", **security) as consumer:
        consumer.subscribe(topic)
        found: set[bytes] = set()
        while len(found) < 20:
            found |= {bytes(message.value) for message in consumer.poll(timeout_ms=1_000)}
        consumer.commit()
    with Admin(bootstrap, **security) as admin:
        assert sum(each.offset for each in admin.committed(group).values()) >= 20
        admin.delete_topic(topic)


def test_sessions_are_renewed_under_load_without_an_error(doors: Doors, topic: str) -> None:
    bootstrap, security = safe("SCRAM-SHA-512")(doors)
    sent_count = 0
    until_s = time.monotonic() + 3 * SESSION_MS / 1000
    with Admin(bootstrap, **security) as admin:
        admin.create_topic(topic)
    with (
        Producer(bootstrap, **security) as producer,
        Consumer(bootstrap, auto_offset_reset="earliest", **security) as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0)])
        received_count = 0
        while time.monotonic() < until_s:
            producer.send(topic, b"x").result(10)
            sent_count += 1
            received_count += len(consumer.poll(timeout_ms=1))
        while received_count < sent_count:
            received_count += len(consumer.poll(timeout_ms=1_000))
    assert received_count == sent_count


def with_other(way: Way, **changed: Any) -> Way:
    def changed_way(doors: Doors) -> tuple[str, dict[str, Any]]:
        bootstrap, security = way(doors)
        return bootstrap, security | changed

    return changed_way


@pytest.mark.parametrize(
    ("way", "kind", "said"),
    [
        pytest.param(
            with_other(safe("SCRAM-SHA-256"), sasl_password="wrong"),
            AuthenticationFailed,
            "invalid credentials|Authentication failed",
            id="a wrong password, SCRAM",
        ),
        pytest.param(
            with_other(safe("PLAIN"), sasl_password="wrong"),
            AuthenticationFailed,
            "Invalid username or password|Authentication failed",
            id="a wrong password, PLAIN",
        ),
        pytest.param(
            with_other(safe("SCRAM-SHA-512"), sasl_username="nobody"),
            AuthenticationFailed,
            "invalid credentials|Authentication failed",
            id="an unknown user",
        ),
        pytest.param(
            lambda doors: (
                doors.mutual,
                {"security_protocol": "SSL", "ssl_ca_location": str(doors.other_ca)},
            ),
            TlsFailed,
            "is not trusted .* set ssl_ca_location",
            id="a wrong authority",
        ),
        pytest.param(
            lambda doors: (
                doors.mutual,
                {
                    "security_protocol": "SSL",
                    "ssl_ca_location": str(doors.ca),
                    "ssl_certificate_location": str(doors.foreign_client),
                },
            ),
            TlsFailed,
            "refuses this client's certificate",
            id="a foreign certificate of the client",
        ),
        pytest.param(
            lambda doors: (doors.mutual, {"security_protocol": "SSL", "ssl_ca_location": str(doors.ca)}),
            TlsFailed,
            "may want a certificate of this client",
            id="no certificate of the client",
        ),
    ],
)
def test_who_is_not_let_in_is_told_why_at_once(
    doors: Doors, way: Way, kind: type[NotAdmitted], said: str
) -> None:
    refused(doors, way, kind, said)


def refused(doors: Doors, way: Way, kind: type[NotAdmitted], said: str) -> None:
    bootstrap, security = way(doors)
    with pytest.raises(kind, match=said), Admin(bootstrap, **security):
        pass


@pytest.mark.slow
def test_an_expired_token_is_refused_by_apache_kafka(apache: Doors) -> None:
    way = with_other(safe("OAUTHBEARER"), sasl_oauthbearer_token=lambda: unsigned_token(lives_s=-120))
    refused(apache, way, AuthenticationFailed, "[Tt]oken")


@pytest.mark.slow
def test_a_broker_whose_certificate_is_over_is_refused(apache: Doors) -> None:
    assert apache.expired is not None
    address = apache.expired
    way: Way = lambda doors: (address, {"security_protocol": "SSL", "ssl_ca_location": str(doors.ca)})  # noqa: E731
    refused(apache, way, TlsFailed, "has expired")
