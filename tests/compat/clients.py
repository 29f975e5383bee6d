"""Four real clients behind one small face, so that every test in this room is a table over all of them.

Each client is used as its own documentation shows, with no setting beyond the address of the node and what the
test is about. A client makes its connections anew in every call: opening a connection is part of what is tested.
"""

import asyncio
import json
import subprocess
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import aiokafka
import aiokafka.admin
import aiokafka.codec
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.codec

PATIENCE_S: Final = 20
"""How long a call may take before the test fails; a healthy node answers in milliseconds."""

BYTES_MAX: Final = 16 * 1024 * 1024
"""What clients are willing to send, well above what topics take, so that it is the node that refuses."""


class Message(NamedTuple):
    """One record, as given to a producer or as read back by a consumer."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0
    offset: int = -1


class Refused(Exception):
    """The node answered with an error; the text is the error's name in the manner of Kafka's table."""


class Client(Protocol):
    name: str
    codecs: tuple[str, ...]

    def __init__(self, bootstrap: str) -> None: ...

    def produce(
        self, topic: str, messages: Sequence[Message], *, codec: str = "none", idempotent: bool = False
    ) -> None:
        """Write to partition 0, in order, and wait for the acknowledgement of every message."""

    def consume(self, topic: str, *, offset: int, count: int) -> list[Message]:
        """Read `count` messages of partition 0 from `offset` on, by assignment and without committing."""

    def topics(self) -> dict[str, int]:
        """The name of every topic and the number of its partitions."""

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        """The first offset of partition 0 whose timestamp is not before `timestamp_ms`, if there is one."""


class Kcat:
    """The command-line client that Debian ships, on librdkafka 2.0 or so."""

    name = "kcat"
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, messages: Sequence[Message], *, codec: str = "none", idempotent: bool = False
    ) -> None:
        settings = [
            "-X",
            f"message.max.bytes={BYTES_MAX}",
            "-X",
            f"enable.idempotence={str(idempotent).lower()}",
        ]
        for headers in {message.headers for message in messages}:
            flags = [flag for name, value in headers for flag in ("-H", f"{name}={(value or b'').decode()}")]
            lines = [
                (message.key or b"") + b"\x01" + (message.value or b"")
                for message in messages
                if message.headers == headers
            ]
            command = [
                "-P",
                "-t",
                topic,
                "-p",
                "0",
                "-z",
                codec,
                "-K",
                "\x01",
                "-D",
                "\x02",
                "-Z",
                *flags,
                *settings,
            ]
            self._run(command, stdin=b"\x02".join(lines))

    def consume(self, topic: str, *, offset: int, count: int) -> list[Message]:
        command = ["-C", "-t", topic, "-p", "0", "-o", str(offset), "-c", str(count), "-J", "-q"]
        messages = [json.loads(line) for line in self._run(command).splitlines()]
        return [
            Message(
                _bytes(message["payload"]),
                _bytes(message["key"]),
                tuple(
                    zip(
                        message.get("headers", [])[::2],
                        map(_bytes, message.get("headers", [])[1::2]),
                        strict=True,
                    )
                ),
                message["ts"],
                message["offset"],
            )
            for message in messages
        ]

    def topics(self) -> dict[str, int]:
        listing = json.loads(self._run(["-L", "-J"]))
        return {topic["topic"]: len(topic["partitions"]) for topic in listing["topics"]}

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        answer = self._run(["-Q", "-t", f"{topic}:0:{timestamp_ms}"]).decode()
        offset = int(answer.strip().rpartition(" ")[2])
        return None if offset == -1 else offset

    def _run(self, arguments: list[str], stdin: bytes = b"") -> bytes:
        command = ["kcat", "-b", self._bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S)
        if done.returncode or b"Delivery failed" in done.stderr:
            raise Refused(done.stderr.decode())
        return done.stdout


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class Confluent:
    """confluent-kafka: the newest librdkafka."""

    name = "confluent-kafka"
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, messages: Sequence[Message], *, codec: str = "none", idempotent: bool = False
    ) -> None:
        errors: list[str] = []

        def on_delivery(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
            if error is not None:
                errors.append(error.name())

        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "message.max.bytes": BYTES_MAX,
            }
        )
        for message in messages:
            producer.produce(
                topic,
                value=message.value,
                key=message.key,
                partition=0,
                timestamp=message.timestamp_ms,
                headers=list(message.headers),
                on_delivery=on_delivery,
            )
        assert producer.flush(PATIENCE_S) == 0
        if errors:
            raise Refused(errors[0])

    def consume(self, topic: str, *, offset: int, count: int) -> list[Message]:
        consumer = self._consumer()
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
            messages = consumer.consume(count, PATIENCE_S)
        finally:
            consumer.close()
        return [
            Message(
                message.value(),
                message.key(),
                _headers(message),
                message.timestamp()[1],
                message.offset() or 0,
            )
            for message in messages
        ]

    def topics(self) -> dict[str, int]:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self._bootstrap})
        topics = admin.list_topics(timeout=PATIENCE_S).topics
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        try:
            question = confluent_kafka.TopicPartition(topic, 0, timestamp_ms)
            offset = consumer.offsets_for_times([question], PATIENCE_S)[0].offset
        finally:
            consumer.close()
        return None if offset == confluent_kafka.OFFSET_END else offset

    def _consumer(self) -> confluent_kafka.Consumer:
        # librdkafka wants a group's name even where no group is used.
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"none-{uuid.uuid4()}",
                "enable.auto.commit": False,
            }
        )


def _headers(message: confluent_kafka.Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    assert isinstance(headers, list)
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in headers)


class Aiokafka:
    """aiokafka: asyncio, and the oldest versions of the protocol that are still in use."""

    name = "aiokafka"
    codecs = tuple(
        codec
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
        if codec == "none" or getattr(aiokafka.codec, f"has_{codec}")()
    )

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, messages: Sequence[Message], *, codec: str = "none", idempotent: bool = False
    ) -> None:
        async def send() -> None:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                max_request_size=BYTES_MAX,
            )
            async with producer:
                waiting = [
                    await producer.send(
                        topic,
                        message.value,
                        key=message.key,
                        partition=0,
                        timestamp_ms=message.timestamp_ms or None,
                        headers=list(message.headers),
                    )
                    for message in messages
                ]
                for acknowledgement in waiting:
                    await acknowledgement

        _wait_for(send())

    def consume(self, topic: str, *, offset: int, count: int) -> list[Message]:
        async def read() -> list[Message]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False)
            async with consumer:
                partition = aiokafka.TopicPartition(topic, 0)
                consumer.assign([partition])
                consumer.seek(partition, offset)
                records = [await consumer.getone() for _ in range(count)]
            return [Message(r.value, r.key, tuple(r.headers), r.timestamp, r.offset) for r in records]

        return _wait_for(read())

    def topics(self) -> dict[str, int]:
        async def ask(admin: aiokafka.admin.AIOKafkaAdminClient) -> dict[str, int]:
            described = await admin.describe_topics()
            return {topic["topic"]: len(topic["partitions"]) for topic in described}

        return with_aiokafka_admin(self._bootstrap, ask)

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        async def ask() -> int | None:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False)
            async with consumer:
                partition = aiokafka.TopicPartition(topic, 0)
                found = (await consumer.offsets_for_times({partition: timestamp_ms}))[partition]
                return None if found is None else int(found.offset)

        return _wait_for(ask())


Answer = TypeVar("Answer")


def _wait_for(work: Coroutine[object, object, Answer]) -> Answer:
    async def bounded() -> Answer:
        async with asyncio.timeout(PATIENCE_S):
            return await work

    try:
        return asyncio.run(bounded())
    except aiokafka.errors.KafkaError as error:
        raise Refused(type(error).__name__) from error


def with_aiokafka_admin(
    bootstrap: str, ask: Callable[[aiokafka.admin.AIOKafkaAdminClient], Awaitable[Answer]]
) -> Answer:
    """One question to aiokafka's admin client, which lives no longer than the question."""

    async def connected() -> Answer:
        admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            return await ask(admin)
        finally:
            await admin.close()

    return _wait_for(connected())


