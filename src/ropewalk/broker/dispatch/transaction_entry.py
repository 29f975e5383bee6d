"""Permission for a transaction to write to partitions, had from its coordinator wherever that is (KIP-890).

What a reader could get wrong
    A coordinator on this node is asked with patience, and answers when the former transaction is finished. One on another node answers at
    once, since an answer that waited for one transaction would delay those of all others: the question is put again after a moment,
    from here.
    Nothing here needs a task: handlers await it directly.
"""

import asyncio

from msgspec import structs

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import (
    TRANSACTION_ENTRIES_TOGETHER_MAX,
    TRANSACTION_ENTRY_MS_MAX,
    TRANSACTION_ENTRY_RETRY_MS,
    TRANSACTION_PATIENCE_MS,
)
from ropewalk.base.ports import Clock
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.to_shards import Hosting, ToShards
from ropewalk.broker.peers.calls.add_partitions_to_txn import add_partitions
from ropewalk.runtime.errands import Errands
from ropewalk.transactions.answers import PartitionsAdded
from ropewalk.transactions.commands import AddPartitions
from ropewalk.transactions.errors import ConcurrentTransactions

Outcomes = dict[TopicPartition, RopewalkError | None]
"""None where the transaction may write."""


class TransactionEntry:
    def __init__(
        self,
        coordinators: Hosting[AddPartitions, PartitionsAdded],
        dispatch: Dispatch,
        errands: Errands,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._coordinators = ToShards(
            coordinators,
            add_partitions,
            dispatch,
            errands,
            timeout_ms=TRANSACTION_ENTRY_MS_MAX,
            items_max=TRANSACTION_ENTRIES_TOGETHER_MAX,
        )

    async def join(self, command: AddPartitions) -> Outcomes:
        """One outcome for each partition of the command, which is added to the transaction or only verified."""
        patient = structs.replace(command, patience_ms=TRANSACTION_PATIENCE_MS)
        deadline_ms = self._clock.monotonic_ms() + TRANSACTION_PATIENCE_MS
        while True:
            try:
                added = await self._coordinators.to_shard(command.transactional_id, patient)
            except RopewalkError as error:
                return dict.fromkeys(command.partitions, error)
            is_early = any(isinstance(each, ConcurrentTransactions) for each in added.partitions)
            if not is_early or self._clock.monotonic_ms() >= deadline_ms:
                return dict(zip(command.partitions, added.partitions, strict=True))
            await _pause(TRANSACTION_ENTRY_RETRY_MS)


def _pause(delay_ms: float) -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_later(delay_ms / 1000, over.set_result, None)
    return over
