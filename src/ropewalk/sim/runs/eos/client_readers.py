"""`ropewalk.aio` in the simulator: its consumer, over all partitions without a group."""

from ropewalk.base.ids import TopicPartition
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.consuming.message import Message
from ropewalk.sim.clients.content import decode_value
from ropewalk.sim.judges.eos.history import Ended, Outcome, Polled, Positioned
from ropewalk.sim.runs.eos.client_writers import ClientPorts, live_again
from ropewalk.sim.runs.eos.guide import EosGuide

NOT_TOLD = -1
"""The library does not tell how far a partition was stable when it answered."""


def by_partition(messages: list[Message]) -> dict[TopicPartition, tuple[tuple[int, int], ...]]:
    """The (offset, value) of each, in the order in which they came."""
    found: dict[TopicPartition, list[tuple[int, int]]] = {}
    for message in messages:
        record = (message.offset, decode_value(message.value))
        found.setdefault(message.topic_partition, []).append(record)
    return {partition: tuple(records) for partition, records in found.items()}


class ClientReader:
    def __init__(self, guide: EosGuide, bootstrap: str, *, is_committed_only: bool) -> None:
        self._guide = guide
        self._bootstrap = bootstrap
        self._is_committed_only = is_committed_only
        self._positions: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        await live_again(self._guide, self._live)

    async def _live(self) -> None:
        guide, rng = self._guide, self._guide.rng
        consumer = Consumer(
            self._bootstrap,
            ports=ClientPorts(guide),
            client_id=guide.name,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if self._is_committed_only else "read_uncommitted",
            fetch_max_wait_ms=rng.choice([20, 300]),
            max_partition_fetch_bytes=rng.choice([1, 3000, 100_000]),
            request_timeout_ms=1500,
            default_api_timeout_ms=3000,
            connect_timeout_ms=800,
            metadata_max_age_ms=rng.choice([2000, 300_000]),
        )
        async with consumer:
            consumer.assign(guide.workload.topics.partitions)
            for partition in guide.workload.topics.partitions:
                self._go_to(consumer, partition, self._positions.get(partition, 0))
            for _ in range(rng.randrange(20, 200)):
                if guide.workload.is_over:
                    return
                if rng.random() < 0.03:
                    partition = rng.choice(guide.workload.topics.partitions)
                    self._go_to(consumer, partition, rng.randrange(self._positions[partition] + 1))
                guide.workload.operation_count += 1
                self._note(await consumer.poll(timeout_ms=300, max_records=rng.choice([1, 20, 500])))
                await guide.pause(0.1)

    def _go_to(self, consumer: Consumer, partition: TopicPartition, offset: int) -> None:
        consumer.seek(partition, offset)
        self._positions[partition] = offset
        self._guide.journal.note(Positioned(self._guide.name, partition, offset))

    def _note(self, messages: list[Message]) -> None:
        journal, name = self._guide.journal, self._guide.name
        for partition, records in by_partition(messages).items():
            if records[0][0] < self._positions[partition]:
                # Sought without an epoch, a position can be out of range for a leader that was deposed long ago.
                journal.note(Positioned(name, partition, records[0][0]))
                self._guide.workload.sometimes.note("a consumer of the library was sent back")
            operation = journal.begin(name, is_transactional=False)
            journal.note(Polled(operation, name, partition, records, self._is_committed_only, NOT_TOLD))
            journal.note(Ended(operation, Outcome.COMMITTED))
            self._positions[partition] = records[-1][0] + 1
            self._guide.workload.sometimes.note("a consumer of the library read records")
