"""What a consumer can be told: the names of Kafka's clients, with underscores, and mostly their defaults."""

from typing import Final, Literal

from msgspec import Struct, convert
from msgspec import ValidationError as _ValidationError
from msgspec.structs import replace

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.client.connections.security import NO_SECURITY, SECURITY_NAMES, ClientSecurity, take_security
from ropewalk.client.connections.settings import ClientSettings, SettingValue

AssignorName = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]


class ConsumerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    client_id: str = "ropewalk"
    group_instance_id: str | None = None
    """A name that stays the same over restarts: a member that comes back under it finds its partitions again."""
    group_protocol: Literal["classic", "consumer"] = "classic"
    """consumer: the server assigns partitions (KIP-848), where the broker offers it."""
    assignor: AssignorName = "cooperative-sticky"
    """How the members of a classic group share partitions. All members must know the same."""
    server_assignor: str | None = None
    """For group_protocol=consumer: uniform or range; the broker's own choice by default."""
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    """Where a partition is read from that has no committed offset, or whose offset is gone."""
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    """A member that does not poll for so long has left its group."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    check_crcs: bool = True
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    connect_timeout_ms: int = 10_000
    client_rack: str = ""
    security: ClientSecurity = NO_SECURITY
    """As a whole; one by one its settings are `security_protocol`, `ssl_ca_location`, `sasl_username` and so on."""

    @property
    def isolation(self) -> Isolation:
        return Isolation[self.isolation_level.upper()]

    def for_client(self) -> ClientSettings:
        return ClientSettings(
            client_id=self.client_id,
            request_timeout_ms=self.default_api_timeout_ms,
            connect_timeout_ms=self.connect_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            metadata_max_age_ms=self.metadata_max_age_ms,
            fetch_max_bytes=self.fetch_max_bytes,
            fetch_partition_max_bytes=self.max_partition_fetch_bytes,
            fetch_max_wait_ms=self.fetch_max_wait_ms,
            security=self.security,
        )


_KNOWN: Final = (*ConsumerSettings.__struct_fields__[:-1], *SECURITY_NAMES)


def consumer_settings(named: dict[str, SettingValue]) -> ConsumerSettings:
    """Checked; raises `InvalidSetting` with the setting's name."""
    security, others = take_security(named)
    try:
        settings = replace(convert(others, ConsumerSettings, strict=False), security=security)
    except _ValidationError as error:
        raise InvalidSetting(f"{error} (a consumer knows {', '.join(_KNOWN)})") from None
    for name in ConsumerSettings.__struct_fields__:
        value = getattr(settings, name)
        if type(value) is int and not 0 < value < 2**31:
            raise InvalidSetting(f"{name} is {value}, must be positive and below 2^31")
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise InvalidSetting(
            f"heartbeat_interval_ms is {settings.heartbeat_interval_ms}, must be below session_timeout_ms "
            f"({settings.session_timeout_ms})"
        )
    return settings
