"""Replaying segments, batch by batch: what of them is believed, and what it adds up to.

The rule is told in `recovery`. A `Replay` is given one segment after the other and keeps what it has found so far.
"""

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ports import File
from ropewalk.log.damage import NO_SEGMENT, DamagedRange, DamagedRanges
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.partition_files import PartitionFiles
from ropewalk.log.places import Places
from ropewalk.log.producers import Producers
from ropewalk.log.scan import Damage, Found, scan
from ropewalk.log.segment import Segment
from ropewalk.log.settings import LogSettings
from ropewalk.records.batch import BatchHeader, verify_crc
from ropewalk.records.control import NOT_WHOLE, STATE_HEAD_BYTES, read_state_key
from ropewalk.records.marker import read_marker


class Replay:
    def __init__(
        self,
        files: PartitionFiles,
        settings: LogSettings,
        *,
        recovery_point: int,
        leader_epoch_max: int,
        end_offset: int,
        now_ms: int,
    ) -> None:
        self._files = files
        self._settings = settings
        self._recovery_point = recovery_point
        self._leader_epoch_max = leader_epoch_max
        self._now_ms = now_ms
        self.epochs = LeaderEpochs()
        self.producers = Producers()
        self.places = Places()
        self.damaged = DamagedRanges()
        self.end_offset = end_offset
        """Up to here the log is known by now."""

        self.scanned_bytes = 0
        self.cut_bytes = 0
        self.cut_reason = ""
        self.unsynced_from: dict[Segment, int] = {}
        """Where the bytes begin that were accepted above the recovery point."""

    def begin_anew(self) -> None:
        """Forget what a snapshot told that turned out not to fit the files."""
        self.epochs = LeaderEpochs()
        self.producers = Producers()
        self.places = Places()
        self.damaged = DamagedRanges()

    def may_continue_at(self, base_offset: int) -> bool:
        """Whether a segment that begins at `base_offset` follows what was found so far."""
        if base_offset == self.end_offset:
            return True
        if base_offset < self.end_offset and base_offset < self._recovery_point:
            raise StorageFailed(
                f"{self._files.directory}: segment {base_offset} begins before offset {self.end_offset}, where the one "
                "before it ends; one of the two does not belong here"
            )
        if self.end_offset < base_offset <= self._recovery_point:
            self.note_damage(self.end_offset, base_offset)
            self.end_offset = base_offset
            return True
        self.cut_reason = f"the segment after offset {self.end_offset} begins at {base_offset}"
        return False

    def take(self, segment: Segment, next_base_offset: int) -> bool:
        """Replay a segment from where its object ends; False if the log ends inside it."""
        file = self._files.open(segment)
        if next_base_offset > self._recovery_point:
            self._files.drop_cached(file)
        size_bytes = file.size()
        self._files.keep_index_below(segment)
        for piece in scan(
            file,
            position=segment.size_bytes,
            end_position=size_bytes,
            offset=self.end_offset,
            end_offset=next_base_offset,
            verify_from=self._recovery_point,
        ):
            if self.end_offset == next_base_offset:
                # A write failed here, and the log went on in the next segment. That the write's remains were cut off
                # was never synced, because nothing that was acknowledged depended on it.
                self._cut_tail(file, segment.size_bytes, size_bytes)
                self.cut_reason = f"offset {self.end_offset}: a failed write had left its beginning behind"
                return True
            if isinstance(piece, Found):
                doubt = self._doubt(piece.header)
                if not doubt:
                    self._accept(segment, piece, file)
                    continue
                position, reason = piece.position, doubt
            else:
                if self.end_offset < self._recovery_point:
                    if self._pass_over(segment, piece, next_base_offset):
                        continue
                    return False
                position, reason = piece.start_position, "a batch is incomplete or fails its checksum"
            self._cut_tail(file, position, size_bytes)
            self.cut_reason = f"offset {self.end_offset}: {reason}"
            return False
        return True

    def _doubt(self, header: BatchHeader) -> str:
        """Why an intact batch is not the next one of this log; empty if it is."""
        if header.base_offset < self._recovery_point:
            return ""
        if header.leader_epoch < self.epochs.latest:
            return f"a batch of leader epoch {header.leader_epoch} follows epoch {self.epochs.latest}"
        if header.leader_epoch > self._leader_epoch_max:
            return f"a batch is of leader epoch {header.leader_epoch}, which has not begun"
        return ""

    def _accept(self, segment: Segment, found: Found, file: File) -> None:
        header = found.header
        # Below the recovery point a wrong epoch is damage like any other: whoever reads the batch finds out.
        if self.epochs.latest < header.leader_epoch <= self._leader_epoch_max:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            marker = None
            if header.is_control:
                marker = read_marker(file.read(found.position, header.size_bytes))
            self.producers.apply(header, header.base_offset, self._now_ms, marker)
        elif header.is_control:
            self._take_place(found, file)
        if segment.opened_at_ms is None:
            first = header.max_timestamp
            segment.opened_at_ms = min(first, self._now_ms) if first >= 0 else self._now_ms
        if header.end_offset > self._recovery_point:
            self.unsynced_from.setdefault(segment, segment.size_bytes)
        segment.note(header.base_offset, header.end_offset, header, self._settings.index_interval_bytes)
        if header.end_offset <= self._recovery_point:  # its CRC was not looked at
            segment.trust.withdraw(segment.size_bytes)
        self.end_offset = header.end_offset
        self.scanned_bytes += header.size_bytes

    def _take_place(self, found: Found, file: File) -> None:
        """Note what a state batch tells. One that has rotted must not let go of what was whole before it."""
        header = found.header
        key = read_state_key(header, file.read(found.position, min(header.size_bytes, STATE_HEAD_BYTES)))
        if key is None or key.snapshot_start == NOT_WHOLE:
            return
        if header.end_offset <= self._recovery_point:  # its CRC was not looked at
            batch = file.read(found.position, header.size_bytes)
            if len(batch) != header.size_bytes or not verify_crc(memoryview(batch)):
                return
        self.places.note(key, header.base_offset)

    def _pass_over(self, segment: Segment, damage: Damage, next_base_offset: int) -> bool:
        """Note damage that begins below the recovery point; False if the log ends with it."""
        end_offset = damage.end_offset
        if end_offset is None and next_base_offset <= self._recovery_point:
            end_offset = next_base_offset
        goes_on = end_offset is not None and end_offset <= self._recovery_point
        damaged_end = end_offset if end_offset is not None and goes_on else self._recovery_point
        end_position = (
            damage.end_position
            if goes_on
            else max(damage.end_position, self._files.size(segment.base_offset))
        )
        self.damaged.note(
            DamagedRange(
                self.end_offset, damaged_end, segment.base_offset, damage.start_position, end_position
            )
        )
        self.producers.note_damage()
        segment.size_bytes = end_position
        segment.end_offset = damaged_end
        segment.trust.withdraw(end_position)
        self.end_offset = damaged_end
        if not goes_on:
            self.cut_reason = f"nothing valid follows the damage below the recovery point {damaged_end}"
        return goes_on

    def note_damage(self, start_offset: int, end_offset: int) -> None:
        self.producers.note_damage()
        self.damaged.note(DamagedRange(start_offset, end_offset, NO_SEGMENT, 0, 0))

    def _cut_tail(self, file: File, position: int, size_bytes: int) -> None:
        file.hear_former_errors()
        file.truncate(position)
        file.sync()
        self.cut_bytes += size_bytes - position
