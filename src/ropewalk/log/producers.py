"""What a partition remembers of its idempotent producers, so that a retry is written once.

The last five batches of each producer are kept, because a client may have five requests in flight. A batch
that equals one of them is answered with the offsets it got the first time.

Behaviour worth knowing
    A producer nobody remembers may begin with any sequence: its state may have expired.
    Sequences count 0, 1, … 2³¹−1, 0.
    State expires by the clock at its last append, not by the timestamps in its records.
    Control batches carry a producer id and no sequence: they raise the epoch and nothing else.
    Batches that were damaged on disk may have been any producer's. Each may then leave out sequences once; what is
    remembered of it still tells a retry.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import OutOfOrderSequence, ProducerFenced
from ropewalk.base.limits import PRODUCERS_PER_PARTITION_MAX
from ropewalk.records.batch import SEQUENCE_MAX, BatchHeader

BATCHES_KEPT: Final = 5

Kept: TypeAlias = tuple[int, int, int, int]
"""Base sequence, last sequence, base offset, end offset of one batch."""

SavedProducer: TypeAlias = tuple[int, int, int, bool, list[Kept]]
"""Producer id, producer epoch, time of the last append, whether a gap may follow, batches."""


class ActiveProducer(Struct, frozen=True, gc=False):
    """A producer as somebody who looks at the partition sees it."""

    producer_id: int
    epoch: int
    last_sequence: int
    """-1 for one that has only written control batches."""

    appended_at_ms: int


class _Producer:
    __slots__ = ("appended_at_ms", "batches", "epoch", "may_skip")

    def __init__(self, epoch: int, appended_at_ms: int, may_skip: bool, batches: list[Kept]) -> None:
        self.epoch = epoch
        self.appended_at_ms = appended_at_ms
        self.may_skip = may_skip
        self.batches = batches


class Producers:
    __slots__ = ("_producers",)

    def __init__(self, saved: list[SavedProducer] | None = None) -> None:
        self._producers = {
            producer_id: _Producer(epoch, appended_at_ms, may_skip, list(batches))
            for producer_id, epoch, appended_at_ms, may_skip, batches in saved or ()
        }

    def __len__(self) -> int:
        return len(self._producers)

    def save(self) -> list[SavedProducer]:
        return [
            (producer_id, producer.epoch, producer.appended_at_ms, producer.may_skip, list(producer.batches))
            for producer_id, producer in self._producers.items()
        ]

    def active(self) -> list[ActiveProducer]:
        return [
            ActiveProducer(
                producer_id,
                producer.epoch,
                producer.batches[-1][1] if producer.batches else -1,
                producer.appended_at_ms,
            )
            for producer_id, producer in self._producers.items()
        ]

    def check(self, header: BatchHeader) -> tuple[int, int] | None:
        """None if the batch may be appended; base and end offset if it was appended before.

        Refuses an older epoch with `ProducerFenced` and a gap with `OutOfOrderSequence`.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch, base_sequence = header.producer_epoch, header.base_sequence
        if epoch < producer.epoch:
            raise ProducerFenced(
                f"producer {header.producer_id} came with epoch {epoch}; epoch {producer.epoch} has written here"
            )
        if base_sequence < 0:
            return None
        if epoch > producer.epoch:
            if base_sequence != 0 and not producer.may_skip:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} began epoch {epoch} with sequence {base_sequence}, not 0"
                )
            return None
        if not producer.batches:
            return None
        skipped_count = (base_sequence - producer.batches[-1][1] - 1) & SEQUENCE_MAX
        if skipped_count == 0:
            return None
        last_sequence = header.last_sequence
        for kept in producer.batches:
            if kept[0] == base_sequence and kept[1] == last_sequence:
                return kept[2], kept[3]
        if producer.may_skip and skipped_count <= SEQUENCE_MAX // 2:
            return None
        raise OutOfOrderSequence(
            f"producer {header.producer_id} sent sequence {base_sequence} after {producer.batches[-1][1]}"
        )

    def offsets_remembered(self) -> frozenset[int]:
        """The base offsets of the batches that tell a retry; without them a replay would not come to the same state."""
        return frozenset(
            base_offset for producer in self._producers.values() for _, _, base_offset, _ in producer.batches
        )

    def note_damage(self) -> None:
        """Batches that cannot be read any more are not among those applied."""
        for producer in self._producers.values():
            producer.may_skip = True

    def apply(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """The batch is in the log at `base_offset`."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if len(self._producers) >= PRODUCERS_PER_PARTITION_MAX:
                self._make_room()
            producer = self._producers[header.producer_id] = _Producer(
                header.producer_epoch, now_ms, False, []
            )
        elif header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.appended_at_ms = now_ms
        producer.may_skip = False
        if header.base_sequence >= 0:
            batches = producer.batches
            batches.append(
                (
                    header.base_sequence,
                    header.last_sequence,
                    base_offset,
                    base_offset + header.last_offset_delta + 1,
                )
            )
            if len(batches) > BATCHES_KEPT:
                del batches[0]

    def expire(self, *, now_ms: int, expiry_ms: int) -> None:
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if now_ms - producer.appended_at_ms >= expiry_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]

    def _make_room(self) -> None:
        """Forget the eighth that has been silent longest, so that the search is paid for rarely."""
        by_silence = sorted(self._producers, key=lambda key: self._producers[key].appended_at_ms)
        for producer_id in by_silence[: PRODUCERS_PER_PARTITION_MAX // 8]:
            del self._producers[producer_id]
