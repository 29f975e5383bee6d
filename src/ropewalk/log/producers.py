"""What a partition remembers of its idempotent producers, so that a retry is written once.

The last five batches of each producer are kept, because a client may have five requests in flight. A batch
that equals one of them is answered with the offsets it got the first time.

Behaviour worth knowing
    A producer nobody remembers may begin with any sequence: its state may have expired. A door sees to it that it is the first
    that was sent (`kafka/refused_firsts.py`).
    Sequences count 0, 1, … 2³¹−1, 0.
    Of a producer whose batches have all been deleted only snapshots tell, so one is written before the files of segments go
    (`Trimming.forgets`). Where the disk has no room for it, the producer is forgotten when the log is next read: at a start, or after a cut.
    State expires by the clock at its last append, not by the timestamps in its records.
    Control batches carry a producer id and no sequence: they raise the epoch and end a transaction. A marker that raises the
    epoch makes sequences begin anew. One of a producer that nobody remembers says nothing about them.
    Whoever has a transaction open is not forgotten, however long it is silent: its marker may yet come from an older epoch.
    Batches that were damaged on disk may have been any producer's. Each may then leave out sequences once; what is
    remembered of it still tells a retry.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import (
    InvalidRequest,
    InvalidTransactionState,
    OutOfOrderSequence,
    ProducerFenced,
    TransactionCoordinatorFenced,
)
from ropewalk.base.limits import PRODUCERS_PER_PARTITION_MAX
from ropewalk.log.transactions import OpenTransaction, Transactions
from ropewalk.records.batch import CONTROL, SEQUENCE_MAX, TRANSACTIONAL, BatchHeader
from ropewalk.records.marker import OWN_EPOCHS_SINCE, Marker, TransactionMarker

BATCHES_KEPT: Final = 5

Kept: TypeAlias = tuple[int, int, int, int]
"""Base sequence, last sequence, base offset, end offset of one batch."""

_NO_COORDINATOR: Final = -1
_NO_MARKER: Final = -1


class SavedProducer(Struct, frozen=True, gc=False, array_like=True):
    producer_id: int
    epoch: int
    appended_at_ms: int
    may_skip: bool
    batches: list[Kept]
    coordinator_epoch: int = _NO_COORDINATOR
    marker_offset: int = _NO_MARKER


class ActiveProducer(Struct, frozen=True, gc=False):
    """A producer as somebody who looks at the partition sees it."""

    producer_id: int
    epoch: int
    last_sequence: int
    """-1 for one that has only written control batches."""

    appended_at_ms: int
    coordinator_epoch: int
    """Of the last marker; -1 if there was none."""

    transaction_first_offset: int
    """-1 for one that has no transaction open."""


class _Producer:
    __slots__ = ("appended_at_ms", "batches", "coordinator_epoch", "epoch", "marker_offset", "may_skip")

    def __init__(
        self,
        epoch: int,
        appended_at_ms: int,
        may_skip: bool,
        batches: list[Kept],
        coordinator_epoch: int = _NO_COORDINATOR,
        marker_offset: int = _NO_MARKER,
    ) -> None:
        self.epoch = epoch
        self.appended_at_ms = appended_at_ms
        self.may_skip = may_skip
        self.batches = batches
        self.coordinator_epoch = coordinator_epoch
        self.marker_offset = marker_offset


class Producers:
    __slots__ = ("_producers", "transactions")

    def __init__(
        self, saved: list[SavedProducer] | None = None, transactions: Transactions | None = None
    ) -> None:
        self.transactions = Transactions() if transactions is None else transactions
        self._producers = {
            each.producer_id: _Producer(
                each.epoch,
                each.appended_at_ms,
                each.may_skip,
                list(each.batches),
                each.coordinator_epoch,
                each.marker_offset,
            )
            for each in saved or ()
        }

    def __len__(self) -> int:
        return len(self._producers)

    def save(self) -> list[SavedProducer]:
        return [
            SavedProducer(
                producer_id,
                producer.epoch,
                producer.appended_at_ms,
                producer.may_skip,
                list(producer.batches),
                producer.coordinator_epoch,
                producer.marker_offset,
            )
            for producer_id, producer in self._producers.items()
        ]

    def active(self) -> list[ActiveProducer]:
        return [
            ActiveProducer(
                producer_id,
                producer.epoch,
                producer.batches[-1][1] if producer.batches else -1,
                producer.appended_at_ms,
                producer.coordinator_epoch,
                -1 if (open_one := self.transactions.open_of(producer_id)) is None else open_one.first_offset,
            )
            for producer_id, producer in self._producers.items()
        ]

    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        """In the order of their first offsets."""
        return self.transactions.all_open()

    def knows(self, producer_id: int) -> bool:
        return producer_id in self._producers

    def last_sequence_of(self, producer_id: int, epoch: int) -> int | None:
        """The last that it has written in that epoch; None where nobody remembers any."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch or not producer.batches:
            return None
        return producer.batches[-1][1]

    def repeats(self, header: BatchHeader) -> bool:
        """Whether the batch was appended before; refuses as `check` does."""
        return self.check(header) is not None

    def continues_transaction(self, header: BatchHeader) -> bool:
        """Whether its producer, at its epoch, has a transaction open."""
        known = self.transactions.open_of(header.producer_id)
        return known is not None and known.producer_epoch == header.producer_epoch

    def check(self, header: BatchHeader) -> tuple[int, int] | None:
        """None if the batch may be appended; base and end offset if it was appended before.

        Refuses an older epoch with `ProducerFenced`, a gap with `OutOfOrderSequence`, and with `InvalidTransactionState` one
        that belongs to no transaction while its producer has one open.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch, base_sequence = header.producer_epoch, header.base_sequence
        if epoch < producer.epoch:
            raise ProducerFenced(
                f"producer {header.producer_id} came with epoch {epoch}; epoch {producer.epoch} has written here"
            )
        if (
            not header.attributes & TRANSACTIONAL
            and self.transactions.open_of(header.producer_id) is not None
        ):
            raise InvalidTransactionState(
                f"producer {header.producer_id} has a transaction open and sent a batch that is not part of it"
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
            if base_sequence and not producer.may_skip:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} began after a marker with sequence {base_sequence}, not 0"
                )
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

    def check_marker(self, marker: TransactionMarker) -> bool:
        """Whether the marker is to be written; False if it was written before.

        Refuses an older epoch with `ProducerFenced`, and one from a coordinator that was succeeded with
        `TransactionCoordinatorFenced`. Where every transaction has an epoch of its own, a marker must have a later
        one than the records it ends: of an earlier attempt it would end the wrong transaction (KIP-1228). With the very
        epoch, and nothing open, it is one that came before (KAFKA-19999). Nobody may be remembered: state expires.
        """
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            return True
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"a marker for producer {marker.producer_id} came from coordinator epoch {marker.coordinator_epoch}; "
                f"epoch {producer.coordinator_epoch} has written here"
            )
        is_open = self.transactions.open_of(marker.producer_id) is not None
        ends_own = marker.version >= OWN_EPOCHS_SINCE
        if marker.producer_epoch < producer.epoch or (
            ends_own and is_open and marker.producer_epoch == producer.epoch
        ):
            raise ProducerFenced(
                f"a marker for producer {marker.producer_id} came with epoch {marker.producer_epoch}; "
                f"epoch {producer.epoch} has written here"
            )
        return is_open or not ends_own or marker.producer_epoch > producer.epoch

    def check_clients_marker(self, marker: TransactionMarker) -> None:
        """Refuse with `InvalidRequest` what an administrator may not write: any later epoch than is known here.

        It would fence the transaction's own coordinator, or its producer, and the transaction could never be ended.
        """
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            raise InvalidRequest(f"nothing is known here of producer {marker.producer_id}")
        if marker.coordinator_epoch > max(0, producer.coordinator_epoch):
            raise InvalidRequest(
                f"coordinator epoch {marker.coordinator_epoch} is unknown here; the last was {producer.coordinator_epoch}"
            )
        if marker.producer_epoch > producer.epoch:
            raise InvalidRequest(
                f"epoch {marker.producer_epoch} of producer {marker.producer_id} is unknown here; the last was {producer.epoch}"
            )

    def offsets_remembered(self) -> frozenset[int]:
        """The base offsets of the batches that tell a retry, and of the last markers, which tell an old epoch; without
        them a replay would not come to the same state."""
        offsets = {
            base_offset for producer in self._producers.values() for _, _, base_offset, _ in producer.batches
        }
        offsets.update(producer.marker_offset for producer in self._producers.values())
        return frozenset(offsets)

    def note_damage(self) -> None:
        """Batches that cannot be read any more are not among those applied."""
        for producer in self._producers.values():
            producer.may_skip = True

    def apply(self, header: BatchHeader, base_offset: int, now_ms: int, marker: Marker | None = None) -> None:
        """The batch is in the log at `base_offset`. `marker` is what it says if it ends a transaction."""
        attributes = header.attributes
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if len(self._producers) >= PRODUCERS_PER_PARTITION_MAX:
                self._make_room()
            producer = self._producers[header.producer_id] = _Producer(
                header.producer_epoch, now_ms, True, []
            )
        elif header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
            producer.may_skip = False
        producer.appended_at_ms = now_ms
        if attributes & CONTROL:
            if marker is not None:
                producer.coordinator_epoch = marker.coordinator_epoch
                producer.marker_offset = base_offset
                self.transactions.end(
                    header.producer_id, committed=marker.committed, marker_offset=base_offset
                )
            return
        producer.may_skip = False
        if attributes & TRANSACTIONAL:
            self.transactions.write(header, base_offset, now_ms)
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
            and self.transactions.open_of(producer_id) is None
        ]
        for producer_id in expired:
            del self._producers[producer_id]

    def _make_room(self) -> None:
        """Forget the eighth that has been silent longest, so that the search is paid for rarely."""
        at_rest = [key for key in self._producers if self.transactions.open_of(key) is None]
        by_silence = sorted(at_rest, key=lambda key: self._producers[key].appended_at_ms)
        for producer_id in by_silence[: PRODUCERS_PER_PARTITION_MAX // 8]:
            del self._producers[producer_id]
