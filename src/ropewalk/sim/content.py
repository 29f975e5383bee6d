"""Records that can be recognised: every byte of one follows from its number."""

import hashlib
from typing import Final

from typing_extensions import Buffer

from ropewalk.records.batch import iterate, verify_crc
from ropewalk.records.record import decode_records
from ropewalk.sim.history import CORRUPT

_SIZES: Final = (0, 3, 20, 50, 90, 120, 150, 200, 300, 500, 700, 1000, 1500, 2500, 4000, 9000)


def encode_value(value: int) -> bytes:
    """The number, then as much of its hash as a size drawn from that hash asks for."""
    number = value.to_bytes(8, "big")
    digest = hashlib.blake2b(number, digest_size=64).digest()
    size = _SIZES[digest[0] % len(_SIZES)]
    return number + (digest * (size // len(digest) + 1))[:size]


def decode_value(content: bytes | None) -> int:
    if content is None or len(content) < 8:
        return CORRUPT
    value = int.from_bytes(content[:8], "big")
    return value if content == encode_value(value) else CORRUPT


def decode_batches(records: Buffer) -> tuple[tuple[int, int], ...]:
    """The (offset, value) of every record in whole batches as a consumer got them, each checked."""
    found: list[tuple[int, int]] = []
    view = memoryview(records)
    for position, header in iterate(view):
        batch = view[position : position + header.size_bytes]
        if verify_crc(batch):
            found += [(record.offset, decode_value(record.value)) for record in decode_records(batch)]
        else:
            found += [(offset, CORRUPT) for offset in range(header.base_offset, header.end_offset)]
    return tuple(found)
