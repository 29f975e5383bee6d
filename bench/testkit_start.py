"""How long a test waits for its node: from the start of a `Cluster` to the first acknowledged record.

Twenty rounds in one process, after one that loads and compiles what the others find warm. Each round has a new
node and a new confluent-kafka producer, as a test would.
"""

import statistics
import time

import confluent_kafka

from ropewalk.testing import Cluster

ROUNDS = 20
PATIENCE_S = 10


def main() -> None:
    cold = _round_ms()
    warm = [_round_ms() for _ in range(ROUNDS)]
    print(f"{'':24}{'median':>10}{'slowest':>10}{'first':>10}   ms, {ROUNDS} rounds")
    for name, column in (
        ("node started", 0),
        ("topic created", 1),
        ("first record acked", 2),
        ("stopped", 3),
    ):
        values = [row[column] for row in warm]
        print(f"{name:24}{statistics.median(values):10.1f}{max(values):10.1f}{cold[column]:10.1f}")


def _round_ms() -> tuple[float, float, float, float]:
    """When each step was done, counted from the start; the stop by itself."""
    began = time.perf_counter()
    with Cluster() as cluster:
        started = time.perf_counter()
        topic = cluster.create_topic("orders")
        created = time.perf_counter()
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, "log_level": 0}
        )
        producer.produce(topic, b"first")
        if producer.flush(PATIENCE_S):
            raise TimeoutError(f"no acknowledgement in {PATIENCE_S} s")
        acknowledged = time.perf_counter()
    stopped = time.perf_counter()
    return (
        (started - began) * 1000,
        (created - began) * 1000,
        (acknowledged - began) * 1000,
        (stopped - acknowledged) * 1000,
    )


if __name__ == "__main__":
    main()
