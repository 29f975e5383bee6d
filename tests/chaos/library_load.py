"""The load of `ropewalk`'s own client, beside that of librdkafka: an idempotent producer, and a consumer that follows all partitions.

Each in a thread of its own, and patient: what it had in flight when a node went is sent again to the one that comes back.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ropewalk import Consumer, Producer, TopicPartition
from ropewalk.base.errors import RopewalkError
from ropewalk.client.errors import HistoryChanged, NoOffset, UnreadableBatch
from ropewalk.client.producing.batch import Delivery
from tests.chaos.checker import Sent, Stored, Tally

WRITER: Final = "library"
PATIENT: Final = {
    "delivery_timeout_ms": 300_000,
    "request_timeout_ms": 4_000,
    "max_block_ms": 300_000,
    "metadata_max_age_ms": 1_000,
    "connect_timeout_ms": 2_000,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 200,
    "linger_ms": 2,
}
LOSING: Final = (NoOffset, HistoryChanged, UnreadableBatch)
"""What no restart explains: a position that vanished, a log that has another history, a batch that rotted."""


class _Abandoned(Exception):
    """Nobody wants to know any more: whoever leaves a producer with an exception does not wait for its records."""


def produce(
    address: str,
    topic: str,
    tallies: Sequence[Tally],
    *,
    value_bytes: int,
    granted: Callable[[], int],
    outstanding_max: int,
    stopping: threading.Event,
    abandoned: threading.Event,
    failures: list[str],
) -> None:
    """Send what was granted, and wait for every acknowledgement at the end."""
    outstanding: deque[tuple[Tally, Sent, Delivery]] = deque()

    def settle() -> None:
        tally, sent, delivery = outstanding.popleft()
        try:
            tally.on_acknowledged(delivery.result().offset, sent)
        except RopewalkError as error:
            failures.append(f"{sent} was given up: {error}")

    try:
        with Producer(address, **PATIENT) as producer:  # type: ignore[arg-type]
            sent_count = 0
            while not stopping.is_set() and not failures:
                while outstanding and outstanding[0][2].done:
                    settle()
                if sent_count >= granted() or len(outstanding) >= outstanding_max:
                    stopping.wait(0.005)
                    continue
                tally = tallies[sent_count % len(tallies)]
                sent = tally.on_sent(WRITER)
                value = sent.encode(tally.partition, value_bytes)
                outstanding.append((tally, sent, producer.send(topic, value, partition=tally.partition)))
                sent_count += 1
            while outstanding:
                if abandoned.is_set():
                    raise _Abandoned
                if outstanding[0][2].done:
                    settle()
                else:
                    abandoned.wait(0.005)
    except _Abandoned:
        return
    except RopewalkError as error:
        failures.append(f"the library's producer: {error}")


def consume(
    address: str, topic: str, tallies: Sequence[Tally], *, stopping: threading.Event, failures: list[str]
) -> None:
    """From the beginning, for as long as the load lasts. A cluster that does not answer is waited for."""
    with Consumer(
        address,
        auto_offset_reset="none",
        fetch_max_wait_ms=50,
        request_timeout_ms=4_000,
        metadata_max_age_ms=1_000,
        connect_timeout_ms=2_000,
    ) as consumer:
        partitions = [TopicPartition(topic, tally.partition) for tally in tallies]
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        while not stopping.is_set():
            try:
                messages = consumer.poll(timeout_ms=100)
            except LOSING as error:
                failures.append(f"the library's consumer: {error}")
                return
            except RopewalkError:
                stopping.wait(0.1)
                continue
            for message in messages:
                tallies[message.partition].on_consumed(Stored(message.offset, message.value))
