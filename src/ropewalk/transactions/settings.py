"""What an administrator may decide about transactions; the defaults are Kafka's."""

from msgspec import Struct


class TransactionSettings(Struct, frozen=True):
    timeout_ms_max: int = 15 * 60 * 1000
    """The longest time a producer may give its transactions."""
    expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    """How long a transactional id without a transaction is remembered after its last change."""
