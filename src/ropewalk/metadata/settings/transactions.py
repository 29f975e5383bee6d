"""Broker settings about idempotent and transactional producers, and about the topic that holds the state of transactions."""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Change, Kind, Setting

_CATALOGUE: Final = (
    Setting(
        "producer.id.expiration.ms",
        Kind.INT,
        "86400000",
        "How long a silent producer's last sequence numbers are remembered.",
        minimum=1,
        agreed=True,
    ),
    Setting(
        "transaction.max.timeout.ms",
        Kind.INT,
        "900000",
        "The longest time a producer may give its transactions; one that takes longer is aborted.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "transactional.id.expiration.ms",
        Kind.INT,
        "604800000",
        "How long a transactional id is remembered after its last transaction.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "transaction.state.log.num.partitions",
        Kind.INT,
        "50",
        "Partitions of the topic that holds transaction state.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "transaction.state.log.replication.factor",
        Kind.SHORT,
        "3",
        "Replicas of the topic that holds transaction state, as far as there are brokers.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "transaction.state.log.min.isr",
        Kind.INT,
        "2",
        "min.insync.replicas of the topic that holds transaction state.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        Kind.INT,
        "104857600",
        "segment.bytes of the topic that holds transaction state.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        Kind.BOOLEAN,
        "false",
        "Whether transactions may be left open for an outside coordinator.",
        refused={"true": "this version has no two-phase commit"},
        change=Change.READ_ONLY,
    ),
)

TRANSACTION_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
