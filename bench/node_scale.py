"""`bench/scale`: one node with thousands of topics and thousands of connections that say nothing.

It makes the topics, stops and kills the node to see how soon it is back, opens the connections, looks at what the
node costs while nobody asks for anything, and then writes at a modest pace while all of that is open. `flush=group`:
whatever is acknowledged, a new topic as well, is on disk.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.brokers import ROOT, Broker, Unavailable, source_of, start_ropewalk
from bench.client_load import LoadFailed
from bench.idle_clients import all_metadata_ms, connect_many, create_topics_in, spread_latency_ms
from bench.processes import Meter, cpu_seconds, descriptor_count, resident_mib
from bench.report import SAME_CPU, figure, machine
from bench.report import Row as Pair
from bench.report import markdown as pairs_markdown
from ropewalk.runtime.loop_watch import STALLS_FILE, read_stalls

START_SECONDS_MAX: Final = 10.0
RECORDS_PER_SECOND: Final = 200
CREATED_TOGETHER: Final = 100
METADATA_ROUNDS: Final = 20
HELD_MS_MAX: Final = 250.0
"""How long one turn of the node's event loop may take of its own doing."""


class Row(Struct, frozen=True):
    measure: str
    value: float
    unit: str
    wanted_max: float | None = None

    def cells(self) -> tuple[str, str, str]:
        wanted = ""
        if self.wanted_max is not None:
            wanted = f"≤ {self.wanted_max:g} {'met' if self.value <= self.wanted_max else 'MISSED'}"
        return self.measure, f"{figure(self.value)} {self.unit}", wanted


class Measured(Struct, frozen=True):
    rows: list[Row]
    foreign_cores: float


def measure(
    *, topic_count: int, partition_count: int, connection_count: int, seconds: int, source: Path | None = None
) -> Measured:
    """`source` is that of another revision. Where the environment has the loop watched, `LoadFailed` if it was held for long."""
    rows: list[Row] = []
    broker = start_ropewalk("group", source=source)
    directory = broker.directory
    try:
        _say("an empty node")
        empty_mib = resident_mib(broker.pid)
        rows.append(Row("empty node, memory", empty_mib, "MiB"))
        names = [f"scale-{number:05}" for number in range(topic_count)]
        _say(f"{topic_count} topics of {partition_count} partitions")
        with Meter(broker.pid) as creating:
            create_topics_in(
                broker, names, partition_count=partition_count, together=min(CREATED_TOGETHER, topic_count)
            )
        rows += (
            Row(f"create the topics, {CREATED_TOGETHER} with each request", creating.seconds, "s"),
            Row("of that, the node's CPU", creating.broker_cpu_seconds, "s"),
            Row("memory after that", resident_mib(broker.pid), "MiB"),
        )
        # A record in every partition, so that a start has a log to open and not only a name.
        _say("a record in every partition")
        _fill(broker, names, partition_count)
        broker = _restart(broker, "stop", rows, source)
        broker = _restart(broker, "kill -9", rows, source)
        rows.append(Row("memory after that", resident_mib(broker.pid), "MiB"))
        idle, without = _idle("without connections", broker, seconds)
        rows.append(without)
        _say(f"{connection_count} connections")
        with Meter(broker.pid) as connecting:
            connections = connect_many(broker, connection_count)
        rows.append(Row(f"open {connection_count:,} connections", connecting.seconds, "s"))
        time.sleep(seconds)  # a silent connection gives its buffer back after a while
        busy, with_all = _idle(f"with {connection_count:,} connections", broker, seconds)
        rows += (
            with_all,
            Row("memory with them", resident_mib(broker.pid), "MiB"),
            Row("descriptors", descriptor_count(broker.pid), ""),
        )
        _say("Metadata, and a modest pace of writes")
        durations = all_metadata_ms(broker, topic_count=topic_count, rounds=METADATA_ROUNDS)
        rows.append(Row("Metadata of all topics, p50", _at(durations, 0.5), "ms"))
        with Meter(broker.pid) as writing:
            latencies = spread_latency_ms(
                broker,
                names,
                partition_count=partition_count,
                records_per_second=RECORDS_PER_SECOND,
                seconds=seconds,
            )
        rows += (
            Row(f"ack at {RECORDS_PER_SECOND} records/s over all partitions, p50", _at(latencies, 0.5), "ms"),
            Row(
                f"ack at {RECORDS_PER_SECOND} records/s over all partitions, p99", _at(latencies, 0.99), "ms"
            ),
            Row("CPU meanwhile", 100 * writing.broker_cpu_seconds / writing.seconds, "% of a core"),
        )
        for connection in connections:
            connection.close()
        check_stalls()
        return Measured(rows, max(meter.foreign_cores for meter in (creating, idle, busy, writing)))
    finally:
        broker.kill()
        shutil.rmtree(directory, ignore_errors=True)


