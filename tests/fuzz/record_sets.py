"""What a fuzzed Produce carries: batches that are right, nearly right, and meant to hurt when they are opened."""

import random
from collections.abc import Callable
from typing import Final, TypeAlias

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.records.batch import HEADER_BYTES, stamp_crc
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress
from ropewalk.records.record import Record, build

_COUNT: Final = slice(57, 61)
_LAST_OFFSET_DELTA: Final = slice(23, 27)
_LENGTH: Final = slice(8, 12)
_ATTRIBUTES: Final = slice(21, 23)
_NOW_MS: Final = 1_790_000_000_000
_BOMB_BYTES: Final = 1 << 26


def invent_record_set(chance: random.Random) -> bytes:
    """Four of ten are batches that a log takes."""
    if chance.random() < 0.4:
        return bytes(_valid(chance))
    return bytes(chance.choice(_BROKEN)(chance))


def _valid(chance: random.Random) -> bytearray:
    producer = chance.choice([-1, -1, -1, 0, 1, chance.getrandbits(62)])
    return build(
        [
            Record(
                timestamp=_NOW_MS + chance.choice([0, 1, -1000]),
                key=chance.choice([None, b"", b"k", b"key-%d" % chance.randrange(100)]),
                value=chance.choice([None, b"", b"v" * chance.randrange(200)]),
                headers=chance.choice([(), (("h", None),), (("", b""), ("\U0001f9f5", b"x"))]),
            )
            for _ in range(chance.choice([1, 1, 2, 5]))
        ],
        codec=Codec(chance.choice([0, 0, 1, 2, 3, 4])),
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(-1 if producer < 0 else chance.choice([0, 0, 1, 32767])),
        base_sequence=-1 if producer < 0 else chance.choice([0, 0, 1, 2**31 - 1]),
        is_transactional=producer >= 0 and chance.random() < 0.1,
    )


def _noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice([0, 1, 12, 17, 60, 61, 62, 300]))


def _wrong_crc(chance: random.Random) -> bytearray:
    batch = _valid(chance)
    batch[chance.randrange(17, len(batch))] ^= 1 << chance.randrange(8)
    return batch


def _changed_under_a_true_crc(chance: random.Random) -> bytearray:
    """The CRC says that these are the bytes the client meant; whoever opens them meets the damage."""
    batch = _valid(chance)
    for _ in range(chance.choice([1, 1, 3])):
        batch[chance.randrange(21, len(batch))] = chance.choice(
            [0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)]
        )
    stamp_crc(memoryview(batch))
    return batch


def _wrong_counts(chance: random.Random) -> bytearray:
    batch = _valid(chance)
    count = chance.choice([0, 2, 1000, 2**31 - 1, 2**32 - 1, 2**31])
    batch[_COUNT] = count.to_bytes(4, "big")
    if chance.random() < 0.7:
        batch[_LAST_OFFSET_DELTA] = ((count - 1) % 2**32).to_bytes(4, "big")
    stamp_crc(memoryview(batch))
    return batch


def _wrong_length(chance: random.Random) -> bytearray:
    batch = _valid(chance)
    length = chance.choice([0, 48, 49, len(batch) - 13, len(batch) - 11, 2**31 - 1, 2**31, 2**32 - 1])
    batch[_LENGTH] = length.to_bytes(4, "big")
    return batch


def _other_format(chance: random.Random) -> bytearray:
    batch = _valid(chance)
    batch[16] = chance.choice([0, 1, 3, 127, 255])
    return batch


def _control_or_odd_attributes(chance: random.Random) -> bytearray:
    batch = _valid(chance)
    batch[_ATTRIBUTES] = chance.choice([0x20, 0x30, 0x40, 0x05, 0x07, 0xFFFF, 0x08]).to_bytes(2, "big")
    stamp_crc(memoryview(batch))
    return batch


def _several(chance: random.Random) -> bytearray:
    return _valid(chance) + _valid(chance)


def _bomb(chance: random.Random) -> bytes:
    return chance.choice(_bombs())


def _bombs() -> list[bytes]:
    """Made once: sixty-four mebibytes of zeros in each codec, in a batch that claims one record."""
    if not _BOMBS:
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
            batch = build([Record(timestamp=_NOW_MS, key=b"k")])
            batch[HEADER_BYTES:] = compress(codec, bytes(_BOMB_BYTES))
            batch[_LENGTH] = (len(batch) - 12).to_bytes(4, "big")
            batch[_ATTRIBUTES] = int(codec).to_bytes(2, "big")
            stamp_crc(memoryview(batch))
            if len(batch) < 1 << 20:  # snappy makes it three megabytes, which is no bomb but a load
                _BOMBS.append(bytes(batch))
    return _BOMBS


_BOMBS: Final[list[bytes]] = []

_Break: TypeAlias = Callable[[random.Random], bytes | bytearray]
_USUAL: Final[list[_Break]] = [
    *(_noise, _wrong_crc, _changed_under_a_true_crc, _changed_under_a_true_crc, _wrong_counts),
    *(_wrong_length, _other_format, _control_or_odd_attributes, _several),
]
_BROKEN: Final[list[_Break]] = [*_USUAL * 8, _bomb]
