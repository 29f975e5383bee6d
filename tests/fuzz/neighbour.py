"""A well-behaved client in a process of its own: it writes a record, reads it back, and so on until its input ends.

Prints one line of JSON at the end. Whatever it complains about is a finding of the run: an error of its client, a
record that came back changed, twice or not at all. How long the slowest round took is reported and not judged.
With `--verify COUNT` it reads the first COUNT records once more, from the start, and ends.
"""

import argparse
import json
import sys
import threading
import time
from typing import Final

import confluent_kafka

TOPIC: Final = "neighbour"
PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.02


class Neighbour:
    def __init__(self, bootstrap: str) -> None:
        self.troubles: list[str] = []
        self.times_s: list[float] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "neighbour",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": int(PATIENCE_S * 1000),
                "error_cb": self._on_error,
            }
        )
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "neighbour",
                "group.id": "neighbour",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 500,
                "error_cb": self._on_error,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])

    def echo(self, number: int) -> None:
        """One record there and back."""
        began = time.monotonic()
        self._producer.produce(TOPIC, _content(number), on_delivery=self._on_delivery)
        if self._producer.flush(PATIENCE_S):
            self.troubles.append(f"record {number} was not acknowledged in {PATIENCE_S:.0f} s")
            return
        self.expect(number)
        self.times_s.append(time.monotonic() - began)

    def expect(self, number: int) -> None:
        message = self._consumer.poll(PATIENCE_S)
        if message is None:
            self.troubles.append(f"record {number} did not come back in {PATIENCE_S:.0f} s")
        elif message.error():
            self.troubles.append(f"reading record {number}: {message.error()}")
        elif (message.offset(), message.value()) != (number, _content(number)):
            self.troubles.append(f"at {number} came {message.offset()}: {message.value()!r}")

    def close(self) -> None:
        self._consumer.close()

    def _on_error(self, error: confluent_kafka.KafkaError) -> None:
        self.troubles.append(f"the client says: {error}")

    def _on_delivery(self, error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            self.troubles.append(f"not delivered: {error}")


def _content(number: int) -> bytes:
    return b"record %d " % number + b"." * (number % 500)


def _set_when_input_ends(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--verify", type=int, default=None)
    arguments = parser.parse_args()
    neighbour = Neighbour(arguments.bootstrap)
    number = 0
    if arguments.verify is not None:
        while number < arguments.verify and not neighbour.troubles:
            neighbour.expect(number)
            number += 1
    else:
        over = threading.Event()
        threading.Thread(target=_set_when_input_ends, args=(over,), daemon=True).start()
        while not over.is_set() and not neighbour.troubles:
            neighbour.echo(number)
            number += 1
            over.wait(_PAUSE_S)
    neighbour.close()
    times = sorted(neighbour.times_s)
    report = {
        "records": number,
        "troubles": neighbour.troubles[:10],
        "median_ms": times[len(times) // 2] * 1000 if times else 0.0,
        "worst_ms": times[-1] * 1000 if times else 0.0,
    }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
