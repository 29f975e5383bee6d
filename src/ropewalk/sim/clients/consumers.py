"""Clients that read: consumers that follow partitions, and the one who reads everything at the end."""

import asyncio
from itertools import chain

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.asking import ask_offset, by_topic, fetch_answers, fetch_topics
from ropewalk.sim.clients.content import decode_batches
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.workload import Caller, Workload
from ropewalk.sim.judges.history import (
    BoundsSeen,
    Deleted,
    DeletionAsked,
    Fetched,
    FinalRead,
    Forgotten,
    Refused,
)
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import delete_records, fetch, list_offsets


class Consumer:
    """Follows all partitions; sometimes goes back, asks for the bounds, or deletes what it has read."""

    def __init__(self, caller: Caller, *, may_delete: bool) -> None:
        self._caller = caller
        self._workload: Workload = caller.workload
        self._may_delete = may_delete
        self._positions: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        caller = self._caller
        while (link := await caller.connect()) is not None:
            try:
                while link.is_open and not self._workload.is_over:
                    await self._step(link)
                    await caller.pause(0.15)
            except LinkLost:
                await caller.pause(0.2)
            link.close()

    async def _step(self, link: Link) -> None:
        rng = self._caller.rng
        partitions = self._workload.topics.partitions
        fate = rng.random()
        partition = rng.choice(partitions)
        if fate < 0.08:
            await ask_bounds(self._caller, link, partition)
        elif fate < 0.10 and self._may_delete:
            await self._delete(link, partition)
        elif fate < 0.16:
            self._positions[partition] = 0
            self._workload.sometimes.note("a consumer read from the start again")
        elif fate < 0.24:
            self._positions[partition] = rng.randrange(self._positions.get(partition, 0) + 1)
        chosen = rng.sample(partitions, rng.randrange(1, len(partitions) + 1))
        wanted = {partition: self._positions.get(partition, 0) for partition in chosen}
        for partition, position in await fetch_once(self._caller, link, wanted):
            self._positions[partition] = position

    async def _delete(self, link: Link, partition: TopicPartition) -> None:
        before = self._caller.rng.randrange(self._positions.get(partition, 0) + 1)
        self._workload.journal.note(DeletionAsked(partition, before))
        self._workload.operation_count += 1
        target = delete_records.DeleteRecordsPartition(index=partition.partition, offset=before)
        topic = delete_records.DeleteRecordsTopic(name=partition.topic, partitions=(target,))
        response = await link.send(
            delete_records.API,
            link.newest_version(delete_records.API),
            delete_records.DeleteRecordsRequest(topics=(topic,), timeout_ms=3000),
        )
        if response.topics[0].partitions[0].error_code == ErrorCode.NONE:
            self._workload.journal.note(Deleted(partition, before))
            self._workload.sometimes.note("records were deleted")


async def fetch_once(
    caller: Caller, link: Link, wanted: dict[TopicPartition, int], *, version_min: int = 0
) -> list[tuple[TopicPartition, int]]:
    """One Fetch, written down; the positions to go on from where they are not the ones asked for."""
    workload, rng = caller.workload, caller.rng
    version = max(version_min, caller.draw_version(link, fetch.API))
    topics = fetch_topics(
        workload,
        version,
        wanted,
        lambda partition: fetch.FetchPartition(
            index=partition.partition,
            fetch_offset=wanted[partition],
            partition_max_bytes=rng.choice([1, 2000, 20_000, 1 << 20]),
        ),
    )
    request = fetch.FetchRequest(
        max_wait_ms=rng.choice([0, 50, 500]), min_bytes=rng.choice([0, 1, 5000]), topics=topics
    )
    began = workload.journal.now
    workload.operation_count += 1
    response = await link.send(fetch.API, version, request)
    moves: list[tuple[TopicPartition, int]] = []
    answered = fetch_answers(workload, response)
    budget_spent = False
    for partition in chain.from_iterable(by_topic(wanted).values()):
        if partition in answered:
            budget_spent = _note_answer(
                caller, began, partition, wanted[partition], answered[partition], moves, budget_spent
            )
    return moves


