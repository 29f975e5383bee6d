"""What this process has heard of etcd's keys: the newest records, who holds the log, which snapshot counts.

Keys come from two sides, in answers to questions and as events of a watch, so the same may come twice and what is
older after what is newer. Each carries the revision it was written at.

Invariants
    `records` are a part of the committed log without gaps, ending at `end_offset`; neither ever changes or goes back. An etcd whose
    data were put back has another log; `known` is by what that is noticed.
    What is kept in memory reaches back to the snapshot before the newest one, at least if it was all heard.
"""

from msgspec import Struct

from ropewalk.base.errors import HistoryParted
from ropewalk.metadata.etcd.history import Known
from ropewalk.metadata.etcd.keys import (
    Batch,
    Held,
    Keys,
    Pointer,
    decode_batch,
    decode_held,
    decode_number,
    decode_pointer,
)
from ropewalk.metadata.etcd.messages import Event, KeyValue
from ropewalk.metadata.log import Holder
from ropewalk.metadata.records import ControllerChanged, MetadataRecord


class Seat(Struct, frozen=True):
    """The controller key, as written at `revision`."""

    held: Held
    revision: int


class Mirror:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.records: list[MetadataRecord] = []
        self.records_offset = 0
        self.log_bytes = 0
        """Appended since the newest snapshot."""
        self.seat: Seat | None = None
        self.pointer: Pointer | None = None
        self.pointer_revision = 0
        self.former_pointer_revision = 0
        """That of the snapshot before: what is older is of use to nobody who was heard of lately."""
        self.last: tuple[Batch, int] | None = None
        """The newest append and the revision it was written at; None while nothing but a snapshot was heard of."""
        self.reign = ""
        """The name of the controller who appended last, as far as it has one and was heard of."""
        self._alive_epoch = 0
        self._alive_revision = 0

    @property
    def end_offset(self) -> int:
        return self.records_offset + len(self.records)

    @property
    def holder(self) -> Holder | None:
        if self.seat is None:
            return None
        held = self.seat.held
        return Holder(held.node_id, held.epoch, is_alive=self._alive_epoch == held.epoch)

    @property
    def holder_epoch(self) -> int:
        return 0 if self.seat is None else self.seat.held.epoch

    def heard(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        assert start_offset <= self.end_offset, f"{start_offset} is beyond the end at {self.end_offset}"
        if start_offset < self.records_offset:
            return None
        return tuple(self.records[start_offset - self.records_offset :])

    def on_event(self, event: Event) -> bool:
        """False if something before it is missing: read."""
        if event.type == "DELETE":
            if event.kv.key == self._keys.alive:
                self.on_alive(0, event.kv.mod_revision)
            return True
        return self.on_key(event.kv)

    def on_key(self, kv: KeyValue) -> bool:
        """False if something before it is missing: read."""
        keys = self._keys
        if kv.key == keys.controller:
            self.on_seat(Seat(decode_held(kv.value), kv.mod_revision))
        elif kv.key == keys.alive:
            self.on_alive(decode_number(kv.value, "alive"), kv.mod_revision)
        elif kv.key == keys.snapshot:
            self.on_pointer(decode_pointer(kv.value), kv.mod_revision)
        elif kv.key.startswith(keys.log):
            return self.on_batch(decode_batch(kv.key, kv.value), len(kv.value), kv.mod_revision)
        return True

    def known(self, revision: int) -> Known:
        """What has been heard so far, from an etcd that was at `revision`."""
        held = None if self.seat is None else self.seat.held
        return Known(revision, self.end_offset, held, self.reign, self.last)

    def on_seat(self, seat: Seat) -> None:
        if self.seat is None or seat.revision > self.seat.revision:
            self.seat = seat

    def on_alive(self, epoch: int, revision: int) -> None:
        if revision > self._alive_revision:
            self._alive_epoch, self._alive_revision = epoch, revision

    def on_pointer(self, pointer: Pointer, revision: int) -> None:
        if revision <= self.pointer_revision:
            return
        former = self.pointer
        self.former_pointer_revision, self.pointer_revision = self.pointer_revision, revision
        self.pointer = pointer
        self.log_bytes = 0
        if pointer.end_offset > self.end_offset:  # what lies between is gone from etcd
            self.records.clear()
            self.records_offset = pointer.end_offset
            self.last, self.reign = None, pointer.reign
        elif former is not None and former.end_offset > self.records_offset:
            del self.records[: former.end_offset - self.records_offset]
            self.records_offset = former.end_offset

    def on_batch(self, batch: Batch, size_bytes: int, revision: int) -> bool:
        """False if something before it is missing."""
        if batch.end_offset <= self.end_offset:
            return True
        if batch.base_offset > self.end_offset:
            return False
        if batch.base_offset < self.end_offset:
            raise HistoryParted(
                f"etcd holds records {batch.base_offset} to {batch.end_offset - 1} in one append, and {self.end_offset} "
                "was the end before; its data were put back to another state"
            )
        self.records.extend(batch.records)
        self.last = batch, revision
        for record in batch.records:
            if isinstance(record, ControllerChanged):
                self.reign = record.reign
        self.log_bytes += size_bytes
        return True
