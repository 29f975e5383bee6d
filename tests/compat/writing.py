"""Records for groups to read: written at once, or in the background for as long as a test's members come and go."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import confluent_kafka

from tests.compat.crew import Position

_PATIENCE_S: Final = 20
_PAUSE_S: Final = 0.002
"""Between two records in the background: enough of them for a mistake to show, few enough to be counted quickly."""


def write(bootstrap: str, topic: str, *, partitions: int, count: int) -> list[Position]:
    """Spreads `count` records over the partitions, and says where each one is."""
    writer = _Writer(bootstrap, topic, partitions)
    for _ in range(count):
        writer.send()
    return writer.finish()


@contextmanager
def writing(bootstrap: str, topic: str, *, partitions: int) -> Iterator[list[Position]]:
    """Writes until the block ends; the list is complete after that."""
    writer = _Writer(bootstrap, topic, partitions)
    is_over = threading.Event()

    def send() -> None:
        while not is_over.wait(_PAUSE_S):
            writer.send()

    thread = threading.Thread(target=send)
    thread.start()
    positions: list[Position] = []
    try:
        yield positions
    finally:
        is_over.set()
        thread.join()
        positions += writer.finish()


class _Writer:
    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 1,
            "enable.idempotence": True,
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(settings)
        self._topic = topic
        self._partitions = partitions
        self._sent_count = 0
        self._positions: list[Position] = []
        self._errors: list[str] = []

    def send(self) -> None:
        partition = self._sent_count % self._partitions
        value = b"strand %d" % self._sent_count
        self._producer.produce(self._topic, value, partition=partition, on_delivery=self._on_delivery)
        self._sent_count += 1
        self._producer.poll(0)

    def finish(self) -> list[Position]:
        assert self._producer.flush(_PATIENCE_S) == 0
        assert self._errors == []
        assert len(self._positions) == self._sent_count
        return self._positions

    def _on_delivery(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is not None:
            self._errors.append(error.name())
        else:
            self._positions.append((message.topic() or "", message.partition() or 0, message.offset() or 0))
