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
from typing import Final

from bench.brokers import start_ropewalk

CLIENTS: Final = ("ropewalk", "confluent-kafka", "kafka-python")
VALUE_BYTES: Final = 1024
PARTITIONS: Final = 4
_PATIENCE_S: Final = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--measure", nargs=3, metavar=("CLIENT", "TOPIC", "BOOTSTRAP"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.measure is not None:
        client, topic, bootstrap = options.measure
        rates = _measure(client, topic, bootstrap, options.records)
        print(json.dumps(rates))
        return
    found: dict[str, list[tuple[float, float]]] = {client: [] for client in CLIENTS}
    broker = start_ropewalk("os", settings={"num.partitions": str(PARTITIONS)})
    try:
        for number in range(options.rounds):
            for client in CLIENTS:
                command = [sys.executable, "-m", "bench.client_rates", "--records", str(options.records)]
                command += ["--measure", client, f"{client}-{number}", broker.bootstrap]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                produced, consumed = json.loads(output)
                found[client].append((produced, consumed))
    finally:
        broker.stop()
    _print(found, options.records)


def _print(found: dict[str, list[tuple[float, float]]], record_count: int) -> None:
    print(
        f"{record_count:,} records of {VALUE_BYTES} bytes, {PARTITIONS} partitions, {len(found['ropewalk'])} rounds in turn"
    )
    print(f"{'':18}{'produced/s':>14}{'consumed/s':>14}")
    medians = {
        client: (statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows))
        for client, rows in found.items()
    }
    for client, (produced, consumed) in medians.items():
        print(f"{client:18}{produced:14,.0f}{consumed:14,.0f}")
    for other in CLIENTS[1:]:
        produced, consumed = (
            ours / theirs for ours, theirs in zip(medians["ropewalk"], medians[other], strict=True)
        )
        print(f"{'ours / ' + other:24}{produced:8.2f}{consumed:14.2f}")


def _measure(client: str, topic: str, bootstrap: str, record_count: int) -> tuple[float, float]:
    value = b"x" * VALUE_BYTES
    produce, consume = _CLIENTS[client]
    produce(bootstrap, topic, value, 100)  # makes the topic and loads what is loaded on first use
    started = time.perf_counter()
    produce(bootstrap, topic, value, record_count)
    produced = record_count / (time.perf_counter() - started)
    started = time.perf_counter()
    consume(bootstrap, topic, record_count)
    return produced, record_count / (time.perf_counter() - started)


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
