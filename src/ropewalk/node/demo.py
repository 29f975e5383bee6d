"""The first minute with Ropewalk: a few records, and a message of a queue, go in and come out before the user's eyes."""

from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.base.ports import Ports
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.consumer import Consumer
from ropewalk.client.producer import Producer
from ropewalk.client.queues.queue import Queue
from ropewalk.records.record import Record

TOPIC: Final = "demo"
QUEUE: Final = "demo-jobs"
_VALUES: Final = ("hemp", "is", "laid", "into", "rope")
_TASK: Final = "coil the rope"


async def show(
    address: tuple[str, int], ports: Ports, *, keeps_data: bool, sqs: tuple[str, int] | None
) -> str:
    """Produce to and consume from topic `demo` through the node's own door, and send to a queue; answers what to print.

    `sqs` is where queues are found; None where that door is not open, or wants keys.
    """
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
    endpoint = None if sqs is None else f"http://{Address(*sqs)}"
    if endpoint is not None:
        lines += await _show_queue(endpoint, ports)
    return "\n".join(
        [
            *lines,
            "",
            f"  Kafka clients connect to {where}. In another shell, try:",
            f"    ./run topic ls -b {where}",
            f"    echo hello | ./run produce {TOPIC} -b {where}",
            f"    ./run consume {TOPIC} -b {where} -e",
            f"    kcat -b {where} -L",
            *_queue_hints(endpoint),
            "  Ctrl-C stops the node.",
            "",
        ]
    )


async def _show_queue(endpoint: str, ports: Ports) -> list[str]:
    async with Queue(
        QUEUE, endpoint=endpoint, access_key="any", secret_key="any", create=True, ports=ports
    ) as queue:
        await queue.send(_TASK)
        received = await queue.receive()
        lines = [f"  received  from queue {QUEUE}: {message.body}, then deleted" for message in received]
        await queue.delete(*received)
    return lines


def _queue_hints(endpoint: str | None) -> list[str]:
    if endpoint is None:
        return []
    return [
        f"  SQS clients take {endpoint} for AWS's endpoint, with any key and secret:",
        f"    aws --endpoint-url {endpoint} sqs list-queues",
    ]
