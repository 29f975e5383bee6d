"""What is said to etcd's gateway and what it says: the part of its API that a metadata log needs.

The gateway writes 64-bit numbers as texts and bytes as base64, and leaves out what is zero; `decode` knows.
"""

from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

M = TypeVar("M")
Message: TypeAlias = dict[str, object]

TXN: Final = "/v3/kv/txn"
RANGE: Final = "/v3/kv/range"
COMPACT: Final = "/v3/kv/compaction"
WATCH: Final = "/v3/watch"
GRANT: Final = "/v3/lease/grant"
KEEP_ALIVE: Final = "/v3/lease/keepalive"
ALARM: Final = "/v3/maintenance/alarm"
AUTHENTICATE: Final = "/v3/auth/authenticate"


class KeyValue(Struct, frozen=True):
    key: bytes
    value: bytes = b""
    mod_revision: int = 0


class Header(Struct, frozen=True):
    revision: int = 0


class Ranged(Struct, frozen=True):
    kvs: tuple[KeyValue, ...] = ()
    more: bool = False


class OperationAnswer(Struct, frozen=True):
    response_range: Ranged = Ranged()


class TxnAnswer(Struct, frozen=True):
    header: Header = Header()
    succeeded: bool = False
    responses: tuple[OperationAnswer, ...] = ()

    def found(self, index: int) -> tuple[KeyValue, ...]:
        return self.responses[index].response_range.kvs


class Event(Struct, frozen=True):
    kv: KeyValue
    type: str = "PUT"


class WatchAnswer(Struct, frozen=True):
    created: bool = False
    canceled: bool = False
    cancel_reason: str = ""
    compact_revision: int = 0
    events: tuple[Event, ...] = ()


class Failure(Struct, frozen=True):
    """`code` is gRPC's. Within a stream the message is one level deeper and the code has another name."""

    message: str = ""
    code: int = 0
    grpc_code: int = 0


class StreamAnswer(Struct, frozen=True):
    result: WatchAnswer | None = None
    error: Failure | None = None


class Granted(Struct, frozen=True):
    ID: int = 0
    TTL: int = 0


class KeptAlive(Struct, frozen=True):
    result: Granted = Granted()


class Alarm(Struct, frozen=True):
    alarm: str = "NONE"


class Alarms(Struct, frozen=True):
    alarms: tuple[Alarm, ...] = ()


class Authenticated(Struct, frozen=True):
    token: str


def decode(data: bytes, kind: type[M]) -> M:
    """Raises `ValueError` for what etcd does not say."""
    return msgspec.json.decode(data, type=kind, strict=False)


def get(key: bytes, *, end: bytes | None = None, limit: int = 0) -> Message:
    """One key, or all from `key` to before `end`."""
    request: Message = {"key": key, "limit": limit}
    if end is not None:
        request["range_end"] = end
    return {"request_range": request}


def put(key: bytes, value: bytes, *, lease: int = 0) -> Message:
    return {"request_put": {"key": key, "value": value, "lease": lease}}


def delete(key: bytes, *, end: bytes) -> Message:
    return {"request_delete_range": {"key": key, "range_end": end}}


def has_revision(key: bytes, revision: int) -> Message:
    """Whether the key was last written at that revision; 0 if it must not be there."""
    return {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision}


def has_value(key: bytes, value: bytes) -> Message:
    return {"key": key, "target": "VALUE", "result": "EQUAL", "value": value}


def txn(
    *, compare: list[Message] | None = None, success: list[Message], failure: list[Message] | None = None
) -> Message:
    return {"compare": compare or [], "success": success, "failure": failure or []}


def watch(key: bytes, *, end: bytes, start_revision: int) -> Message:
    return {"create_request": {"key": key, "range_end": end, "start_revision": start_revision}}
