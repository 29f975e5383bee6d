"""`bench/load-offsets`: how long the node that takes over a shard of groups reads before it serves.

    bench/load-offsets                                   ten million commits of a million offsets
    bench/load-offsets --records 1000000 --offsets 1000000

A partition is filled with commits as groups make them, six offsets in a batch, and loaded as a new coordinator loads
it. A clock on the same loop says how long others were kept waiting. Nothing is compacted beforehand: what is
measured is the longest log that compaction would shorten.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.report import machine
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from ropewalk.broker.coordinators.group_topics import GroupTopics
from ropewalk.broker.hosting.keyed import Keyed
from ropewalk.broker.hosting.shard import Shard
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.controller.topics import CreateTopic
from ropewalk.groups.answers import Answer, CommittedOffset
from ropewalk.groups.commands import AnyCommand
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import Event, OffsetCommitted
from ropewalk.groups.settings import GroupSettings
from ropewalk.log.directory import DataDirectory
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.records.batch import decode_header
from ropewalk.records.record import Record, build
from ropewalk.records.validate import Rules
from ropewalk.runtime.loop import run
from ropewalk.runtime.ports import SystemPorts, on_disk

_NAME: Final = TopicPartition("__consumer_offsets", 0)
_TOPIC_ID: Final = TopicId(b"t" * 16)
_BATCH_OFFSETS: Final = 6
_GROUP_PARTITIONS: Final = 60
_SEGMENT_BYTES: Final = 100 << 20
_STAMP_MS: Final = 1_700_000_000_000


class _GroupsKind:
    keys_called = "group"
    topic = OFFSETS_TOPIC
    log: Keyed[Event] = Keyed(encode_event, decode_event)

    def __init__(self, ports: SystemPorts) -> None:
        self._rng = ports.rng

    def only_writes(self, command: AnyCommand) -> bool:  # noqa: ARG002  nobody commands here
        return False

    def new_topic(self, settings: BrokerSettings) -> CreateTopic:  # noqa: ARG002  nor makes topics
        raise AssertionError("there is one")

    def new_core(self) -> GroupsCore:
        return GroupsCore(GroupSettings(), self._rng, GroupTopics(Image()))


def commits(record_count: int, offset_count: int) -> Iterator[bytearray]:
    """Batches of one commit each: every group commits all of its partitions, six at a time, again and again."""
    for number in range(record_count // _BATCH_OFFSETS):
        first = number * _BATCH_OFFSETS % offset_count
        committed = CommittedOffset(number, 3, "", _STAMP_MS)
        records = []
        for place in range(first, first + _BATCH_OFFSETS):
            group, partition = divmod(place, _GROUP_PARTITIONS)
            key, value = encode_event(OffsetCommitted(f"billing-{group:06}", "orders", partition, committed))
            records.append(Record(timestamp=_STAMP_MS, key=key, value=value))
        yield build(records)


def fill(partition: Partition, record_count: int, offset_count: int) -> None:
    for batch in commits(record_count, offset_count):
        partition.append(Prepared(memoryview(batch), decode_header(batch)), Acks.NOBODY, 0)


async def watch(worst_ms: list[float]) -> None:
    """Others on the loop: they want a turn every millisecond, and note how late it came."""
    while True:
        asked_at = time.perf_counter()
        await asyncio.sleep(0.001)
        worst_ms.append((time.perf_counter() - asked_at) * 1000 - 1)


async def measure(directory: Path, record_count: int, offset_count: int) -> str:
    ports = on_disk(str(directory))
    data = DataDirectory.open(Storage(ports.disk), f"{directory}/data", node_id=NodeId(0), rng=ports.rng)
    data.create_partition(_NAME, _TOPIC_ID)
    log = data.open_log(_NAME, _TOPIC_ID, LogSettings(segment_bytes=_SEGMENT_BYTES), now_ms=_STAMP_MS)
    partition = Partition(
        _NAME,
        _TOPIC_ID,
        log,
        leader_epoch=LeaderEpoch(0),
        rules=Rules(bytes_max=1 << 20),
        durable_first=False,
        in_memory=False,
        commits=GroupCommit(ports.disk, ports.pool, ports.clock),
        clock=ports.clock,
    )
    fill(partition, record_count, offset_count)
    kind = _GroupsKind(ports)
    shard: Shard[AnyCommand, Event, Answer] = Shard(
        kind,
        partition,
        SteadyTime(ports.clock),
        ports.pool,
        commit_timeout_ms=5000,
        on_thrown_away=lambda _: None,
    )
    late_ms: list[float] = []
    watcher = asyncio.create_task(watch(late_ms))
    begun_at, cpu_before = time.perf_counter(), time.process_time()
    await shard.load()
    seconds, cpu_seconds = time.perf_counter() - begun_at, time.process_time() - cpu_before
    watcher.cancel()
    core = shard.core
    assert isinstance(core, GroupsCore)
    found_count = sum(1 for group_id in core.durable.group_ids() for _ in core.durable.offsets(group_id))
    assert found_count == offset_count, f"{found_count} offsets are there, {offset_count} were committed"
    late_ms.sort()
    return (
        f"{record_count:,} commits of {offset_count:,} offsets ({log.size_bytes / 1e6:,.0f} MB): loaded in {seconds:.2f} s "
        f"({cpu_seconds:.2f} s of CPU); others on the loop waited {late_ms[len(late_ms) // 2]:.1f} ms in the middle, "
        f"{late_ms[int(len(late_ms) * 0.99)]:.1f} ms at the 99th percentile, {late_ms[-1]:.1f} ms at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=10_000_000, help="commits in the log (10,000,000)")
    parser.add_argument("--offsets", type=int, default=1_000_000, help="distinct ones among them (1,000,000)")
    arguments = parser.parse_args()
    offset_count = arguments.offsets - arguments.offsets % _GROUP_PARTITIONS
    with tempfile.TemporaryDirectory() as directory:
        print(machine())
        print(
            run(measure(Path(directory), arguments.records - arguments.records % offset_count, offset_count))
        )


if __name__ == "__main__":
    main()
