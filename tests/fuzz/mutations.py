"""Ways to spoil a frame. Each takes a whole frame, length included, and gives another run of bytes."""

import random
from collections.abc import Callable
from struct import Struct as Layout
from typing import Final

from ropewalk.wire.varint import encode_varint

_LENGTH: Final = Layout(">i")
_HEADER: Final = 14  # length, key, version, correlation id, length of the client id
_EDGES: Final = tuple(
    value.to_bytes(size, "big")
    for size in (1, 2, 4, 8)
    for bits in (size * 8,)
    for value in (0, 1, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1), (1 << (bits - 1)) - 1)
)
_VARINTS: Final = (
    *(
        b"\x80\x00",
        b"\xff\x00",
        b"\x80\x80\x80\x80\x00",
        b"\x80\x80\x80\x80\x80\x00",
        b"\xff" * 5,
        b"\xff" * 10,
    ),
    *(encode_varint(value) for value in (127, 128, 0x3FFF, 0x4000, 0x7FFF, 0x8000, 0x7FFFFFFF, 0xFFFFFFFF)),
)


def mutate(frame: bytes, other: bytes, chance: random.Random) -> bytes:
    """`other` is a second frame, for what is made of two."""
    return chance.choice(_MUTATIONS)(bytearray(frame), other, chance)


def _framed(frame: bytearray) -> bytes:
    """The length in front says again what follows it."""
    _LENGTH.pack_into(frame, 0, len(frame) - 4)
    return bytes(frame)


def _somewhere(frame: bytearray, chance: random.Random) -> int:
    """Mostly in the body: a spoilt header ends the matter early."""
    low = _HEADER if len(frame) > _HEADER + 1 and chance.random() < 0.9 else 4
    return chance.randrange(low, len(frame))


def _flip_bits(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    for _number in range(chance.choice([1, 1, 1, 2, 8])):
        frame[_somewhere(frame, chance)] ^= 1 << chance.randrange(8)
    return bytes(frame)


def _overwrite_with_an_edge(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    edge = chance.choice(_EDGES)
    position = _somewhere(frame, chance)
    size = len(frame)
    frame[position : position + len(edge)] = edge
    del frame[size:]
    return _framed(frame)


def _overwrite_with_a_varint(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    position = _somewhere(frame, chance)
    frame[position : position + chance.choice([0, 1])] = chance.choice(_VARINTS)
    return _framed(frame)


def _cut_short(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    del frame[chance.randrange(5, len(frame)) :]
    return _framed(frame)


def _leave_out(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    position = _somewhere(frame, chance)
    if position > 4:
        del frame[position : position + chance.choice([1, 2, 4, 16])]
    return _framed(frame)


def _say_twice(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    position = _somewhere(frame, chance)
    piece = frame[position : position + chance.choice([1, 4, 30, 200])]
    frame[position:position] = piece * chance.choice([1, 1, 2, 50])
    return _framed(frame)


def _add_noise(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    frame += chance.randbytes(chance.choice([1, 3, 100]))
    return _framed(frame)


def _graft(frame: bytearray, other: bytes, chance: random.Random) -> bytes:
    """The beginning of one request and the end of another."""
    del frame[_somewhere(frame, chance) :]
    frame += other[chance.randrange(len(other)) :]
    if len(frame) < 5:
        frame.append(0)
    return _framed(frame)


def _another_key(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    frame[4:6] = chance.choice([chance.randrange(100), 999, 0x7FFF, 0x8000, 0xFFFF]).to_bytes(2, "big")
    return bytes(frame)


def _another_version(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    frame[6:8] = chance.choice([*range(20), 99, 0x7FFF, 0x8000, 0xFFFF]).to_bytes(2, "big")
    return bytes(frame)


def _another_correlation(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    frame[8:12] = chance.choice([0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]).to_bytes(4, "big")
    return bytes(frame)


def _another_client_id(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    """A length that fits nothing, or a name that is not UTF-8."""
    if chance.random() < 0.5:
        frame[12:14] = chance.choice([0, 1, 0x7FFF, 0x8000, 0xFFFE]).to_bytes(2, "big")
        return bytes(frame)
    frame[12:14] = b"\x00\x03\xff\xfe\xfd"
    return _framed(frame)


def _another_length(frame: bytearray, _: bytes, chance: random.Random) -> bytes:
    true = len(frame) - 4
    claimed = chance.choice(
        [0, -1, -(2**31), 2**31 - 1, true - 1, true + 1, true // 2, 1 << 23, (1 << 23) + 1]
    )
    _LENGTH.pack_into(frame, 0, claimed)
    return bytes(frame)


def _another_protocol(_: bytearray, _other: bytes, chance: random.Random) -> bytes:
    return chance.choice(
        [
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
            b"SSH-2.0-OpenSSH_9.2\r\n",
            chance.randbytes(chance.choice([4, 5, 50])),
        ]
    )


_MUTATIONS: Final[list[Callable[[bytearray, bytes, random.Random], bytes]]] = [
    *[_flip_bits, _overwrite_with_an_edge] * 6,
    *[_overwrite_with_a_varint, _cut_short, _leave_out, _say_twice, _add_noise, _graft] * 2,
    *[_another_key, _another_version, _another_correlation, _another_client_id, _another_length],
    _another_protocol,
]
