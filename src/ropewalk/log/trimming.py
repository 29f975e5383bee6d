"""How a log becomes shorter: at its start by deletion, at its end by a cut.

Both go the same way. A plan; the checkpoints that say so, made durable by the caller (`DataDirectory.note`); then the
work is taken, and run in the disk pool. A power cut at any moment leaves a log that the checkpoints describe.

    plan_start or plan_retention → (if it `forgets`: a snapshot, and the recovery point at it, are durable)
                                 → log starts are durable → take_removal → run
    plan_cut                     → recovery points are durable → take_cut → run → on_cut
    plan_restart                 → both are durable → take_restart → run → on_cut

What owners need of their state is not deleted (`places.py`): what would pass the place of one is deleted up to there, and `held_up_by` names
those who are to write a snapshot first. A start that the cluster has decided is another thing: the leader that deleted up to there was held up
before.

Invariants
    Nobody is told of a start that a power cut could take back: the log's start moves in `take_removal`.
    Files of deleted segments go only after the log start that deleted them is durable, and a snapshot tells of the producers that
    had written there: a retry of a batch that was deleted must not be taken for a new one.
    From a plan to cut until `on_cut` or `give_up_cut` nobody else may use the log.
"""

from typing import Protocol

from ropewalk.base.errors import OffsetOutOfRange
from ropewalk.base.ids import Offset, OwnerId
from ropewalk.log.aborted import ABORTED_SUFFIX
from ropewalk.log.contents import Contents
from ropewalk.log.retention import decide_retention
from ropewalk.log.segment import path_of
from ropewalk.log.segments import Segments
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import SnapshotSchedule
from ropewalk.log.storage import Removal, Storage
from ropewalk.log.truncation import Cut, boundary_at
from ropewalk.log.writer import Writer


class Trimmed(Protocol):
    """The log, as far as it is known here."""

    @property
    def name(self) -> str: ...

    @property
    def directory(self) -> str: ...

    @property
    def settings(self) -> LogSettings: ...

    @property
    def start_offset(self) -> Offset: ...

    @property
    def durable_offset(self) -> Offset: ...

    @property
    def end_offset(self) -> Offset: ...

    def begin_at(self, offset: Offset) -> None: ...

    def adopt(self, contents: Contents, snapshots: list[int]) -> None: ...