def _note_answer(
    caller: Caller,
    began: int,
    partition: TopicPartition,
    offset: int,
    answer: fetch.PartitionData,
    moves: list[tuple[TopicPartition, int]],
    budget_spent: bool,
) -> bool:
    """Write down one partition's answer; whether bytes were spent, so that others may rightly get none."""
    journal, sometimes = caller.workload.journal, caller.workload.sometimes
    match answer.error_code:
        case ErrorCode.NONE:
            content = decode_batches(answer.records or b"")
            if content.covered or not budget_spent:
                journal.note(
                    Fetched(
                        began,
                        caller.name,
                        partition,
                        offset,
                        content.records,
                        content.covered,
                        caller.clock.now_ms(),
                    )
                )
            journal.note(BoundsSeen(began, partition, None, answer.high_watermark))
            if content.covered:
                sometimes.note("a consumer read records")
                end_offset = content.covered[-1][1]
                moves.append((partition, end_offset))
                caller.workload.see_end(partition, end_offset)
                return True
        case ErrorCode.KAFKA_STORAGE_ERROR:
            journal.note(Refused(began, caller.name, partition, offset, True))
            sometimes.note("a consumer was refused damaged records")
            moves.append((partition, offset + 1))
            return True  # the bytes were found, counted and then could not be read
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            journal.note(Refused(began, caller.name, partition, offset, False, caller.clock.now_ms()))
            moves.append((partition, max(0, answer.log_start_offset)))
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION | ErrorCode.UNKNOWN_TOPIC_ID:
            journal.note(Forgotten(partition, f"{caller.name} was told that there is no such topic"))
        case _:
            pass
    return budget_spent


async def ask_bounds(caller: Caller, link: Link, partition: TopicPartition) -> tuple[int, int] | None:
    """ListOffsets for both ends, written down."""
    workload = caller.workload
    ends: list[int] = []
    for timestamp in (list_offsets.EARLIEST, list_offsets.LATEST):
        began = workload.journal.now
        offset = await ask_offset(workload, link, partition, timestamp)
        if offset is None:
            return None
        is_start = timestamp == list_offsets.EARLIEST
        workload.journal.note(
            BoundsSeen(
                began,
                partition,
                offset if is_start else None,
                None if is_start else offset,
                caller.clock.now_ms(),
            )
        )
        ends.append(offset)
    return ends[0], ends[1]


class FinalReader:
    """Reads everything once the world is well again. It must succeed."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def read(self, partition: TopicPartition) -> None:
        """Until the whole partition has been read twice and was the same; the run's time limit says how long that may take.

        One reading takes a while. What compaction does meanwhile shows in the later part of it and not in the earlier.
        """
        former: FinalRead | None = None
        while True:
            link = await self._caller.connect()
            assert link is not None, "the final reads have no end"
            try:
                bounds = await ask_bounds(self._caller, link, partition)
                found = None if bounds is None else await self._read_between(link, partition, *bounds)
                if found is not None:
                    if former is not None and is_same(former, found):
                        self._caller.workload.journal.note(found)
                        return
                    former = found
                    continue
            except LinkLost:
                pass
            finally:
                link.close()
            await asyncio.sleep(0.2)

    async def _read_between(
        self, link: Link, partition: TopicPartition, start_offset: int, end_offset: int
    ) -> FinalRead | None:
        """None if the start of the log moved past the reader: then it has to begin anew."""
        journal = self._caller.workload.journal
        held: dict[int, int] = {}
        covered: list[tuple[int, int]] = []
        refused: list[int] = []
        position = start_offset
        while position < end_offset:
            noted = journal.now
            await fetch_once(self._caller, link, {partition: position})
            for event in journal.events[noted:]:
                match event:
                    case Fetched(consumer=self._caller.name) if event.covered:
                        held.update(
                            (offset, value) for offset, value in event.records if offset >= start_offset
                        )
                        covered += event.covered
                        position = event.covered[-1][1]
                    case Refused(is_storage=True, offset=offset):
                        refused.append(offset)
                        position = offset + 1
                    case Refused():
                        return None
                    case _:
                        pass
        return FinalRead(
            partition,
            start_offset,
            end_offset,
            tuple(sorted(held.items())),
            tuple(refused),
            tuple(covered),
            self._caller.clock.now_ms(),
        )


def is_same(former: FinalRead, latter: FinalRead) -> bool:
    """Whether nothing was written, removed or refused between two readings; they may have been cut differently."""
    return (former.start_offset, former.end_offset, former.records, former.refused_offsets) == (
        latter.start_offset,
        latter.end_offset,
        latter.records,
        latter.refused_offsets,
    )
