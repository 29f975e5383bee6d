"""Clients that read from a cluster: consumers that follow partitions, and the one who reads everything at the end.

What a reader could get wrong
    A new leader may not have heard yet how far its predecessor had come, and a deposed one never will. So an answer
    that gives less than was known is in order; one that gives something else is not.
    A consumer tells the newest epoch it has heard of, so nobody older answers it. What it has read it read from a leader of
    that epoch or an older one, and the leader that it asks must have it.
"""

import asyncio

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.asking import ask_offset, fetch_answers, fetch_topics
from ropewalk.sim.clients.consumers import is_same
from ropewalk.sim.clients.content import decode_batches
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.judges.history import BoundsSeen, Fetched, FinalRead, Refused
from ropewalk.sim.runs.cluster.guide import ELSEWHERE, Guide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, list_offsets

_EPOCH_SINCE = 9
_RACK_SINCE = 11


class ClusterConsumer:
    """Follows all partitions, one leader at a time; sometimes goes back. In a rack it reads from copies that it is sent to."""

    def __init__(self, guide: Guide, rack: str = "") -> None:
        self._guide = guide
        self._rack = rack
        self._positions: dict[TopicPartition, int] = {}
        self._copies: dict[TopicPartition, int] = {}
        """Nodes to read from instead of the leader, once each time a leader says so."""

    async def run(self) -> None:
        await self._guide.work(self._step, pause_s=0.15)

    async def _step(self) -> None:
        guide, rng = self._guide, self._guide.rng
        partition = rng.choice(guide.workload.topics.partitions)
        if rng.random() < 0.05:
            self._positions[partition] = 0
        elif rng.random() < 0.05:
            self._positions[partition] = rng.randrange(self._positions.get(partition, 0) + 1)
        link = await guide.connect_to_leader(partition)
        leading = guide.leader_of(partition)
        assert leading is not None
        wanted = [
            each
            for each in guide.workload.topics.partitions
            if (guide.leader_of(each) or (-1, -1))[1] == leading[1]
        ]
        asked = {each: self._positions.get(each, 0) for each in wanted}
        self._positions.update(await _fetch(guide, link, asked, rack=self._rack, copies=self._copies))
        while self._copies:
            each, node_id = self._copies.popitem()
            await self._read_copy(each, node_id)

    async def _read_copy(self, partition: TopicPartition, node_id: int) -> None:
        """A copy may be behind, so that it refuses a place is no evidence; what it shows is committed, or it must not show it."""
        guide = self._guide
        link = await guide.connect_to(node_id)
        moves = await _fetch(
            guide,
            link,
            {partition: self._positions.get(partition, 0)},
            rack=self._rack,
            copies={},
            is_copy=True,
        )
        if moves:
            guide.workload.sometimes.note("a copy served a consumer")
        self._positions.update(moves)


class FinalClusterReader:
    """Reads everything once the cluster is well again. It must succeed."""

    def __init__(self, guide: Guide) -> None:
        self._guide = guide

    async def read(self, partition: TopicPartition) -> FinalRead:
        """Until a reading gets through; the run's time limit says how long that may take.

        Where records go by themselves it must be the same twice: one reading takes a while.
        """
        promise = self._guide.workload.topics.promise_of(partition.topic)
        is_steady = not promise.is_compacted and promise.retention_ms is None
        former: FinalRead | None = None
        while True:
            try:
                found = await self._read_once(partition)
            except LinkLost:
                found = None
            if found is not None and (is_steady or (former is not None and is_same(former, found))):
                self._guide.workload.journal.note(found)
                return found
            former = found
            self._guide.doubt()
            await asyncio.sleep(0.2)

    async def _read_once(self, partition: TopicPartition) -> FinalRead | None:
        guide, journal = self._guide, self._guide.workload.journal
        link = await guide.connect_to_leader(partition)
        bounds = await self._bounds(link, partition)
        if bounds is None:
            return None
        start_offset, end_offset = bounds
        held: dict[int, int] = {}
        covered: list[tuple[int, int]] = []
        position = start_offset
        while position < end_offset:
            noted = journal.now
            await _fetch(guide, link, {partition: position})
            fetched = [event for event in journal.events[noted:] if isinstance(event, Fetched)]
            if not fetched:
                return None
            held.update((offset, value) for offset, value in fetched[0].records if offset >= start_offset)
            covered += fetched[0].covered
            position = fetched[0].covered[-1][1]
        return FinalRead(
            partition,
            start_offset,
            end_offset,
            tuple(sorted(held.items())),
            (),
            tuple(covered),
            guide.clock.now_ms(),
        )

    async def _bounds(self, link: Link, partition: TopicPartition) -> tuple[int, int] | None:
        guide, journal = self._guide, self._guide.workload.journal
        ends: list[int] = []
        began = journal.now
        for timestamp in (list_offsets.EARLIEST, list_offsets.LATEST):
            offset = await ask_offset(guide.workload, link, partition, timestamp)
            if offset is None:
                return None
            ends.append(offset)
        journal.note(BoundsSeen(began, partition, ends[0], ends[1], guide.clock.now_ms()))
        return ends[0], ends[1]


async def _fetch(
    guide: Guide,
    link: Link,
    wanted: dict[TopicPartition, int],
    *,
    rack: str = "",
    copies: dict[TopicPartition, int] | None = None,
    is_copy: bool = False,
) -> list[tuple[TopicPartition, int]]:
    """One Fetch, written down; the positions to go on from where they are not the ones asked for.

    `copies` is told of nodes to read from instead; `is_copy`: this is one.
    """
    workload, rng = guide.workload, guide.rng
    version = max(_RACK_SINCE if rack else _EPOCH_SINCE, guide.draw_version(link, fetch.API))
    topics = fetch_topics(
        workload,
        version,
        wanted,
        lambda partition: fetch.FetchPartition(
            index=partition.partition,
            current_leader_epoch=(guide.leader_of(partition) or (-1, -1))[0],
            fetch_offset=wanted[partition],
            partition_max_bytes=rng.choice([1, 2000, 20_000, 1 << 20]),
        ),
    )
    request = fetch.FetchRequest(
        max_wait_ms=rng.choice([0, 50, 500]), min_bytes=rng.choice([0, 1, 5000]), topics=topics, rack_id=rack
    )
    began = workload.journal.now
    workload.operation_count += 1
    response = await link.send(fetch.API, version, request)
    moves: list[tuple[TopicPartition, int]] = []
    for partition, answer in fetch_answers(workload, response).items():
        if copies is not None and answer.preferred_read_replica >= 0:
            copies[partition] = answer.preferred_read_replica
        elif not is_copy or answer.error_code == ErrorCode.NONE:
            moves += _note_answer(guide, began, partition, wanted[partition], answer)
    return moves


def _note_answer(
    guide: Guide, began: int, partition: TopicPartition, offset: int, answer: fetch.PartitionData
) -> list[tuple[TopicPartition, int]]:
    journal, now_ms = guide.workload.journal, guide.clock.now_ms()
    code = ErrorCode(answer.error_code)
    if code == ErrorCode.NONE:
        content = decode_batches(answer.records or b"")
        if content.covered:
            journal.note(
                Fetched(began, guide.name, partition, offset, content.records, content.covered, now_ms)
            )
            guide.workload.sometimes.note("a consumer read records")
            end_offset = content.covered[-1][1]
            guide.workload.see_end(partition, end_offset)
            return [(partition, end_offset)]
    elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
        journal.note(Refused(began, guide.name, partition, offset, False, now_ms))
        return [(partition, max(0, answer.log_start_offset))]
    if code in ELSEWHERE:
        guide.doubt()
    return []
