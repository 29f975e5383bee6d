"""What a client can be told, by the names that Kafka's clients use, with their defaults."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, convert
from msgspec import ValidationError as _ValidationError
from msgspec.structs import replace

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.connections.secret import GivenSecret
from ropewalk.client.connections.security import (
    NO_SECURITY,
    SECURITY_PROPERTIES,
    ClientSecurity,
    TokenFunction,
    of_security,
    security_from,
)

SettingValue = str | int | float | bool | TokenFunction | ClientSecurity | None
"""Of producers, consumers and others, by keyword."""


class ClientSettings(Struct, frozen=True, gc=False):
    client_id: str = "ropewalk"
    request_timeout_ms: int = 30_000
    """How long one call may take, retries included."""
    connect_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    fetch_max_bytes: int = 52_428_800
    fetch_partition_max_bytes: int = 1_048_576
    fetch_max_wait_ms: int = 500
    batch_bytes: int = 500_000
    """Records of one partition gathered into one batch; below a broker's usual limit of 1,048,588."""
    client_rack: str = ""
    """Where this client is. A leader that knows of a copy there has it read from that one."""
    security: ClientSecurity = NO_SECURITY


_FIELDS: Final = {
    "client.id": "client_id",
    "request.timeout.ms": "request_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "fetch.max.bytes": "fetch_max_bytes",
    "max.partition.fetch.bytes": "fetch_partition_max_bytes",
    "fetch.max.wait.ms": "fetch_max_wait_ms",
    "batch.size": "batch_bytes",
    "client.rack": "client_rack",
}


def settings_from(properties: Mapping[str, str | GivenSecret]) -> ClientSettings:
    """Refuses a name it does not know, and says which it does, with `InvalidSetting`."""
    values: dict[str, str | GivenSecret] = {}
    secured, properties = of_security(properties)
    for name, value in properties.items():
        if name not in _FIELDS:
            known = ", ".join(sorted((*_FIELDS, *SECURITY_PROPERTIES)))
            raise InvalidSetting(f"{name} is not a client setting; there are {known}")
        values[_FIELDS[name]] = value
    try:
        settings = convert(values, ClientSettings, strict=False)
    except _ValidationError as error:
        raise InvalidSetting(f"{_offender(properties, str(error))}: {error}") from None
    for name, field in _FIELDS.items():
        value = getattr(settings, field)
        if isinstance(value, int) and value <= 0:
            raise InvalidSetting(f"{name} is {value}, must be positive")
    return replace(settings, security=security_from(secured)) if secured else settings


def _offender(properties: Mapping[str, str | GivenSecret], message: str) -> str:
    """msgspec names the field as `$.field`; the user knows it by Kafka's name."""
    for name in properties:
        if f"$.{_FIELDS[name]}" in message:
            return f"{name}={properties[name]}"
    return "client settings"
