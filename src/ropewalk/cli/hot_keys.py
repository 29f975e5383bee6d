"""Which keys are written most often, from the ends of the partitions that carry most.

Nothing counts keys while they are written. The last records of a partition are read as any consumer would, and counted.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.consumer import Consumer
from ropewalk.controller.hot import HotKeys

SAMPLE_RECORDS: Final = 2000
"""Of each partition. A key with a tenth of the records is then seen some 200 times."""

SAMPLE_BYTES_MAX: Final = 4 << 20
"""Of each partition, so that large records take no longer to look at than small ones."""

_COUNTERS: Final = 200


class SampledKey(Struct, frozen=True):
    key: str
    """As text; what is none is shown in hexadecimal digits."""
    share: float
    """Of the records that were looked at."""


async def sample(
    client: Client, partitions: Sequence[tuple[str, int]], count: int
) -> dict[tuple[str, int], list[SampledKey]]:
    """For each partition at most `count` keys, the commonest first. A key that was seen once is not told."""
    return {(topic, index): await _sample(client, topic, index, count) for topic, index in partitions}


async def _sample(client: Client, topic: str, index: int, count: int) -> list[SampledKey]:
    start = (await client.list_offsets(topic, {index: OffsetQuery.EARLIEST}))[index].offset
    end = (await client.list_offsets(topic, {index: OffsetQuery.LATEST}))[index].offset
    partition = TopicPartition(topic, index)
    consumer = Consumer(client, {partition: max(start, end - SAMPLE_RECORDS)})
    keys = HotKeys(_COUNTERS)
    record_count = read_bytes = 0
    while consumer.positions[partition] < end and read_bytes < SAMPLE_BYTES_MAX:
        before = consumer.positions[partition]
        for consumed in await consumer.poll():
            record_count += len(consumed.records)
            for record in consumed.records:
                read_bytes += len(record.key or b"") + len(record.value or b"")
                if record.key is not None:
                    keys.add(record.key)
        if consumer.positions[partition] == before:
            break  # it was trimmed meanwhile, or nobody leads it any more
    return [
        SampledKey(_text(found.key), (found.count - found.error) / record_count)
        for found in keys.top(count)
        if found.count - found.error > 1
    ]


def _text(key: bytes) -> str:
    text = key.decode(errors="replace")
    return text if text.isprintable() and "\ufffd" not in text else f"0x{key.hex()}"
