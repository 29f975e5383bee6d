"""The first minute with Ropewalk: a few records go in and come out before the user's eyes."""

from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Ports
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.consumer import Consumer
from ropewalk.client.producer import Producer
from ropewalk.records.record import Record

TOPIC: Final = "demo"
_VALUES: Final = ("hemp", "is", "laid", "into", "rope")


async def show(address: tuple[str, int], ports: Ports, *, keeps_data: bool) -> str:
    """Produce to and consume from topic `demo` through the node's own door; answers what to print."""
    where = Address(*address)
    lines = [""]
    async with Client(ports.network, ports.clock, ports.rng, (where,)) as client:
        records = [Record(timestamp=ports.clock.now_ms(), value=value.encode()) for value in _VALUES]
        (delivered,) = await Producer(client, TOPIC).send(records, partition=0)
        lines.append(
            f"  produced  {delivered.record_count} records to {TOPIC}-{delivered.partition}, "
            f"acknowledged {'on disk' if keeps_data else 'in memory'} from offset {delivered.base_offset}"
        )
        consumer = Consumer(client, {TopicPartition(TOPIC, 0): delivered.base_offset})
        consumed: list[Record] = []
        while len(consumed) < len(records):
            for batch in await consumer.poll():
                consumed += batch.records
        lines += [f"  consumed  offset {each.offset}: {(each.value or b'').decode()}" for each in consumed]
    return "\n".join(
        [
            *lines,
            "",
            f"  Kafka clients connect to {where}. In another shell, try:",
            f"    ./run topic ls -b {where}",
            f"    echo hello | ./run produce {TOPIC} -b {where}",
            f"    ./run consume {TOPIC} -b {where} -e",
            f"    kcat -b {where} -L",
            "  Ctrl-C stops the node.",
            "",
        ]
    )
