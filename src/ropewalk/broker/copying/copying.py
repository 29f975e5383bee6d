"""One partition as its fetcher sees it: the replica, the core that decides what to ask, and when to ask it."""

from collections.abc import Iterator

from typing_extensions import Buffer

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import Offset
from ropewalk.base.limits import REPLICA_RETRY_MS, REPLICA_RETRY_MS_MIN
from ropewalk.broker.partitions.replica import Replica
from ropewalk.records.batch import BatchHeader, iterate, verify_crc
from ropewalk.replication.follower import Answer, Effect, Follower, Question, Restart, Truncate


class Copying:
    __slots__ = (
        "broker_epoch",
        "core",
        "is_anew",
        "is_at_work",
        "is_behind",
        "is_moving_start",
        "question",
        "refused_count",
        "replica",
        "rest_until_ms",
    )

    def __init__(self, replica: Replica, *, is_in_sync: bool) -> None:
        self.replica = replica
        self.core = Follower(leader_epoch=replica.leader_epoch, high_watermark=replica.high_watermark)
        self.broker_epoch: int | None = None
        """In which it has been asked for; None before the first time."""

        self.question: Question | None = None
        """That the leader has been asked, or would be with the same words."""

        self.is_behind = not is_in_sync
        """Whether it has yet to reach what is committed: then it has to do with what others leave."""

        self.is_anew = False
        """Whether it has begun with an empty log, and has yet to reach what is committed."""

        self.is_at_work = False
        """Whether its log is being cut."""

        self.rest_until_ms = 0.0
        self.refused_count = 0
        """How often, one time after the other, one of the two sides had yet to hear of the other's epoch."""

        self.is_moving_start = False

    @property
    def is_held(self) -> bool:
        """Whether nothing is asked for now: the log is being cut, or somebody else has it, or nobody.

        A cut goes on though the partition has another leader by now: what is asked is what the log holds afterwards.
        """
        return self.is_at_work or self.replica.is_at_work or self.replica.is_over

    @property
    def is_unsettled(self) -> bool:
        """Whether the log holds something that does not count yet."""
        return self.replica.reached_offset < self.replica.log.end_offset

    @property
    def is_current(self) -> bool:
        """Whether what the leader says counts: it still leads, and this node still follows."""
        return not self.replica.is_over and self.core.leader_epoch == self.replica.leader_epoch

    def repair(self) -> Truncate | Restart | None:
        """What has to go of a copy that is damaged, so that it comes again; None where it is whole.

        The last sound batch goes too: where the one after it begins cannot be told from a file that is damaged there.
        Of a log that is compacted everything goes: it may still hold what its leader has removed together with the deletion above it,
        and nobody would tell it of that deletion again.
        """
        log = self.replica.log
        starts = [damaged.start_offset for damaged in log.damaged]
        if not starts:
            return None
        sound_offset = min(starts) - 1
        if log.settings.compacts or sound_offset <= log.start_offset:
            return Restart(log.start_offset)
        return Truncate(Offset(sound_offset))

    def ask(self) -> Question | None:
        """None while the log holds something that does not count yet."""
        replica = self.replica
        self.is_anew |= replica.log.end_offset == replica.log.start_offset
        self.question = self.core.ask(replica.log, settled_offset=replica.reached_offset)
        return self.question

    def on_answer(self, answer: Answer) -> list[Effect]:
        """What is to be done about it; nothing if it answers no question that is open."""
        if self.question is None:
            return []
        return self.core.on_answer(self.question, answer, self.replica.log)

    def start_due(self) -> Offset | None:
        """Where the leader begins and this copy does not yet; None where there is nothing to move, or it is being moved."""
        if self.is_moving_start:
            return None
        replica = self.replica
        start_offset = self.core.start_due(replica.log, settled_offset=replica.reached_offset)
        # What the replica has heard to be committed may be less than what the core has.
        return None if start_offset is None or start_offset > replica.high_watermark else start_offset

    def retry_ms(self) -> int:
        """How long to rest where one of the two sides has yet to hear of the other's epoch."""
        self.refused_count += 1
        return min(REPLICA_RETRY_MS, REPLICA_RETRY_MS_MIN << min(self.refused_count - 1, 16))

    def batches(self, records: Buffer) -> Iterator[tuple[memoryview, BatchHeader]]:
        """Those that are new here. Raises `CorruptBatch` for what the leader cannot have written."""
        view, name = memoryview(records), self.replica.name
        for position, header in iterate(view):
            if header.end_offset <= self.replica.log.end_offset:
                continue
            batch = view[position : position + header.size_bytes]
            if not verify_crc(batch):
                raise CorruptBatch(f"{name}: the batch at offset {header.base_offset} arrived damaged")
            if header.leader_epoch > self.core.leader_epoch:
                raise CorruptBatch(f"{name}: a batch of epoch {header.leader_epoch}, which has not begun")
            yield batch, header

    def make_way(self, header: BatchHeader) -> Truncate | Restart | None:
        """What has to go before a batch can be appended that begins before this log ends.

        A leader that has compacted its log may have one batch where this log has several. What is cut comes again.
        """
        log = self.replica.log
        if header.base_offset >= log.end_offset:
            return None
        if header.base_offset <= log.start_offset:
            return Restart(header.base_offset)
        return Truncate(header.base_offset)

    def is_next(self, header: BatchHeader) -> bool:
        """Whether that batch, of the leader that still leads, continues the log."""
        return self.is_current and self.replica.log.end_offset == header.base_offset

    def append(self, batch: memoryview, header: BatchHeader, now_ms: int, *, is_counted_on: bool) -> None:
        """As `Replica.append`. What a copy takes that is not counted on may lack deletions, since it may have begun anew."""
        if self.is_anew or not is_counted_on:
            self.replica.log.erasures.reach(header.end_offset)
        self.replica.append(batch, header, now_ms)

    def note_progress(self, *, is_counted_on: bool) -> None:
        """Records were appended, or the leader has told of its high watermark."""
        self.refused_count = 0
        end_offset = self.replica.log.end_offset
        told = self.core.high_watermark(Offset(2**63 - 1))
        self.replica.know_high_watermark(told)
        self.is_behind = end_offset < told
        if is_counted_on and not self.is_behind:
            self.is_anew = False
