"""Batches of producers that nobody knows yet, refused while others of them are on their way.

A partition takes any first sequence of a producer that it does not know: its state may have expired, or the topic been made anew. But a
client has several requests in flight. If the first is refused for a passing reason (the partition is not open yet, too few replicas are in
sync, the disk is full) and the reason passes, the second would be taken as the first, and the order of the records be lost. So a
connection remembers the lowest sequence that was refused on it, and until that comes again nothing later is taken.

What a reader could get wrong
    Requests of one producer that can overtake each other are on one connection, so what is remembered ends with it.
    Once the partition knows the producer, the log itself finds gaps. Where the gap is what was refused for a passing reason, as when a
    partition gets its leader between two requests, that reason is told and not the gap: librdkafka takes another epoch upon a gap, and
    sends again what may be in the log.
    Whoever gives a sequence up takes another epoch, of which nothing is remembered. What has not come again for long is not waited for.
"""

import asyncio
from functools import partial
from typing import Final, TypeAlias

from ropewalk.base.errors import CorruptBatch, OutOfOrderSequence, RopewalkError, UnsupportedFormat
from ropewalk.base.limits import REFUSED_FIRST_MS_MAX, REFUSED_FIRSTS_PER_CONNECTION_MAX
from ropewalk.broker.partitions.partition import Partition
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.records.batch import BatchHeader, decode_header
from ropewalk.wire.error_code import RETRIABLE
from ropewalk.wire.messages.produce import TopicProduceData

_Key: TypeAlias = tuple[str, bytes, int, int, int]
"""Topic by name and id, partition, producer and epoch."""

_NO_PRODUCER: Final = -1


class RefusedFirsts:
    def __init__(self) -> None:
        self.by_connection: dict[object, dict[_Key, tuple[int, float, RopewalkError]]] = {}
        """The lowest sequence, until when it is waited for, and why it was refused."""

    def __len__(self) -> int:
        return len(self.by_connection)

    def note(
        self, caller: Caller, topic: TopicProduceData, index: int, batch: memoryview, error: RopewalkError
    ) -> RopewalkError:
        """The batch was refused, for whatever reason. Answers what its sender is to be told."""
        try:
            header = decode_header(batch)
        except (CorruptBatch, UnsupportedFormat):
            return error
        if header.producer_id == _NO_PRODUCER or header.base_sequence < 0:
            return error
        connection = caller.connection
        refused = self.by_connection.get(connection)
        if refused is None:
            refused = self.by_connection[connection] = {}
            caller.watch_end(partial(self._forget, connection))
        key = _key(topic, index, header)
        known = refused.get(key)
        if known is not None and header.base_sequence > known[0]:
            is_gap = isinstance(error, OutOfOrderSequence) and code_for(known[2]) in RETRIABLE
            return known[2] if is_gap else error
        if known is None or header.base_sequence < known[0]:
            until_s = asyncio.get_running_loop().time() + REFUSED_FIRST_MS_MAX / 1000
            refused[key] = header.base_sequence, until_s, error.with_traceback(None)
        if len(refused) > REFUSED_FIRSTS_PER_CONNECTION_MAX:
            del refused[next(iter(refused))]
        return error

    def check(
        self, caller: Caller, topic: TopicProduceData, index: int, partition: Partition, header: BatchHeader
    ) -> None:
        """Refuse what would be taken as the first while an earlier one was refused. To be called where anything is remembered."""
        refused = self.by_connection.get(caller.connection)
        if not refused:
            return
        key = _key(topic, index, header)
        if key not in refused:
            return
        lowest, until_s, _ = refused[key]
        is_over = asyncio.get_running_loop().time() > until_s
        if is_over or header.base_sequence <= lowest:
            del refused[key]
            return
        if partition.log.producers.knows(header.producer_id):
            return
        raise OutOfOrderSequence(
            f"producer {header.producer_id} sent sequence {header.base_sequence}, and {lowest} was refused before"
        )

    def _forget(self, connection: object) -> None:
        """The connection has ended."""
        self.by_connection.pop(connection, None)


def _key(topic: TopicProduceData, index: int, header: BatchHeader) -> _Key:
    return topic.name, bytes(topic.topic_id), index, header.producer_id, header.producer_epoch
