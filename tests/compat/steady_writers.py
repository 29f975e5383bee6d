"""A program that writes numbers with one client library until its input ends: `steady_writers KIND BOOTSTRAP TOPIC PARTITIONS PAUSE_MS`.

Number n goes to partition n modulo PARTITIONS, with acks=all, idempotently, and no setting of the client that a user would not
choose first. What became of it is a line: `acknowledged NUMBER OFFSET`, or `refused NUMBER REASON` where the client has given up.
Java's is in java/SteadyWriter.java.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import aiokafka
import confluent_kafka
import kafka


class Orders(NamedTuple):
    bootstrap: str
    topic: str
    partition_count: int
    pause_s: float


def say(*words: object) -> None:
    print(*words, flush=True)


def write_with_confluent(orders: Orders, end: threading.Event) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": orders.bootstrap, "enable.idempotence": True, "log_level": 0}
    )

    def delivered(
        number: int, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is None:
            say("acknowledged", number, message.offset())
        else:
            say("refused", number, error)

    number = 0
    while not end.wait(orders.pause_s):
        producer.produce(
            orders.topic,
            str(number),
            partition=number % orders.partition_count,
            on_delivery=partial(delivered, number),
        )
        producer.poll(0)
        number += 1
    producer.flush()


def write_with_aiokafka(orders: Orders, end: threading.Event) -> None:
    def delivered(number: int, answer: "asyncio.Future[aiokafka.structs.RecordMetadata]") -> None:
        error = answer.exception()
        if error is None:
            say("acknowledged", number, answer.result().offset)
        else:
            say("refused", number, repr(error))

    async def write() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=orders.bootstrap, enable_idempotence=True
        ) as producer:
            number = 0
            while not end.is_set():
                answer = await producer.send(
                    orders.topic, str(number).encode(), partition=number % orders.partition_count
                )
                answer.add_done_callback(partial(delivered, number))
                await asyncio.sleep(orders.pause_s)
                number += 1

    asyncio.run(write())


def write_with_kafka_python(orders: Orders, end: threading.Event) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=orders.bootstrap, enable_idempotence=True)
    number = 0
    while not end.wait(orders.pause_s):
        answer = producer.send(orders.topic, str(number).encode(), partition=number % orders.partition_count)
        answer.add_callback(lambda found, number=number: say("acknowledged", number, found.offset))
        answer.add_errback(lambda error, number=number: say("refused", number, repr(error)))
        number += 1
    producer.flush()
    producer.close()


WRITERS: dict[str, Callable[[Orders, threading.Event], None]] = {
    "confluent-kafka": write_with_confluent,
    "aiokafka": write_with_aiokafka,
    "kafka-python": write_with_kafka_python,
}


def main() -> None:
    kind, bootstrap, topic, partition_count, pause_ms = sys.argv[1:]
    end = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        end.set()

    threading.Thread(target=listen, daemon=True).start()
    WRITERS[kind](Orders(bootstrap, topic, int(partition_count), int(pause_ms) / 1000), end)


if __name__ == "__main__":
    main()
