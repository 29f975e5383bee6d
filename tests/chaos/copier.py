"""A program that copies one topic to another exactly once, with transactions of confluent-kafka, until it is killed.

    copier.py BOOTSTRAP GROUP TRANSACTIONAL_ID INPUT OUTPUT

It is written as librdkafka's documentation tells programs to: an error that asks for an abort gets one, and the positions go back to what
is committed; a fatal one ends the program, and whoever started it starts it again. Each copy says which record it is of. What went wrong is
said on stdout, a line each.
"""

import sys
from collections.abc import Callable
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

SESSION_MS: Final = 1_500
TRANSACTION_MS: Final = 10_000
CALL_S: Final = 30.0
TOGETHER_MAX: Final = 50


def main(bootstrap: str, group: str, transactional_id: str, source: str, target: str) -> None:
    common = {"bootstrap.servers": bootstrap, "log_level": 0}
    consumer = Consumer(
        {
            **common,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": SESSION_MS // 3,
        }
    )
    producer = Producer(
        {
            **common,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_MS,
            "linger.ms": 0,
        }
    )
    _until_done(lambda: producer.init_transactions(CALL_S))
    consumer.subscribe([source])
    print("copying", flush=True)
    while True:
        messages = consumer.consume(TOGETHER_MAX, 0.1)
        copied = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                print(f"consumer: {message.error()}", flush=True)
        if copied:
            _copy(producer, consumer, copied, target)


def _copy(producer: Producer, consumer: Consumer, messages: list[Message], target: str) -> None:
    ends: dict[tuple[str, int], int] = {}
    try:
        producer.begin_transaction()
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            origin = f"{partition}:{offset}:{(message.value() or b'').decode()}"
            producer.produce(target, origin, partition=partition)
            ends[topic, partition] = offset + 1
        positions = [TopicPartition(topic, index, end) for (topic, index), end in ends.items()]
        _until_done(
            lambda: producer.send_offsets_to_transaction(
                positions, consumer.consumer_group_metadata(), CALL_S
            )
        )
        _until_done(lambda: producer.commit_transaction(CALL_S))
    except KafkaException as error:
        reason = error.args[0]
        print(f"copy: {reason.name()}: {reason.str()}", flush=True)
        if not reason.txn_requires_abort():
            raise
        _until_done(lambda: producer.abort_transaction(CALL_S))
        _go_back(consumer)


def _go_back(consumer: Consumer) -> None:
    """To what is committed: what was read since was not copied."""
    assigned = consumer.assignment()
    if not assigned:
        return
    for place in consumer.committed(assigned, CALL_S):
        try:
            consumer.seek(TopicPartition(place.topic, place.partition, max(0, place.offset)))
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:  # it is not ours any more
                raise


def _until_done(call: Callable[[], None]) -> None:
    while True:
        try:
            return call()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            print(f"again: {error.args[0].name()}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
