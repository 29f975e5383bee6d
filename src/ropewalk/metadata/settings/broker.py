"""The catalogue of broker settings.

Eleven kinds make it up: settings of the node itself, listed here; those of alerts; those of TLS; those of OAuth; those of replication; those of growth; those of transactions; those of queues; those of rights; defaults of topics, derived from the topic
catalogue; and settings that Kafka has and this version does not act on. Most are read when the node starts and
cannot be changed while it runs.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.alerts import ALERT_SETTINGS
from ropewalk.metadata.settings.features import FEATURE_SETTINGS
from ropewalk.metadata.settings.inherited import INHERITED_SETTINGS
from ropewalk.metadata.settings.oauth import OAUTH_SETTINGS
from ropewalk.metadata.settings.queues import QUEUE_SETTINGS
from ropewalk.metadata.settings.replication import REPLICATION_SETTINGS
from ropewalk.metadata.settings.rights import RIGHTS_SETTINGS
from ropewalk.metadata.settings.scaling import SCALING_SETTINGS
from ropewalk.metadata.settings.setting import Change, Kind, Setting
from ropewalk.metadata.settings.tls import TLS_SETTINGS
from ropewalk.metadata.settings.topic_defaults import TOPIC_DEFAULT_SETTINGS
from ropewalk.metadata.settings.transactions import TRANSACTION_SETTINGS

_CATALOGUE: Final = (
    # Who this node is and where it is reached. The node fills these in from its own configuration.
    Setting(
        "node.id",
        Kind.INT,
        "0",
        "The number of this node in its cluster.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "broker.id",
        Kind.INT,
        "0",
        "Kafka's former name of node.id; always the same value.",
        minimum=-1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "broker.rack",
        Kind.STRING,
        None,
        "Where this broker stands; replicas of a partition are spread over racks.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "process.roles",
        Kind.LIST,
        "broker,controller",
        "The parts this node plays.",
        choices=("broker", "controller"),
        change=Change.READ_ONLY,
    ),
    Setting(
        "listeners",
        Kind.LIST,
        "PLAINTEXT://127.0.0.1:9092",
        "Where Kafka clients connect, as NAME://HOST:PORT each. Instead of it kafka.listen names one address.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "advertised.listeners",
        Kind.LIST,
        None,
        "The NAME://HOST:PORT that clients of each listener are told to use, where it differs from the one listened on.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "listener.security.protocol.map",
        Kind.STRING,
        "PLAINTEXT:PLAINTEXT",
        "The security protocol of each listener, as NAME:PROTOCOL; a protocol's own name stands for itself.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "inter.broker.listener.name",
        Kind.STRING,
        None,
        "The listener brokers use among themselves.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "inter.broker.protocol.version",
        Kind.STRING,
        "4.4",
        "The protocol level tools may assume; some switch features on by it.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "log.dir",
        Kind.LIST,
        "./ropewalk-data",
        "The directory that holds this node's data.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "log.dirs", Kind.LIST, None, "The directories that hold this node's data.", change=Change.READ_ONLY
    ),
    # Topics.
    Setting(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        "true",
        "Whether a topic is created when a client first asks for it.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "num.partitions", Kind.INT, "1", "Partitions of a topic whose creator named no number.", minimum=1
    ),
    Setting(
        "default.replication.factor",
        Kind.INT,
        None,
        "Replicas of a topic whose creator named no number. Unless set, three, or as many as there are brokers.",
        minimum=1,
    ),
    Setting(
        "delete.topic.enable", Kind.BOOLEAN, "true", "Whether topics may be deleted.", change=Change.READ_ONLY
    ),
    Setting(
        "max.broker.partitions",
        Kind.INT,
        "20000",
        "Replicas of partitions that a broker carries on average; a topic that would exceed it is not made. Each takes some "
        "kilobytes of memory, and clients can make topics by asking about them.",
        minimum=1,
    ),
    # Connections and requests.
    Setting(
        "socket.request.max.bytes",
        Kind.INT,
        "104857600",
        "The largest request that is read; a larger one ends its connection.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "connections.max.idle.ms",
        Kind.LONG,
        "600000",
        "How long a connection may be silent before it is closed.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.enabled.mechanisms",
        Kind.LIST,
        "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "Ways in which clients of a SASL listener may say who they are. All but OAUTHBEARER, which takes tokens, compare with the same credentials; "
        "none is offered where others could listen, which is without TLS from another machine.",
        choices=("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER"),
        change=Change.READ_ONLY,
    ),
    Setting(
        "connections.max.reauth.ms",
        Kind.LONG,
        "0",
        "How long a login lasts before the client must log in again on the same connection; 0: as long as the connection.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "connection.failed.authentication.delay.ms",
        Kind.INT,
        "100",
        "How long a failed login waits for its answer: whoever tries passwords has as many tries as this allows, for each connection.",
        minimum=0,
        maximum=60_000,
        change=Change.READ_ONLY,
    ),
    Setting(
        "max.connections",
        Kind.INT,
        "2147483647",
        "Connections this node accepts at one time.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "max.connections.per.ip",
        Kind.INT,
        "2147483647",
        "Connections this node accepts from one address at one time.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "fetch.max.bytes",
        Kind.INT,
        "57671680",
        "The most bytes that one fetch is answered with.",
        minimum=1024,
        change=Change.READ_ONLY,
    ),
    Setting(
        "max.incremental.fetch.session.cache.slots",
        Kind.INT,
        "1000",
        "Fetch sessions kept at one time; a consumer without one names all its partitions in every fetch.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "max.request.partition.size.limit",
        Kind.INT,
        "2000",
        "Partitions that one DescribeTopicPartitions answers at most.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    # Groups and their offsets.
    Setting(
        "group.min.session.timeout.ms",
        Kind.INT,
        "6000",
        "The shortest session timeout a member may ask for.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.max.session.timeout.ms",
        Kind.INT,
        "1800000",
        "The longest session timeout a member may ask for.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        "3000",
        "How long a new group waits for more members before its first assignment.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.max.size",
        Kind.INT,
        "2147483647",
        "Members a group may have.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.consumer.session.timeout.ms",
        Kind.INT,
        "45000",
        "When a silent member of the consumer protocol (KIP-848) is given up.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.consumer.heartbeat.interval.ms",
        Kind.INT,
        "5000",
        "How often members of the consumer protocol are told to be heard from.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.consumer.max.size",
        Kind.INT,
        "2147483647",
        "Members a group may have whose assignments are made by the broker.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.consumer.assignors",
        Kind.LIST,
        "uniform,range,sticky",
        "Ways in which the broker can make assignments; the first is for groups whose members ask for none.",
        choices=("uniform", "range", "sticky"),
        change=Change.READ_ONLY,
    ),
    Setting(
        "group.consumer.migration.policy",
        Kind.STRING,
        "bidirectional",
        "Whether a group with members goes over from the classic to the consumer protocol, and back.",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        change=Change.READ_ONLY,
    ),
    Setting(
        "offset.metadata.max.bytes",
        Kind.INT,
        "4096",
        "The longest note a client may commit beside an offset.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "offsets.commit.timeout.ms",
        Kind.INT,
        "5000",
        "How long a commit may wait for its replicas.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "offsets.retention.minutes",
        Kind.INT,
        "10080",
        "How long the offsets of an empty group are kept.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "offsets.retention.check.interval.ms",
        Kind.LONG,
        "600000",
        "How often expired offsets are looked for.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "offsets.topic.num.partitions",
        Kind.INT,
        "50",
        "Partitions of the topic that holds committed offsets.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "offsets.topic.replication.factor",
        Kind.SHORT,
        "3",
        "Replicas of the topic that holds committed offsets.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "offsets.topic.segment.bytes",
        Kind.INT,
        "104857600",
        "segment.bytes of the topic that holds committed offsets.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    # The log in the background.
    Setting(
        "log.retention.check.interval.ms",
        Kind.LONG,
        "300000",
        "How often segments are examined for removal.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "log.cleaner.backoff.ms",
        Kind.LONG,
        "15000",
        "How long compaction rests when there is nothing to compact.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
)

BROKER_SETTINGS: Final[Mapping[str, Setting]] = {
    **{setting.name: setting for setting in _CATALOGUE},
    **TLS_SETTINGS,
    **OAUTH_SETTINGS,
    **REPLICATION_SETTINGS,
    **SCALING_SETTINGS,
    **ALERT_SETTINGS,
    **FEATURE_SETTINGS,
    **TRANSACTION_SETTINGS,
    **QUEUE_SETTINGS,
    **RIGHTS_SETTINGS,
    **TOPIC_DEFAULT_SETTINGS,
    **INHERITED_SETTINGS,
}

AGREED_SETTINGS: Final = tuple(setting.name for setting in BROKER_SETTINGS.values() if setting.agreed)
"""Those of which the cluster keeps one value, whatever the configuration of a single node says."""
