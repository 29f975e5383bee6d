"""What must hold of a partition however often its node was killed or its power cut.

    Every acknowledged record is at the offset it was acknowledged at.
    Whatever a consumer was given stays where it was.
    An idempotent producer's records are there once, in the order they were sent.
    Nothing is there that was not sent, and no offset is left out.

The checker knows nothing of brokers: it is told what was sent, acknowledged and consumed, and is then shown the
whole content of the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """One record, by who sent it and the number it was given."""

    writer: str
    number: int

    def encode(self, partition: int, size: int) -> bytes:
        """Its value: itself, and enough more that depends on it to notice any mixture."""
        label = f"{self.writer}/{partition}/{self.number}/".encode()
        return (label * (size // len(label) + 1))[: max(size, len(label))]


class Stored(NamedTuple):
    offset: int
    value: bytes


class Violation(NamedTuple):
    claim: str
    detail: str


class Known(NamedTuple):
    """What had been promised when reading began: offsets, and records acknowledged without one."""

    acknowledged: list[int]
    consumed: list[int]
    unplaced: list[Sent]


@dataclass(slots=True)
class Tally:
    """Everything known about one partition from outside."""

    partition: int
    value_bytes: int
    idempotent_writers: frozenset[str]
    sent_counts: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[int, Sent] = field(default_factory=dict)
    unplaced: list[Sent] = field(default_factory=list)
    """Acknowledged as a repetition of something written long ago, so without an offset."""
    consumed: dict[int, Sent] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def on_sent(self, writer: str) -> Sent:
        """The next record of that writer."""
        number = self.sent_counts.get(writer, 0)
        self.sent_counts[writer] = number + 1
        return Sent(writer, number)

    def on_acknowledged(self, offset: int, sent: Sent) -> None:
        if offset < 0:
            self.unplaced.append(sent)
            return
        other = self.acknowledged.setdefault(offset, sent)
        if other != sent:
            self._report("one offset is acknowledged once", f"{offset}: {other} and {sent}")

    def on_consumed(self, stored: Stored) -> None:
        sent = self._recognise(stored)
        if sent is not None:
            other = self.consumed.setdefault(stored.offset, sent)
            if other != sent:
                self._report("what was consumed stays", f"{stored.offset}: first {other}, then {sent}")

    def known(self) -> Known:
        return Known(list(self.acknowledged), list(self.consumed), list(self.unplaced))

    def check(self, log: Sequence[Stored], known: Known) -> None:
        """`log` is the partition from offset 0 to its end, read after `known` was taken."""
        at = {stored.offset: sent for stored in log if (sent := self._recognise(stored)) is not None}
        for claim, promised, offsets in (
            ("acknowledged records are there", self.acknowledged, known.acknowledged),
            ("what was consumed stays", self.consumed, known.consumed),
        ):
            for offset in offsets:
                if at.get(offset) != promised[offset]:
                    self._report(claim, f"{offset}: {promised[offset]}, found {at.get(offset)}")
        present = set(at.values()) if known.unplaced else set()
        for sent in known.unplaced:
            if sent not in present:
                self._report("acknowledged records are there", f"unknown: {sent}")
        for expected, stored in enumerate(log):
            if stored.offset != expected:
                self._report("no offset is left out", f"expected {expected}, found {stored.offset}")
                break
        self._check_idempotence(at)

    def _check_idempotence(self, at: dict[int, Sent]) -> None:
        last: dict[str, int] = {}
        for offset in sorted(at):
            writer, number = at[offset]
            if writer not in self.idempotent_writers:
                continue
            if number <= last.get(writer, -1):
                detail = f"{writer} {number} at {offset}, after {last[writer]}"
                self._report("idempotent records are there once, in order", detail)
            last[writer] = max(number, last.get(writer, -1))

    def _recognise(self, stored: Stored) -> Sent | None:
        """Which record this is; a report if it is none that was sent to this partition."""
        try:
            writer, partition, number, _ = stored.value.split(b"/", 3)
            sent = Sent(writer.decode(), int(number))
        except ValueError:
            self._report("nothing is invented", f"{stored.offset}: {stored.value[:60]!r}")
            return None
        if (
            int(partition) != self.partition
            or not 0 <= sent.number < self.sent_counts.get(sent.writer, 0)
            or stored.value != sent.encode(self.partition, self.value_bytes)
        ):
            self._report("nothing is invented", f"{stored.offset}: {stored.value[:60]!r}")
            return None
        return sent

    def _report(self, claim: str, detail: str) -> None:
        self.violations.append(Violation(claim, f"partition {self.partition}, offset {detail}"))
