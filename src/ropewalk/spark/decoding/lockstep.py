"""The loops of `kernels.py` with numpy alone: the first record of every batch, then every second one, and so on.

Slower the larger the batches are, since it is as many steps as the largest has records; for where numba is missing.
"""

import numpy as np
import numpy.typing as npt

from ropewalk.spark.decoding.bodies import Bodies, Bytes, Numbers
from ropewalk.spark.decoding.records_found import HeadersFound, RecordsFound, Wanted

_SHIFT_MAX = 63


def find_records(bodies: Bodies, wanted: Wanted) -> RecordsFound | int:
    """As `kernels.find_records`."""
    data = bodies.data
    slots = np.concatenate(([0], np.cumsum(bodies.counts)))[:-1]
    found = RecordsFound.empty(int(bodies.counts.sum()))
    at, batches = bodies.starts.copy(), np.arange(len(bodies.starts))
    step = 0
    while True:
        is_left = bodies.counts[batches] > step
        at, batches = at[is_left], batches[is_left]
        if not len(batches):
            break
        ends = bodies.ends[batches]
        reading = _Reading(data, at, ends)
        length = reading.varint()
        reading.claim(length < 1)
        record_ends = reading.at + np.where(reading.is_bad, 0, length)
        reading.claim(record_ends > ends)
        reading.narrow(np.where(reading.is_bad, reading.at, record_ends))
        reading.skip(np.ones_like(length))
        timestamp, offset = reading.varint(), reading.varint()
        key_length = reading.varint()
        key_start = reading.at.copy()
        reading.skip(key_length)
        value_length = reading.varint()
        value_start = reading.at.copy()
        reading.skip(value_length)
        header_count = reading.varint()
        reading.claim((header_count < 0) | (header_count > reading.ends - reading.at))
        if reading.is_bad.any():
            return int(batches[reading.is_bad][0])
        slot = slots[batches] + step
        appended = bodies.append_timestamps[batches]
        found.offsets[slot] = offset + bodies.base_offsets[batches]
        found.timestamps[slot] = np.where(
            appended >= 0, appended, timestamp + bodies.base_timestamps[batches]
        )
        found.time_types[slot] = appended >= 0
        found.key_starts[slot], found.key_lengths[slot] = key_start, key_length
        found.value_starts[slot], found.value_lengths[slot] = value_start, value_length
        found.header_starts[slot], found.header_counts[slot] = reading.at, header_count
        found.record_ends[slot] = record_ends
        at = record_ends
        step += 1
    return _chosen(found, wanted)


def find_headers(data: Bytes, found: RecordsFound) -> HeadersFound | int:
    """As `kernels.find_headers`."""
    headers = HeadersFound.empty(int(found.header_counts.sum()))
    slots = np.concatenate(([0], np.cumsum(found.header_counts)))[:-1]
    at, records = found.header_starts.copy(), np.arange(len(found))
    step = 0
    while True:
        is_left = found.header_counts[records] > step
        at, records = at[is_left], records[is_left]
        if not len(records):
            return headers
        reading = _Reading(data, at, found.record_ends[records])
        key_length = reading.varint()
        reading.claim(key_length < 0)
        key_start = reading.at.copy()
        reading.skip(key_length)
        value_length = reading.varint()
        value_start = reading.at.copy()
        reading.skip(value_length)
        if reading.is_bad.any():
            return int(records[reading.is_bad][0])
        slot = slots[records] + step
        headers.key_starts[slot], headers.key_lengths[slot] = key_start, key_length
        headers.value_starts[slot], headers.value_lengths[slot] = value_start, value_length
        at = reading.at
        step += 1


def gather(data: Bytes, starts: Numbers, offsets: npt.NDArray[np.int32]) -> Bytes:
    """As `kernels.gather`."""
    lengths = np.diff(offsets)
    places: Numbers = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    gathered: Bytes = data[places]
    return gathered


class _Reading:
    """Many positions at once, each up to an end of its own. What is wrong at one of them is noted and read no further."""

    def __init__(self, data: Bytes, at: Numbers, ends: Numbers) -> None:
        self._data = data
        self.at = at.copy()
        self.ends = ends
        self.is_bad: npt.NDArray[np.bool_] = np.zeros(len(at), np.bool_)

    def narrow(self, ends: Numbers) -> None:
        self.ends = ends

    def claim(self, is_bad: npt.NDArray[np.bool_]) -> None:
        self.is_bad |= is_bad

    def skip(self, lengths: Numbers) -> None:
        """What is negative is null, and takes no room."""
        at = self.at + np.maximum(lengths, 0)
        self.claim((at > self.ends) | (at < self.at))
        self.at = np.where(self.is_bad, self.at, at)

    def varint(self) -> Numbers:
        values = np.zeros(len(self.at), np.int64)
        open_ = np.flatnonzero(~self.is_bad)
        shift = 0
        while len(open_):
            is_over = self.at[open_] >= self.ends[open_]
            if shift > _SHIFT_MAX:
                is_over[:] = True
            self.is_bad[open_[is_over]] = True
            open_ = open_[~is_over]
            byte = self._data[self.at[open_]].astype(np.int64)
            values[open_] |= (byte & 127) << shift
            self.at[open_] += 1
            open_ = open_[byte > 127]
            shift += 7
        return (values >> 1) ^ -(values & 1)


def _chosen(found: RecordsFound, wanted: Wanted) -> RecordsFound:
    offsets, timestamps = found.offsets, found.timestamps
    is_wanted = (offsets >= wanted.first_offset) & (offsets < wanted.end_offset)
    is_wanted &= (timestamps >= wanted.first_timestamp) & (timestamps < wanted.end_timestamp)
    if is_wanted.all():
        return found
    return RecordsFound(*(getattr(found, name)[is_wanted] for name in found.__struct_fields__))
