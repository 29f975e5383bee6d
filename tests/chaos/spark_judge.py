"""What a pipeline has carried, held against what it was given. Pure: the judge must see every kind of fault, and tests show that it does."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SHOWN_MAX = 5


class Place(NamedTuple):
    """Where a record is in the topic that was carried."""

    partition: int
    offset: int


class Record(NamedTuple):
    place: Place
    value: str


class Verdict(NamedTuple):
    lost: list[Record]
    doubled: list[Record]
    strange: list[Record]
    """What was never there: records of aborted transactions, or other values than were sent."""
    disordered: list[Record]
    """That came after a later one of their partition."""

    @property
    def is_good(self) -> bool:
        return not any(self)

    def complaints(self) -> list[str]:
        return [
            f"{len(records)} {kind}: {', '.join(f'{each.value!r} of {each.place}' for each in records[:SHOWN_MAX])}"
            for kind, records in zip(self._fields, self, strict=True)
            if records
        ]


def judge(given: Iterable[Record], carried: Iterable[Sequence[Record]]) -> Verdict:
    """`carried` has a sequence for each place where records arrive in an order; a table is as many as it has rows."""
    expected = set(given)
    sequences = [list(each) for each in carried]
    found = Counter(record for sequence in sequences for record in sequence)
    disordered = []
    for sequence in sequences:
        latest: dict[int, int] = {}
        for record in sequence:
            partition, offset = record.place
            if offset < latest.get(partition, offset):
                disordered.append(record)
            latest[partition] = max(latest.get(partition, offset), offset)
    return Verdict(
        lost=sorted(expected - found.keys()),
        doubled=sorted(record for record, count in found.items() if count > 1),
        strange=sorted(found.keys() - expected),
        disordered=disordered,
    )


def judge_source(acknowledged: set[str], dropped: set[str], given: Iterable[Record]) -> list[str]:
    """Whether the topic itself holds what its producers were told: otherwise the rest is judged by a wrong measure."""
    found = Counter(record.value for record in given)
    wrong = {
        "acknowledged and not there": sorted(acknowledged - found.keys()),
        "aborted and there": sorted(dropped & found.keys()),
        "there more than once": sorted(value for value, count in found.items() if count > 1),
    }
    return [f"source: {len(values)} {what}: {values[:SHOWN_MAX]}" for what, values in wrong.items() if values]
