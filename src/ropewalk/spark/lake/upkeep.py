"""Core: which directories of a table hold so many small files that they are worth writing anew."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from ropewalk.spark.lake.table import Upkeep

Values = tuple[tuple[str, str | None], ...]


class SmallFile(Struct, frozen=True):
    values: Values
    """Of the columns that the table is partitioned by."""
    size_bytes: int


def crowded(files: Iterable[SmallFile], upkeep: Upkeep) -> list[Values]:
    """A file is small below half of what is aimed at: two such make one. Few small ones are left until they are more, since every
    run would otherwise write the youngest directory anew. Rows without a date stay as they are."""
    counts = Counter(each.values for each in files if each.size_bytes < upkeep.file_bytes_target // 2)
    return sorted(
        values
        for values, count in counts.items()
        if upkeep.compact_at and count >= upkeep.compact_at and None not in (value for _, value in values)
    )
