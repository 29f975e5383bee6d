"""`bench/partitions`: durable records/s and latency as the partitions grow and nothing else does.

The raw client keeps the same bytes unanswered in batches of 16 KiB, spread over 1, 6, 100 and 1,000 partitions of
a node with `flush=group`: every acknowledged record is on disk. One group commit serves all partitions, so the
curve shows what a dirty partition costs.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from bench import client_load, raw_load
from bench.brokers import Unavailable, start_ropewalk
from bench.report import figure, machine

BATCH_BYTES: Final = 16 * 1024
CONNECTIONS: Final = 8
DEPTH: Final = 64
COMPARED: Final = (6, 1000)
RATIO_MIN: Final = 0.5


def measure(
    partition_counts: list[int], *, flush: str, repetitions: int, seconds: float
) -> dict[int, list[raw_load.RawProduced]]:
    """All partition counts in turn, so that a slow minute of the machine does not fall on one of them."""
    found: dict[int, list[raw_load.RawProduced]] = {count: [] for count in partition_counts}
    broker = start_ropewalk(flush)
    try:
        for repetition in range(repetitions):
            for count in partition_counts:
                print(f"… {count} partitions, {repetition + 1} of {repetitions}", file=sys.stderr, flush=True)
                topic = client_load.create_topic(broker, f"curve-{count}", count)
                found[count].append(
                    raw_load.produce(
                        broker,
                        topic,
                        partition_count=count,
                        connection_count=CONNECTIONS,
                        depth=DEPTH,
                        seconds=seconds,
                        batch_bytes=BATCH_BYTES,
                    )
                )
                client_load.delete_topic(broker, topic)
                time.sleep(0.5)
    finally:
        broker.stop()
    return found


def markdown(found: dict[int, list[raw_load.RawProduced]], flush: str) -> str:
    foreign = max(run.foreign_cores for runs in found.values() for run in runs)
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}, `flush={flush}`, raw client, records of 1 KiB in batches of "
        f"{BATCH_BYTES // 1024} KiB, {CONNECTIONS * DEPTH * BATCH_BYTES // 2**20} MiB in flight. Median of the "
        f"repetitions. Other processes used up to {foreign:.2f} cores during a run.",
        "",
        "| partitions | records/s | MB/s | p50 ms | p99 ms | CPU s/GB |",
        "|---|---|---|---|---|---|",
    ]
    for count, runs in found.items():
        cells = (
            f"{count:,}",
            _median(runs, "records_per_second"),
            figure(statistics.median(run.bytes_per_second for run in runs) / 1e6),
            _median(runs, "p50_ms"),
            _median(runs, "p99_ms"),
            _median(runs, "cpu_seconds_per_gb"),
        )
        lines.append("| " + " | ".join(cells) + " |")
    if all(count in found for count in COMPARED):
        few, many = ([run.records_per_second for run in found[count]] for count in COMPARED)
        ratios = [there / here for here, there in zip(few, many, strict=True)]
        ratio = statistics.median(ratios)
        lines += [
            "",
            f"{COMPARED[1]:,} partitions keep {ratio:.2f} [{min(ratios):.2f} – {max(ratios):.2f}] of what "
            f"{COMPARED[0]} do; wanted ≥ {RATIO_MIN}: {'met' if ratio >= RATIO_MIN else 'MISSED'}.",
        ]
    return "\n".join(lines) + "\n"


def _median(runs: list[raw_load.RawProduced], name: str) -> str:
    return figure(statistics.median(getattr(run, name) for run in runs))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/partitions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "counts", nargs="*", type=int, default=[1, 6, 100, 1000], help="numbers of partitions"
    )
    parser.add_argument("--flush", choices=["group", "os"], default="group")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of one run, a quarter of it warm-up (8)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    arguments = parser.parse_args()
    try:
        found = measure(
            arguments.counts,
            flush=arguments.flush,
            repetitions=arguments.repetitions,
            seconds=arguments.seconds,
        )
    except (Unavailable, client_load.LoadFailed, KafkaException) as error:
        print(f"bench/partitions: {error}", file=sys.stderr)
        return 1
    table = markdown(found, arguments.flush)
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
