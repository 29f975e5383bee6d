"""Real clients over TLS: with and without certificates of their own, refused ones, and files that are replaced under load."""

import asyncio
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka
import aiokafka.errors
import boto3
import confluent_kafka
import kafka
import pytest
from aiokafka.helpers import create_ssl_context
from botocore.config import Config
from botocore.exceptions import SSLError
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tests.compat.java_tools import java_command, tools_class_path
from tests.compat.node_process import NodeProcess, StartNode
from tests.security.authority import authority

pytestmark = pytest.mark.compat

PATIENCE_S = 30
VALUE = b"under TLS"
OURS, OTHER = authority(), authority("other")
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


class Site(NamedTuple):
    node: NodeProcess
    directory: Path

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.pem")

    @property
    def keystore(self) -> Path:
        return self.directory / "node.pem"


@pytest.fixture(scope="module")
def site(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> Site:
    directory = tmp_path_factory.mktemp("tls")
    OURS.trust(directory / "ca.pem")
    OURS.issue(directory / "node.pem", "localhost", "127.0.0.1")
    OTHER.trust(directory / "other-ca.pem")
    settings = {
        "kafka.security.protocol": "SSL",
        "http.security.protocol": "SSL",
        "sqs.security.protocol": "SSL",
        "ssl.keystore.location": directory / "node.pem",
        "ssl.truststore.location": directory / "ca.pem",
        "ssl.client.auth": "requested",
        "ssl.principal.from": "cn",
    }
    said = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return Site(start_node(*said, "--http", "127.0.0.1:0", "--sqs", "127.0.0.1:0", "--memory"), directory)


@pytest.fixture(params=["TLS", "mTLS"])
def keystore(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    if request.param == "TLS":
        return None
    return with_pkcs8(OURS.issue(tmp_path / "client.pem", "client.example", common_name="client"))


def with_pkcs8(keystore: Path) -> Path:
    """Java reads keys in no other form."""
    content = keystore.read_bytes()
    chain = content[content.index(b"-----BEGIN CERTIFICATE") :]
    key = load_pem_private_key(content, None)
    keystore.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + chain)
    return keystore


def librdkafka(bootstrap: str, ca: str, keystore: Path | None) -> dict[str, str]:
    own = (
        {}
        if keystore is None
        else dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), str(keystore))
    )
    return {"bootstrap.servers": bootstrap, "security.protocol": "ssl", "ssl.ca.location": ca, **own}


def with_confluent(bootstrap: str, ca: str, keystore: Path | None, topic: str) -> bytes | None:
    settings: dict[str, Any] = librdkafka(bootstrap, ca, keystore)
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer({**settings, "error_cb": errors.append})
    producer.produce(topic, VALUE)
    deadline_s = time.monotonic() + PATIENCE_S
    while producer.flush(0.1) and time.monotonic() < deadline_s:
        for error in errors:
            if error.code() != confluent_kafka.KafkaError._ALL_BROKERS_DOWN:
                raise confluent_kafka.KafkaException(error)
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    value = message.value()
    assert isinstance(value, bytes)
    return value


def with_kcat(bootstrap: str, ca: str, keystore: Path | None, topic: str) -> bytes | None:
    said = [
        word
        for name, value in librdkafka(bootstrap, ca, keystore).items()
        if name != "bootstrap.servers"
        for word in ("-X", f"{name}={value}")
    ]
    base = ["kcat", "-b", bootstrap, *said, "-m", "5", "-X", "message.timeout.ms=5000"]
    for words, given in ((["-P", "-t", topic], VALUE), (["-C", "-t", topic, "-c", "1", "-e"], b"")):
        done = subprocess.run([*base, *words], input=given, capture_output=True, timeout=PATIENCE_S)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
    return done.stdout.strip()


def with_kafka_python(bootstrap: str, ca: str, keystore: Path | None, topic: str) -> bytes | None:
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": ca,
        "ssl_certfile": None if keystore is None else str(keystore),
        "ssl_keyfile": None if keystore is None else str(keystore),
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, VALUE).get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **settings, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000
    )
    value: bytes = next(consumer).value
    consumer.commit()
    consumer.close()
    return value


