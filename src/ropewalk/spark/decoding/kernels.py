"""Compiled loops over records: where each record's parts lie, and copying them together.

Compiled on first use and kept, as `compiled.py` says; a process that finds them kept begins within a fraction of a second.
`lockstep.py` does the same where numba is not to be had. Nothing here believes a length: whatever would reach beyond its
batch is reported as the number of that batch.
"""

import numpy as np

from ropewalk.spark.compiled import compiled, inlined
from ropewalk.spark.decoding.bodies import Bodies, Bytes, Numbers
from ropewalk.spark.decoding.records_found import HeadersFound, RecordsFound, Wanted


def find_records(bodies: Bodies, wanted: Wanted) -> RecordsFound | int:
    """Or the number of the first batch that is not what it claims to be."""
    size = int(bodies.counts.sum())
    found = RecordsFound.empty(size)
    count, bad = _find(
        bodies.data,
        bodies.starts,
        bodies.ends,
        bodies.counts,
        bodies.base_offsets,
        bodies.base_timestamps,
        bodies.append_timestamps,
        wanted.first_offset,
        wanted.end_offset,
        wanted.first_timestamp,
        wanted.end_timestamp,
        found.offsets,
        found.timestamps,
        found.time_types,
        found.key_starts,
        found.key_lengths,
        found.value_starts,
        found.value_lengths,
        found.header_starts,
        found.record_ends,
        found.header_counts,
    )
    return int(bad) if bad >= 0 else found.first(int(count))


def find_headers(data: Bytes, found: RecordsFound) -> HeadersFound | int:
    """Or the number of the first record whose headers are not what they claim to be."""
    headers = HeadersFound.empty(int(found.header_counts.sum()))
    bad = _find_headers(
        data,
        found.header_starts,
        found.record_ends,
        found.header_counts,
        headers.key_starts,
        headers.key_lengths,
        headers.value_starts,
        headers.value_lengths,
    )
    return int(bad) if bad >= 0 else headers


def gather(data: Bytes, starts: Numbers, offsets: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> Bytes:
    """The parts that begin at `starts`, one after the other, as long as `offsets` says."""
    gathered = np.empty(int(offsets[-1]), np.uint8)
    _gather(data, starts, offsets, gathered)
    return gathered


@inlined
def _varint(data, at, end):  # type: ignore[no-untyped-def]
    """Value and position after it; a position of -1 where it does not end before `end`."""
    result = np.int64(0)
    shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        result |= np.int64(byte & 127) << shift
        if byte < 128:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
    return np.int64(0), np.int64(-1)


@compiled
def _find(  # type: ignore[no-untyped-def]
    data, starts, ends, counts, base_offsets, base_timestamps, append_timestamps,
    first_offset, end_offset, first_timestamp, end_timestamp,
    offsets, timestamps, time_types, key_starts, key_lengths, value_starts, value_lengths,
    header_starts, record_ends, header_counts,
):  # fmt: skip
    found = 0
    for batch in range(len(starts)):
        at, end = starts[batch], ends[batch]
        append_timestamp = append_timestamps[batch]
        for _ in range(counts[batch]):
            length, at = _varint(data, at, end)
            if at < 0 or length < 1 or length > end - at:
                return found, batch
            record_end = at + length
            timestamp, at = _varint(data, at + 1, record_end)
            if at < 0:
                return found, batch
            offset, at = _varint(data, at, record_end)
            if at < 0:
                return found, batch
            key_length, at = _varint(data, at, record_end)
            if at < 0 or key_length > record_end - at:
                return found, batch
            key_start = at
            at += max(key_length, 0)
            value_length, at = _varint(data, at, record_end)
            if at < 0 or value_length > record_end - at:
                return found, batch
            value_start = at
            header_count, at = _varint(data, at + max(value_length, 0), record_end)
            if at < 0 or header_count < 0 or header_count > record_end - at:
                return found, batch
            offset += base_offsets[batch]
            timestamp = append_timestamp if append_timestamp >= 0 else timestamp + base_timestamps[batch]
            if first_offset <= offset < end_offset and first_timestamp <= timestamp < end_timestamp:
                offsets[found] = offset
                timestamps[found] = timestamp
                time_types[found] = 1 if append_timestamp >= 0 else 0
                key_starts[found] = key_start
                key_lengths[found] = key_length
                value_starts[found] = value_start
                value_lengths[found] = value_length
                header_starts[found] = at
                record_ends[found] = record_end
                header_counts[found] = header_count
                found += 1
            at = record_end
    return found, -1


@compiled
def _find_headers(  # type: ignore[no-untyped-def]
    data, starts, ends, counts, key_starts, key_lengths, value_starts, value_lengths
):  # fmt: skip
    found = 0
    for record in range(len(starts)):
        at, end = starts[record], ends[record]
        for _ in range(counts[record]):
            length, at = _varint(data, at, end)
            if at < 0 or length < 0 or length > end - at:
                return record
            key_starts[found], key_lengths[found] = at, length
            length, at = _varint(data, at + length, end)
            if at < 0 or length > end - at:
                return record
            value_starts[found], value_lengths[found] = at, length
            at += max(length, 0)
            found += 1
    return -1


@compiled
def _gather(data, starts, offsets, gathered):  # type: ignore[no-untyped-def]
    for part in range(len(starts)):
        to, start = offsets[part], starts[part]
        length = offsets[part + 1] - to
        gathered[to : to + length] = data[start : start + length]
