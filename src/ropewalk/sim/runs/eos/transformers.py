"""Processes that read from one topic and write to another, exactly once: members of a group with a transactional producer each.

What a reader could get wrong
    Which records a member has made others from is known from the committed offsets and from nothing else. So after anything that
    went wrong it asks for them again, and only for stable ones.
"""

import asyncio
from collections.abc import Sequence

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.clients.group_calls import Identity
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.judges.eos.history import Outcome, Polled, Positioned
from ropewalk.sim.runs.eos.committed import read_committed_offsets
from ropewalk.sim.runs.eos.guide import Coordinated, MemberGuide
from ropewalk.sim.runs.eos.membership import LEFT_BEHIND, Membership
from ropewalk.sim.runs.eos.reading import Answer, fetch_once
from ropewalk.sim.runs.eos.transactional import Refused, TransactionalProducer
from ropewalk.wire.error_code import ErrorCode


class Transformer:
    def __init__(
        self,
        guide: MemberGuide,
        producer: TransactionalProducer,
        membership: Membership,
        outputs: Sequence[TopicPartition],
    ) -> None:
        self._guide = guide
        self._producer = producer
        self._group = membership.identity.group
        self._outputs = outputs
        self._member = membership
        self._positions: dict[TopicPartition, int] | None = None
        self._positioned_as: Identity | None = None
        self._has_dawdled = False

    async def run(self) -> None:
        guide = self._guide
        while not guide.workload.is_over:
            await self.step()
            await guide.pause(0.3)
        guide.close()

    async def step(self) -> bool:
        """Go on with whatever is next; whether it found nothing to do, being a member with everything read."""
        try:
            if not self._producer.is_ready:
                await self._producer.initialise()
            link = await self._guide.connect_to_coordinator(Coordinated.GROUP, self._group)
            if not await self._is_member(link) or not await self._is_positioned():
                return False
            return await self._transform()
        except LinkLost:
            self._guide.doubt()
            self._guide.doubt_coordinator(Coordinated.GROUP, self._group)
            await self._guide.pause(0.3)
        except Refused as refusal:
            self._positions = None
            if refusal.is_fenced:
                self._guide.workload.sometimes.note("a producer was fenced")
            await self._guide.pause(0.3)
        return False

    async def _is_member(self, link: Link) -> bool:
        code = await self._member.take_part(link)
        if self._has_dawdled and code in LEFT_BEHIND:
            self._guide.workload.sometimes.note("a group was rebalanced during a transaction")
        self._has_dawdled = False
        return code == ErrorCode.NONE and self._member.identity.generation >= 0

    async def _is_positioned(self) -> bool:
        """By the committed offsets, once in each generation and after whatever went wrong."""
        if self._positions is not None and self._positioned_as is self._member.identity:
            return True
        guide, share = self._guide, self._member.share
        self._positions = None
        found = await read_committed_offsets(guide, self._group, share, is_stable=True)
        if found is None:
            return False
        self._positions = {partition: max(0, found[partition]) for partition in share}
        self._positioned_as = self._member.identity
        for partition, position in self._positions.items():
            guide.journal.note(Positioned(guide.name, partition, position))
        return True

    async def _transform(self) -> bool:
        guide, rng = self._guide, self._guide.rng
        positions = self._positions
        assert positions is not None
        if not positions:
            return True
        partition = rng.choice(list(positions))
        link = await guide.connect_to_leader(partition)
        answers = await fetch_once(guide, link, {partition: positions[partition]}, is_committed_only=True)
        answer = answers[partition]
        if answer.code != ErrorCode.NONE:
            return False
        if not answer.records:
            positions[partition] = answer.next_offset
            for each in positions:
                if not await self._is_at_end(each):
                    return False
            return True
        self._positions = None  # until the transaction is known to have been committed
        if await self._make(partition, answer) is Outcome.COMMITTED:
            positions[partition] = answer.next_offset
            self._positions = positions
        return False

    async def _make(self, partition: TopicPartition, answer: Answer) -> Outcome:
        guide, rng, producer = self._guide, self._guide.rng, self._producer
        operation = producer.begin()
        guide.journal.note(
            Polled(operation, guide.name, partition, answer.records, True, answer.stable_offset)
        )
        try:
            for records in _in_two(answer.records, rng.randrange(len(answer.records))):
                sources = tuple((self._group, partition, offset) for offset, _ in records)
                values = tuple(guide.workload.next_value() for _ in records)
                await producer.send(rng.choice(self._outputs), values, sources)
            await self._dawdle()
            await producer.send_offsets(self._member.identity, [(partition, answer.next_offset)])
        except Refused as refusal:
            if refusal.code in LEFT_BEHIND:
                guide.workload.sometimes.note("offsets of a stale member were refused in a transaction")
            if refusal.code is not None:
                self._member.heed(refusal.code)
            await producer.abort()
            raise
        await self._dawdle()
        if rng.random() < 0.1:
            await producer.abort()
            return Outcome.ABORTED
        outcome = await producer.commit()
        if outcome is Outcome.COMMITTED:
            guide.workload.sometimes.note("records were made from others")
        return outcome

    async def _dawdle(self) -> None:
        """Now and then long enough for the group to go on without this member, or for the transaction to time out."""
        rng = self._guide.rng
        if rng.random() < 0.06:
            await asyncio.sleep(rng.uniform(0.5, 4.0))
            self._has_dawdled = True
            self._guide.workload.sometimes.note("a member was slow within a transaction")

    async def _is_at_end(self, partition: TopicPartition) -> bool:
        assert self._positions is not None
        guide = self._guide
        link = await guide.connect_to_leader(partition)
        position = self._positions[partition]
        answer = (await fetch_once(guide, link, {partition: position}, is_committed_only=True))[partition]
        if answer.code != ErrorCode.NONE or answer.records:
            return False
        self._positions[partition] = answer.next_offset
        return answer.next_offset >= answer.high_watermark


def _in_two(records: tuple[tuple[int, int], ...], cut: int) -> list[tuple[tuple[int, int], ...]]:
    return [part for part in (records[:cut], records[cut:]) if part]
