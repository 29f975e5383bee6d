"""Which shard a group belongs to."""


def shard_of(group_id: str, shard_count: int) -> int:
    """Kafka's choice: Java's hash of the name, without its sign. A topic copied from Kafka can be served as it is."""
    hashed = 0
    encoded = group_id.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        hashed = (31 * hashed + (encoded[position] << 8 | encoded[position + 1])) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed & 0x80000000 else hashed
    # Java has no positive counterpart of the smallest number, and Kafka takes zero for it.
    positive = 0 if signed == -(1 << 31) else abs(signed)
    return positive % shard_count
