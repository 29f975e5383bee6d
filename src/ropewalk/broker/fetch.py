"""Reading for a consumer: find what is there, wait for more if that is too little, then read it.

What a reader could get wrong
    Only bytes below the high watermark count towards `bytes_min` (facts of the protocol, KIP-74), and the
    first batch is given even if it is larger than every bound.
    Bytes in the page cache that this process has verified are read on the loop; everything else is read
    and verified in the disk pool, so a cold consumer never stalls the others.
"""

import asyncio

from msgspec import Struct

from ropewalk.base.errors import RopewalkError, StorageFailed
from ropewalk.base.ids import Offset
from ropewalk.base.ports import Pool
from ropewalk.broker.partition import Partition
from ropewalk.log.log import Span


class Want(Struct):
    """One partition of a fetch, and after `fetch` what was found there."""

    partition: Partition | None
    """None where `error` already says why there is none."""

    offset: Offset
    bytes_max: int
    error: RopewalkError | None = None
    span: Span | None = None
    records: bytes | memoryview | None = None


async def fetch(wants: list[Want], *, bytes_min: int, bytes_max: int, wait_ms: int, pool: Pool) -> None:
    """Fill in `records` or `error` of every want. Never raises for a single partition's trouble."""
    found_bytes = _locate(wants, bytes_max)
    if found_bytes < bytes_min and wait_ms > 0 and not any(want.error for want in wants):
        await _Wait(wants, missing_bytes=bytes_min - found_bytes, wait_ms=wait_ms).over
        _locate(wants, bytes_max)
    cold = []
    for want in wants:
        if want.span is not None:
            want.records = want.span.read_cached()
            if want.records is None:
                cold.append(want)
    if cold:
        await asyncio.gather(*(_read_cold(want, pool) for want in cold))


def _locate(wants: list[Want], bytes_max: int) -> int:
    """Find what each want may have, within one budget for all; answers how many bytes that is."""
    found_bytes = 0
    for want in wants:
        partition = want.partition
        if partition is None:
            continue
        want.span = None
        budget = min(want.bytes_max, bytes_max - found_bytes)
        try:
            partition.check_readable()
            if budget <= 0 < found_bytes:
                partition.log.check_offset(want.offset)
                continue
            span = partition.log.locate(want.offset, limit_offset=partition.high_watermark, bytes_max=budget)
        except RopewalkError as error:
            want.error = error
            continue
        if span is None or (found_bytes and span.size_bytes > budget):
            continue  # only the first batch of an answer may be larger than what was asked for
        want.span = span
        found_bytes += span.size_bytes
    return found_bytes


async def _read_cold(want: Want, pool: Pool) -> None:
    assert want.span is not None
    assert want.partition is not None
    try:
        want.records = await pool.run(want.span.read)
    except RopewalkError as error:
        want.error = error
    except OSError as error:
        want.error = StorageFailed(f"{want.partition.name}: {error}")
    else:
        want.partition.log.on_read(want.span)


class _Wait:
    """Ends when enough bytes have come, when a partition ends, or when the time is over."""

    def __init__(self, wants: list[Want], *, missing_bytes: int, wait_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self._missing_bytes = missing_bytes
        self._partitions = [want.partition for want in wants if want.partition is not None]
        self._timer = loop.call_later(wait_ms / 1000, self.on_end)
        for partition in self._partitions:
            partition.watch(self)

    def on_growth(self, grown_bytes: int) -> None:
        self._missing_bytes -= grown_bytes
        if self._missing_bytes <= 0:
            self.on_end()

    def on_end(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.unwatch(self)
        if not self.over.done():
            self.over.set_result(None)
