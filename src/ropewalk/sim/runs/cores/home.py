"""The metadata home, as a model: one list of records that is appended to by compare-and-set.

What `MetadataLog` promises holds here and no more: an append names the controller's epoch and the end it believes in, and
is taken whole or not at all; its answer may be lost, and one that was not answered may take effect later. Readers are
told of new records by a watch that lags, loses and is cancelled; records that a snapshot stands for are gone. The lease
of a controller expires by a clock and says nothing about who may append.

With the home on one of the nodes (`local`) it is there exactly while the process of that node runs.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.metadata.image import Image
from ropewalk.metadata.log import AppendOutcome, Committed, Raced, Unknown
from ropewalk.metadata.records import MetadataRecord
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.network import HOME, Network
from ropewalk.sim.runs.cores.queue import EventQueue

LEASE_US: Final = 3_000_000
SNAPSHOT_AFTER: Final = 60
"""Records between two snapshots: few, so that readers who fall behind meet one."""


class Taken(Struct, frozen=True):
    """An epoch that was taken, and where the log ended then."""

    epoch: int
    end_offset: int


class Reading(Struct, frozen=True):
    """Records from `start_offset` on; with `facts` they follow on a snapshot that ends there."""

    start_offset: int
    records: tuple[MetadataRecord, ...]
    facts: tuple[MetadataRecord, ...] | None
    epoch: int
    is_vacant: bool


class OnCommitted(Protocol):
    def __call__(self, records: Sequence[MetadataRecord], image: Image) -> None:
        """Apply the records to `image`, if nothing is wrong with them."""


class Home:
    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        rng: random.Random,
        sometimes: Sometimes,
        on_committed: OnCommitted,
        *,
        address: int = HOME,
    ) -> None:
        self.address = address
        self.image = Image()
        """What everything committed adds up to: the truth that images elsewhere lag behind."""
        self.epoch = 0
        self.is_up: Callable[[], bool] = lambda: True
        self.unknown_share = 0.0
        self._queue, self._network, self._rng, self._sometimes = queue, network, rng, sometimes
        self._on_committed = on_committed
        self._records: list[MetadataRecord] = []
        self._snapshot: tuple[int, tuple[MetadataRecord, ...]] = (0, ())
        self._watches: dict[int, Callable[[int, tuple[MetadataRecord, ...]], None]] = {}
        self._lease_seen_us = -LEASE_US

    @property
    def end_offset(self) -> int:
        return len(self._records)

    def append(
        self,
        writer: int,
        records: tuple[MetadataRecord, ...],
        expected_epoch: int,
        expected_end_offset: int,
        reply: Callable[[AppendOutcome], None],
    ) -> None:
        if not self.is_up():
            return
        if self._rng.random() < self.unknown_share:
            self._sometimes.note("a metadata append's outcome was unknown")
            when = self._rng.randrange(3)
            if when == 0:
                self._try_append(records, expected_epoch, expected_end_offset)
            elif when == 1:
                delay_us = self._rng.randrange(1_000, 3_000_000)
                self._queue.after(delay_us, self._append_late, records, expected_epoch, expected_end_offset)
            self._network.send(self.address, writer, reply, Unknown("the home did not say"))
            return
        outcome = self._try_append(records, expected_epoch, expected_end_offset)
        self._network.send(self.address, writer, reply, outcome)

    def take_over(self, writer: int, expected_epoch: int, reply: Callable[[Taken | None], None]) -> None:
        """The next epoch, unless another than `expected_epoch` is in force. None: somebody was faster."""
        if not self.is_up():
            return
        seat = None
        if self.epoch == expected_epoch:
            self.epoch += 1
            self._lease_seen_us = self._queue.now_us
            seat = Taken(self.epoch, self.end_offset)
        self._network.send(self.address, writer, reply, seat)

    def keep_alive(self, epoch: int) -> None:
        if self.is_up() and epoch == self.epoch:
            self._lease_seen_us = self._queue.now_us

    def read(self, reader: int, start_offset: int, reply: Callable[[Reading], None]) -> None:
        if not self.is_up():
            return
        snapshot_end, facts = self._snapshot
        is_vacant = self._queue.now_us - self._lease_seen_us > LEASE_US
        if start_offset < snapshot_end:
            found = Reading(snapshot_end, tuple(self._records[snapshot_end:]), facts, self.epoch, is_vacant)
        else:
            found = Reading(start_offset, tuple(self._records[start_offset:]), None, self.epoch, is_vacant)
        self._network.send(self.address, reader, reply, found)

    def watch(self, reader: int, on_records: Callable[[int, tuple[MetadataRecord, ...]], None]) -> None:
        if self.is_up():
            self._watches[reader] = on_records

    def cancel_watch(self, reader: int) -> None:
        if self._watches.pop(reader, None) is not None:
            self._sometimes.note("a watch was lost")

    def _append_late(
        self, records: tuple[MetadataRecord, ...], expected_epoch: int, expected_end_offset: int
    ) -> None:
        if isinstance(self._try_append(records, expected_epoch, expected_end_offset), Committed):
            self._sometimes.note("a metadata append took effect after its outcome was unknown")

    def _try_append(
        self, records: tuple[MetadataRecord, ...], expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        if expected_epoch != self.epoch:
            self._sometimes.note("a zombie controller was refused")
            return Raced(self.epoch, self.end_offset)
        if expected_end_offset != self.end_offset:
            return Raced(self.epoch, self.end_offset)
        start_offset = self.end_offset
        self._on_committed(records, self.image)
        self._records.extend(records)
        for reader, on_records in self._watches.items():
            self._network.send(self.address, reader, on_records, start_offset, records)
        if self.end_offset - self._snapshot[0] >= SNAPSHOT_AFTER:
            self._snapshot = (self.end_offset, tuple(self.image.facts()))
        return Committed(self.end_offset)