class Trimming:
    """Of one log, until it has been cut; `Log.trimming` is another one then."""

    __slots__ = (
        "_contents",
        "_log",
        "_segments",
        "_snapshots",
        "_storage",
        "_writer",
        "cut_offset",
        "planned_start_offset",
        "wanted_start_offset",
    )

    def __init__(
        self,
        log: Trimmed,
        storage: Storage,
        segments: Segments,
        contents: Contents,
        snapshots: SnapshotSchedule,
        writer: Writer,
    ) -> None:
        self._log = log
        self._storage = storage
        self._segments = segments
        self._contents = contents
        self._snapshots = snapshots
        self._writer = writer
        self.planned_start_offset = contents.report.start_offset
        """Where the log is to start; for the checkpoint."""

        self.wanted_start_offset = self.planned_start_offset
        """Where the log would start if no owner needed anything."""

        self.cut_offset: Offset | None = None
        """What lies above is about to be cut; None if nothing is."""

    def plan_start(self, offset: Offset, *, limit_offset: Offset, is_decided: bool = False) -> None:
        """Plan to delete the records below `offset` (DeleteRecords); refuses with `OffsetOutOfRange` beyond the limit.

        The limit is not above the high watermark. Owners may hold it up (`held_up_by`). `is_decided`: a leader, or the
        metadata, has the log begin there, and it does.
        """
        if not 0 <= offset <= limit_offset:
            raise OffsetOutOfRange(
                f"{self._log.name}: cannot delete up to {offset}; the limit is {limit_offset}"
            )
        if not is_decided:
            offset = self._held_back(offset, limit_offset)
        self.planned_start_offset = max(self.planned_start_offset, offset)

    def held_up_by(self) -> tuple[OwnerId, ...]:
        """Whose state lies below where the log was wanted to start. When they have written whole snapshots, and these are committed, plan anew."""
        return self._contents.places.holding_below(self.wanted_start_offset)

    def plan_retention(self, *, limit_offset: Offset, now_ms: int) -> bool:
        """Plan to delete what has expired; True if there is anything, or something is left that was deleted before.

        An active segment of which nothing is left is closed, so that its file can go, too.
        """
        settings, start_offset = self._log.settings, self._log.start_offset
        decision = decide_retention(
            self._segments.all, settings, start_offset=start_offset, limit_offset=limit_offset, now_ms=now_ms
        )
        held_offset = self._held_back(Offset(decision.start_offset), limit_offset)
        if held_offset < decision.start_offset:
            decision = decide_retention(
                self._segments.all,
                settings,
                start_offset=start_offset,
                limit_offset=held_offset,
                now_ms=now_ms,
            )
        if decision.start_offset <= start_offset and not decision.rolls:
            return any(segment.end_offset <= start_offset for segment in self._segments.closed[:1])
        if decision.rolls:
            self._writer.roll(settings)
        self.plan_start(Offset(decision.start_offset), limit_offset=limit_offset)
        return True

    @property
    def forgets(self) -> bool:
        """Whether what is planned removes segments of whose producers nothing else tells that a restart would believe."""
        closed = self._segments.closed
        if (
            not len(self._contents.producers)
            or not closed
            or closed[0].end_offset > self.planned_start_offset
        ):
            return False
        left = next(
            each
            for each in self._segments.all
            if each.end_offset > self.planned_start_offset or each is self._segments.active
        )
        return not self._snapshots.tells_of(left.base_offset, durable_offset=self._log.durable_offset)

    def take_removal(self, *, start_offset_durable: Offset) -> Removal | None:
        """Start the log where it does durably, and let go of the segments below; None if there are none."""
        log, contents = self._log, self._contents
        log.begin_at(start_offset_durable)
        contents.places.forget_below(log.start_offset)
        count = 0
        for segment in self._segments.closed:
            # One whose file has yet to get its name is removed with the next.
            if segment.end_offset > start_offset_durable or segment.is_moving:
                break
            count += 1
        if not count:
            return None
        paths: list[str] = []
        for segment in self._segments.remove_first(count):
            paths += (segment.path, segment.index.path)
            self._storage.let_go(segment)
        contents.epochs = contents.epochs.from_offset(self._segments.base_offset)
        contents.damaged.keep_within(start_offset=log.start_offset, end_offset=log.end_offset)
        aborted = contents.producers.transactions.aborted
        paths += [
            path_of(log.directory, each, ABORTED_SUFFIX) for each in aborted.forget_below(log.start_offset)
        ]
        return Removal(self._storage.disk, paths)

    def boundary_at(self, offset: Offset) -> Offset:
        """Where the batch that contains `offset` begins. Blocks."""
        return Offset(boundary_at(self._storage.disk, self._segments.containing(offset), offset)[0])

    def plan_cut(self, offset: Offset) -> None:
        """The log is about to be cut back to `offset`, a `boundary_at`: from here on it is no further recoverable than that.

        What is cut must not be missed at the next start.
        """
        self.cut_offset = offset

    def plan_restart(self, offset: Offset) -> None:
        """The log is about to be thrown away, to begin again at `offset`.

        Without a durable start there, what is appended afterwards would be taken for something that does not belong here.
        """
        self.cut_offset = min(offset, self._log.start_offset)
        self.planned_start_offset = offset

    def give_up_cut(self) -> None:
        """What was planned is not to be: the checkpoints could not be written."""
        self.cut_offset = None
        self.planned_start_offset = self._log.start_offset

    def take_cut(self, offset: Offset, *, now_ms: int) -> Cut:
        """To cut the log back to `offset`, or to the batch that contains it."""
        log = self._log
        assert offset >= log.start_offset, f"{log.name}: {offset} is below the start {log.start_offset}"
        for segment in self._segments.above(offset):
            self._storage.let_go(segment)
        return self._cut(offset, is_whole=False, now_ms=now_ms)

    def take_restart(self, offset: Offset, *, now_ms: int) -> Cut:
        """To throw the whole log away and begin again at `offset`, as planned."""
        for segment in self._segments.all:
            self._storage.let_go(segment)
        return self._cut(offset, is_whole=True, now_ms=now_ms)

    def on_cut(self, cut: Cut) -> None:
        """The log is what the cut has left, and this object is done."""
        assert cut.contents is not None, "the cut was not made"
        self._log.adopt(cut.contents, cut.snapshots_left)

    def _held_back(self, offset: Offset, limit_offset: Offset) -> Offset:
        """How far what is wanted may go, for all that owners need. Nothing below the limit is cut any more."""
        self.wanted_start_offset = max(self.wanted_start_offset, offset)
        places = self._contents.places
        if not places:
            return offset
        places.settle(min(limit_offset, self._log.durable_offset))
        held_from = places.held_from()
        return offset if held_from is None else min(offset, held_from)

    def _cut(self, offset: Offset, *, is_whole: bool, now_ms: int) -> Cut:
        log = self._log
        return Cut(
            self._storage.disk,
            log.directory,
            log.settings,
            list(self._segments.all),
            list(self._snapshots.offsets),
            offset=offset,
            start_offset=log.start_offset,
            durable_offset=log.durable_offset,
            is_whole=is_whole,
            now_ms=now_ms,
            reserved_disk=self._storage.disk_to_go_on,
        )
