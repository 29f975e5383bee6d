"""What clients of a cluster were told, and whether it was true.

    lost           an acknowledged record is not where it was said to be
    inconsistent   two records were seen at one offset
    duplicate      a record that was sent once, or numbered, is there twice
    reordered      records of one producer stand in another order than it sent them

A record whose sender heard no answer may be there or not.
"""

from collections.abc import Iterator
from typing import TypeAlias

from ropewalk.sim.checker import Violation

Place: TypeAlias = tuple[str, int]
"""A topic and the number of a partition."""


class Told:
    """By partition: what was acknowledged, and what was read."""

    def __init__(self) -> None:
        self.acknowledged: dict[Place, dict[int, bytes]] = {}
        self.read: dict[Place, dict[int, bytes]] = {}
        self.violations: list[Violation] = []
        self.sent_count = 0
        self.unknown_count = 0

    def on_acknowledged(self, place: Place, offset: int, value: bytes) -> None:
        self._note(self.acknowledged, "acknowledged", place, offset, value)

    def on_read(self, place: Place, offset: int, value: bytes) -> None:
        self._note(self.read, "read", place, offset, value)

    def _note(
        self, known: dict[Place, dict[int, bytes]], how: str, place: Place, offset: int, value: bytes
    ) -> None:
        before = known.setdefault(place, {}).setdefault(offset, value)
        if before != value:
            self.violations.append(
                Violation("inconsistent", f"{place} {offset}: {before!r} was {how}, and now {value!r}")
            )


def judge(told: Told, final: dict[Place, dict[int, bytes]]) -> Iterator[Violation]:
    """`final` is what the healed cluster holds, all of it."""
    yield from told.violations
    for how, known in (("acknowledged", told.acknowledged), ("read", told.read)):
        for place, values in known.items():
            there = final.get(place, {})
            for offset, value in values.items():
                found = there.get(offset)
                if found != value:
                    kind = "lost" if found is None else "inconsistent"
                    yield Violation(kind, f"{place} {offset}: {value!r} was {how}, {found!r} is there")
    for place, there in final.items():
        yield from _in_order(place, there)


def _in_order(place: Place, there: dict[int, bytes]) -> Iterator[Violation]:
    """Values are `sender/number`, and numbers rise as they are sent."""
    newest: dict[bytes, int] = {}
    seen: set[bytes] = set()
    for offset, value in sorted(there.items()):
        if value in seen:
            yield Violation("duplicate", f"{place} {offset}: {value!r} is there twice")
            continue
        seen.add(value)
        sender, _, number = value.rpartition(b"/")
        if int(number) < newest.get(sender, -1):
            yield Violation("reordered", f"{place} {offset}: {value!r} comes after {newest[sender]}")
        newest[sender] = int(number)
