"""Broker settings of Kafka that this version knows and does not act on.

They are here so that a configuration written for Kafka is checked rather than rejected, and so that tools find
the entries they look for. Each says in its description that it has no effect. When a part that acts on one of
them is built, the entry moves to `broker.py`.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Change, Kind, Setting

_ROWS: Final[tuple[tuple[str, Kind, str | None, int | None, str], ...]] = (
    # Name, type, default, minimum, and what it means to Kafka.
    # Connections and requests.
    (
        "max.connections.per.ip.overrides",
        Kind.STRING,
        "",
        None,
        "Limits for single addresses, as address:count pairs.",
    ),
    ("max.connection.creation.rate", Kind.INT, "2147483647", 0, "Connections accepted in a second."),
    (
        "queued.max.request.bytes",
        Kind.LONG,
        "-1",
        None,
        "Bytes of unanswered requests before reading pauses; -1 for the node's own budget.",
    ),
    ("queued.max.requests", Kind.INT, "500", 1, "Unanswered requests before reading pauses."),
    ("request.timeout.ms", Kind.INT, "30000", None, "How long a request to another node may take."),
    (
        "socket.listen.backlog.size",
        Kind.INT,
        "50",
        1,
        "Connections the operating system may hold before they are accepted.",
    ),
    (
        "socket.receive.buffer.bytes",
        Kind.INT,
        "102400",
        -1,
        "The operating system's receive buffer of a connection; -1 for its own choice.",
    ),
    (
        "socket.send.buffer.bytes",
        Kind.INT,
        "102400",
        -1,
        "The operating system's send buffer of a connection; -1 for its own choice.",
    ),
    # Transactions: each is aborted, and each id forgotten, when it is due.
    (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Kind.INT,
        "10000",
        1,
        "How often transactions are looked for that have taken too long.",
    ),
    (
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Kind.INT,
        "3600000",
        1,
        "How often transactional ids are looked for that have expired.",
    ),
    # Groups and their offsets.
    (
        "offsets.topic.compression.codec",
        Kind.INT,
        "0",
        None,
        "Compression of the topic that holds committed offsets.",
    ),
    (
        "offsets.load.buffer.size",
        Kind.INT,
        "5242880",
        1,
        "Bytes read at a time when committed offsets are loaded.",
    ),
    # The log in the background.
    (
        "log.flush.offset.checkpoint.interval.ms",
        Kind.INT,
        "60000",
        0,
        "How often Kafka records recovery points; here it is at least once a second while there are writes.",
    ),
    (
        "log.flush.start.offset.checkpoint.interval.ms",
        Kind.INT,
        "60000",
        0,
        "How often Kafka records log start offsets; here it is before they are answered.",
    ),
    ("log.cleaner.enable", Kind.BOOLEAN, "true", None, "Whether compaction runs."),
    ("log.cleaner.threads", Kind.INT, "1", 0, "Threads that compact."),
    (
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        "134217728",
        None,
        "Memory the compactor may use for keys.",
    ),
    (
        "log.cleaner.io.max.bytes.per.second",
        Kind.DOUBLE,
        "1.7976931348623157E308",
        None,
        "How fast the compactor may read and write.",
    ),
    # Between brokers.
    ("num.replica.fetchers", Kind.INT, "1", 1, "Connections over which a follower copies from one leader."),
    # Kafka's threads, which have no counterpart here.
    ("num.network.threads", Kind.INT, "3", 1, "Threads that read requests."),
    ("num.io.threads", Kind.INT, "8", 1, "Threads that answer requests."),
    ("background.threads", Kind.INT, "10", 1, "Threads for background work."),
    ("num.recovery.threads.per.data.dir", Kind.INT, "2", 1, "Threads that recover logs at start."),
)

INHERITED_SETTINGS: Final[Mapping[str, Setting]] = {
    name: Setting(
        name,
        kind,
        default,
        documentation,
        minimum=minimum,
        change=Change.READ_ONLY,
        without_effect=True,
    )
    for name, kind, default, minimum, documentation in _ROWS
}
