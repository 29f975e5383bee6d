"""Snapshots in etcd: pieces that fit a request, and a pointer that is switched when all of them are there.

In order: the pieces, the pointer, then what the snapshot stands for is deleted, then etcd forgets what is older than the
snapshot before. A crash anywhere leaves the former snapshot or this one, and at worst keys that the next one removes.
Whoever reads while the pieces are being removed finds some missing, and begins again with the pointer.

What a reader could get wrong
    A request may be carried out long after its sender has given up on it. So the switch compares the pointer it replaces,
    and the removal the pointer it belongs to, and neither can harm a snapshot that was made since. Names sort by where
    the snapshots end, and only what sorts before is removed: the next one may be in the making.
"""

from ropewalk.base.errors import CorruptMetadata, MetadataUnavailable
from ropewalk.base.limits import ETCD_SNAPSHOT_READS_MAX, METADATA_APPEND_BYTES_MAX
from ropewalk.metadata.etcd import messages
from ropewalk.metadata.etcd.client import Refused, Unreachable
from ropewalk.metadata.etcd.keys import Held, Pointer, encode
from ropewalk.metadata.etcd.messages import Header, Message
from ropewalk.metadata.etcd.mirror import Seat
from ropewalk.metadata.etcd.store import Store
from ropewalk.metadata.log import Snapshot
from ropewalk.metadata.snapshots import decode_snapshot, encode_snapshot


async def keep_snapshot(store: Store, seat: Seat, snapshot: Snapshot, nonce: str) -> None:
    """Raises `MetadataUnavailable` where it could not be kept, or another has taken over."""
    pointer = await _write_pieces(store, seat.revision, snapshot, nonce=nonce, reign=store.mirror.reign)
    switch = messages.put(store.keys.snapshot, encode(pointer))
    revision = await _write(store, seat.revision, switch, replacing=store.mirror.pointer_revision)
    store.mirror.on_pointer(pointer, revision)
    await _remove_what_it_stands_for(store, seat, pointer, revision)


async def adopt_snapshot(store: Store, held: Held, snapshot: Snapshot, reign: str) -> None:
    """Put `snapshot` in the place of all there is, with `held` as the last who decided; nothing if anybody sits down meanwhile.

    Raises `MetadataUnavailable` where it was not done, or nobody knows.
    """
    await store.read()
    seat, keys = store.mirror.seat, store.keys
    revision = 0 if seat is None else seat.revision
    pointer = await _write_pieces(store, revision, snapshot, nonce=held.nonce, reign=reign)
    await _write(
        store,
        revision,
        messages.put(keys.snapshot, encode(pointer)),
        messages.put(keys.end, b"%d" % snapshot.end_offset),
        messages.put(keys.controller, encode(held)),
        messages.delete(keys.log, end=keys.log_beyond),
        messages.delete(keys.chunks, end=keys.chunks_of(pointer.name)),
        replacing=store.mirror.pointer_revision,
    )
    await store.read()


async def read_snapshot(store: Store) -> Snapshot:
    """The newest, or an empty one at offset 0."""
    for _ in range(ETCD_SNAPSHOT_READS_MAX):
        await store.read()
        pointer = store.mirror.pointer
        if pointer is None:
            return Snapshot(epoch=0, end_offset=0, facts=())
        data = bytearray()
        for index in range(pointer.chunk_count):
            answer = await store.ask(
                messages.txn(success=[messages.get(store.keys.chunk(pointer.name, index))])
            )
            for kv in answer.found(0):
                data += kv.value
        if len(data) == pointer.size_bytes:
            return decode_snapshot(f"the snapshot {pointer.name} in etcd", bytes(data))
        if not await _was_replaced(store, pointer):
            raise CorruptMetadata(
                f"the snapshot {pointer.name} in etcd has {len(data)} of {pointer.size_bytes} bytes; "
                "stop every node and restore etcd from a backup"
            )
    raise MetadataUnavailable("snapshots in etcd were replaced faster than they could be read")


async def _write_pieces(
    store: Store, seat_revision: int, snapshot: Snapshot, *, nonce: str, reign: str
) -> Pointer:
    """Answers what points to them, once that is written."""
    data = encode_snapshot(snapshot)
    pieces = [
        data[start : start + METADATA_APPEND_BYTES_MAX]
        for start in range(0, len(data), METADATA_APPEND_BYTES_MAX)
    ]
    name = f"{snapshot.end_offset:020d}-{nonce}"
    for index, piece in enumerate(pieces):
        await _write(store, seat_revision, messages.put(store.keys.chunk(name, index), piece))
    return Pointer(name, len(pieces), snapshot.end_offset, len(data), reign)


async def _was_replaced(store: Store, pointer: Pointer) -> bool:
    await store.read()
    return store.mirror.pointer != pointer


async def _write(store: Store, seat_revision: int, *operations: Message, replacing: int | None = None) -> int:
    """`replacing` is the pointer's revision that must still hold."""
    compare = [] if replacing is None else [messages.has_revision(store.keys.snapshot, replacing)]
    revision = await store.write_as(seat_revision, operations, compare=compare)
    if revision is None:
        raise MetadataUnavailable(
            "the snapshot was not kept: another was, or another controller has taken over"
        )
    return revision


async def _remove_what_it_stands_for(store: Store, seat: Seat, pointer: Pointer, revision: int) -> None:
    keys = store.keys
    await _write(
        store,
        seat.revision,
        messages.delete(keys.log, end=keys.append_at(pointer.end_offset)),
        messages.delete(keys.chunks, end=keys.chunks_of(pointer.name)),
        replacing=revision,
    )
    revision = store.mirror.former_pointer_revision
    if revision:
        try:
            await store.client.ask(messages.COMPACT, {"revision": revision}, Header)
        except Refused:
            return  # somebody has compacted further already
        except Unreachable as error:
            raise MetadataUnavailable(f"etcd was not compacted: {error}") from error
