"""Which partition a record goes to: by its key as Java's clients choose, in turn without one.

Keys must land where every other client puts them, or one key's records lose their order: the hash is
murmur2 over the key's bytes, made non-negative by masking, modulo the number of partitions.
librdkafka differs unless it is told `partitioner=murmur2_random`.
"""

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's murmur2, as an unsigned 32-bit number.

    >>> hex(murmur2(b"21"))
    '0xc5f2f8ec'
    """
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MULTIPLIER & _MASK
        word ^= word >> 24
        value = (value * _MULTIPLIER & _MASK) ^ (word * _MULTIPLIER & _MASK)
    if whole < length:
        value ^= int.from_bytes(data[whole:], "little")
        value = value * _MULTIPLIER & _MASK
    value ^= value >> 13
    value = value * _MULTIPLIER & _MASK
    return value ^ (value >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class Partitioner:
    """Keyed records by their key, the others in turn from a given start."""

    __slots__ = ("_next",)

    def __init__(self, start: int = 0) -> None:
        self._next = start

    def choose(self, key: bytes | None, partition_count: int) -> int:
        if key is not None:
            return partition_for_key(key, partition_count)
        chosen = self._next % partition_count
        self._next = chosen + 1
        return chosen
