"""Compiled loops over rows: records written one after the other, hashes of keys, digests of rows.

Compiled on first use and kept, as `compiled.py` says. `plain.py` does the same without numba, byte for byte.
"""

import numpy as np

from ropewalk.spark.compiled import compiled, inlined
from ropewalk.spark.decoding.bodies import Bytes, Numbers
from ropewalk.spark.encoding.rows import Blobs, Rows


def write_records(
    rows: Rows, order: Numbers, firsts: Numbers, ends: Numbers, positions: Numbers, output: Bytes
) -> tuple[Numbers, Numbers]:
    """Batch n takes the rows `order[firsts[n]:ends[n]]` and is written from `positions[n]` on.

    Where each batch ends in the output, and its latest timestamp.
    """
    stops, latest = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.int64)
    _write(
        rows.keys.data,
        rows.keys.starts,
        rows.keys.lengths,
        rows.values.data,
        rows.values.starts,
        rows.values.lengths,
        rows.timestamps,
        rows.headers.starts,
        rows.headers.counts,
        rows.headers.keys.data,
        rows.headers.keys.starts,
        rows.headers.keys.lengths,
        rows.headers.values.data,
        rows.headers.values.starts,
        rows.headers.values.lengths,
        order,
        firsts,
        ends,
        positions,
        output,
        stops,
        latest,
    )
    return stops, latest


def hash_keys(keys: Blobs) -> Numbers:
    """Kafka's murmur2 of each key, without its sign; nothing that makes sense for null."""
    hashes = np.empty(len(keys.lengths), np.int64)
    _murmur2(keys.data, keys.starts, keys.lengths, hashes)
    return hashes


def hash_blobs(blobs: Blobs) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """A polynomial over each one's bytes; 0 for null and for nothing."""
    hashes = np.empty(len(blobs.lengths), np.uint64)
    _hash(blobs.data, blobs.starts, blobs.lengths, hashes)
    return hashes


@inlined
def _put(output, at, value):  # type: ignore[no-untyped-def]
    """A varint; the position after it."""
    left = np.uint64((value << 1) ^ (value >> 63))
    while left > np.uint64(127):
        output[at] = np.uint8((left & np.uint64(127)) | np.uint64(128))
        left >>= np.uint64(7)
        at += 1
    output[at] = np.uint8(left)
    return at + 1


@inlined
def _varint_bytes(value):  # type: ignore[no-untyped-def]
    left = np.uint64((value << 1) ^ (value >> 63))
    count = 1
    while left > np.uint64(127):
        left >>= np.uint64(7)
        count += 1
    return count


@inlined
def _blob_bytes(length):  # type: ignore[no-untyped-def]
    return _varint_bytes(length) + max(length, 0)


@inlined
def _put_blob(output, at, data, start, length):  # type: ignore[no-untyped-def]
    at = _put(output, at, length)
    if length > 0:
        output[at : at + length] = data[start : start + length]
        at += length
    return at


@compiled
def _write(  # type: ignore[no-untyped-def]
    key_data, key_starts, key_lengths, value_data, value_starts, value_lengths, timestamps,
    header_firsts, header_counts, name_data, name_starts, name_lengths, content_data, content_starts, content_lengths,
    order, firsts, ends, positions, output, stops, latest,
):  # fmt: skip
    for batch in range(len(firsts)):
        at = positions[batch]
        base = timestamps[order[firsts[batch]]]
        newest = base
        for place in range(firsts[batch], ends[batch]):
            row = order[place]
            key_length, value_length = key_lengths[row], value_lengths[row]
            header_count, header_first = header_counts[row], header_firsts[row]
            timestamp, offset = timestamps[row] - base, place - firsts[batch]
            newest = max(newest, timestamps[row])
            size = 1 + _varint_bytes(timestamp) + _varint_bytes(offset)
            size += _blob_bytes(key_length) + _blob_bytes(value_length) + _varint_bytes(header_count)
            for header in range(header_first, header_first + header_count):
                size += _blob_bytes(name_lengths[header]) + _blob_bytes(content_lengths[header])
            at = _put(output, at, size)
            output[at] = 0
            at = _put(output, at + 1, timestamp)
            at = _put(output, at, offset)
            at = _put_blob(output, at, key_data, key_starts[row], key_length)
            at = _put_blob(output, at, value_data, value_starts[row], value_length)
            at = _put(output, at, header_count)
            for header in range(header_first, header_first + header_count):
                at = _put_blob(output, at, name_data, name_starts[header], name_lengths[header])
                at = _put_blob(output, at, content_data, content_starts[header], content_lengths[header])
        stops[batch] = at
        latest[batch] = newest


@compiled
def _murmur2(data, starts, lengths, hashes):  # type: ignore[no-untyped-def]
    multiplier, mask = np.uint64(0x5BD1E995), np.uint64(0xFFFFFFFF)
    for row in range(len(starts)):
        start, length = starts[row], max(lengths[row], 0)
        value = np.uint64(0x9747B28C) ^ np.uint64(length)
        whole = length & ~3
        for at in range(start, start + whole, 4):
            word = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
            word |= np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24)
            word = word * multiplier & mask
            word ^= word >> np.uint64(24)
            value = (value * multiplier & mask) ^ (word * multiplier & mask)
        if whole < length:
            rest = np.uint64(0)
            for at in range(length - whole):
                rest |= np.uint64(data[start + whole + at]) << np.uint64(8 * at)
            value ^= rest
            value = value * multiplier & mask
        value ^= value >> np.uint64(13)
        value = value * multiplier & mask
        hashes[row] = np.int64((value ^ (value >> np.uint64(15))) & np.uint64(0x7FFFFFFF))


@compiled
def _hash(data, starts, lengths, hashes):  # type: ignore[no-untyped-def]
    factor = np.uint64(0x100000001B3)
    for row in range(len(starts)):
        value = np.uint64(0)
        for at in range(starts[row], starts[row] + max(lengths[row], 0)):
            value = value * factor + np.uint64(data[at]) + np.uint64(1)
        hashes[row] = value
