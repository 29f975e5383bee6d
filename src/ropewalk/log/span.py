"""A stretch of whole batches that a reader may have: found on the event loop, read there or in the disk pool.

    span = log.locate(…)
    data = span.read_cached()           on the loop; None if it would wait, or must be verified at length
    data = await pool.run(span.read)    in the disk pool; every CRC is checked
    log.on_read(span)                   on the loop; what was opened, loaded and verified is remembered

What a reader could get wrong
    `size_bytes` is what will be read; for a span that begins or ends between index entries the answer is shorter.
    An index that came from a file is a hint. Positions taken from it are compared with the log before anything
    is served; if they do not agree, the index is built again from the log.
    Bytes are served only if they are trusted or have just been verified. See `trust`.
"""

from struct import Struct as Layout
from typing import Final

from msgspec.structs import replace

from ropewalk.base.errors import CorruptBatch, OffsetOutOfRange, StorageFailed, UnsupportedFormat
from ropewalk.base.limits import VERIFY_INLINE_BYTES_MAX
from ropewalk.base.ports import File
from ropewalk.log.damage import DamagedRange, DamagedRanges
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.index import Columns, IndexRequest
from ropewalk.log.plan import Plan, Wanted, make_plan
from ropewalk.log.scan import Damage, scan
from ropewalk.log.segment import Segment
from ropewalk.log.storage import Storage
from ropewalk.records.batch import HEADER_BYTES, BatchHeader, decode_header, verify_crc

_unpack_base_offset: Final = Layout(">q").unpack_from
_BASE_OFFSET_BYTES: Final = 8


