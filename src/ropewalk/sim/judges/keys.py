"""What may be missing from a compacted partition: everything but the last record of each key, and in time its mark.

What a reader could get wrong
    Sends whose outcome is not known may stand anywhere in the log, so while the run goes on one of them excuses the
    absence of any other record of its key. At the end all that is left has been read, and that excuse is gone.
    A tombstone is owed for `delete.retention.ms` from the time of its record on, which is the earliest a pass can
    have met it. When the node's clock jumped meanwhile, nothing is owed.
    Once a tombstone is gone, what it deleted must be gone too, and for good. Where there are copies that holds of each of them: one
    may still have both when the other has neither. Which of them answered nobody knows here, so only what one answer shows is judged;
    what copies have in the end is compared by `sim/runs/cluster/rest.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from ropewalk.sim.judges.history import Acknowledged, Failed, Fetched, FinalRead, Promise, Sent


class Keys:
    """Every record of one compacted partition that anybody knows of, by key."""

    def __init__(
        self,
        promise: Promise,
        jumps: Sequence[int],
        report: Callable[[str, str], None],
        note: Callable[[str], None],
    ) -> None:
        self._promise = promise
        self._jumps = jumps
        self._report = report
        self._note = note
        self._sends: dict[int, Sent] = {}
        self._send_counts: dict[int, int] = defaultdict(int)
        self._first_sent: dict[int, tuple[int, int]] = {}
        self._key_of: dict[int, str] = {}
        self._tombstones: set[int] = set()
        self._value_at: dict[int, int] = {}
        self._last_offset: dict[str, int] = {}
        self._unplaced: dict[str, dict[int, int]] = defaultdict(dict)
        """By key, the values that may stand somewhere, by send."""
        self._gone: dict[str, tuple[int, int]] = {}
        """By key, the last tombstone that was found missing, and when; where there are copies, in the answer that is looked at."""

    def on_sent(self, index: int, sent: Sent) -> None:
        self._sends[sent.send] = sent
        for key, value in zip(sent.keys, sent.values, strict=True):
            self._key_of[value] = key
            self._send_counts[value] += 1
            self._first_sent.setdefault(value, (index, sent.timestamp_ms))
            self._unplaced[key][sent.send] = value
        self._tombstones |= sent.tombstones

    def on_outcome(self, outcome: Acknowledged | Failed) -> None:
        if isinstance(outcome, Acknowledged) or outcome.is_definite:
            for key in self._sends[outcome.send].keys:
                self._unplaced[key].pop(outcome.send, None)

    def on_sighted(self, offset: int, value: int) -> None:
        key = self._key_of.get(value)
        if key is None or offset in self._value_at:
            return
        self._value_at[offset] = value
        self._last_offset[key] = max(offset, self._last_offset.get(key, 0))
        if self._send_counts[value] == 1:
            unplaced = self._unplaced[key]
            for send in [send for send, waiting in unplaced.items() if waiting == value]:
                del unplaced[send]

    def judge_fetched(self, index: int, event: Fetched) -> None:
        """Whatever is known to have been written there and is not in the answer must have been allowed to go."""
        held = dict(event.records)
        if self._promise.has_copies:
            self._gone.clear()
        for start_offset, end_offset in event.covered:
            for offset in range(start_offset, end_offset):
                value = self._value_at.get(offset)
                if value is not None and offset not in held:
                    self._judge_missing(index, event, offset, value)
        for offset, value in event.records:
            when, gone_offset = self._gone.get(self._key_of.get(value, ""), (index, -1))
            if offset < gone_offset and (when < event.began or self._promise.has_copies):
                self._report(
                    "resurrected",
                    f"{event.consumer} got {self._name(offset)}, deleted by {gone_offset}, which is gone already",
                )

    def judge_final(self, index: int, final: FinalRead, *, floor: int) -> None:
        held = dict(final.records)
        left: dict[str, list[int]] = defaultdict(list)
        for offset, value in final.records:
            left[self._key_of.get(value, "")].append(offset)
        refused_last = max(final.refused_offsets, default=-1)  # there or before, anything may be out of sight
        for key, offset in sorted(self._last_offset.items()):
            if offset < floor or offset in held or offset <= refused_last:
                continue
            if self._may_have_expired(index, offset, final.at_ms):
                older = [left_offset for left_offset in left[key] if left_offset >= floor]
                if older:
                    self._report(
                        "resurrected", f"{self._name(older[0])} is there at the end, and its deletion is gone"
                    )
            else:
                self._report("compacted", f"{self._name(offset)}, the last of its key, is gone at the end")

    def _judge_missing(self, index: int, event: Fetched, offset: int, value: int) -> None:
        key = self._key_of[value]
        if self._last_offset[key] > offset:
            self._note("a record was gone that a later one of its key superseded")
        elif value in self._tombstones and self._is_due(index, value, event.at_ms):
            self._note("a tombstone was gone after its time")
            self._gone[key] = (index, offset)
        elif not self._unplaced[key]:
            self._report(
                "compacted",
                f"{event.consumer} at {event.offset} did not get {self._name(offset)}, the last of its key",
            )

    def _may_have_expired(self, index: int, last_offset: int, at_ms: int) -> bool:
        """Whether a tombstone, this one or one that nobody ever saw, can have come and gone."""
        last = self._value_at[last_offset]
        candidates = [last, *self._unplaced[self._key_of[last]].values()]
        return any(value in self._tombstones and self._is_due(index, value, at_ms) for value in candidates)

    def _is_due(self, index: int, value: int, at_ms: int) -> bool:
        sent_index, timestamp_ms = self._first_sent[value]
        if at_ms - timestamp_ms >= self._promise.delete_retention_ms:
            return True
        return any(sent_index < jump < index for jump in self._jumps)

    def _name(self, offset: int) -> str:
        value = self._value_at[offset]
        what = "tombstone" if value in self._tombstones else "value"
        return f"{what} {value} of {self._key_of[value]} at {offset}"
