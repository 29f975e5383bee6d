"""What a change of the cluster's facts costs with its metadata in etcd: three members on this machine, started for it.

Measured are an append of one fact, when another controller has heard of it, a take-over, and a snapshot of many topics.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ropewalk.base.ids import LeaderEpoch, NodeId, ProducerId, TopicId
from ropewalk.local.etcd import etcd_program, is_healthy, member_command, plan_etcd
from ropewalk.metadata.changes import appends_of
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Committed, Snapshot
from ropewalk.metadata.records import MetadataRecord, PartitionCreated, ProducerIdsAllocated, TopicCreated
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork

PARTITIONS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/etcd", description=__doc__)
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--topics", type=int, default=2000, help="in the snapshot, with 3 partitions each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, _members(Path(directory)) as urls:
        asyncio.run(_measure(urls, arguments.appends, arguments.topics))


async def _measure(urls: list[str], append_count: int, topic_count: int) -> None:
    one, other = await _opened(urls), await _opened(urls)
    listening = [asyncio.get_running_loop().create_task(log.run()) for log in (one, other)]
    started = time.perf_counter()
    epoch = await one.take_over(NodeId(0), expected_epoch=0)
    assert epoch is not None
    print(f"take-over            {_ms(time.perf_counter() - started)}")
    committed, heard = [], []
    for number in range(append_count):
        started = time.perf_counter()
        await _append(one, [ProducerIdsAllocated(NodeId(0), ProducerId(number + 1))])
        committed.append(time.perf_counter() - started)
        while other.end_offset < one.end_offset:
            await other.news(end_offset=other.end_offset, holder_epoch=epoch, timeout_ms=1000)
        heard.append(time.perf_counter() - started)
    print(f"append               {_spread(committed)}")
    print(f"heard by another     {_spread(heard)}")
    await _measure_snapshot(one, other, topic_count)
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)


async def _measure_snapshot(one: EtcdMetadataLog, other: EtcdMetadataLog, topic_count: int) -> None:
    image = Image()
    image.end_offset = one.end_offset
    started = time.perf_counter()
    for part in appends_of(list(_topics(topic_count))):
        await _append(one, part)
        for record in part:
            image.apply(record)
    print(f"{topic_count:,} topics appended  {_ms(time.perf_counter() - started)}")
    started = time.perf_counter()
    await one.write_snapshot(Snapshot(one.epoch, image.end_offset, tuple(image.facts())))
    print(f"snapshot written     {_ms(time.perf_counter() - started)}")
    started = time.perf_counter()
    snapshot = await other.snapshot()
    Image().replace(snapshot.facts, snapshot.end_offset)
    print(f"snapshot loaded      {_ms(time.perf_counter() - started)}, {len(snapshot.facts):,} facts")


def _topics(count: int) -> Iterator[MetadataRecord]:
    for number in range(count):
        topic_id = TopicId(number.to_bytes(16, "big"))
        yield TopicCreated(topic_id, f"topic-{number}")
        for index in range(PARTITIONS):
            replicas = tuple(NodeId((number + index + step) % 3) for step in range(3))
            yield PartitionCreated(topic_id, index, replicas, replicas, replicas[0], LeaderEpoch(0), 0)


async def _append(log: EtcdMetadataLog, records: Sequence[MetadataRecord]) -> None:
    outcome = await log.append(records, expected_epoch=log.epoch, expected_end_offset=log.end_offset)
    assert isinstance(outcome, Committed), outcome


async def _opened(urls: list[str]) -> EtcdMetadataLog:
    access = Access(parse_members(urls))
    return await EtcdMetadataLog.open(TcpNetwork(), SystemClock(), random.Random(), access, prefix="/bench/")


@contextmanager
def _members(directory: Path) -> Iterator[list[str]]:
    members = plan_etcd(directory)
    processes = [
        subprocess.Popen(
            member_command(etcd_program(), member, members, directory), stderr=subprocess.DEVNULL
        )
        for member in members
    ]
    try:
        while not all(asyncio.run(is_healthy(member)) for member in members):
            time.sleep(0.1)
        yield [member.url for member in members]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _spread(seconds: list[float]) -> str:
    cuts = statistics.quantiles(seconds, n=100)
    return f"p50 {_ms(cuts[49])}, p99 {_ms(cuts[98])}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    main()
