"""A producer's transactions: begin, take partitions and offsets in, commit or abort.

Clusters speak one of two dialects, told by the finalized feature `transaction.version`. In the second (KIP-890) the first
Produce to a partition takes it in, and every transaction has an epoch of its own. In the first, partitions and groups are
announced to the coordinator before anything is sent there.

What a reader could get wrong
    As soon as one record of a transaction is lost, it can only be aborted: `TransactionFailed` until then.
    `ProducerFenced` is for good: another producer has taken the transactional id over.
    When the answer to a commit does not come, nobody knows whether it happened (`OutcomeUnknown`). Asking again is safe,
    and the only thing that may be done.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Final, TypeVar

from ropewalk.base.errors import ProducerFenced, RopewalkError, TimedOut
from ropewalk.base.ids import NO_PRODUCER, ProducerEpoch, ProducerId, TopicPartition
from ropewalk.client.calls.group_offsets import GroupIdentity, OffsetToCommit
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.coordinators import CoordinatorKind, Coordinators
from ropewalk.client.connections.session import Session
from ropewalk.client.errors import (
    ConnectionLost,
    Misuse,
    OutcomeUnknown,
    RemoteError,
    TransactionFailed,
    Unreachable,
)
from ropewalk.client.producing.outbox import Identity, Outbox
from ropewalk.client.producing.settings import ProducerSettings
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)

T = TypeVar("T")

_FEATURE: Final = "transaction.version"
_FIRST_DIALECT_PRODUCE_MAX: Final = 11
_FIRST_DIALECT_OFFSETS_MAX: Final = 4
_FIRST_DIALECT_END_MAX: Final = 4
_CLIENTS_ADD_MAX: Final = 3
"""Later versions of AddPartitionsToTxn are for brokers among themselves."""
_NAMED_TOPICS_OFFSETS_MAX: Final = 5
_OWN_EPOCHS_SINCE: Final = 5

_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FATAL: Final = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class _State(Enum):
    CLOSED = "no transaction is open"
    OPEN = "a transaction is open"
    COMMITTING = "a transaction is being committed"
    ABORTING = "a transaction is being aborted"


class Transactions:
    """Owned by one producer. It is the sender's gate: what it does not admit is not sent."""

    def __init__(
        self,
        session: Session,
        outbox: Outbox,
        settings: ProducerSettings,
        tasks: Supervisor,
        wake: Callable[[], None],
    ) -> None:
        assert settings.transactional_id is not None
        self.transactional_id: Final = settings.transactional_id
        self._session = session
        self._outbox = outbox
        self._settings = settings
        self._tasks = tasks
        self._wake = wake
        self._coordinators = Coordinators(session, CoordinatorKind.TRANSACTION)
        self._groups = Coordinators(session)
        self._level = 0
        self._is_second_dialect = False
        self._state = _State.CLOSED
        self._has_begun = False
        """Whether the coordinator may know of the transaction."""
        self._partitions: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._adding = False
        self._round = 0
        self._failure: RopewalkError | None = None
        self._needs_epoch = False
        self._fatal: RopewalkError | None = None

    @property
    def produce_version_max(self) -> int | None:
        return None if self._is_second_dialect else _FIRST_DIALECT_PRODUCE_MAX

    @property
    def is_open(self) -> bool:
        """Whether there is something to commit or abort, and somebody who may."""
        return self._state is not _State.CLOSED and self._fatal is None

    async def start(self) -> None:
        """Get an id and epoch; whoever used the transactional id before is fenced, and its transaction aborted."""
        await self._initialise(NO_PRODUCER, ProducerEpoch(-1))

    def begin(self) -> None:
        self._check_usable()
        self._expect(_State.CLOSED)
        self._state = _State.OPEN
        self._has_begun = False
        self._is_second_dialect = self._level >= 2

    def check_sending(self) -> None:
        """Raises unless records may be sent now."""
        self._check_usable()
        self._expect(_State.OPEN)
        if self._failure is not None:
            raise TransactionFailed(self.transactional_id, self._failure)

    def admits(self, partition: TopicPartition) -> bool:
        if self._failure is not None or self._fatal is not None:
            return False
        if partition in self._partitions:
            return True
        if self._is_second_dialect:
            self._partitions.add(partition)
            self._has_begun = True
            return True
        self._wanted.add(partition)
        if not self._adding:
            self._adding = True
            self._round += 1
            self._tasks.start(f"partitions of transactions, round {self._round}", self._add_wanted())
        return False

    def on_lost(self, error: RopewalkError) -> None:
        """Records of the transaction were not delivered."""
        if self._state in (_State.OPEN, _State.COMMITTING) and self._failure is None:
            self._needs_epoch = True
            self._fail(error)

    async def add_offsets(
        self, offsets: Mapping[TopicPartition, OffsetToCommit], group: GroupIdentity
    ) -> None:
        """Have the transaction commit a group's offsets, if it is committed."""
        self.check_sending()
        if not offsets:
            return
        try:
            if not self._is_second_dialect:
                await self._add_group(group.group)
            self._has_begun = True
            await self._commit_offsets(offsets, group)
        except RopewalkError as error:
            raise self._judged(error) from error

    async def end(self, *, committed: bool) -> None:
        self._check_usable()
        wanted = _State.COMMITTING if committed else _State.ABORTING
        if self._state is not wanted:
            self._expect(_State.OPEN)
            if committed and self._failure is not None:
                raise TransactionFailed(self.transactional_id, self._failure)
            self._state = wanted
        if committed:
            await self._delivered()
            self._check_usable()
            if self._failure is not None:
                self._state = _State.OPEN
                raise TransactionFailed(self.transactional_id, self._failure)
        else:
            if self._failure is None:
                self._failure = Misuse("the transaction was aborted")
            self._outbox.ended_by = self._failure
            self._outbox.give_up_all(self._failure)
            await self._delivered()
        if self._has_begun:
            await self._end(committed)
        if self._needs_epoch:
            producer_id, epoch = self._identity()
            await self._initialise(producer_id, epoch)
        self._state = _State.CLOSED
        self._partitions.clear()
        self._wanted.clear()
        self._failure = None
        self._outbox.ended_by = None
        self._needs_epoch = False

    async def _delivered(self) -> None:
        """Everything of the transaction is acknowledged, or lost."""
        self._outbox.flushing += 1
        self._wake()
        try:
            for batch in self._outbox.unsettled():
                await batch.wait()
        finally:
            self._outbox.flushing -= 1

    async def _end(self, committed: bool) -> None:
        version_max = None if self._is_second_dialect else _FIRST_DIALECT_END_MAX

        async def once(connection: Connection, deadline_ms: float) -> Identity | None:
            producer_id, epoch = self._identity()
            request = end_txn.EndTxnRequest(self.transactional_id, producer_id, epoch, committed)
            response = await connection.call(
                end_txn.API, request, deadline_ms=deadline_ms, version_max=version_max
            )
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=self.transactional_id)
            version = connection.versions.choose(end_txn.API, version_max=version_max)
            if version < _OWN_EPOCHS_SINCE or response.producer_id < 0:
                return None
            return ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch)

        try:
            identity = await self._ask(once)
        except (TimedOut, ConnectionLost, Unreachable) as error:
            word = "committed" if committed else "aborted"
            raise OutcomeUnknown(
                f"whether the transaction of {self.transactional_id} was {word} is not known; ask for it again: {error}"
            ) from error
        except RopewalkError as error:
            judged = self._judged(error)
            if self._fatal is None:
                self._state = _State.OPEN
            raise judged from error
        if identity is not None:
            self._outbox.begin_epoch(identity)
            self._needs_epoch = False

    async def _initialise(self, producer_id: ProducerId, epoch: ProducerEpoch) -> None:
        async def once(connection: Connection, deadline_ms: float) -> Identity:
            request = init_producer_id.InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._settings.transaction_timeout_ms,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
            response = await connection.call(init_producer_id.API, request, deadline_ms=deadline_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=self.transactional_id)
            return ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch)

        try:
            self._outbox.begin_epoch(await self._ask(once))
        except RopewalkError as error:
            raise self._judged(error) from error

    async def _add_wanted(self) -> None:
        try:
            while self._wanted and self._failure is None and self._state is not _State.ABORTING:
                partitions, self._wanted = self._wanted, set()
                await self._add_partitions(partitions)
                self._partitions |= partitions
                self._wake()
        except RopewalkError as error:
            self._judged(error)
        finally:
            self._adding = False

    async def _add_partitions(self, partitions: set[TopicPartition]) -> None:
        self._has_begun = True

        async def once(connection: Connection, deadline_ms: float) -> None:
            producer_id, epoch = self._identity()
            request = add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=tuple(
                    add_partitions_to_txn.AddPartitionsToTxnTopic(name, tuple(indexes))
                    for name, indexes in _by_topic(partitions).items()
                ),
            )
            response = await connection.call(
                add_partitions_to_txn.API, request, deadline_ms=deadline_ms, version_max=_CLIENTS_ADD_MAX
            )
            for topic in response.results_by_topic_v3_and_below:
                for result in topic.results_by_partition:
                    # What was not tried for another partition's sake says nothing; that other one does.
                    if result.partition_error_code not in (
                        ErrorCode.NONE,
                        ErrorCode.OPERATION_NOT_ATTEMPTED,
                    ):
                        raise RemoteError(result.partition_error_code, about=f"{topic.name}-{result.index}")

        await self._ask(once)

    async def _add_group(self, group: str) -> None:
        async def once(connection: Connection, deadline_ms: float) -> None:
            producer_id, epoch = self._identity()
            request = add_offsets_to_txn.AddOffsetsToTxnRequest(
                self.transactional_id, producer_id, epoch, group
            )
            response = await connection.call(add_offsets_to_txn.API, request, deadline_ms=deadline_ms)
            if response.error_code != ErrorCode.NONE:
                raise RemoteError(response.error_code, about=self.transactional_id)

        self._has_begun = True
        await self._ask(once)

    async def _commit_offsets(
        self, offsets: Mapping[TopicPartition, OffsetToCommit], group: GroupIdentity
    ) -> None:
        producer_id, epoch = self._identity()
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member_id,
            instance_id=group.instance_id,
            topics=tuple(
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=tuple(
                        _offset(index, offsets[TopicPartition(name, index)]) for index in indexes
                    ),
                )
                for name, indexes in _by_topic(offsets).items()
            ),
        )
        version_max = _NAMED_TOPICS_OFFSETS_MAX if self._is_second_dialect else _FIRST_DIALECT_OFFSETS_MAX

        async def once(connection: Connection, deadline_ms: float) -> None:
            response = await connection.call(
                txn_offset_commit.API, request, deadline_ms=deadline_ms, version_max=version_max
            )
            for topic in response.topics:
                for answer in topic.partitions:
                    if answer.error_code != ErrorCode.NONE:
                        raise RemoteError(
                            answer.error_code, about=f"{group.group}: {topic.name}-{answer.index}"
                        )

        await self._ask_at(self._groups, group.group, once)

    async def _ask(self, once: Callable[[Connection, float], Awaitable[T]]) -> T:
        async def noting(connection: Connection, deadline_ms: float) -> T:
            self._level = connection.versions.feature(_FEATURE)
            return await once(connection, deadline_ms)

        return await self._ask_at(self._coordinators, self.transactional_id, noting)

    async def _ask_at(
        self, coordinators: Coordinators, key: str, once: Callable[[Connection, float], Awaitable[T]]
    ) -> T:
        until_ms = self._session.deadline_ms(self._settings.max_block_ms)

        async def attempt(connection: Connection) -> T:
            deadline_ms = min(until_ms, self._session.deadline_ms(self._settings.request_timeout_ms))
            try:
                return await once(connection, deadline_ms)
            except TimedOut as error:  # everything asked here may be asked twice
                raise ConnectionLost(str(error)) from None

        return await coordinators.ask(key, attempt, deadline_ms=until_ms)

    def _judged(self, error: RopewalkError) -> RopewalkError:
        """What an error means for the producer, which remembers it: the end, or the end of this transaction."""
        code = error.code if isinstance(error, RemoteError) else None
        if code in _FENCED:
            self._fatal = ProducerFenced(f"another producer uses {self.transactional_id}: {error}")
            self._fail(self._fatal)
            return self._fatal
        if code in _FATAL:
            self._fatal = error
            self._fail(error)
            return error
        if self._state is _State.CLOSED:
            return error
        if code is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            self._needs_epoch = True
        self._fail(error)
        return TransactionFailed(self.transactional_id, error)

    def _fail(self, error: RopewalkError) -> None:
        if self._failure is None:
            self._failure = error
        self._outbox.ended_by = self._failure
        self._outbox.give_up_all(self._failure)

    def _check_usable(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    def _expect(self, state: _State) -> None:
        if self._state is not state:
            raise Misuse(f"{self.transactional_id}: {self._state.value}")

    def _identity(self) -> Identity:
        assert self._outbox.identity is not None, "a transactional producer has an id from its start"
        return self._outbox.identity


def _offset(index: int, offset: OffsetToCommit) -> txn_offset_commit.TxnOffsetCommitRequestPartition:
    return txn_offset_commit.TxnOffsetCommitRequestPartition(
        index, offset.offset, offset.leader_epoch, offset.metadata
    )


def _by_topic(partitions: Mapping[TopicPartition, object] | set[TopicPartition]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        indexes.setdefault(partition.topic, []).append(partition.partition)
    return indexes
