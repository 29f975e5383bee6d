"""Consumers that were assigned their partitions, and the one who reads everything when all is healed."""

import asyncio

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.judges.eos.history import Ended, FinalRead, Outcome, Polled, Positioned
from ropewalk.sim.runs.eos.guide import EosGuide
from ropewalk.sim.runs.eos.reading import Answer, fetch_once
from ropewalk.wire.error_code import ErrorCode


class Reader:
    """Follows all partitions from their starts; now and then goes elsewhere, as one that is assigned anew."""

    def __init__(self, guide: EosGuide, *, is_committed_only: bool) -> None:
        self._guide = guide
        self._is_committed_only = is_committed_only
        self._positions: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        await self._guide.work(self._step, pause_s=0.2)

    async def _step(self) -> None:
        guide, rng = self._guide, self._guide.rng
        partition = rng.choice(guide.workload.topics.partitions)
        if partition not in self._positions or rng.random() < 0.03:
            self._positions[partition] = rng.randrange(self._positions.get(partition, 0) + 1)
            guide.journal.note(Positioned(guide.name, partition, self._positions[partition]))
        link = await guide.connect_to_leader(partition)
        answers = await fetch_once(
            guide,
            link,
            {partition: self._positions[partition]},
            is_committed_only=self._is_committed_only,
        )
        for each, answer in answers.items():
            self._note(each, answer)

    def _note(self, partition: TopicPartition, answer: Answer) -> None:
        if answer.code != ErrorCode.NONE:
            return
        journal, name = self._guide.journal, self._guide.name
        operation = journal.begin(name, is_transactional=False)
        journal.note(
            Polled(operation, name, partition, answer.records, self._is_committed_only, answer.stable_offset)
        )
        journal.note(Ended(operation, Outcome.COMMITTED))
        self._positions[partition] = answer.next_offset
        if answer.records:
            self._guide.workload.sometimes.note("a consumer read records")
        if 0 <= answer.stable_offset < answer.high_watermark:
            self._guide.workload.sometimes.note("a partition was stable only up to an open transaction")


class FinalReader:
    """Reads every partition to its end, in both ways. It must succeed; the run's limit says within which time."""

    def __init__(self, guide: EosGuide) -> None:
        self._guide = guide

    async def read(self, partition: TopicPartition, *, is_committed_only: bool) -> None:
        """Until everything that is committed to the log has been passed."""
        guide = self._guide
        position = 0
        records: list[tuple[int, int]] = []
        while True:
            try:
                link = await guide.connect_to_leader(partition)
                answers = await fetch_once(
                    guide, link, {partition: position}, is_committed_only=is_committed_only
                )
            except LinkLost:
                guide.doubt()
                await asyncio.sleep(0.2)
                continue
            answer = answers[partition]
            if answer.code != ErrorCode.NONE:
                await asyncio.sleep(0.2)
                continue
            records += answer.records
            position = answer.next_offset
            if position >= answer.high_watermark:
                break
        guide.journal.note(FinalRead(partition, tuple(records), is_committed_only))