def with_aiokafka(bootstrap: str, ca: str, keystore: Path | None, topic: str) -> bytes | None:
    context = create_ssl_context(
        cafile=ca,
        certfile=None if keystore is None else str(keystore),
        keyfile=None if keystore is None else str(keystore),
    )
    settings = {"bootstrap_servers": bootstrap, "security_protocol": "SSL", "ssl_context": context}

    async def story() -> bytes | None:
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, VALUE)
        async with aiokafka.AIOKafkaConsumer(
            topic, **settings, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            message = await consumer.getone()
            await consumer.commit()
        value: bytes | None = message.value
        return value

    return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def with_java(bootstrap: str, ca: str, keystore: Path | None, topic: str) -> bytes | None:
    lines = ["security.protocol=SSL", "ssl.truststore.type=PEM", f"ssl.truststore.location={ca}"]
    if keystore is not None:
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={keystore}"]
    said = Path(ca).with_name(f"{topic}.properties")
    said.write_text("\n".join(lines))
    tools, tool = tools_class_path(), "org.apache.kafka.tools"
    commands = (
        [f"{tool}.TopicCommand", "--command-config", str(said), "--create", "--topic", topic],
        [f"{tool}.ConsoleProducer", "--command-config", str(said), "--topic", topic],
        [
            f"{tool}.consumer.ConsoleConsumer",
            *("--command-config", str(said), "--topic", topic, "--group", topic, "--from-beginning"),
            *("--max-messages", "1", "--timeout-ms", "20000"),
        ],
    )
    for words in commands:
        line = java_command(tools, words[0], "--bootstrap-server", bootstrap, *words[1:])
        done = subprocess.run(line, input=VALUE, capture_output=True, timeout=2 * PATIENCE_S)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
    return done.stdout.strip()


Speak = Callable[[str, str, Path | None, str], bytes | None]
CLIENTS: list[Speak] = [with_confluent, with_kcat, with_kafka_python, with_aiokafka]


@pytest.mark.parametrize("speak", [*CLIENTS, with_java])
def test_clients_produce_and_consume_in_a_group(site: Site, keystore: Path | None, speak: Speak) -> None:
    assert speak(site.bootstrap, site.ca, keystore, f"tls-{uuid.uuid4().hex[:8]}") == VALUE


@pytest.mark.parametrize("speak", CLIENTS)
@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("wrong CA", "unknown ca"),
        ("expired", "its certificate is refused: certificate has expired"),
        ("foreign", "its certificate is refused: unable to get local issuer certificate"),
    ],
)
def test_who_is_refused_says_so_and_the_log_says_why(
    site: Site, tmp_path: Path, speak: Speak, trouble: str, words: str
) -> None:
    ca, keystore = site.ca, None
    if trouble == "wrong CA":
        ca = str(site.directory / "other-ca.pem")
    elif trouble == "expired":
        keystore = OURS.issue(
            tmp_path / "client.pem",
            common_name="late",
            not_before=YESTERDAY - timedelta(days=1),
            not_after=YESTERDAY,
        )
    else:
        keystore = OTHER.issue(tmp_path / "client.pem", common_name="stranger")
    refusals = (
        confluent_kafka.KafkaException,
        RuntimeError,
        kafka.errors.KafkaError,
        aiokafka.errors.KafkaError,
        TimeoutError,
    )
    with pytest.raises(refusals) as caught:
        speak(site.bootstrap, ca, keystore, "never")
    assert str(caught.value) or isinstance(caught.value, TimeoutError)
    lines = [line for line in site.node.log.splitlines() if "no TLS with a client" in line]
    assert any(words in line and "127.0.0.1" in line for line in lines), lines


def serial_of(site: Site, ca: str) -> str:
    context = ssl.create_default_context(cafile=ca)
    host, _, port = site.bootstrap.rpartition(":")
    with (
        socket.create_connection((host, int(port)), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        shown = encrypted.getpeercert()
        assert shown is not None
        return str(shown["serialNumber"])


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.01)


class SteadyProducer:
    """Sends whenever it is told to; what went wrong for it is in `trouble`."""

    def __init__(self, site: Site) -> None:
        self.trouble: list[str] = []
        self.sent_count = 0
        self._topic = f"load-{uuid.uuid4().hex[:8]}"
        settings: dict[str, Any] = librdkafka(site.bootstrap, site.ca, None)
        self._producer = confluent_kafka.Producer({**settings, "error_cb": self._on_error})

    def send(self) -> None:
        self._producer.produce(self._topic, VALUE, on_delivery=self._on_delivery)
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(PATIENCE_S) == 0

    def _on_error(self, error: object) -> None:
        self.trouble.append(str(error))

    def _on_delivery(self, error: object, _: object) -> None:
        self.sent_count += 1
        if error is not None:
            self.trouble.append(str(error))


def test_certificates_are_replaced_under_load_and_nobody_is_disturbed(site: Site) -> None:
    """First by SIGHUP, then a bad file that changes nothing."""
    producer = SteadyProducer(site)
    former = serial_of(site, site.ca)

    def has_another() -> bool:
        producer.send()
        return serial_of(site, site.ca) != former

    OURS.issue(site.keystore, "localhost", "127.0.0.1")
    site.node.send_signal(signal.SIGHUP)
    until(has_another)
    present, good = serial_of(site, site.ca), site.keystore.read_bytes()
    site.keystore.write_bytes(good[: len(good) // 2])
    site.node.send_signal(signal.SIGHUP)
    until(lambda: "certificates stay as they were" in site.node.log)
    producer.send()
    assert serial_of(site, site.ca) == present
    site.keystore.write_bytes(good)
    producer.finish()
    assert producer.trouble == []
    assert producer.sent_count > 1


def test_boto3_believes_the_door_for_queues_and_is_told_addresses_of_https(site: Site) -> None:
    (endpoint,) = site.node.ready["sqs"]
    assert endpoint.startswith("https://")

    def client(ca: str) -> Any:
        return boto3.client(
            "sqs",
            endpoint_url=endpoint,
            verify=ca,
            region_name="eu-west-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"max_attempts": 0}),
        )

    sqs = client(site.ca)
    url = sqs.create_queue(QueueName="over-tls")["QueueUrl"]
    assert url.startswith(f"{endpoint}/")
    sqs.send_message(QueueUrl=url, MessageBody="hello")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == "hello"
    with pytest.raises(SSLError):
        client(str(site.directory / "other-ca.pem")).list_queues()


def test_figures_and_health_are_served_over_https(site: Site) -> None:
    (address,) = site.node.ready["http"]
    context = ssl.create_default_context(cafile=site.ca)
    with urllib.request.urlopen(f"{address}/metrics", timeout=PATIENCE_S, context=context) as answer:
        assert b"ropewalk_certificate_seconds_left{" in answer.read()
    with urllib.request.urlopen(f"{address}/readyz", timeout=PATIENCE_S, context=context) as answer:
        assert answer.status == 200
