"""The load of an ordinary client: confluent-kafka, with the settings a busy producer would choose.

Every function uses a topic of its own, checks that the broker holds what was sent, and returns samples by name.
"""

import os
import threading
import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.brokers import Broker
from bench.processes import Meter, resident_mib

PARTITION_COUNT: Final = 6
_TIMEOUT_SECONDS: Final = 60
_QUIET: Final = {"log_level": 3}


class LoadFailed(Exception):
    """The broker lost, refused or invented something: the run is worth nothing."""


def create_topic(broker: Broker, label: str, partition_count: int = PARTITION_COUNT) -> str:
    """Returns when every partition has a leader that answers."""
    name = f"bench-{label}-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **_QUIET})
    topic = NewTopic(
        name,
        num_partitions=partition_count,
        replication_factor=broker.node_count,
        config=broker.topic_settings,
    )
    admin.create_topics([topic])[name].result(_TIMEOUT_SECONDS)
    wait_until_led(broker, name, partition_count)
    return name


def wait_until_led(broker: Broker, name: str, partition_count: int = PARTITION_COUNT) -> None:
    """A broker may answer that a topic is made before its partitions know that they lead."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            if held_count(broker, name, partition_count) == 0:
                return
            raise LoadFailed(f"{broker.name} made {name} with records in it")
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def delete_topic(broker: Broker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **_QUIET})
    admin.delete_topics([name])[name].result(_TIMEOUT_SECONDS)


def held_count(broker: Broker, topic: str, partition_count: int) -> int:
    """How many records the broker says it has."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench", **_QUIET})
    try:
        watermarks = [
            consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_TIMEOUT_SECONDS)
            for partition in range(partition_count)
        ]
    finally:
        consumer.close()
    return sum(high - low for low, high in watermarks)


def check_held(broker: Broker, topic: str, record_count: int, partition_count: int = PARTITION_COUNT) -> None:
    """The topic must hold exactly what was acknowledged."""
    held = held_count(broker, topic, partition_count)
    if held != record_count:
        raise LoadFailed(f"{broker.name} acknowledged {record_count} records and holds {held}")


def produce(broker: Broker, topic: str, *, record_bytes: int, record_count: int) -> dict[str, float]:
    """Send as fast as the client can, acks=all; done when all are acknowledged."""
    failures: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 262_144,
            "delivery.report.only.error": True,
            **_QUIET,
        }
    )
    producer.list_topics(topic, timeout=_TIMEOUT_SECONDS)
    value = os.urandom(record_bytes)

    def on_failure(error: KafkaError | None, message: Message) -> None:
        failures.append(f"{error} for a record of {message.topic()}")

    send, poll = producer.produce, producer.poll
    with Meter(broker.pid) as meter:
        for _ in range(record_count):
            while True:
                try:
                    send(topic, value, on_delivery=on_failure)
                    break
                except BufferError:
                    poll(0.005)
        unsent = producer.flush(2 * _TIMEOUT_SECONDS)
    if unsent or failures:
        raise LoadFailed(f"{broker.name}: {unsent} unsent, {len(failures)} failed {failures[:1]}")
    check_held(broker, topic, record_count)
    return _rates(meter, record_bytes * record_count)


def consume(broker: Broker, topic: str, *, record_bytes: int, record_count: int) -> dict[str, float]:
    """Read a whole topic once, from its start."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 131_072,
            # The client rests for so long when its queue is full, a second unless told; that would measure its naps.
            "fetch.queue.backoff.ms": 5,
            **_QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITION_COUNT)])
    received = 0
    with Meter(broker.pid) as meter:
        while received < record_count:
            # The call waits for as many as it is asked for, so the last one asks for what is left.
            messages = consumer.consume(min(10_000, record_count - received), timeout=_TIMEOUT_SECONDS)
            if not messages:
                raise LoadFailed(f"{broker.name} stalled after {received} of {record_count} records")
            for message in (messages[0], messages[-1]):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
            received += len(messages)
    consumer.close()
    return _rates(meter, record_bytes * record_count)


def ack_latency(broker: Broker, *, records_per_second: int, seconds: int) -> dict[str, float]:
    """Records of 100 bytes one by one at a steady pace, linger 0, acks=all, one partition.

    The pace does not wait for the broker, so that a broker which falls behind shows it. The first second is
    warm-up. Acknowledgements are timed on a thread of their own, as they arrive.
    """
    topic = create_topic(broker, "latency", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 0, **_QUIET})
    producer.list_topics(topic, timeout=_TIMEOUT_SECONDS)
    value = bytes(100)
    latencies_ms: list[float] = []
    failures: list[str] = []
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            producer.poll(0.05)

    def send() -> None:
        sent_at = time.perf_counter()

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(str(error))
            latencies_ms.append((time.perf_counter() - sent_at) * 1000)

        producer.produce(topic, value, on_delivery=on_delivery)

    server = threading.Thread(target=serve, daemon=True)  # or a run that fails would never end
    server.start()
    record_count = records_per_second * (seconds + 1)
    started_at = time.perf_counter()
    with Meter(broker.pid) as meter:
        for index in range(record_count):
            ahead = started_at + index / records_per_second - time.perf_counter()
            if ahead > 0:
                time.sleep(ahead)
            send()
        producer.flush(2 * _TIMEOUT_SECONDS)
    stopped.set()
    server.join()
    if failures or len(latencies_ms) != record_count:
        raise LoadFailed(f"{broker.name}: {len(latencies_ms)} of {record_count} acknowledged, {failures[:1]}")
    check_held(broker, topic, record_count, 1)
    delete_topic(broker, topic)
    measured = sorted(latencies_ms[records_per_second:])
    return {
        "p50 ms": measured[len(measured) // 2],
        "p99 ms": measured[len(measured) * 99 // 100],
        "CPU µs each": meter.broker_cpu_seconds * 1e6 / record_count,
        "foreign cores": meter.foreign_cores,
    }


def first_ack(broker: Broker, *, idle_seconds: float) -> dict[str, float]:
    """Seconds from the making of the process to an acknowledged record, and the memory it then rests at."""
    acknowledged: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 50,
            "topic.metadata.refresh.fast.interval.ms": 20,
            **_QUIET,
        }
    )

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is None:
            acknowledged.append(time.perf_counter())

    producer.produce(f"bench-first-{time.monotonic_ns()}", b"first", on_delivery=on_delivery)
    producer.flush(_TIMEOUT_SECONDS)
    if not acknowledged:
        raise LoadFailed(f"{broker.name} acknowledged nothing in {_TIMEOUT_SECONDS} s")
    del producer
    time.sleep(idle_seconds)
    return {"first ack s": acknowledged[0] - broker.started_at, "idle MiB": resident_mib(broker.pid)}


def _rates(meter: Meter, payload_bytes: int) -> dict[str, float]:
    return {
        "MB/s": payload_bytes / 1e6 / meter.seconds,
        "CPU s/GB": meter.broker_cpu_seconds / (payload_bytes / 1e9),
        "foreign cores": meter.foreign_cores,
    }
