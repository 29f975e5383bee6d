"""What a quota does to the client it is for, and to its neighbour.

A confluent-kafka client in a process of its own produces or consumes as fast as it may for ten seconds, under a quota
for its client id. Beside it another writes one small record after the other. Reported are the rate of the first as a
part of its quota, counted in records acknowledged or received, and the latency of the second without anybody beside it,
beside the client under its quota, and beside the same client without one.
"""

import argparse
import statistics
import subprocess
import sys
import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bench.brokers import ROOT, Broker, start_ropewalk
from bench.client_load import create_topic, delete_topic

GREEDY: Final = "greedy"
_RECORD_BYTES: Final = 10_000
_QUOTAS: Final = {"produce": "producer_byte_rate", "consume": "consumer_byte_rate"}
_QUIET: Final = {"log_level": 3}
_PATIENCE_S: Final = 60
_POLL_S: Final = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes-per-second", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--greedy", nargs=3, metavar=("WHAT", "BOOTSTRAP", "TOPIC"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.greedy:
        what, bootstrap, topic = chosen.greedy
        print(_be_greedy(what, bootstrap, topic, chosen.seconds))
        return
    broker = start_ropewalk("group")
    try:
        _report(broker, chosen.megabytes_per_second * 1e6, chosen.seconds)
    finally:
        broker.stop()


def _report(broker: Broker, rate: float, seconds: float) -> None:
    quiet_topic = create_topic(broker, "neighbour", 1)
    print(f"quota {rate / 1e6:g} MB/s, {seconds:g} s each; the neighbour's latency as median / 99 % in ms\n")
    print(f"{'':10}{'rate / quota':>14}{'alone':>16}{'beside, quota':>16}{'beside, free':>16}")
    for what, quota in _QUOTAS.items():
        topic = create_topic(broker, what, 1)
        if what == "consume":
            _fill(broker, topic, int(rate * seconds * 2))
        alone = _neighbour_ms(broker, quiet_topic, min(seconds, 3))
        _ropewalk(broker, "set", f"{quota}={rate:.0f}")
        greedy = _start_greedy(what, broker, topic, seconds)
        beside = _neighbour_ms(broker, quiet_topic, seconds)
        moved = _moved_bytes(greedy)
        _ropewalk(broker, "unset")
        greedy = _start_greedy(what, broker, topic, min(seconds, 3))
        free = _neighbour_ms(broker, quiet_topic, min(seconds, 3))
        _moved_bytes(greedy)
        delete_topic(broker, topic)
        print(
            f"{what:10}{moved / (rate * seconds):14.3f}{_latency(alone):>16}{_latency(beside):>16}"
            f"{_latency(free):>16}"
        )


def _ropewalk(broker: Broker, action: str, *quotas: str) -> None:
    program = ROOT / ".venv" / "bin" / "ropewalk"
    entity = ("--client-id", GREEDY, "-b", broker.bootstrap)
    subprocess.run([program, "quota", action, *quotas, *entity], check=True, stdout=subprocess.DEVNULL)


def _start_greedy(what: str, broker: Broker, topic: str, seconds: float) -> "subprocess.Popen[bytes]":
    """Returns when it has begun."""
    command = (sys.executable, "-m", "bench.quota_load", "--seconds", str(seconds))
    process = subprocess.Popen(
        [*command, "--greedy", what, broker.bootstrap, topic], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _moved_bytes(greedy: "subprocess.Popen[bytes]") -> int:
    output, _ = greedy.communicate(timeout=_PATIENCE_S)
    if greedy.returncode:
        raise subprocess.CalledProcessError(greedy.returncode, greedy.args)
    return int(output)


def _be_greedy(what: str, bootstrap: str, topic: str, seconds: float) -> int:
    """The bytes that were acknowledged or received within the time."""
    return (_produce if what == "produce" else _consume)(bootstrap, topic, seconds)


def _produce(bootstrap: str, topic: str, seconds: float) -> int:
    moved = 0

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        nonlocal moved
        if error is None:
            moved += _RECORD_BYTES

    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": GREEDY, "queue.buffering.max.kbytes": 8192, **_QUIET}
    )
    producer.list_topics(topic, _PATIENCE_S)
    print("begun", flush=True)
    value = bytes(_RECORD_BYTES)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            producer.produce(topic, value, partition=0, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.01)
        else:
            producer.poll(0)
    within = moved
    producer.purge()
    producer.flush(_PATIENCE_S)
    return within


def _consume(bootstrap: str, topic: str, seconds: float) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": GREEDY,
            "group.id": GREEDY,
            "enable.auto.commit": False,
            **_QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    print("begun", flush=True)
    moved = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = consumer.poll(_POLL_S)
        if message is None:
            continue
        if (error := message.error()) is not None:
            raise KafkaException(error)
        moved += len(message.value() or b"")
    consumer.close()
    return moved


def _fill(broker: Broker, topic: str, size_bytes: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **_QUIET})
    value = bytes(_RECORD_BYTES)
    for _ in range(size_bytes // _RECORD_BYTES):
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    if producer.flush(_PATIENCE_S):
        raise TimeoutError(f"not all of {size_bytes} bytes were acknowledged in {_PATIENCE_S} s")


def _neighbour_ms(broker: Broker, topic: str, seconds: float) -> list[float]:
    """The time to each acknowledgement, one record after the other."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "client.id": "neighbour", "linger.ms": 0, **_QUIET}
    )
    taken: list[float] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        began = time.perf_counter()
        producer.produce(topic, b"small", partition=0)
        if producer.flush(_PATIENCE_S):
            raise TimeoutError(f"no acknowledgement in {_PATIENCE_S} s")
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def _latency(taken: list[float]) -> str:
    return f"{statistics.median(taken):.2f} / {statistics.quantiles(taken, n=100)[98]:.2f}"


if __name__ == "__main__":
    main()
