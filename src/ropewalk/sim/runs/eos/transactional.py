"""A transactional producer as small as can be, in two flavours: one that adds its partitions implicitly (Produce 12, EndTxn 5), and
one that says beforehand where it will write, as older clients do.

What a reader could get wrong
    A request of which nothing was heard may arrive at any later time, on a connection that its client has given up. With implicit
    partitions every transaction has an epoch of its own, so a late request finds itself fenced. The older protocol has no such
    guard: a late EndTxn would end the next transaction. So an older client here takes a fresh epoch after any doubt.
    A commit that was refused is an abort only if every attempt before it was answered.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Final

from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicPartition
from ropewalk.sim.clients.group_calls import Identity as MemberIdentity
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.producers import Identity
from ropewalk.sim.clients.workload import Q, R
from ropewalk.sim.judges.eos.history import EndAsked, Ended, OffsetsSent, Outcome, Placed, Sent
from ropewalk.sim.runs.eos.guide import Coordinated, EosGuide
from ropewalk.sim.runs.eos.writers import LATER, encode_batch, produce_once
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    produce,
    txn_offset_commit,
)

PATIENCE_S: Final = 7.0
"""For one request with all its repetitions."""

IMPLICIT_PRODUCE_SINCE: Final = 12
IMPLICIT_COMMIT_SINCE: Final = 5
BUMPING_END_SINCE: Final = 5
_COMMIT_BY_ID_SINCE: Final = 6
_COMMIT_AS_MEMBER_SINCE: Final = 3
_INIT_WITH_IDENTITY_SINCE: Final = 3
_ADD_PARTITIONS_CLIENT_MAX: Final = 3

_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_DID_NOTHING: Final = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class Refused(Exception):
    """The transaction cannot go on; it can be aborted."""

    def __init__(self, what: str, code: ErrorCode | None) -> None:
        super().__init__(f"{what}: {'no answer' if code is None else code.name}")
        self.code = code

    @property
    def is_fenced(self) -> bool:
        return self.code in _FENCED


class Flavour(Enum):
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"


class TransactionalProducer:
    """One transaction at a time. After `Refused` only `abort` may follow."""

    def __init__(self, guide: EosGuide, transactional_id: str, flavour: Flavour, *, timeout_ms: int) -> None:
        self._guide = guide
        self._note = guide.workload.sometimes.note
        self.transactional_id = transactional_id
        self._is_implicit = flavour is Flavour.IMPLICIT
        self._timeout_ms = timeout_ms
        self._identity: Identity | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition | str] = set()
        self._is_in_doubt = False
        self._operation = 0

    @property
    def is_ready(self) -> bool:
        return self._identity is not None

    async def initialise(self) -> None:
        """Take the transactional id, from whoever has it. Raises `Refused`."""
        guide = self._guide
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        deadline_s = self._deadline_s()
        while True:
            answered = await self._ask_coordinator(init_producer_id.API, (0, 5), request, deadline_s)
            code = ErrorCode(answered.error_code)
            if code == ErrorCode.NONE:
                break
            await self._wait_after(code, "InitProducerId", deadline_s)
        self._take(answered.producer_id, answered.producer_epoch)
        guide.workload.sometimes.note("a transactional id was taken")

    def begin(self) -> int:
        """The operation's number in the history."""
        assert self._identity is not None
        self._added.clear()
        self._is_in_doubt = False
        self._operation = self._guide.journal.begin(self._guide.name, is_transactional=True)
        return self._operation

    async def send(
        self,
        partition: TopicPartition,
        values: tuple[int, ...],
        sources: tuple[tuple[str, TopicPartition, int], ...] = (),
    ) -> None:
        guide, identity = self._guide, self._identity
        assert identity is not None
        guide.journal.note(Sent(self._operation, partition, values, sources))
        deadline_s = self._deadline_s()
        if not self._is_implicit and partition not in self._added:
            await self._add_partition(partition, deadline_s)
        sequence = self._sequences.get(partition, 0)
        batch = encode_batch(guide, values, identity, sequence, is_transactional=True)
        attempt_count = 0
        while True:
            code: ErrorCode | None = None
            try:
                link = await guide.connect_to_leader(partition)
                attempt_count += 1
                code, base_offset = await produce_once(
                    guide,
                    link,
                    partition,
                    batch,
                    version=self._draw_produce_version(link),
                    transactional_id=self.transactional_id,
                )
            except LinkLost:
                guide.doubt()
                self._is_in_doubt = True
            if code == ErrorCode.NONE:
                break
            if attempt_count == 1:
                self._note("a transactional batch was sent again")
            await self._wait_after(code, "Produce", deadline_s)
        self._sequences[partition] = sequence + len(values)
        guide.journal.note(Placed(self._operation, partition, base_offset, values))

    async def send_offsets(
        self, member: MemberIdentity, offsets: Sequence[tuple[TopicPartition, int]]
    ) -> None:
        identity, group = self._identity, member.group
        assert identity is not None
        commit = self._guide.journal.next_commit()
        self._guide.journal.note(OffsetsSent(self._operation, commit, group, tuple(offsets)))
        deadline_s = self._deadline_s()
        if not self._is_implicit and group not in self._added:
            await self._add_group(group, deadline_s)
        while True:
            code: ErrorCode | None = None
            try:
                link = await self._guide.connect_to_coordinator(Coordinated.GROUP, group)
                code = await self._commit_once(link, member, offsets, commit)
            except LinkLost:
                self._is_in_doubt = True
            if code == ErrorCode.NONE:
                return
            if code is None or code == ErrorCode.NOT_COORDINATOR:
                self._guide.doubt_coordinator(Coordinated.GROUP, group)
            await self._wait_after(code, "TxnOffsetCommit", deadline_s)

    async def commit(self) -> Outcome:
        return await self._end(is_commit=True)

    async def abort(self) -> None:
        await self._end(is_commit=False)

    async def _end(self, *, is_commit: bool) -> Outcome:
        """Note what became of it. Whoever does not know, or was fenced, has to take the id anew."""
        guide, identity = self._guide, self._identity
        assert identity is not None
        guide.journal.note(EndAsked(self._operation, is_commit))
        request = end_txn.EndTxnRequest(
            self.transactional_id, identity.producer_id, identity.producer_epoch, is_commit
        )
        versions = (BUMPING_END_SINCE, 5) if self._is_implicit else (0, BUMPING_END_SINCE - 1)
        deadline_s = self._deadline_s()
        was_in_doubt, self._is_in_doubt = self._is_in_doubt, False
        try:
            while True:
                answer = await self._ask_coordinator(end_txn.API, versions, request, deadline_s)
                code = ErrorCode(answer.error_code)
                if code == ErrorCode.NONE:
                    break
                self._is_in_doubt |= code in LATER - _DID_NOTHING
                await self._wait_after(code, "EndTxn", deadline_s)
        except Refused as refusal:
            self._identity = None
            if refusal.is_fenced:
                self._note("a producer was fenced")
            is_known = refusal.code is not None and refusal.code not in LATER and not self._is_in_doubt
            outcome = Outcome.ABORTED if is_known or not is_commit else Outcome.UNKNOWN
            if outcome is Outcome.UNKNOWN:
                self._note("the end of a transaction stayed unknown")
        else:
            outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
            if self._is_in_doubt:
                self._note("the end of a transaction was asked for again")
            self._note("a transaction was committed" if is_commit else "a transaction was aborted")
            if self._is_implicit:
                self._take(answer.producer_id, answer.producer_epoch)
            elif was_in_doubt or self._is_in_doubt or not is_commit:
                self._identity = None
        guide.journal.note(Ended(self._operation, outcome))
        return outcome

    async def _add_partition(self, partition: TopicPartition, deadline_s: float) -> None:
        identity = self._identity
        assert identity is not None
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(partition.topic, (partition.partition,))
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=(topic,),
        )
        while True:
            answer = await self._ask_coordinator(
                add_partitions_to_txn.API, (0, _ADD_PARTITIONS_CLIENT_MAX), request, deadline_s
            )
            (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
            code = ErrorCode(result.partition_error_code)
            if code == ErrorCode.NONE:
                self._added.add(partition)
                return
            await self._wait_after(code, "AddPartitionsToTxn", deadline_s)

    async def _add_group(self, group: str, deadline_s: float) -> None:
        identity = self._identity
        assert identity is not None
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            self.transactional_id, identity.producer_id, identity.producer_epoch, group
        )
        while True:
            answer = await self._ask_coordinator(add_offsets_to_txn.API, (0, 4), request, deadline_s)
            code = ErrorCode(answer.error_code)
            if code == ErrorCode.NONE:
                self._added.add(group)
                return
            await self._wait_after(code, "AddOffsetsToTxn", deadline_s)

    async def _commit_once(
        self, link: Link, member: MemberIdentity, offsets: Sequence[tuple[TopicPartition, int]], commit: int
    ) -> ErrorCode:
        identity, rng = self._identity, self._guide.rng
        assert identity is not None
        newest = link.newest_version(txn_offset_commit.API)
        first, last = (
            (IMPLICIT_COMMIT_SINCE, newest)
            if self._is_implicit
            else (_COMMIT_AS_MEMBER_SINCE, IMPLICIT_COMMIT_SINCE - 1)
        )
        version = rng.randrange(first, last + 1)
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=member.group,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            instance_id=member.instance_id,
            topics=tuple(
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=partition.topic if version < _COMMIT_BY_ID_SINCE else "",
                    topic_id=self._guide.workload.topics.id_of(partition.topic),
                    partitions=(
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition.partition, offset, committed_metadata=str(commit)
                        ),
                    ),
                )
                for partition, offset in offsets
            ),
        )
        self._guide.workload.operation_count += 1
        response = await link.send(txn_offset_commit.API, version, request)
        codes = [ErrorCode(answer.error_code) for topic in response.topics for answer in topic.partitions]
        return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE)

    async def _ask_coordinator(
        self, api: Api[Q, R], versions: tuple[int, int], request: Q, deadline_s: float
    ) -> R:
        """One answer, however often it must be asked; a coordinator that is another is looked for."""
        guide = self._guide
        while True:
            try:
                link = await guide.connect_to_coordinator(Coordinated.TRANSACTION, self.transactional_id)
                first, last = versions
                version = guide.rng.randrange(first, min(last, link.newest_version(api)) + 1)
                guide.workload.operation_count += 1
                return await link.send(api, version, request)
            except LinkLost:
                self._is_in_doubt = True
                guide.doubt_coordinator(Coordinated.TRANSACTION, self.transactional_id)
            await self._wait_after(None, api.name, deadline_s)

    async def _wait_after(self, code: ErrorCode | None, what: str, deadline_s: float) -> None:
        """Before another attempt; raises `Refused` if there is no use in one."""
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._note("a coordinator was loading")
        elif code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self._note("a transaction waited for the end of the one before")
        elif code == ErrorCode.NOT_COORDINATOR:
            self._guide.doubt_coordinator(Coordinated.TRANSACTION, self.transactional_id)
            self._note("a client was sent to another coordinator")
        if code is not None and code not in LATER:
            raise Refused(what, code)
        if self._guide.workload.world.now_s > deadline_s:
            raise Refused(what, code)
        await asyncio.sleep(self._guide.rng.uniform(0.02, 0.3))

    def _draw_produce_version(self, link: Link) -> int:
        newest = link.newest_version(produce.API)
        if self._is_implicit:
            return self._guide.rng.randrange(IMPLICIT_PRODUCE_SINCE, newest + 1)
        return self._guide.rng.randrange(produce.API.version_min, IMPLICIT_PRODUCE_SINCE)

    def _take(self, producer_id: int, producer_epoch: int) -> None:
        identity = Identity(ProducerId(producer_id), ProducerEpoch(producer_epoch))
        if identity != self._identity:
            self._identity = identity
            self._sequences.clear()

    def _deadline_s(self) -> float:
        return self._guide.workload.world.now_s + PATIENCE_S
