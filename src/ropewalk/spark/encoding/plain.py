"""What `kernels.py` does, without numba: slower, and the same to the last byte."""

import numpy as np

from ropewalk.client.calls.partitioner import murmur2
from ropewalk.records.batch import HEADER_BYTES
from ropewalk.records.codec import Codec
from ropewalk.records.packing import Headers, pack
from ropewalk.spark.decoding.bodies import Bytes, Numbers
from ropewalk.spark.encoding.rows import Blobs, Rows


def write_records(
    rows: Rows, order: Numbers, firsts: Numbers, ends: Numbers, positions: Numbers, output: Bytes
) -> tuple[Numbers, Numbers]:
    """As `kernels.write_records`."""
    keys, values, timestamps = rows.keys.to_list(), rows.values.to_list(), rows.timestamps.tolist()
    headers = _headers(rows)
    stops, latest = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.int64)
    for batch, (first, end, position) in enumerate(
        zip(firsts.tolist(), ends.tolist(), positions.tolist(), strict=True)
    ):
        chosen = order[first:end].tolist()
        packed = pack(
            [(keys[row], values[row], timestamps[row], headers[row]) for row in chosen], codec=Codec.NONE
        )
        stops[batch] = position + len(packed) - HEADER_BYTES
        output[position : stops[batch]] = np.frombuffer(packed, np.uint8)[HEADER_BYTES:]
        latest[batch] = max(timestamps[row] for row in chosen)
    return stops, latest


def hash_keys(keys: Blobs) -> Numbers:
    """As `kernels.hash_keys`."""
    return np.array([murmur2(key or b"") & 0x7FFFFFFF for key in keys.to_list()], np.int64)


def hash_blobs(blobs: Blobs) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """As `kernels.hash_blobs`."""
    hashes = np.zeros(len(blobs.lengths), np.uint64)
    for row, blob in enumerate(blobs.to_list()):
        value = 0
        for byte in blob or b"":
            value = (value * 0x100000001B3 + byte + 1) & 0xFFFFFFFFFFFFFFFF
        hashes[row] = value
    return hashes


def _headers(rows: Rows) -> list[Headers]:
    names = [(name or b"").decode() for name in rows.headers.keys.to_list()]
    contents = rows.headers.values.to_list()
    return [
        tuple(zip(names[start : start + count], contents[start : start + count], strict=True))
        for start, count in zip(rows.headers.starts.tolist(), rows.headers.counts.tolist(), strict=True)
    ]
