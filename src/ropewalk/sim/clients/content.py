"""Records that can be recognised: every byte of one follows from its number.

A record for a compacted topic has a key, which follows from the number too, and carries the number in a header,
because one in a few is a tombstone and has no value to carry it.
"""

import hashlib
from typing import Final

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.records.batch import iterate, verify_crc
from ropewalk.records.record import Record, decode_records
from ropewalk.sim.judges.history import CORRUPT

_SIZES: Final = (0, 3, 20, 50, 90, 120, 150, 200, 300, 500, 700, 1000, 1500, 2500, 4000, 9000)

_HOT_KEY_COUNT: Final = 4
_COLD_KEY_COUNT: Final = 24
"""Half of all records share a few keys, so that much is superseded soon; a cold key's last record stands for long."""

_NUMBER_HEADER: Final = "number"


class Content(Struct, frozen=True):
    """Whole batches as a consumer got them."""

    records: tuple[tuple[int, int], ...]
    """The (offset, value) of every record, each checked."""

    covered: tuple[tuple[int, int], ...]
    """The offsets that the batches take up, as ranges; more than one range means that there was a gap."""


def encode_value(value: int) -> bytes:
    """The number, then as much of its hash as a size drawn from that hash asks for."""
    number, digest = _number(value), _digest(value)
    size = _SIZES[digest[0] % len(_SIZES)]
    return number + (digest * (size // len(digest) + 1))[:size]


def decode_value(content: bytes | None) -> int:
    if content is None or len(content) < 8:
        return CORRUPT
    value = int.from_bytes(content[:8], "big")
    return value if content == encode_value(value) else CORRUPT


def key_of(value: int) -> str:
    digest = _digest(value)
    if digest[1] % 2:
        return f"hot-{digest[2] % _HOT_KEY_COUNT}"
    return f"cold-{digest[2] % _COLD_KEY_COUNT}"


def is_tombstone(value: int) -> bool:
    return _digest(value)[3] % 4 == 0


def plain_record(value: int, timestamp_ms: int) -> Record:
    return Record(timestamp=timestamp_ms, value=encode_value(value))


def keyed_record(value: int, timestamp_ms: int) -> Record:
    return Record(
        timestamp=timestamp_ms,
        key=key_of(value).encode(),
        value=None if is_tombstone(value) else encode_value(value),
        headers=((_NUMBER_HEADER, _number(value)),),
    )


def decode_batches(records: Buffer) -> Content:
    found: list[tuple[int, int]] = []
    covered: list[tuple[int, int]] = []
    view = memoryview(records)
    for position, header in iterate(view):
        batch = view[position : position + header.size_bytes]
        if verify_crc(batch):
            found += [(record.offset, _recognise(record)) for record in decode_records(batch)]
        else:
            found += [(offset, CORRUPT) for offset in range(header.base_offset, header.end_offset)]
        if covered and covered[-1][1] == header.base_offset:
            covered[-1] = (covered[-1][0], header.end_offset)
        else:
            covered.append((header.base_offset, header.end_offset))
    return Content(tuple(found), tuple(covered))


def _recognise(record: Record) -> int:
    if record.key is None:
        return decode_value(record.value)
    number = dict(record.headers).get(_NUMBER_HEADER)
    if number is None:
        return CORRUPT
    value = int.from_bytes(number, "big")
    expected = keyed_record(value, record.timestamp)
    return value if (record.key, record.value) == (expected.key, expected.value) else CORRUPT


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _digest(value: int) -> bytes:
    return hashlib.blake2b(_number(value), digest_size=64).digest()