def markdown(measured: Measured, *, topic_count: int, partition_count: int, connection_count: int) -> str:
    lines = [
        f"{time.strftime('%Y-%m-%d')}, commit {commit()}, {machine()}, `flush=group`; {topic_count:,} topics of "
        f"{partition_count} partitions, {connection_count:,} connections. Other processes used up to "
        f"{measured.foreign_cores:.2f} cores.",
        "",
        "| measure | | wanted |",
        "|---|---|---|",
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in measured.rows]
    return "\n".join(lines) + "\n"


def check_stalls() -> None:
    """Of nodes that were started with the loop watched."""
    path = os.environ.get(STALLS_FILE)
    held = [] if path is None else [stall for stall in read_stalls(Path(path)) if not stall.is_disk]
    longest = max(held, key=lambda stall: stall.own_ms, default=None)
    if longest is not None and longest.own_ms > HELD_MS_MAX:
        raise LoadFailed(f"the loop was held for {longest.own_ms:.0f} ms by {' < '.join(longest.where)}")


def measure_pairs(
    pair_count: int,
    revision: str,
    *,
    topic_count: int,
    partition_count: int,
    connection_count: int,
    seconds: int,
) -> str:
    """This source and that of the revision in turn; who goes first changes with every pair."""
    source = source_of(revision)
    taken: dict[Path | None, list[Measured]] = {None: [], source: []}
    for pair in range(pair_count):
        for which in (None, source) if pair % 2 == 0 else (source, None):
            _say(f"pair {pair + 1} of {pair_count}, {'this source' if which is None else source.name}")
            taken[which].append(
                measure(
                    topic_count=topic_count,
                    partition_count=partition_count,
                    connection_count=connection_count,
                    seconds=seconds,
                    source=which,
                )
            )
    ours, theirs = taken[None], taken[source]
    rows = [
        Pair(
            f"{row.measure}, {row.unit}",
            source.name,
            tuple(each.rows[index].value for each in ours),
            tuple(each.rows[index].value for each in theirs),
            SAME_CPU if "CPU" in row.measure else None,
        )
        for index, row in enumerate(ours[0].rows)
    ]
    foreign_cores = max(each.foreign_cores for each in (*ours, *theirs))
    return pairs_markdown(rows, foreign_cores, f"commit {commit()} against {source.name}")


def _fill(broker: Broker, names: list[str], partition_count: int) -> None:
    spread_latency_ms(
        broker,
        names,
        partition_count=partition_count,
        records_per_second=len(names) * partition_count // 4,
        seconds=3,
    )


def _restart(broker: Broker, how: str, rows: list[Row], source: Path | None) -> Broker:
    """End the node and start it again over its directory."""
    _say(f"start after {how}")
    began = time.perf_counter()
    if how == "stop":
        broker.halt()
        rows.append(Row("stop in order", time.perf_counter() - began, "s"))
    else:
        broker.kill()
    broker = start_ropewalk("group", broker.directory, source=source)
    seconds = time.perf_counter() - broker.started_at
    rows += (
        Row(f"start after {how}, process to ready", seconds, "s", START_SECONDS_MAX),
        Row(f"of the start after {how}, the node's CPU", cpu_seconds(broker.pid), "s"),
    )
    return broker


def _idle(title: str, broker: Broker, seconds: int) -> tuple[Meter, Row]:
    _say(f"idle {title}")
    with Meter(broker.pid) as meter:
        time.sleep(seconds)
    return meter, Row(f"idle CPU {title}", 100 * meter.broker_cpu_seconds / meter.seconds, "% of a core")


def _at(rising: Sequence[float], share: float) -> float:
    return rising[min(len(rising) - 1, int(len(rising) * share))]


def commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def _say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=3, help="of each topic (3)")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=20, help="of each look at the idle node (20)")
    parser.add_argument("--against", metavar="REVISION", help="measure this source and that one's in turn")
    parser.add_argument("--pairs", type=int, default=9, help="of runs, with --against (9)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument(
        "--watch-loop", action="store_true", help=f"fail where it is held for more than {HELD_MS_MAX:.0f} ms"
    )
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    counts = {
        "topic_count": arguments.topics,
        "partition_count": arguments.partitions,
        "connection_count": arguments.connections,
    }
    if arguments.watch_loop:
        os.environ[STALLS_FILE] = tempfile.mkstemp(prefix="stalls-")[1]
    try:
        if arguments.against is not None:
            table = measure_pairs(arguments.pairs, arguments.against, **counts, seconds=arguments.seconds)
        else:
            table = markdown(measure(**counts, seconds=arguments.seconds), **counts)
    except (Unavailable, LoadFailed, OSError) as error:
        print(f"bench/scale: {error}", file=sys.stderr)
        return 1
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
