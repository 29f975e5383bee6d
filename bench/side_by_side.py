"""`bench/kafka`: the same load on Ropewalk and on Apache Kafka, in turn, and the ratios.

    bench/kafka                              everything
    bench/kafka produce latency              some of it
    bench/kafka --rf 3 produce latency       three nodes of each, and a replica on every one
    bench/kafka --megabytes 50 --seconds 2   quickly, to see whether it runs
    bench/kafka --against cce0695 --repetitions 9 produce consume latency
                                             another revision of Ropewalk in Kafka's place

Modes: produce (1 KiB and 100 B, acks=all, 6 partitions), consume (1 KiB), latency (acknowledgements at 1,000
records/s), fsync (every acknowledged record on disk), startup (to the first acknowledged record; memory at rest),
sessions (fetches of one record in a session of 500 and of 2,000 partitions, all others quiet), commit (offsets of
groups), join (until all members of a group have their assignment), join848 (the same where the broker makes the
assignments), txn (transactions of a hundred records), failover (with --rf 3: until a group whose coordinator was killed
can commit again).

Both brokers run all the time and are loaded in turn. Nothing is fsynced by either, except where fsync is named.
"""

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka import KafkaException

from bench import (
    client_load,
    commit_load,
    failover_load,
    join848_load,
    join_load,
    raw_load,
    session_load,
    txn_load,
)
from bench.brokers import KAFKA_VERSION, Broker, Unavailable, source_of, start_kafka, start_ropewalk
from bench.report import SAME_CPU, Row, Samples, Target, at_least, at_most, compare, markdown

MODES: Final = (
    "produce",
    "consume",
    "latency",
    "fsync",
    "startup",
    "sessions",
    "commit",
    "join",
    "join848",
    "txn",
    "failover",
)

_SMALL_RECORDS_MAX: Final = 2_000_000
_RAW_CONNECTIONS: Final = 4
_RAW_DEPTH: Final = 8
_RAW_BATCH_BYTES: Final = 64 * 1024
_IDLE_SECONDS: Final = 3.0
_SESSION_FETCHES: Final = 5000
_COMMIT_CONNECTIONS: Final = 32
_COMMIT_DEPTH: Final = 4
_COMMIT_GROUPS: Final = 128
_KEEPS_UP_P50_MS: Final = 50.0
_WARM_UPS: Final = 3
"""Runs before a replicated broker is asked what it keeps up with: three of Kafka's processes on two cores fall behind by seconds until
Java has compiled what they do."""
_MEMBER_COUNTS: Final = (1, 20, 200)
_SHARED_PARTITIONS: Final = 200
_TXN_PRODUCERS: Final = 16
_TXN_ORDINARY_PRODUCERS: Final = 4
_GROUPS_AT_ONCE: Final = {"group.initial.rebalance.delay.ms": "0"}
"""For both brokers: else the first members of a group are made to wait three seconds for others."""


