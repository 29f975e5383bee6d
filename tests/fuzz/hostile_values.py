"""Requests invented from the annotations of their class, with values that a handler might stumble over.

Most fields get something plausible, or no request would get past the first check of its handler; some get the edges
of their type. Which is which goes by the field's name where the name says what it is.

Topics named `lasting-…` exist throughout a run, with settings that make a node look into batches; `passing-…` come
and go. Ids of topics are not known before the node has made them, so requests carry a stand-in that the sender
replaces: the same seed gives the same bytes on every node.
"""

import hashlib
import random
import struct
from typing import Final

from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text, fields_of
from ropewalk.wire.types import UUID_ZERO, Fixed, Message, RecordSet
from tests.fuzz.record_sets import invent_record_set

LASTING: Final = ("lasting-plain", "lasting-compacted", "lasting-stamped", "lasting-small")
PASSING: Final = tuple(f"passing-{number}" for number in range(12))

_STRANGE_NAMES: Final = (
    *("", ".", "..", "a/b", "../../etc/passwd", "/", "\\", "a b", "\0", "x\0y", "\n", "%s%n", "{0}", "$(id)"),
    *(
        "x" * 249,
        "x" * 250,
        "x" * 32767,
        "é",
        "\u202e",
        "\ufeff",
        "\U0001f9f5" * 60,
        "CON",
        "-",
        "_",
        "a.b",
        "a_b",
    ),
    *(
        "__consumer_offsets",
        "__transaction_state",
        "__telemetry",
        "__other",
        "NaN",
        "null",
        "true",
        "0",
        "-1",
    ),
)
_GROUPS: Final = tuple(f"group-{number}" for number in range(16))
_MEMBERS: Final = ("", "", "member", "client-00000000-0000-0000-0000-000000000000", "x" * 300)
_SETTINGS: Final = (
    *(
        "cleanup.policy",
        "retention.ms",
        "retention.bytes",
        "segment.bytes",
        "segment.ms",
        "max.message.bytes",
    ),
    *(
        "compression.type",
        "message.timestamp.type",
        "min.insync.replicas",
        "flush",
        "min.cleanable.dirty.ratio",
    ),
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage", "no.such.setting", ""),
)
_SETTING_VALUES: Final = (
    *(
        "-1",
        "0",
        "1",
        "1024",
        "1048576",
        "compact",
        "delete",
        "compact,delete",
        ",",
        "zstd",
        "producer",
        "none",
    ),
    *(
        "LogAppendTime",
        "CreateTime",
        "group",
        "os",
        "9223372036854775808",
        "1e999",
        "NaN",
        "0.5",
        "",
        " ",
        "\0",
    ),
)
_TEXTS_BY_NAME: Final[dict[str, tuple[str, ...]]] = {
    "group_id": _GROUPS,
    "groups": _GROUPS,
    "groups_names": _GROUPS,
    "key": (*_GROUPS, *_SETTINGS),
    "coordinator_keys": _GROUPS,
    "member_id": _MEMBERS,
    "instance_id": ("", "static-1", "static-2"),
    "protocol_type": ("consumer", "consumer", "connect", ""),
    "protocol_name": ("range", "range", "roundrobin", ""),
    "configuration_keys": _SETTINGS,
    "value": _SETTING_VALUES,
    "resource_name": (*LASTING, *PASSING, "0", "1"),
    "entity_type": ("client-id", "client-id", "user", "ip"),
    "entity_name": (
        "nobody-1",
        "nobody-2",
        "127.0.0.1",
    ),  # a client with a quota would be kept waiting, rightly
    "client_software_name": ("fuzzer", "librdkafka"),
    "client_software_version": ("1.0", "2"),
    "states_filter": ("Stable", "Empty", "Dead"),
    "types_filter": ("classic", "consumer"),
    "committed_metadata": ("", "m" * 4096, "m" * 4097),
    "transactional_id": ("", "txn"),
}
_SETTING_STRUCTURES: Final = frozenset({"CreatableTopicConfig", "AlterableConfig", "AlterConfigsResource"})
_PLAUSIBLE_NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "acks": (-1, -1, -1, 1, 1, 0),
    "timeout_ms": (0, 1000, 1000, 30_000),
    "max_wait_ms": (0, 0, 0, 1, 20),
    "min_bytes": (0, 1, 1, 1000),
    "max_bytes": (0, 1, 1000, 1 << 20, 50 << 20),
    "partition_max_bytes": (0, 1, 1000, 1 << 20),
    "replica_id": (-1,),
    "session_id": (0, 0, 0, 1, 2),
    "session_epoch": (-1, 0, 0, 1, 2),
    "current_leader_epoch": (-1, 0),
    "leader_epoch": (-1, 0),
    "num_partitions": (-1, 1, 1, 2, 3),
    "count": (1, 2, 3, 4, 5),
    "replication_factor": (-1, 1, 1),
    "broker_ids": (1, 1, 0),
    "replicas": (1, 1, 0),
    "timestamp": (-1, -2, -3, -4, -5, -6, 0, 1_790_000_000_000),
    "resource_type": (2, 2, 2, 4),
    "config_operation": (0, 0, 1, 2, 3),
    "isolation_level": (0, 1),
    "endpoint_type": (1,),
    "session_timeout_ms": (6_000, 10_000, 45_000),
    "rebalance_timeout_ms": (0, 100, 1_000, 60_000),
    "generation_id": (-1, 0, 1, 2),
    "generation_id_or_member_epoch": (-1, -1, 0, 1),
    "key_type": (0, 0, 1),
    "election_type": (0, 1),
}
_LOW_NUMBERS: Final = (0, 0, 0, 1, 2, -1)
_STRANGE_SHARE: Final = 0.06
_LONG_ARRAY_SHARE: Final = 0.0005
_LONG_ARRAY: Final = 2000


