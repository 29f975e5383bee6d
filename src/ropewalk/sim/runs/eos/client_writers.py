"""`ropewalk.aio` in the simulator: its idempotent producer, with many batches on their way and little patience.

What a reader could get wrong
    A delivery that failed for certain is an aborted write: whoever reads its value has found a violation. One that is unknown may be there
    or not, and once at most.
    Deliveries are awaited in the order of their sends, so that what is noted as placed is in that order too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.errors import DeliveryFailed
from ropewalk.client.producing.batch import Delivery
from ropewalk.client.producing.producer import Producer
from ropewalk.sim.clients.content import encode_value
from ropewalk.sim.clients.workload import Caller
from ropewalk.sim.judges.eos.history import Ended, Outcome, Placed, Sent
from ropewalk.sim.runs.cluster.guide import KAFKA_PORT
from ropewalk.sim.runs.eos.guide import EosGuide


class ClientPorts:
    """A client of the library is a machine of its own, as every other."""

    def __init__(self, caller: Caller) -> None:
        self.network: Network = caller.workload.world.network.host(caller.name)
        self.clock: Clock = caller.clock
        self.rng: Rng = caller.rng


def bootstrap_of(node_names: Sequence[str]) -> str:
    return ",".join(f"{name}:{KAFKA_PORT}" for name in node_names)


async def live_again(caller: Caller, live: Callable[[], Awaitable[None]], *, pause_s: float = 0.5) -> None:
    """One life of a client after the other until the run is over, whatever each of them dies of."""
    while not caller.workload.is_over:
        try:
            await live()
        except RopewalkError:
            await caller.pause(pause_s)


class _OnItsWay(Struct):
    operation: int
    partition: TopicPartition
    value: int
    delivery: Delivery


class ClientWriter:
    def __init__(self, guide: EosGuide, bootstrap: str, partitions: Sequence[TopicPartition]) -> None:
        self._guide = guide
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._on_its_way: deque[_OnItsWay] = deque()

    async def run(self) -> None:
        await live_again(self._guide, self._live)

    async def _live(self) -> None:
        rng = self._guide.rng
        producer = Producer(
            self._bootstrap,
            ports=ClientPorts(self._guide),
            client_id=self._guide.name,
            delivery_timeout_ms=rng.choice([1200, 2500, 5000, 20_000]),
            request_timeout_ms=rng.choice([300, 800, 2000]),
            max_block_ms=2000,
            connect_timeout_ms=800,
            linger_ms=rng.choice([0, 5, 40]),
            batch_size=rng.choice([1, 2000, 20_000]),
            max_in_flight=rng.choice([1, 5, 5]),
            compression=rng.choice(["none", "lz4", "gzip"]),
            retry_backoff_ms=rng.choice([20, 100]),
        )
        async with producer:
            for _ in range(rng.randrange(10, 80)):
                await self._send(producer)
                if rng.random() < 0.3:
                    await self._guide.pause(0.6)
                if self._guide.workload.is_over:
                    break
            while self._on_its_way:
                await self._hear(self._on_its_way.popleft())

    async def _send(self, producer: Producer) -> None:
        guide = self._guide
        partition, value = guide.rng.choice(self._partitions), guide.workload.next_value()
        operation = guide.journal.begin(guide.name, is_transactional=False)
        guide.journal.note(Sent(operation, partition, (value,)))
        guide.workload.operation_count += 1
        try:
            delivery = await producer.send(
                partition.topic, encode_value(value), partition=partition.partition
            )
        except RopewalkError:
            guide.journal.note(Ended(operation, Outcome.ABORTED))
            return
        self._on_its_way.append(_OnItsWay(operation, partition, value, delivery))
        while self._on_its_way and self._on_its_way[0].delivery.done:
            await self._hear(self._on_its_way.popleft())

    async def _hear(self, sent: _OnItsWay) -> None:
        guide, note = self._guide, self._guide.workload.sometimes.note
        try:
            acknowledged = await sent.delivery
        except DeliveryFailed as failure:
            if failure.is_unknown:
                note("a delivery of the library stayed unknown")
            else:
                guide.journal.note(Ended(sent.operation, Outcome.ABORTED))
                note("a delivery of the library failed for certain")
        except RopewalkError:
            guide.journal.note(Ended(sent.operation, Outcome.ABORTED))
        else:
            if acknowledged.offset >= 0:
                placed = Placed(sent.operation, sent.partition, acknowledged.offset, (sent.value,))
                guide.journal.note(placed)
            guide.journal.note(Ended(sent.operation, Outcome.COMMITTED))
            note("a delivery of the library was acknowledged")
        await asyncio.sleep(0)