class Comparison:
    """One run of the program: its brokers, its scale and the rows found so far."""

    def __init__(self, brokers: ExitStack, arguments: argparse.Namespace) -> None:
        self._brokers = brokers
        self._started: dict[str, Broker] = {}
        self._repetitions: int = arguments.repetitions
        self._megabytes: int = arguments.megabytes
        self._seconds: int = arguments.seconds
        self._only: str | None = arguments.only
        self._node_count: int = arguments.rf
        self._against = None if arguments.against is None else source_of(arguments.against)
        """The source of a revision that stands in Kafka's place."""
        self.rows: list[Row] = []
        self.foreign_cores_max = 0.0

    def produce(self) -> None:
        ours, kafka = self._ropewalk("os"), self._kafka()
        if self._node_count > 1:
            self._produce_replicated()
            return
        for record_bytes, mb_target, cpu_target in ((1024, 1.5, 0.6), (100, 1.2, None)):
            record_count = min(self._megabytes * 1_000_000 // record_bytes, _SMALL_RECORDS_MAX)

            def load(broker: Broker, size: int = record_bytes, count: int = record_count) -> dict[str, float]:
                return self._produced(broker, record_bytes=size, record_count=count)

            self._compare(
                f"produce {record_bytes} B, acks=all",
                [ours, kafka],
                load,
                {"MB/s": at_least(mb_target), "CPU s/GB": at_most(cpu_target) if cpu_target else None},
            )
        self._compare(
            "produce 1024 B, acks=all, raw client",
            [ours, kafka],
            self._raw_produced,
            {"MB/s": None, "CPU s/GB": None, "p99 ms": None},
        )

    def _produce_replicated(self) -> None:
        record_count = self._megabytes * 1_000_000 // 1024

        def load(broker: Broker) -> dict[str, float]:
            return self._produced(broker, record_bytes=1024, record_count=record_count)

        for flush, target in (("os", at_least(1.5)), ("group", None)):
            self._compare(
                f"produce 1024 B, acks=all, {self._node_count} replicas, flush={flush}",
                [self._ropewalk(flush), self._kafka()],
                load,
                {"MB/s": target, "CPU s/GB": None},
            )

    def consume(self) -> None:
        brokers = [self._ropewalk("os"), self._kafka()]
        record_count = self._megabytes * 1_000_000 // 1024
        topics: dict[str, str] = {}
        for broker in filter(None, brokers):
            topics[broker.name] = client_load.create_topic(broker, "consume")
            client_load.produce(broker, topics[broker.name], record_bytes=1024, record_count=record_count)

        def load(broker: Broker) -> dict[str, float]:
            return client_load.consume(
                broker, topics[broker.name], record_bytes=1024, record_count=record_count
            )

        def raw(broker: Broker) -> dict[str, float]:
            return raw_load.fetch(
                broker,
                topics[broker.name],
                partition_count=client_load.PARTITION_COUNT,
                connection_count=_RAW_CONNECTIONS,
                record_count=record_count,
            )

        self._compare("consume 1024 B", brokers, load, {"MB/s": at_least(1.1), "CPU s/GB": at_most(1.2)})
        self._compare("consume 1024 B, raw client", brokers, raw, {"MB/s": None, "CPU s/GB": None})
        for broker in filter(None, brokers):
            client_load.delete_topic(broker, topics[broker.name])

    def latency(self) -> None:
        kafka = self._kafka()
        if self._node_count > 1:
            self._latency_replicated(kafka)
            return
        title = "ack latency at 1,000 records/s"
        self._compare(
            title,
            [self._ropewalk("os"), kafka],
            self._latency,
            {"p50 ms": at_most(0.5), "p99 ms": at_most(0.5), "CPU µs each": None},
        )
        self._compare(
            f"{title}, flush=group" + ("" if self._against else " against Kafka without fsync"),
            [self._ropewalk("group"), self._kafka("group")],
            self._latency,
            {"p50 ms": None, "p99 ms": None, "CPU µs each": None},
        )

    def _latency_replicated(self, kafka: Broker | None) -> None:
        """At the rate that Kafka keeps up with once it is warm, and at 1,000 records/s, whoever does."""
        for broker in filter(None, (self._ropewalk("os"), self._ropewalk("group"), kafka)):
            _progress(f"warming up {broker.name}")
            for _ in range(_WARM_UPS):
                self._latency(broker)
        rates = {1000: None, self._sustained_rate(kafka): at_most(0.5)}
        for rate, target in rates.items():

            def load(broker: Broker, rate: int = rate) -> dict[str, float]:
                return client_load.ack_latency(broker, records_per_second=rate, seconds=self._seconds)

            for flush in ("os", "group"):
                self._compare(
                    f"ack latency at {rate:,} records/s, {self._node_count} replicas, flush={flush}",
                    [self._ropewalk(flush), kafka],
                    load,
                    {"p50 ms": None, "p99 ms": target if flush == "os" else None},
                )

    def _sustained_rate(self, kafka: Broker | None) -> int:
        """The largest rate of single records at which acknowledgements do not fall behind."""
        rates = (1000, 500, 200, 100, 50)
        for rate in rates:
            if kafka is None:
                break
            _progress(f"does {kafka.name} keep up with {rate} records/s?")
            sample = client_load.ack_latency(kafka, records_per_second=rate, seconds=min(4, self._seconds))
            if sample["p50 ms"] < _KEEPS_UP_P50_MS:
                return rate
        return rates[-1]

    def fsync(self) -> None:
        ours, kafka = self._ropewalk("group"), self._kafka()
        synced = kafka and dataclasses.replace(
            kafka, name=f"{kafka.name} flush.messages=1", topic_settings={"flush.messages": "1"}
        )
        record_count = self._megabytes * 1_000_000 // 1024

        def load(broker: Broker) -> dict[str, float]:
            return self._produced(broker, record_bytes=1024, record_count=record_count)

        self._compare(
            "produce 1024 B with fsync", [ours, synced], load, {"MB/s": at_least(2), "CPU s/GB": None}
        )
        self._compare(
            "ack latency at 1,000 records/s with fsync",
            [ours, synced],
            self._latency,
            {"p50 ms": at_most(0.1), "p99 ms": at_most(0.1)},
        )
        self._compare("produce 1024 B, fsync against none", [ours, kafka], load, {"MB/s": at_least(0.7)})

    def startup(self) -> None:
        """Processes of its own, started and stopped one after the other."""

        def load(start: Callable[[], Broker]) -> dict[str, float]:
            broker = start()
            try:
                return client_load.first_ack(broker, idle_seconds=_IDLE_SECONDS)
            finally:
                broker.stop()

        samples: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for repetition in range(self._repetitions):
            for name, start, taken in (
                ("ropewalk", lambda: start_ropewalk("os"), samples[0]),
                ("kafka", start_kafka, samples[1]),
            ):
                if self._only in (None, name):
                    _progress(f"start-up, {name}, {repetition + 1} of {self._repetitions}")
                    taken.append(load(start))
        self._add("start-up", *samples, {"first ack s": at_most(0.15), "idle MiB": at_most(0.2)})

    def commit(self) -> None:
        """Kafka's commits are in the page cache when they are answered, those of `flush=group` on disk."""
        kafka = self._kafka()
        seconds = min(4, self._seconds)

        def raw(broker: Broker) -> dict[str, float]:
            topic = client_load.create_topic(broker, "commit")
            return commit_load.commit(
                broker,
                topic,
                connection_count=_COMMIT_CONNECTIONS,
                depth=_COMMIT_DEPTH,
                group_count=_COMMIT_GROUPS,
                seconds=seconds,
            )

        def one_by_one(broker: Broker) -> dict[str, float]:
            topic = client_load.create_topic(broker, "commit")
            return commit_load.commit_one_by_one(broker, topic, seconds=seconds)

        for flush in ("group", "os"):
            brokers = [self._ropewalk(flush), kafka]
            self._warm_up(brokers, raw)
            self._compare(
                f"commits of {_COMMIT_GROUPS} groups, raw client, flush={flush}",
                brokers,
                raw,
                {"commits/s": at_least(1), "p99 ms": None, "CPU µs each": None},
            )
            self._compare(
                f"commits one by one, flush={flush}",
                brokers,
                one_by_one,
                {"commits/s": at_least(1), "p99 ms": None},
            )

    def join(self) -> None:
        kafka = self._kafka()
        for flush in ("group", "os"):
            for member_count in _MEMBER_COUNTS:

                def load(broker: Broker, member_count: int = member_count) -> dict[str, float]:
                    return join_load.join(broker, member_count=member_count)

                brokers = [self._ropewalk(flush), kafka]
                self._warm_up(brokers, load)
                self._compare(
                    f"join to assignment, {member_count} members, flush={flush}",
                    brokers,
                    load,
                    {"ms": at_most(1), "generations": None},
                )

    def join848(self) -> None:
        kafka = self._kafka()
        for flush in ("group", "os"):
            for member_count in _MEMBER_COUNTS:

                def load(broker: Broker, member_count: int = member_count) -> dict[str, float]:
                    topic = client_load.create_topic(broker, "join848", _SHARED_PARTITIONS)
                    sample = join848_load.join(
                        broker, topic, member_count=member_count, partition_count=_SHARED_PARTITIONS
                    )
                    client_load.delete_topic(broker, topic)
                    return sample

                brokers = [self._ropewalk(flush), kafka]
                self._warm_up(brokers, load)
                self._compare(
                    f"join to assignment by the broker, {member_count} members, flush={flush}",
                    brokers,
                    load,
                    {"ms": at_most(1), "heartbeats": None},
                )

    def txn(self) -> None:
        """Kafka's are in the page cache when they are answered, those of `flush=group` on disk."""
        kafka = self._kafka()
        seconds = min(4, self._seconds)

        def raw(broker: Broker) -> dict[str, float]:
            topic = client_load.create_topic(broker, "txn")
            sample = txn_load.transact(broker, topic, producer_count=_TXN_PRODUCERS, seconds=seconds)
            client_load.delete_topic(broker, topic)
            return sample

        def ordinary(broker: Broker) -> dict[str, float]:
            topic = client_load.create_topic(broker, "txn")
            sample = txn_load.transact_ordinarily(
                broker, topic, producer_count=_TXN_ORDINARY_PRODUCERS, seconds=seconds
            )
            client_load.delete_topic(broker, topic)
            return sample

        for flush in ("group", "os"):
            brokers = [self._ropewalk(flush), kafka]
            if self._node_count == 1:  # the raw client knows one node
                self._warm_up(brokers, raw)
                self._compare(
                    f"transactions of {txn_load.RECORDS} records, {_TXN_PRODUCERS} producers, raw client, flush={flush}",
                    brokers,
                    raw,
                    {"transactions/s": at_least(1), "p99 ms": None, "CPU µs each": None},
                )
            self._warm_up(brokers, ordinary)
            self._compare(
                f"transactions of {txn_load.RECORDS} records, {_TXN_ORDINARY_PRODUCERS} producers, flush={flush}",
                brokers,
                ordinary,
                {"transactions/s": at_least(1), "CPU µs each": None},
            )

    def failover(self) -> None:
        """Clusters of its own, started and stopped one after the other: each of them loses a node."""
        if self._node_count < 3:
            _progress("failover is left out: it takes --rf 3")
            return

        def load(start: Callable[[], Broker]) -> dict[str, float]:
            broker = start()
            try:
                return failover_load.lose_coordinator(broker)
            finally:
                broker.stop()

        starts: dict[str, Callable[[], Broker]] = {
            "ropewalk": lambda: start_ropewalk("group", node_count=self._node_count),
            "kafka": lambda: start_kafka(node_count=self._node_count),
        }
        samples: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for repetition in range(self._repetitions):
            for (name, start), taken in zip(starts.items(), samples, strict=True):
                if self._only in (None, name):
                    _progress(f"failover, {name}, {repetition + 1} of {self._repetitions}")
                    taken.append(load(start))
        self._add("a coordinator is killed, until its group can commit", *samples, {"ms": at_most(1)})

    def sessions(self) -> None:
        brokers = [self._ropewalk("os"), self._kafka()]
        for partition_count in (500, 2000):

            def load(broker: Broker, count: int = partition_count) -> dict[str, float]:
                return session_load.fetch_one_by_one(
                    broker, partition_count=count, fetch_count=_SESSION_FETCHES
                )

            self._compare(
                f"fetch in a session of {partition_count} partitions",
                brokers,
                load,
                {"fetches/s": at_least(1), "CPU µs": at_most(1), "p50 ms": None, "p99 ms": None},
            )

    def _produced(self, broker: Broker, *, record_bytes: int, record_count: int) -> dict[str, float]:
        topic = client_load.create_topic(broker, "produce")
        sample = client_load.produce(broker, topic, record_bytes=record_bytes, record_count=record_count)
        client_load.delete_topic(broker, topic)
        return sample

    def _raw_produced(self, broker: Broker) -> dict[str, float]:
        topic = client_load.create_topic(broker, "raw")
        result = raw_load.produce(
            broker,
            topic,
            partition_count=client_load.PARTITION_COUNT,
            connection_count=_RAW_CONNECTIONS,
            depth=_RAW_DEPTH,
            seconds=min(4, self._seconds),
            batch_bytes=_RAW_BATCH_BYTES,
        )
        client_load.delete_topic(broker, topic)
        return {
            "MB/s": result.bytes_per_second / 1e6,
            "CPU s/GB": result.cpu_seconds_per_gb,
            "p99 ms": result.p99_ms,
            "foreign cores": result.foreign_cores,
        }

    def _latency(self, broker: Broker) -> dict[str, float]:
        return client_load.ack_latency(broker, records_per_second=1000, seconds=self._seconds)

    def _ropewalk(self, flush: str) -> Broker | None:
        if self._only == "kafka":
            return None
        return self._start(
            f"ropewalk {flush}",
            lambda: start_ropewalk(flush, settings=_GROUPS_AT_ONCE, node_count=self._node_count),
        )

    def _kafka(self, flush: str = "os") -> Broker | None:
        """Or the revision that stands in its place, with its `flush`."""
        if self._only == "ropewalk":
            return None
        if self._against is not None:
            return self._start(
                f"{self._against.name} {flush}",
                lambda: start_ropewalk(
                    flush, settings=_GROUPS_AT_ONCE, node_count=self._node_count, source=self._against
                ),
            )
        return self._start(
            "kafka", lambda: start_kafka(settings=_GROUPS_AT_ONCE, node_count=self._node_count)
        )

    def _start(self, key: str, start: Callable[[], Broker]) -> Broker:
        """Started and warmed up when first needed: a JVM compiles what it runs often."""
        if key not in self._started:
            _progress(f"starting {key}")
            broker = start()
            self._brokers.callback(broker.stop)
            self._started[key] = broker
            topic = client_load.create_topic(broker, "warm-up")
            record_count = min(400_000, self._megabytes * 1000)
            client_load.produce(broker, topic, record_bytes=1024, record_count=record_count)
            client_load.consume(broker, topic, record_bytes=1024, record_count=record_count)
            client_load.delete_topic(broker, topic)
        return self._started[key]

    def _warm_up(self, brokers: Sequence[Broker | None], load: Callable[[Broker], dict[str, float]]) -> None:
        """Once, unmeasured: what was not needed before has not been compiled either."""
        for broker in filter(None, brokers):
            load(broker)

    def _compare(
        self,
        title: str,
        brokers: Sequence[Broker | None],
        load: Callable[[Broker], dict[str, float]],
        targets: dict[str, Target | None],
    ) -> None:
        """Load the two in turn; who goes first changes with every repetition."""
        samples: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        turns = list(zip(brokers, samples, strict=True))
        for repetition in range(self._repetitions):
            for broker, taken in turns if repetition % 2 == 0 else reversed(turns):
                if broker is None:
                    continue
                _progress(f"{title}, {broker.name}, {repetition + 1} of {self._repetitions}")
                _settle()
                taken.append(load(broker))
        peer = brokers[1]
        self._add(title, *samples, targets, peer.name if peer else "")

    def _add(
        self,
        title: str,
        ours: Samples,
        theirs: Samples,
        targets: dict[str, Target | None],
        peer: str = f"Kafka {KAFKA_VERSION}",
    ) -> None:
        if self._against is not None:
            targets = {figure: SAME_CPU if "CPU" in figure else None for figure in targets}
        rows = compare(title, peer, ours, theirs, targets)
        self.rows += rows
        for sample in (*ours, *theirs):
            self.foreign_cores_max = max(self.foreign_cores_max, sample.get("foreign cores", 0.0))
        for row in rows:
            print("  ".join(row.cells()), flush=True)


def _settle() -> None:
    """Let the disk finish what the run before left in the page cache; it would slow the next one."""
    os.sync()
    time.sleep(0.5)


def _progress(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/kafka", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "modes", nargs="*", metavar="MODE", help=f"{', '.join(MODES)}; all of them if none is given"
    )
    parser.add_argument("--repetitions", type=int, default=3, help="of every measurement (3)")
    parser.add_argument(
        "--megabytes", type=int, default=1000, help="of payload in a produce or consume run (1000)"
    )
    parser.add_argument("--seconds", type=int, default=10, help="of a latency run (10)")
    parser.add_argument(
        "--rf", type=int, default=1, metavar="N", help="nodes of each broker, and replicas of each topic (1)"
    )
    parser.add_argument(
        "--against", metavar="REVISION", help="compare with this revision of Ropewalk instead of with Kafka"
    )
    parser.add_argument("--only", choices=["ropewalk", "kafka"], help="one of the two, without ratios")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()
    modes = arguments.modes or MODES
    if unknown := set(modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    try:
        with ExitStack() as brokers:
            comparison = Comparison(brokers, arguments)
            for mode in modes:
                getattr(comparison, mode)()
    except (Unavailable, client_load.LoadFailed, KafkaException) as error:
        print(f"bench/kafka: {error}", file=sys.stderr)
        return 1
    versions = f"confluent-kafka {confluent_kafka.version()}"
    table = markdown(comparison.rows, comparison.foreign_cores_max, versions)
    print("\n" + table)
    if arguments.markdown:
        arguments.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
