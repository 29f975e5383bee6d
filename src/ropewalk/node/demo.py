"""The first minute with Ropewalk: a few records, and a message of a queue, go in and come out before the user's eyes."""

from pathlib import Path
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
PROGRAM: Final = "ropewalk"
IN_A_CLONE: Final = "./run"
QUEUE: Final = "demo-jobs"
_VALUES: Final = ("hemp", "is", "laid", "into", "rope")
_TASK: Final = "coil the rope"


async def show(
    address: tuple[str, int],
    ports: Ports,
    *,
    keeps_data: bool,
    sqs: tuple[str, int] | None,
    program: str = PROGRAM,
) -> str:
    """Produce to and consume from topic `demo` through the node's own door, and send to a queue; answers what to print.

    `sqs` is where queues are found; None where that door is not open, or wants keys. `program` is how the command line is called.
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
            f"    {program} topic ls -b {where}",
            f"    echo hello | {program} produce {TOPIC} -b {where}",
            f"    {program} consume {TOPIC} -b {where} -e",
            f"    kcat -b {where} -L",
            *_queue_hints(endpoint),
            "  Ctrl-C stops the node.",
            "",
        ]
    )


def called_as(started: str) -> str:
    """How whoever started the program `started` calls the command line: by the script of the clone whose environment it is in, or by its name."""
    folder = Path(started).resolve().parent
    is_of_clone = folder.name == "bin" and folder.parent.name == ".venv"
    return IN_A_CLONE if is_of_clone and (folder.parent.parent / "run").is_file() else PROGRAM


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
