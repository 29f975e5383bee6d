"""A program that copies one topic to another exactly once, with transactions of `ropewalk`'s own client, until it is killed.

    library_copier.py BOOTSTRAP GROUP TRANSACTIONAL_ID INPUT OUTPUT

It is written as the guide on delivery tells programs to: whatever goes wrong, it starts over, and where nobody knows whether a transaction
was committed it asks for the same again. It says what `copier.py` says, and is a member of the same group as those.
"""

import sys

from ropewalk import Consumer, Producer
from ropewalk.base.errors import RopewalkError
from ropewalk.client.consuming.message import Message
from ropewalk.client.errors import OutcomeUnknown
from tests.chaos.copier import SESSION_MS, TOGETHER_MAX, TRANSACTION_MS


def main(bootstrap: str, group: str, transactional_id: str, source: str, target: str) -> None:
    with (
        Producer(
            bootstrap, transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_MS, linger_ms=0
        ) as producer,
        Consumer(
            bootstrap,
            group=group,
            assignor="range",  # as those of librdkafka in the group
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 3,
            max_poll_records=TOGETHER_MAX,
        ) as consumer,
    ):
        consumer.subscribe(source)
        print("copying", flush=True)
        while True:
            messages = consumer.poll(timeout_ms=100)
            if messages:
                _copy(producer, consumer, messages, target)


def _copy(producer: Producer, consumer: Consumer, messages: list[Message], target: str) -> None:
    producer.begin_transaction()
    for message in messages:
        origin = f"{message.partition}:{message.offset}:{message.value.decode()}"
        producer.send(target, origin.encode(), partition=message.partition)
    producer.send_offsets_to_transaction(consumer.positions(), consumer.group_identity())
    while True:
        try:
            producer.commit_transaction()
            return
        except OutcomeUnknown as error:
            print(f"again: {error}", flush=True)


if __name__ == "__main__":
    while True:
        try:
            main(*sys.argv[1:])
        except RopewalkError as trouble:
            print(f"copy: {type(trouble).__name__}: {trouble}", flush=True)
