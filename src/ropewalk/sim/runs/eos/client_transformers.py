"""`ropewalk.aio` in the simulator: a group consumer and a transactional producer that make records from records, exactly once.

It does what the guide says: after anything that went wrong it starts over, and where nobody knows whether a transaction was
committed it asks for the same again.
"""

import asyncio
from collections.abc import Sequence

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.group_offsets import OffsetToCommit
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.consuming.message import Message
from ropewalk.client.errors import OutcomeUnknown, TransactionFailed
from ropewalk.client.producing.producer import Producer
from ropewalk.sim.clients.content import encode_value
from ropewalk.sim.judges.eos.history import (
    EndAsked,
    Ended,
    OffsetsSent,
    Outcome,
    Placed,
    Polled,
    Positioned,
    Sent,
)
from ropewalk.sim.runs.eos.client_readers import NOT_TOLD, by_partition
from ropewalk.sim.runs.eos.client_writers import ClientPorts, live_again
from ropewalk.sim.runs.eos.guide import EosGuide

_PATIENCE: int = 5
"""How often it asks what became of a transaction before it starts over without knowing."""


class ClientTransformer:
    def __init__(
        self,
        guide: EosGuide,
        bootstrap: str,
        group: str,
        input_topic: str,
        outputs: Sequence[TopicPartition],
        *,
        protocol: str,
        transaction_timeout_ms: int,
    ) -> None:
        self._guide = guide
        self._bootstrap = bootstrap
        self._group = group
        self._input_topic = input_topic
        self._outputs = outputs
        self._protocol = protocol
        self._timeout_ms = transaction_timeout_ms
        self._unpositioned: set[TopicPartition] = set()

    async def run(self) -> None:
        await live_again(self._guide, self._live)

    async def _live(self) -> None:
        guide, rng = self._guide, self._guide.rng
        consumer = Consumer(
            self._bootstrap,
            group=self._group,
            ports=ClientPorts(guide),
            client_id=guide.name,
            group_protocol=self._protocol,
            assignor=rng.choice(["cooperative-sticky"]),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=1500,
            heartbeat_interval_ms=300,
            max_poll_interval_ms=1000,
            max_poll_records=rng.choice([1, 5, 30]),
            fetch_max_wait_ms=100,
            request_timeout_ms=1500,
            default_api_timeout_ms=3000,
            connect_timeout_ms=800,
        )
        producer = Producer(
            self._bootstrap,
            ports=ClientPorts(guide),
            client_id=guide.name,
            transactional_id=guide.name,
            transaction_timeout_ms=self._timeout_ms,
            delivery_timeout_ms=4000,
            request_timeout_ms=1000,
            max_block_ms=3000,
            connect_timeout_ms=800,
        )
        async with producer, consumer:
            consumer.subscribe(self._input_topic, on_assigned=self._unpositioned.update)
            while not guide.workload.is_over:
                messages = await consumer.poll(timeout_ms=300)
                if messages:
                    await self._make(consumer, producer, messages)
                await guide.pause(0.2)

    async def _make(self, consumer: Consumer, producer: Producer, messages: list[Message]) -> None:
        guide, journal = self._guide, self._guide.journal
        operation = journal.begin(guide.name, is_transactional=True)
        for partition, records in by_partition(messages).items():
            if partition in self._unpositioned:
                self._unpositioned.discard(partition)
                journal.note(Positioned(guide.name, partition, records[0][0]))
            journal.note(Polled(operation, guide.name, partition, records, True, NOT_TOLD))
        guide.workload.operation_count += 1
        await producer.begin_transaction()
        try:
            await self._write(operation, producer, messages)
            await self._dawdle()
            await self._hand_in(operation, consumer, producer, messages)
            await self._dawdle()
        except RopewalkError:
            journal.note(EndAsked(operation, False))
            raise
        await self._commit(operation, producer)

    async def _write(self, operation: int, producer: Producer, messages: list[Message]) -> None:
        guide, journal = self._guide, self._guide.journal
        partition = guide.rng.choice(self._outputs)
        sent = []
        for message in messages:
            value = guide.workload.next_value()
            source = (self._group, message.topic_partition, message.offset)
            journal.note(Sent(operation, partition, (value,), (source,)))
            sent.append(
                (
                    value,
                    await producer.send(partition.topic, encode_value(value), partition=partition.partition),
                )
            )
        for value, delivery in sent:
            acknowledged = await delivery
            if acknowledged.offset >= 0:
                journal.note(Placed(operation, partition, acknowledged.offset, (value,)))

    async def _hand_in(
        self, operation: int, consumer: Consumer, producer: Producer, messages: list[Message]
    ) -> None:
        journal = self._guide.journal
        commit = journal.next_commit()
        ends = {message.topic_partition: message.offset + 1 for message in messages}
        journal.note(OffsetsSent(operation, commit, self._group, tuple(ends.items())))
        offsets = {partition: OffsetToCommit(end, metadata=str(commit)) for partition, end in ends.items()}
        identity = consumer.group_identity()
        try:
            await producer.send_offsets_to_transaction(offsets, identity)
        except TransactionFailed:
            if consumer.group_identity() == identity:
                self._guide.workload.sometimes.note("the library handed in offsets as a former member")
            raise

    async def _commit(self, operation: int, producer: Producer) -> None:
        journal, note = self._guide.journal, self._guide.workload.sometimes.note
        journal.note(EndAsked(operation, True))
        for _ in range(_PATIENCE):
            try:
                await producer.commit_transaction()
            except OutcomeUnknown:
                note("the library did not know whether a transaction was committed")
                continue
            journal.note(Ended(operation, Outcome.COMMITTED))
            note("the library made records from others")
            return

    async def _dawdle(self) -> None:
        """Now and then long enough for the group to go on without it."""
        rng = self._guide.rng
        if rng.random() < 0.15:
            await asyncio.sleep(rng.uniform(0.5, 5.0))
