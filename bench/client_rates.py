"""Records of 1 KiB per second through three Python clients, in turn, against one node of Ropewalk.

Each measurement is a process of its own, with a topic of its own, as an application would be. Every client is told the same:
acks=all with idempotence, no compression, 5 ms to linger, batches of up to 256 KiB; nobody's delivery is looked at one by one.
A consumer reads by partition, from the beginning, in lists of 500.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from bench.brokers import start_ropewalk

CLIENTS: Final = ("ropewalk", "confluent-kafka", "kafka-python")
VALUE_BYTES: Final = 1024
PARTITIONS: Final = 4
_PATIENCE_S: Final = 60


class Rates(NamedTuple):
    """Records per second, and microseconds of processor per record, which other work on the machine changes less."""

    produced: float
    consumed: float
    produced_cpu_us: float
    consumed_cpu_us: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--measure", nargs=3, metavar=("CLIENT", "TOPIC", "BOOTSTRAP"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.measure is not None:
        client, topic, bootstrap = options.measure
        print(json.dumps(_measure(client, topic, bootstrap, options.records)))
        return
    found: dict[str, list[Rates]] = {client: [] for client in CLIENTS}
    broker = start_ropewalk("os", settings={"num.partitions": str(PARTITIONS)})
    try:
        for number in range(options.rounds):
            for client in CLIENTS:
                command = [sys.executable, "-m", "bench.client_rates", "--records", str(options.records)]
                command += ["--measure", client, f"{client}-{number}", broker.bootstrap]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                found[client].append(Rates(*json.loads(output)))
    finally:
        broker.stop()
    _print(found, options.records)


def _print(found: dict[str, list[Rates]], record_count: int) -> None:
    rounds = len(found["ropewalk"])
    print(
        f"{record_count:,} records of {VALUE_BYTES} bytes, {PARTITIONS} partitions, {rounds} rounds in turn, medians"
    )
    print(f"{'':24}{'produced/s':>12}{'consumed/s':>12}{'CPU us each':>14}{'CPU us each':>14}")
    medians = {
        client: Rates(*(statistics.median(column) for column in zip(*rows, strict=True)))
        for client, rows in found.items()
    }
    for client, rates in medians.items():
        print(
            f"{client:24}{rates.produced:12,.0f}{rates.consumed:12,.0f}"
            f"{rates.produced_cpu_us:14.1f}{rates.consumed_cpu_us:14.1f}"
        )
    for other in CLIENTS[1:]:
        ratios = [ours / theirs for ours, theirs in zip(medians["ropewalk"], medians[other], strict=True)]
        print(f"{'ours / ' + other:24}{ratios[0]:12.2f}{ratios[1]:12.2f}{ratios[2]:14.2f}{ratios[3]:14.2f}")


def _measure(client: str, topic: str, bootstrap: str, record_count: int) -> Rates:
    value = b"x" * VALUE_BYTES
    produce, consume = _CLIENTS[client]
    produce(bootstrap, topic, value, 100)  # makes the topic and loads what is loaded on first use
    produced, produced_cpu_us = _timed(lambda: produce(bootstrap, topic, value, record_count), record_count)
    consumed, consumed_cpu_us = _timed(lambda: consume(bootstrap, topic, record_count), record_count)
    return Rates(produced, consumed, produced_cpu_us, consumed_cpu_us)


def _timed(work: Callable[[], None], record_count: int) -> tuple[float, float]:
    started, used = time.perf_counter(), time.process_time()
    work()
    return record_count / (time.perf_counter() - started), 1e6 * (time.process_time() - used) / record_count


def _produce_ropewalk(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    from ropewalk import Producer

    with Producer(bootstrap) as producer:
        send = producer.send
        for _ in range(count):
            send(topic, value)


def _consume_ropewalk(bootstrap: str, topic: str, count: int) -> None:
    from ropewalk import Consumer

    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(topic))
        seen = 0
        while seen < count:
            for message in consumer.poll():
                seen += message.value is not None


def _produce_confluent(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    import confluent_kafka

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.size": 262_144,
            "queue.buffering.max.kbytes": 65_536,
        }
    )
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    assert producer.flush(_PATIENCE_S) == 0


def _consume_confluent(bootstrap: str, topic: str, count: int) -> None:
    import confluent_kafka

    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    seen = 0
    while seen < count:
        for message in consumer.consume(500, 1.0):
            seen += message.value() is not None
    consumer.close()


def _produce_kafka_python(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    import kafka

    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
        batch_size=262_144,
    )
    for _ in range(count):
        producer.send(topic, value)
    producer.flush(_PATIENCE_S)
    producer.close()


def _consume_kafka_python(bootstrap: str, topic: str, count: int) -> None:
    import kafka

    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
    consumer.assign([kafka.TopicPartition(topic, index) for index in range(PARTITIONS)])
    seen = 0
    while seen < count:
        for messages in consumer.poll(1000, max_records=500).values():
            for message in messages:
                seen += message.value is not None
    consumer.close()


_Work = tuple[Callable[[str, str, bytes, int], None], Callable[[str, str, int], None]]
_CLIENTS: Final[dict[str, _Work]] = {
    "ropewalk": (_produce_ropewalk, _consume_ropewalk),
    "confluent-kafka": (_produce_confluent, _consume_confluent),
    "kafka-python": (_produce_kafka_python, _consume_kafka_python),
}


if __name__ == "__main__":
    main()
