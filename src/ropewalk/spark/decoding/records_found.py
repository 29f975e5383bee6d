"""Where the parts of records lie in a buffer, as columns of numbers."""

import numpy as np
from msgspec import Struct

from ropewalk.spark.decoding.bodies import Numbers
from ropewalk.spark.ranges import EVER


class Wanted(Struct, frozen=True):
    """Ends are not included. Timestamps are milliseconds."""

    first_offset: int = 0
    end_offset: int = EVER[1]
    first_timestamp: int = EVER[0]
    end_timestamp: int = EVER[1]


class RecordsFound(Struct, frozen=True):
    """One entry for each record; a length of -1 is null."""

    offsets: Numbers
    timestamps: Numbers
    time_types: Numbers
    """0 the producer's time, 1 the broker's."""
    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers
    header_starts: Numbers
    record_ends: Numbers
    header_counts: Numbers

    @classmethod
    def empty(cls, count: int) -> "RecordsFound":
        return cls(*(np.empty(count, np.int64) for _ in cls.__struct_fields__))

    def first(self, count: int) -> "RecordsFound":
        return RecordsFound(*(getattr(self, name)[:count] for name in self.__struct_fields__))

    def __len__(self) -> int:
        return len(self.offsets)


class HeadersFound(Struct, frozen=True):
    """One entry for each header, in the order of their records."""

    key_starts: Numbers
    key_lengths: Numbers
    value_starts: Numbers
    value_lengths: Numbers

    @classmethod
    def empty(cls, count: int) -> "HeadersFound":
        return cls(*(np.empty(count, np.int64) for _ in cls.__struct_fields__))