def stand_in(topic: str) -> bytes:
    """The id by which requests mean a lasting topic until the sender puts the real one in its place."""
    return hashlib.sha256(topic.encode()).digest()[:16]


_TOPIC_IDS: Final = (*map(stand_in, LASTING), *map(stand_in, LASTING), UUID_ZERO, b"\xff" * 16)


def invent_request(message: type[Message], version: int, chance: random.Random) -> Message:
    """A message that `version` can carry. Only a few hundred bytes, but for one in hundreds."""
    return message(
        **{
            field.name: _field(message, field, version, chance)
            for field in fields_of(message)
            if field.exists(version)
        }
    )


def _field(message: type[Message], field: Field, version: int, chance: random.Random) -> object:
    if field.nullable(version) and chance.random() < 0.15:
        return None
    if field.tag is not None and chance.random() < 0.7:
        return field.default
    return _value(message, field.name, field.kind, version, chance)


def _value(message: type[Message], name: str, kind: Kind, version: int, chance: random.Random) -> object:
    match kind:
        case Fixed("?"):
            return chance.random() < 0.5
        case Fixed("d"):
            return chance.choice(
                [0.0, -0.0, 1.0, -1.0, 1e6, 1e308, 5e-324, *map(float, ("nan", "inf", "-inf"))]
            )
        case Fixed("16s"):
            return chance.choice(_TOPIC_IDS)
        case Fixed(code):
            return _number(name, code, chance)
        case Text():
            return _text(message, name, chance)
        case Blob():
            return chance.randbytes(chance.choice([0, 1, 20, 500]))
        case RecordSet():
            return invent_record_set(chance)
        case Structure(inner):
            return invent_request(inner, version, chance)
        case Array(element):
            return tuple(
                _value(message, name, element, version, chance) for _ in range(_length(element, chance))
            )


def _number(name: str, code: str, chance: random.Random) -> int:
    bits = struct.calcsize(">" + code) * 8
    if code.isupper():
        return chance.choice([0, 1, (1 << bits) - 1, 1 << (bits - 1)])
    if chance.random() >= _STRANGE_SHARE:
        return chance.choice(_PLAUSIBLE_NUMBERS.get(name, _LOW_NUMBERS))
    high = (1 << (bits - 1)) - 1
    return chance.choice([high, -high - 1, high - 1, -1, -2, high >> 1, chance.randint(-high - 1, high)])


def _text(message: type[Message], name: str, chance: random.Random) -> str:
    if chance.random() < _STRANGE_SHARE:
        return chance.choice(_STRANGE_NAMES)
    if name == "name" and message.__name__ in _SETTING_STRUCTURES:
        return chance.choice(_SETTINGS)
    if name == "name" and message.__name__ == "JoinGroupRequestProtocol":
        return chance.choice(["range", "range", "roundrobin", "cooperative-sticky"])
    return chance.choice(_TEXTS_BY_NAME[name]) if name in _TEXTS_BY_NAME else _topic_name(chance)


def _topic_name(chance: random.Random) -> str:
    return chance.choice(LASTING if chance.random() < 0.7 else PASSING)


def _length(element: Kind, chance: random.Random) -> int:
    if chance.random() < _LONG_ARRAY_SHARE:
        return _LONG_ARRAY // 20 if isinstance(element, Structure) else _LONG_ARRAY
    return chance.choice([0, 1, 1, 1, 2, 3])