class Span:
    __slots__ = (
        "_columns",
        "_damaged",
        "_epochs",
        "_file",
        "_generation",
        "_name",
        "_plan",
        "_rebuilt",
        "_request",
        "_resident",
        "_storage",
        "_verified_end",
        "_wanted",
        "segment",
        "size_bytes",
    )

    def __init__(
        self,
        storage: Storage,
        name: str,
        segment: Segment,
        damaged: DamagedRanges,
        epochs: LeaderEpochs,
        wanted: Wanted,
        plan: Plan | None,
        request: IndexRequest | None,
    ) -> None:
        self._storage = storage
        self._name = name
        self.segment = segment
        self._damaged = damaged
        self._epochs = epochs
        self._wanted = wanted
        self._plan = plan
        self._request = request
        self._columns: Columns | None = None
        self._rebuilt = False
        self._file: File | None = None
        self._resident: bytes | memoryview | None = None
        self._generation = segment.trust.generation
        self._verified_end = 0
        self.size_bytes = (
            plan.stop_position - plan.position
            if plan is not None
            else max(0, min(wanted.bytes_max, wanted.segment_end_position))
        )

    def read_cached(self) -> bytes | memoryview | None:
        """The batches, if that is quick; otherwise None, and `read` is to be called in the disk pool."""
        plan = self._plan
        if plan is None:
            return None
        segment = self.segment
        trust = segment.trust
        file = self._storage.peek_segment(segment)
        if file is None:
            return None
        self._file = file
        self._generation = trust.generation
        size = plan.stop_position - plan.position
        data = file.read_cached(plan.position, size)
        if data is None or len(data) != size:
            trust.withdraw(segment.size_bytes)
            return None
        if trust.covers(plan.position, plan.stop_position):
            if plan.is_exact and (plan.is_certain or self._agrees(file, plan, data)):
                return data
            if not plan.is_exact:
                return self._cut_out(data, plan, verify=False)
            return None
        if size > VERIFY_INLINE_BYTES_MAX:
            self._resident = data
            return None
        verified = self._cut_out(data, plan, verify=True)
        if verified is not None:
            trust.add(plan.position, self._verified_end, self._generation)
        return verified

    def read(self) -> bytes | memoryview:
        """The batches, every CRC checked. Blocks.

        Raises `StorageFailed` where they are damaged, which the log remembers, and `OffsetOutOfRange` if they were
        deleted meanwhile.
        """
        try:
            if self._file is None:
                self._file = self._storage.borrow_segment(self.segment)
            return self._read(self._file)
        except FileNotFoundError:
            raise OffsetOutOfRange(f"{self._name}: offset {self._wanted.offset} was deleted") from None

    def note_verified(self) -> None:
        """Trust what `read` has verified."""
        if self._plan is not None and self._verified_end:
            self.segment.trust.add(self._plan.position, self._verified_end, self._generation)

    @property
    def file(self) -> File | None:
        return self._file

    @property
    def loaded(self) -> tuple[Columns, IndexRequest, bool] | None:
        """The index that `read` loaded, what it was asked for, and whether its file should be written anew."""
        if self._columns is None or self._request is None:
            return None
        return self._columns, self._request, self._rebuilt

    def _read(self, file: File) -> bytes | memoryview:
        plan = self._plan
        data = self._resident
        if data is None:
            # What is read from here on comes from the disk, and the kernel reads ahead of it.
            self._generation = self.segment.trust.withdraw(self.segment.size_bytes)
        if plan is None:
            assert self._request is not None
            index_file = self._storage.borrow_index(self.segment)
            self._columns, self._rebuilt = self._request.load(index_file, file)
            plan = self._plan = self._make_plan(self._columns)
        if data is None:
            data = file.read(plan.position, plan.stop_position - plan.position)
        found = self._cut_out(data, plan, verify=True)
        if found is None and not plan.is_certain and self._request is not None:
            # Either the index or the log is wrong. The log alone can tell.
            self._generation = self.segment.trust.withdraw(self.segment.size_bytes)
            self._columns, self._rebuilt = self._request.rebuild(file), True
            plan = self._plan = replace(self._make_plan(self._columns), is_certain=True)
            data = file.read(plan.position, plan.stop_position - plan.position)
            found = self._cut_out(data, plan, verify=True)
        return found if found is not None else self._search(file, plan)

    def _make_plan(self, columns: Columns) -> Plan:
        return make_plan(self.segment, self._damaged, self._wanted, columns)

    def _agrees(self, file: File, plan: Plan, data: bytes | memoryview) -> bool:
        """Whether batches of the offsets that the index claims begin at both ends."""
        if _unpack_base_offset(data)[0] != plan.base_offset:
            return False
        if plan.end_base_offset is None:
            return True
        following = file.read_cached(plan.stop_position, _BASE_OFFSET_BYTES)
        return following is not None and _unpack_base_offset(following)[0] == plan.end_base_offset

    def _cut_out(self, data: bytes | memoryview, plan: Plan, *, verify: bool) -> bytes | memoryview | None:
        """The wanted batches of `data`; None if the first of them is not there or not valid."""
        view = memoryview(data)
        wanted = self._wanted
        position, size = 0, len(view)
        offset = plan.base_offset
        start: int | None = None
        while size - position >= HEADER_BYTES:
            try:
                header = decode_header(view, position)
            except (CorruptBatch, UnsupportedFormat):
                break
            end = position + header.size_bytes
            if (
                header.base_offset != offset
                or header.last_offset_delta < 0
                or end > size
                or header.base_offset >= wanted.end_offset
                or (verify and not self._is_intact(header, view[position:end]))
            ):
                break
            offset = header.end_offset
            if start is None:
                if offset > wanted.offset:
                    start = position
            elif end - start > wanted.bytes_max and not plan.is_exact:
                break
            position = end
        if start is None:
            return None
        if plan.is_exact and position != size and not plan.is_certain:
            return None
        if verify:
            self._verified_end = plan.position + position
        return data if start == 0 and position == size else view[start:position]

    def _is_intact(self, header: BatchHeader, batch: memoryview) -> bool:
        """The CRC leaves out the base offset, which must follow on, and the leader epoch, which is known."""
        return verify_crc(batch) and header.leader_epoch == self._epochs.at(header.base_offset)

    def _search(self, file: File, plan: Plan) -> bytes:
        """The one batch with the wanted offset, found past the damage that stands before it.

        Notes which offsets cannot be read, so that everything around them can, and refuses them.
        """
        wanted = self._wanted
        for piece in scan(
            file,
            position=plan.position,
            end_position=wanted.segment_end_position,
            offset=plan.base_offset,
            end_offset=wanted.segment_end_offset,
            epochs=self._epochs,
        ):
            if isinstance(piece, Damage):
                self._note_damage(piece)
                self._damaged.refuse(wanted.offset, self._name)
            elif piece.header.end_offset > wanted.offset:
                batch = file.read(piece.position, piece.header.size_bytes)
                if self._is_intact(piece.header, memoryview(batch)):
                    return batch
                break
        raise StorageFailed(f"{self._name}: offset {wanted.offset} cannot be read")

    def _note_damage(self, damage: Damage) -> None:
        if self.segment.retired_file is not None:
            return  # what took its place was made from bytes that were verified
        end_offset = damage.end_offset if damage.end_offset is not None else self._wanted.segment_end_offset
        self._damaged.note(
            DamagedRange(
                damage.start_offset,
                end_offset,
                self.segment.base_offset,
                damage.start_position,
                damage.end_position,
            )
        )
