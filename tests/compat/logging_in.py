"""Real clients that log in: each produces one message and reads it back, and says in its own words why it could not."""

import asyncio
import logging
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
from aiokafka.helpers import create_ssl_context

PATIENCE_S: Final = 20


class Login(NamedTuple):
    bootstrap: str
    mechanism: str
    name: str
    password: str
    ca: str | None = None
    """A file with the authority that vouches for the node: then it is spoken with in TLS."""

    @property
    def protocol(self) -> str:
        return "SASL_PLAINTEXT" if self.ca is None else "SASL_SSL"


class CouldNot(Exception):
    """The client's own words."""


def _librdkafka(login: Login) -> dict[str, str]:
    return {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": login.protocol,
        "sasl.mechanism": login.mechanism,
        "sasl.username": login.name,
        "sasl.password": login.password,
        **({} if login.ca is None else {"ssl.ca.location": login.ca}),
    }


def with_kcat(login: Login, topic: str) -> bytes:
    """By PLAIN alone: its librdkafka, Debian's 2.0, repeats its nonce in SCRAM, and is refused for that."""
    flags = [flag for name, value in _librdkafka(login).items() for flag in ("-X", f"{name}={value}")]

    def run(*arguments: str, stdin: bytes = b"") -> bytes:
        command = ["kcat", *flags, "-m", "10", "-t", topic, *arguments]
        # kcat goes on trying after a refused login, and says so at once: what it says is enough.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        assert process.stderr is not None
        assert process.stdout is not None
        said = b""
        for line in process.stderr:
            said += line
            if b"uthentication" in line:
                process.kill()
                break
        out = process.stdout.read()
        if process.wait(PATIENCE_S) != 0:
            raise CouldNot(said.decode())
        return out

    run("-P", stdin=b"hello")
    return run("-C", "-q", "-o", "beginning", "-c", "1", "-p", "0").rstrip(b"\n")


def with_confluent(login: Login, topic: str) -> bytes | None:
    said: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer({**_librdkafka(login), "error_cb": said.append, "logger": _quiet()})
    producer.produce(topic, b"hello")
    while producer.flush(0.05):
        for error in said:
            if error.code() == confluent_kafka.KafkaError._AUTHENTICATION:
                producer.purge()
                raise CouldNot(error.str())
    consumer = confluent_kafka.Consumer({**_librdkafka(login), "group.id": topic, "logger": _quiet()})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None and message.error() is None  # noqa: PT018
        value = message.value()
        assert value is None or isinstance(value, bytes)
        return value
    finally:
        consumer.close()


def with_kafka_python(login: Login, topic: str) -> bytes:
    settings = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": login.protocol,
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.name,
        "sasl_plain_password": login.password,
        "ssl_cafile": login.ca,
    }
    with _saying("kafka") as said:
        try:
            producer = kafka.KafkaProducer(**settings, bootstrap_timeout_ms=1_000)
        except kafka.errors.KafkaError as error:
            raise CouldNot(f"{error!r} {said}") from None
    try:
        producer.send(topic, b"hello").get(PATIENCE_S)
    finally:
        producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000
    )
    try:
        value: bytes = next(consumer).value
        return value
    finally:
        consumer.close()


def with_aiokafka(login: Login, topic: str) -> bytes:
    async def work() -> bytes:
        settings = {
            "bootstrap_servers": login.bootstrap,
            "security_protocol": login.protocol,
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.name,
            "sasl_plain_password": login.password,
            "ssl_context": None if login.ca is None else create_ssl_context(cafile=login.ca),
        }
        producer = aiokafka.AIOKafkaProducer(**settings)
        with _saying("aiokafka") as said:
            try:
                await producer.start()
                await producer.send_and_wait(topic, b"hello")
            except aiokafka.errors.KafkaError as error:
                raise CouldNot(f"{error!r} {said}") from None
            finally:
                await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest")
        await consumer.start()
        try:
            value: bytes = (await asyncio.wait_for(consumer.getone(), PATIENCE_S)).value
            return value
        finally:
            await consumer.stop()

    return asyncio.run(work())


CLIENTS: Final[dict[str, Callable[[Login, str], bytes | None]]] = {
    "kcat": with_kcat,
    "confluent-kafka": with_confluent,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


@contextmanager
def _saying(name: str) -> Iterator[list[str]]:
    """What a client tells its log: some raise no more than that they reached nobody."""
    said: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Keeping(logging.WARNING)
    logging.getLogger(name).addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger(name).removeHandler(handler)


def _quiet() -> logging.Logger:
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.CRITICAL)
    return logger
