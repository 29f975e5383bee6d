"""Requests sent straight to one node, whoever it takes for the leader: no client's retries hide what it answers."""

import asyncio
import time
from typing import NamedTuple

from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.node.addresses import parse_address
from ropewalk.records.batch import decode_header
from ropewalk.records.record import Record, build, decode_records
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, produce

_BY_NAME_VERSION_MAX = 12
_ALL_IN_SYNC = -1
_ANSWER_MS = 10_000
"""Beyond the time that the request itself allows."""
_BYTES_MAX = 1 << 20


class Written(NamedTuple):
    error: ErrorCode
    offset: int


def write(address: str, topic: str, partition: int, value: bytes, *, timeout_ms: int) -> Written:
    """One record with acks=all, once."""
    now_ms = int(time.time() * 1000)
    batch = bytes(build([Record(timestamp=now_ms, value=value)]))
    data = produce.TopicProduceData(topic, partitions=(produce.PartitionProduceData(partition, batch),))
    request = produce.ProduceRequest(None, _ALL_IN_SYNC, timeout_ms, (data,))

    async def ask() -> Written:
        connection, deadline_ms = await _open(address, timeout_ms + _ANSWER_MS)
        try:
            answer = await connection.call(
                produce.API, request, deadline_ms=deadline_ms, version_max=_BY_NAME_VERSION_MAX
            )
        finally:
            connection.close()
        (written,) = answer.topics[0].partitions
        return Written(ErrorCode(written.error_code), written.base_offset)

    return asyncio.run(ask())


def read(address: str, topic: str, partition: int, offset: int) -> tuple[ErrorCode, bytes | None]:
    """The record at an offset, if consumers may see it, once and without waiting for it."""
    wanted = fetch.FetchPartition(partition, fetch_offset=offset, partition_max_bytes=_BYTES_MAX)
    request = fetch.FetchRequest(topics=(fetch.FetchTopic(topic, partitions=(wanted,)),))

    async def ask() -> tuple[ErrorCode, bytes | None]:
        connection, deadline_ms = await _open(address, _ANSWER_MS)
        try:
            answer = await connection.call(
                fetch.API, request, deadline_ms=deadline_ms, version_max=_BY_NAME_VERSION_MAX
            )
        finally:
            connection.close()
        (found,) = answer.topics[0].partitions
        batches = bytes(found.records or b"")  # what came after it is sent along
        first = decode_records(batches[: decode_header(batches).size_bytes])[0].value if batches else None
        return ErrorCode(found.error_code), first

    return asyncio.run(ask())


async def _open(address: str, within_ms: int) -> tuple[Connection, float]:
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + within_ms
    where = Address(*parse_address(address, "kafka"))
    connection = await Connection.open(
        TcpNetwork(), clock, where, client_id="straight", deadline_ms=deadline_ms
    )
    return connection, deadline_ms
