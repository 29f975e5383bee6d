"""Write the markers that end transactions, into partitions that this node leads.

What a reader could get wrong
    Offsets that a transaction commits belong to a group, whose state must hear of the end in the order of the log: a marker for
    `__consumer_offsets` is written by the shard that is hosted on the partition, not past it. No other topic that nodes keep for themselves
    gets any: whoever hosts a shard there alone writes to its log.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ropewalk.base.errors import InvalidTopicName, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.metadata.internal_topics import NODES_TOPICS, OFFSETS_TOPIC
from ropewalk.records.marker import TransactionMarker


class MarkerToWrite(Struct, frozen=True):
    marker: TransactionMarker
    partition: TopicPartition
    is_clients: bool = False
    """It comes from an administrator, who may know less than the log does, and never more."""


class OffsetsEnd(Protocol):
    """Where a transaction that commits offsets is ended."""

    def end_transaction(self, partition: int, marker: TransactionMarker) -> "asyncio.Future[None]":
        """Done when the marker is committed. Raises a shard's error where it is not hosted here."""


class MarkerWriting:
    def __init__(self, hosted: HostedPartitions, offsets: OffsetsEnd) -> None:
        self._hosted = hosted
        self._offsets = offsets

    async def write(self, wanted: Sequence[MarkerToWrite], *, timeout_ms: int) -> list[RopewalkError | None]:
        """One outcome for each, None where the marker is committed. All are in their logs before the first wait."""
        begun = [self._begin(each, timeout_ms) for each in wanted]
        return [await _outcome(each) for each in begun]

    def _begin(self, wanted: MarkerToWrite, timeout_ms: int) -> "asyncio.Future[None] | RopewalkError | None":
        topic, index = wanted.partition.topic, wanted.partition.partition
        try:
            if wanted.is_clients and (topic == OFFSETS_TOPIC or topic not in NODES_TOPICS):
                self._hosted.find(topic, index).log.producers.check_clients_marker(wanted.marker)
            if topic == OFFSETS_TOPIC:
                return self._offsets.end_transaction(index, wanted.marker)
            if topic in NODES_TOPICS:
                raise InvalidTopicName(f"{topic} takes no part in transactions")
            return (
                self._hosted.find(topic, index)
                .append_marker(wanted.marker, Acks.ALL, timeout_ms)
                .acknowledged
            )
        except RopewalkError as error:
            return error


async def _outcome(begun: "asyncio.Future[None] | RopewalkError | None") -> RopewalkError | None:
    if begun is None or isinstance(begun, RopewalkError):
        return begun
    try:
        await begun
    except RopewalkError as error:
        return error
    return None