class KafkaPython:
    """kafka-python: threads, pure Python, and the newest versions of the protocol."""

    name = "kafka-python"
    codecs = tuple(
        codec
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
        if codec == "none" or getattr(kafka.codec, f"has_{codec}")()
    )

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, messages: Sequence[Message], *, codec: str = "none", idempotent: bool = False
    ) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=BYTES_MAX,
            linger_ms=5,
        )
        try:
            waiting = [
                producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    partition=0,
                    timestamp_ms=message.timestamp_ms or None,
                    headers=list(message.headers),
                )
                for message in messages
            ]
            for acknowledgement in waiting:
                acknowledgement.get(timeout=PATIENCE_S)
        except kafka.errors.KafkaError as error:
            raise Refused(type(error).__name__) from error
        finally:
            producer.close(timeout=PATIENCE_S)

    def consume(self, topic: str, *, offset: int, count: int) -> list[Message]:
        consumer = self._consumer()
        partition = kafka.TopicPartition(topic, 0)
        messages: list[Message] = []
        try:
            consumer.assign([partition])
            consumer.seek(partition, offset)
            while len(messages) < count:
                records = consumer.poll(timeout_ms=PATIENCE_S * 1000).get(partition, [])
                assert records, f"{len(messages)} of {count} messages of {topic} in {PATIENCE_S} s"
                messages += [
                    Message(r.value, r.key, tuple(r.headers), r.timestamp, r.offset) for r in records
                ]
        finally:
            consumer.close()
        return messages[:count]

    def topics(self) -> dict[str, int]:
        consumer = self._consumer()
        try:
            return {name: len(consumer.partitions_for_topic(name) or ()) for name in consumer.topics()}
        finally:
            consumer.close()

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        partition = kafka.TopicPartition(topic, 0)
        try:
            found = consumer.offsets_for_times({partition: timestamp_ms})[partition]
        finally:
            consumer.close()
        return None if found is None else int(found.offset)

    def _consumer(self) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False)


CLIENTS: Final[tuple[type[Client], ...]] = (Kcat, Confluent, Aiokafka, KafkaPython)
