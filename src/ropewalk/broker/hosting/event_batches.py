"""A shard's events as record batches: plain, or as part of somebody's transaction."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.base.limits import SHARD_BATCH_BYTES
from ropewalk.broker.partitions.partition import Prepared
from ropewalk.records.batch import BatchHeader, decode_header
from ropewalk.records.record import build_keyed

E = TypeVar("E")


class Enrolment(Struct, frozen=True, gc=False):
    """Whose transaction events are part of."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch


def batches(
    events: Sequence[E],
    encode: Callable[[E], tuple[bytes, bytes | None]],
    *,
    now_ms: int,
    enrolment: Enrolment | None = None,
) -> Iterator[Prepared]:
    """As few as the size allows; one event may exceed it, whatever clients are allowed."""
    entries: list[tuple[bytes, bytes | None]] = []
    size_bytes = 0
    for event in events:
        entry = key, value = encode(event)
        event_bytes = len(key) + len(value or b"")
        if entries and size_bytes + event_bytes > SHARD_BATCH_BYTES:
            yield _prepared(entries, now_ms, enrolment)
            entries, size_bytes = [], 0
        entries.append(entry)
        size_bytes += event_bytes
    yield _prepared(entries, now_ms, enrolment)


def header_of(enrolment: Enrolment) -> BatchHeader:
    """As a partition sees it of a batch with events of that transaction, before there is one."""
    return _prepared([(b"", None)], 0, enrolment).header


def _prepared(
    entries: list[tuple[bytes, bytes | None]], now_ms: int, enrolment: Enrolment | None
) -> Prepared:
    """Without a sequence: nobody sends it twice, and a retry is another commit of the same offsets."""
    if enrolment is None:
        batch = build_keyed(entries, timestamp=now_ms)
    else:
        batch = build_keyed(
            entries,
            timestamp=now_ms,
            producer_id=enrolment.producer_id,
            producer_epoch=enrolment.producer_epoch,
            is_transactional=True,
        )
    return Prepared(memoryview(batch), decode_header(batch))
