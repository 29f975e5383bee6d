"""The `MetadataLog` in etcd.

An append is one transaction: if the controller key is as this process wrote it, and the log ends where the writer
believes, one key with the records is created and the end moved. Nothing else can make a record part of the log. A request
that comes late finds the end moved, or another holder, and does nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from ropewalk.base.errors import CannotFollow, CorruptMetadata, MetadataUnavailable
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import METADATA_LOG_BYTES_MAX
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.metadata.etcd import messages
from ropewalk.metadata.etcd.client import Access, EtcdClient, NoSpace, Unanswered
from ropewalk.metadata.etcd.keys import Batch, Held, Keys, decode_held, decode_number, encode, encode_batch
from ropewalk.metadata.etcd.listening import Listening
from ropewalk.metadata.etcd.messages import Message, TxnAnswer
from ropewalk.metadata.etcd.mirror import Seat
from ropewalk.metadata.etcd.snapshots import adopt_snapshot, keep_snapshot, read_snapshot
from ropewalk.metadata.etcd.store import Store
from ropewalk.metadata.log import AppendOutcome, Committed, Holder, Raced, Snapshot, Unknown
from ropewalk.metadata.records import MetadataRecord
from ropewalk.runtime.bell import NO_WAIT_S

_NONCE_BYTES: Final = 12


class EtcdMetadataLog:
    """Use `open`. `run` must run beside it for `news`, `heard` and `holder` to keep up with others."""

    def __init__(self, network: Network, clock: Clock, rng: Rng, access: Access, prefix: str) -> None:
        self._store = Store(EtcdClient(network, clock, access), Keys(prefix))
        self._listening = Listening(self._store)
        self._rng = rng
        self.log_bytes_max = METADATA_LOG_BYTES_MAX
        self._seat: Seat | None = None
        """The controller key as this process wrote it last."""

    @classmethod
    async def open(
        cls, network: Network, clock: Clock, rng: Rng, access: Access, *, prefix: str
    ) -> "EtcdMetadataLog":
        """Raises `MetadataUnavailable` if no member answers."""
        log = cls(network, clock, rng, access, prefix)
        try:
            await log._store.read()
        except MetadataUnavailable:
            log.close()
            raise
        return log

    @property
    def epoch(self) -> int:
        return self._seat.held.epoch if self._seat is not None else 0

    @property
    def holder(self) -> Holder | None:
        return self._store.mirror.holder

    @property
    def trouble(self) -> str | None:
        return self._store.trouble

    @property
    def unheard(self) -> str | None:
        return self._store.unheard

    @property
    def parted(self) -> str | None:
        return self._store.parted

    @property
    def end_offset(self) -> int:
        return self._store.mirror.end_offset

    @property
    def snapshot_due(self) -> bool:
        """A large snapshot is written more seldom: writing it costs as much as what it saves."""
        pointer = self._store.mirror.pointer
        snapshot_bytes = pointer.size_bytes if pointer is not None else 0
        return self._store.mirror.log_bytes > max(self.log_bytes_max, snapshot_bytes)

    async def run(self) -> None:
        await self._listening.run()

    async def take_over(self, node_id: NodeId, *, expected_epoch: int) -> int | None:
        await self._store.read()
        former = self._store.mirror.seat
        if self._store.mirror.holder_epoch != expected_epoch:
            return None
        held = Held(node_id, expected_epoch + 1, self._rng.randbytes(_NONCE_BYTES).hex())
        lease = await self._store.grant()
        seat = await self._sit_down(held, former, lease)
        if seat is None:
            return None
        self._store.mirror.on_seat(seat)
        self._store.mirror.on_alive(held.epoch, seat.revision)
        self._store.bell.ring()
        self._seat = seat
        self._listening.keep(seat, lease)
        return held.epoch

    async def append(
        self, records: Sequence[MetadataRecord], *, expected_epoch: int, expected_end_offset: int
    ) -> AppendOutcome:
        assert records, "an append says something"
        mirror, seat = self._store.mirror, self._seat
        if seat is None or expected_epoch != seat.held.epoch or expected_epoch != mirror.holder_epoch:
            return Raced(mirror.holder_epoch, mirror.end_offset)
        if expected_end_offset != mirror.end_offset:
            return Raced(mirror.holder_epoch, mirror.end_offset)
        batch = Batch(expected_epoch, expected_end_offset, tuple(records))
        value = encode_batch(batch)
        try:
            answer = await self._store.write(self._appending(batch, value, seat))
        except NoSpace as error:
            return await self._look_for(batch, seat, str(error))
        except Unanswered as error:
            return Unknown(str(error))
        if answer.succeeded:
            mirror.on_batch(batch, len(value), answer.header.revision)
            self._store.bell.ring()
            return Committed(batch.end_offset)
        return self._lost(answer)

    async def snapshot(self) -> Snapshot:
        return await read_snapshot(self._store)

    async def tail(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        await self._store.read()
        return self.heard(start_offset)

    def heard(self, start_offset: int) -> tuple[MetadataRecord, ...] | None:
        return self._store.mirror.heard(start_offset)

    async def news(self, *, end_offset: int, holder_epoch: int, timeout_ms: float) -> None:
        mirror = self._store.mirror
        if end_offset >= mirror.end_offset and holder_epoch == mirror.holder_epoch:
            await self._store.bell.wait(timeout_ms)
        else:
            await asyncio.sleep(NO_WAIT_S)

    async def write_snapshot(self, snapshot: Snapshot) -> None:
        assert snapshot.end_offset == self.end_offset, "a snapshot stands for every record there is"
        assert self._seat is not None, "only the holder writes"
        await keep_snapshot(self._store, self._seat, snapshot, self._rng.randbytes(_NONCE_BYTES).hex())

    async def adopt(self, snapshot: Snapshot, *, node_id: NodeId, reign: str) -> None:
        held = Held(node_id, snapshot.epoch, self._rng.randbytes(_NONCE_BYTES).hex())
        await adopt_snapshot(self._store, held, snapshot, reign)

    def close(self) -> None:
        self._store.client.close()

    def _appending(self, batch: Batch, value: bytes, seat: Seat) -> Message:
        keys = self._store.keys
        key = keys.append_at(batch.base_offset)
        return messages.txn(
            compare=[
                messages.has_revision(keys.controller, seat.revision),
                messages.has_value(
                    keys.controller, encode(seat.held)
                ),  # revisions come again after a restore
                messages.has_value(keys.end, b"%d" % batch.base_offset),
                messages.has_revision(key, 0),
            ],
            success=[messages.put(key, value), messages.put(keys.end, b"%d" % batch.end_offset)],
            failure=[messages.get(keys.controller), messages.get(keys.end)],
        )

    async def _look_for(self, batch: Batch, seat: Seat, refusal: str) -> AppendOutcome:
        """etcd has no space, and may have carried out the append as it ran full. It has answered, so nothing will be done any more:
        what is there now is the outcome."""
        mirror = self._store.mirror
        try:
            await self._store.read()
        except (MetadataUnavailable, CorruptMetadata, CannotFollow):
            return Unknown(refusal)
        written = self.heard(batch.base_offset)
        if written is None or mirror.seat != seat:  # it may have been done before another took over
            return Unknown(refusal)
        if not written:
            raise MetadataUnavailable(refusal)
        if written[: len(batch.records)] == batch.records:
            return Committed(batch.end_offset)
        return Raced(mirror.holder_epoch, mirror.end_offset)  # an earlier one of this process was done late

    def _lost(self, answer: TxnAnswer) -> Raced:
        """What the transaction found instead; all of it is newer than what was believed."""
        controllers, ends = answer.found(0), answer.found(1)
        if not controllers or not ends:
            raise CorruptMetadata(
                f"etcd has lost the keys under {self._store.keys.first.decode()}; stop every node and "
                "restore it from a backup"
            )
        held = decode_held(controllers[0].value)
        self._store.mirror.on_seat(Seat(held, controllers[0].mod_revision))
        self._store.bell.ring()
        return Raced(held.epoch, decode_number(ends[0].value, "end"))

    async def _sit_down(self, held: Held, former: Seat | None, lease: int) -> Seat | None:
        """Write the controller key if it is still `former`; None if another was faster."""
        keys = self._store.keys
        compare = [messages.has_revision(keys.controller, former.revision if former is not None else 0)]
        success = [messages.put(keys.controller, encode(held)), self._store.says_alive(held, lease)]
        if not self._store.end_is_there:
            compare.append(messages.has_revision(keys.end, 0))
            success.append(messages.put(keys.end, b"0"))
        try:
            answer = await self._store.write(messages.txn(compare=compare, success=success))
        except Unanswered as error:
            await self._store.read()
            seat = self._store.mirror.seat
            if seat is not None and seat.held == held:
                return seat
            if seat == former:
                raise MetadataUnavailable(
                    f"whether node {held.node_id} took over is not known: {error}"
                ) from error
            return None
        return Seat(held, answer.header.revision) if answer.succeeded else None
