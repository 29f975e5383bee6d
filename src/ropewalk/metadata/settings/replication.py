"""Broker settings of how partitions are copied and who leads them, under Kafka's names."""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import LONG_MAX, Change, Kind, Setting

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""What Kafka's configurations call the only selector there is beside the leader."""

_CATALOGUE: Final = (
    Setting(
        "replica.lag.time.max.ms",
        Kind.LONG,
        "30000",
        "How long a follower may be behind and stay in sync.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "replica.fetch.max.bytes",
        Kind.INT,
        "1048576",
        "Bytes a follower asks of one partition at a time.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "replica.fetch.response.max.bytes",
        Kind.INT,
        "10485760",
        "Bytes a follower asks of one leader at a time, over all partitions.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "replica.fetch.min.bytes",
        Kind.INT,
        "1",
        "Bytes that a leader waits for before it answers a follower's fetch.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "replica.fetch.wait.max.ms",
        Kind.INT,
        "500",
        "How long a leader may hold a follower's empty fetch.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "replica.fetch.backoff.ms",
        Kind.INT,
        "1000",
        "How long a follower rests after a fetch that failed.",
        minimum=0,
        change=Change.READ_ONLY,
    ),
    Setting(
        "replica.selector.class",
        Kind.STRING,
        None,
        "Which replica a consumer that names its rack is sent to. Unless set, the leader; with Kafka's RackAwareReplicaSelector, an "
        "in-sync replica in the consumer's rack.",
        choices=(RACK_AWARE_SELECTOR,),
        change=Change.READ_ONLY,
    ),
    Setting(
        "leader.replication.throttled.rate",
        Kind.LONG,
        str(LONG_MAX),
        "Bytes per second that a broker sends to replicas that are not in sync, whichever partitions they are of.",
        minimum=0,
        change=Change.PER_BROKER,
    ),
    Setting(
        "follower.replication.throttled.rate",
        Kind.LONG,
        str(LONG_MAX),
        "Bytes per second that a broker copies for replicas that are behind, whichever partitions they are of.",
        minimum=0,
        change=Change.PER_BROKER,
    ),
    Setting(
        "auto.leader.rebalance.enable",
        Kind.BOOLEAN,
        "true",
        "Whether leaders are moved back to the first replica of their partition.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "leader.imbalance.check.interval.seconds",
        Kind.LONG,
        "300",
        "How often it is examined whether leaders should be moved back.",
        minimum=1,
        change=Change.READ_ONLY,
    ),
    Setting(
        "controlled.shutdown.enable",
        Kind.BOOLEAN,
        "true",
        "Whether a stopping broker hands its partitions over first.",
        change=Change.READ_ONLY,
    ),
)

REPLICATION_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
