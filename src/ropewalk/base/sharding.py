"""Which shard a group or a transactional id belongs to."""

from struct import unpack


def shard_of(name: str, shard_count: int) -> int:
    """Kafka's choice: Java's hash of the name, without its sign. A topic copied from Kafka can be served as it is."""
    hashed = 0
    for unit in name.encode() if name.isascii() else _utf16(name):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed & 0x80000000 else hashed
    # Java has no positive counterpart of the smallest number, and Kafka takes zero for it.
    positive = 0 if signed == -(1 << 31) else abs(signed)
    return positive % shard_count


def _utf16(text: str) -> tuple[int, ...]:
    """What Java takes for the characters of a string."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return unpack(f">{len(encoded) // 2}H", encoded)
