"""What a producer can be told: the names of Kafka's clients, with underscores, and mostly their defaults."""

from typing import Final, Literal

from msgspec import Struct, convert
from msgspec import ValidationError as _ValidationError
from msgspec.structs import replace

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.calls.produce import Acks
from ropewalk.client.connections.security import NO_SECURITY, SECURITY_NAMES, ClientSecurity, take_security
from ropewalk.client.connections.settings import ClientSettings, SettingValue
from ropewalk.records.codec import Codec

_ACKS: Final = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}
_UNBOUNDED_MS: Final = 2**31 - 1


class ProducerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client_id: str = "ropewalk"
    acks: str = "all"
    """Who must have a record before it counts as sent: all, 1 (the leader) or 0 (nobody is asked)."""
    enable_idempotence: bool = True
    """With acks=all: a record sent again after a lost answer is not appended twice, and order is kept."""
    linger_ms: float = 5
    """How long a batch waits for more records."""
    batch_size: int = 262_144
    """Bytes of one partition gathered into one batch, before compression."""
    buffer_memory: int = 67_108_864
    """Bytes of records that are not acknowledged yet; who sends more waits."""
    max_request_size: int = 1_048_576
    """Bytes in one request, and the largest record that is taken at all."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    delivery_timeout_ms: int = 120_000
    """From `send` to the acknowledgement, with all that is tried meanwhile."""
    request_timeout_ms: int = 30_000
    max_block_ms: int = 60_000
    """How long a call waits for room, for metadata or for a coordinator."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    max_in_flight: int = 5
    """Requests unanswered per broker, and batches per partition. Brokers remember five batches of a producer."""
    metadata_max_age_ms: int = 300_000
    connect_timeout_ms: int = 10_000
    may_create_topics: bool = True
    """Whether a topic that is not there may be made on first use, if the broker allows it."""
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    security: ClientSecurity = NO_SECURITY
    """As a whole; one by one its settings are `security_protocol`, `ssl_ca_location`, `sasl_username` and so on."""

    @property
    def acknowledgement(self) -> Acks:
        return _ACKS[self.acks]

    @property
    def codec(self) -> Codec:
        return Codec[self.compression.upper()]

    @property
    def is_idempotent(self) -> bool:
        return self.enable_idempotence and self.acknowledgement is Acks.ALL

    def for_client(self) -> ClientSettings:
        return ClientSettings(
            client_id=self.client_id,
            request_timeout_ms=self.max_block_ms,
            connect_timeout_ms=self.connect_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            metadata_max_age_ms=self.metadata_max_age_ms,
            batch_bytes=self.batch_size,
            security=self.security,
        )


_KNOWN: Final = (*ProducerSettings.__struct_fields__[:-1], *SECURITY_NAMES)


def producer_settings(named: dict[str, SettingValue]) -> ProducerSettings:
    """Checked; raises `InvalidSetting` with the setting's name."""
    security, others = take_security(named)
    if isinstance(others.get("acks"), int):
        others = {**others, "acks": str(others["acks"])}
    try:
        settings = replace(convert(others, ProducerSettings, strict=False), security=security)
    except _ValidationError as error:
        raise InvalidSetting(f"{error} (a producer knows {', '.join(_KNOWN)})") from None
    if settings.acks not in _ACKS:
        raise InvalidSetting(f"acks is {settings.acks!r}, must be one of all, 1 and 0")
    for name in (
        "batch_size", "buffer_memory", "max_request_size", "delivery_timeout_ms", "request_timeout_ms", "max_block_ms",
        "retry_backoff_ms", "retry_backoff_max_ms", "max_in_flight", "transaction_timeout_ms", "metadata_max_age_ms",
        "connect_timeout_ms",
    ):  # fmt: skip
        if not 0 < getattr(settings, name) <= _UNBOUNDED_MS:
            raise InvalidSetting(f"{name} is {getattr(settings, name)}, must be positive and below 2^31")
    if not 0 <= settings.linger_ms <= _UNBOUNDED_MS:
        raise InvalidSetting(f"linger_ms is {settings.linger_ms}, must not be negative")
    if settings.is_idempotent and settings.max_in_flight > 5:
        raise InvalidSetting(f"max_in_flight is {settings.max_in_flight}; an idempotent producer may have 5")
    if settings.transactional_id is not None and not settings.is_idempotent:
        raise InvalidSetting("transactional_id needs acks=all and enable_idempotence")
    if settings.transactional_id == "":
        raise InvalidSetting("transactional_id must not be empty")
    return settings
