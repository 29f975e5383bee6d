"""Processes that write transactions over several partitions, and some that use the transactional id of another."""

import asyncio
from collections.abc import Sequence

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.judges.eos.history import Outcome, Polled, Positioned
from ropewalk.sim.runs.eos.guide import EosGuide
from ropewalk.sim.runs.eos.reading import fetch_once
from ropewalk.sim.runs.eos.transactional import Refused, TransactionalProducer
from ropewalk.wire.error_code import ErrorCode


class Transactor:
    """One transaction after the other: sends, reads between them, a commit or an abort, and sometimes a long silence."""

    def __init__(
        self,
        guide: EosGuide,
        producer: TransactionalProducer,
        partitions: Sequence[TopicPartition],
        *,
        timeout_ms: int,
        pause_s: float,
    ) -> None:
        self._guide = guide
        self._producer = producer
        self._partitions = partitions
        self._timeout_ms = timeout_ms
        self._pause_s = pause_s

    async def run(self) -> None:
        guide = self._guide
        while not guide.workload.is_over:
            try:
                if not self._producer.is_ready:
                    await self._producer.initialise()
                await self._transact()
            except Refused as refusal:
                if refusal.is_fenced:
                    guide.workload.sometimes.note("a producer was fenced")
                await guide.pause(0.5)
            await guide.pause(self._pause_s)
        guide.close()

    async def _transact(self) -> None:
        guide, rng, producer = self._guide, self._guide.rng, self._producer
        operation = producer.begin()
        try:
            for _ in range(rng.randrange(1, 5)):
                if rng.random() < 0.25:
                    await self._read(operation)
                partition = rng.choice(self._partitions)
                values = tuple(guide.workload.next_value() for _ in range(rng.randrange(1, 4)))
                await producer.send(partition, values)
                if rng.random() < 0.03:
                    await self._fall_silent()
                elif rng.random() < 0.3:
                    await guide.pause(1.0)
        except Refused as refusal:
            if refusal.is_fenced:
                guide.workload.sometimes.note("a write of a fenced producer was refused")
            await producer.abort()
            raise
        fate = rng.random()
        if fate < 0.04:
            # Whoever has crashed does not end anything: that is done for it, when it is back or when time is up.
            await self._fall_silent()
            await producer.initialise()
        elif fate < 0.09:
            await self._fall_silent()
            if await producer.commit() is Outcome.ABORTED:
                guide.workload.sometimes.note("a transaction was aborted by its timeout")
        elif fate < 0.25:
            await producer.abort()
        else:
            await producer.commit()

    async def _fall_silent(self) -> None:
        await asyncio.sleep(self._timeout_ms / 1000 * self._guide.rng.uniform(0.5, 2.0))

    async def _read(self, operation: int) -> None:
        """What is committed, as part of the transaction: it may not see what it writes itself."""
        guide = self._guide
        partition = guide.rng.choice(self._partitions)
        try:
            link = await guide.connect_to_leader(partition)
            answers = await fetch_once(guide, link, {partition: 0}, is_committed_only=True)
        except LinkLost:
            guide.doubt()
            return
        answer = answers[partition]
        if answer.code == ErrorCode.NONE:
            guide.journal.note(Positioned(guide.name, partition, 0))
            guide.journal.note(
                Polled(operation, guide.name, partition, answer.records, True, answer.stable_offset)
            )
