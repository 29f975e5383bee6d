"""Every rule. From these the file for Prometheus, the page docs/reference/alerts.md and the alerts of `ropewalk alerts` are made.

What a reader could get wrong
    Thresholds are a beginning. Whoever runs a cluster copies the file for Prometheus and sets their own.
    A rule that nodes look at by themselves has only one node's figures: what is summed over nodes is for Prometheus alone, unless
    one node has all of it, as the coordinator of a group does of its lag.
"""

from typing import Final

from ropewalk.alerts.expressions import (
    Both,
    Compared,
    Condition,
    Either,
    Gathered,
    Gathering,
    Magnitude,
    Part,
    Predicted,
    Quantile,
    Quotient,
    Rate,
    Seen,
    Series,
    Sign,
    Vector,
)
from ropewalk.alerts.rules import Rule, RuleGroup, Scope, Severity
from ropewalk.base import metrics
from ropewalk.base.limits import CLOCK_DIFFERENCE_MS_MAX
from ropewalk.base.metrics import Metric

_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_DAY_S: Final = 86_400

OBJECTIVE: Final = 0.999
"""Of a node's Produce and Fetch requests these are to be served well, over 30 days."""


def _above(metric: Metric, limit: float) -> Compared:
    return Compared(Series(metric), Sign.ABOVE, limit)


def _is_set(metric: Metric) -> Compared:
    return Compared(Series(metric), Sign.EQUAL, 1)


def _slowest(metric: Metric, limit_s: float) -> Compared:
    """One in a hundred takes longer."""
    buckets = Rate(Series(metric, part=Part.BUCKET), 5 * _MINUTE_S)
    return Compared(Quantile(0.99, Gathered(Gathering.SUM, buckets, ("le", "instance"))), Sign.ABOVE, limit_s)


def _failing(window_s: int) -> Vector:
    def total(metric: Metric) -> Vector:
        return Gathered(Gathering.SUM, Rate(Series(metric), window_s), ("instance", "kind"))

    return Quotient(total(metrics.SERVED_BADLY), total(metrics.SERVED))


def _burning(factor: float, long_s: int, short_s: int) -> Condition:
    """The budget of errors is used up `factor` times as fast as it may be, for long, and still is."""
    limit = round(factor * (1 - OBJECTIVE), 6)
    return Both(Compared(_failing(long_s), Sign.ABOVE, limit), Compared(_failing(short_s), Sign.ABOVE, limit))


_CLUSTER: Final = RuleGroup(
    "ropewalk-cluster",
    "The cluster",
    (
        Rule(
            name="RopewalkControllerUnheard",
            condition=_above(metrics.CONTROLLER_HEARD, 6),
            severity=Severity.CRITICAL,
            summary="{instance} has not heard the controller, or the controller not the metadata's home, for {value} s: nothing about the cluster can change",
            why="Leaders go on to serve, and topics, leaders and replicas in sync cannot change. If a node fails meanwhile, its partitions have no leader.",
            remedy="`ropewalk cluster health` says who hears whom. Look at the node that decides, at the network between nodes, and at etcd where the metadata is there.",
        ),
        Rule(
            name="RopewalkTwoControllers",
            condition=Compared(Gathered(Gathering.SUM, Series(metrics.CONTROLLER_ACTIVE)), Sign.ABOVE, 1),
            for_s=_MINUTE_S,
            severity=Severity.CRITICAL,
            scope=Scope.PROMETHEUS,
            summary="{value} nodes say that they decide for the cluster",
            why="Only one of them can change anything; another does not know yet that it was replaced, and is cut off from the metadata's home.",
            remedy="`ropewalk cluster status` shows the epochs. The one with the lower epoch is to be stopped, or its connection mended.",
        ),
        Rule(
            name="RopewalkPartitionWithoutLeader",
            condition=_above(metrics.PARTITIONS_LEADERLESS, 0),
            for_s=5,
            severity=Severity.CRITICAL,
            scope=Scope.CLUSTER,
            summary="nobody leads {value} partitions; ropewalk cluster health names them",
            why="Nobody can write to these partitions or read from them.",
            remedy="Start the nodes that hold their replicas again. Where they are lost for good, `ropewalk cluster elect --unclean` names the copies that are left, and what would be lost with each.",
        ),
        Rule(
            name="RopewalkPartitionBelowMinimum",
            condition=_above(metrics.PARTITIONS_BELOW_MINIMUM, 0),
            for_s=5,
            severity=Severity.CRITICAL,
            scope=Scope.CLUSTER,
            summary="{value} partitions have fewer replicas in sync than min.insync.replicas, and refuse writes with acks=all",
            why="Producers with acks=all hear NOT_ENOUGH_REPLICAS and wait; readers are served.",
            remedy="Bring back the nodes that are out of service, or see why they do not keep up: `ropewalk cluster health` names topics and nodes.",
        ),
        Rule(
            name="RopewalkPartitionUnderReplicated",
            condition=Compared(
                Gathered(Gathering.SUM, Series(metrics.UNDER_REPLICATED), ("topic",)), Sign.ABOVE, 0
            ),
            for_s=2 * _MINUTE_S,
            severity=Severity.CRITICAL,
            summary="{topic} has {value} partitions with fewer replicas in sync than it should have",
            why="All is served, and the next failure may take a partition out of service.",
            remedy="A node is away or does not keep up: `ropewalk cluster health`, and `ropewalk_replica_lag_max` of each node.",
        ),
        Rule(
            name="RopewalkNodeFenced",
            condition=Compared(
                Gathered(Gathering.MAX, Series(metrics.NODES, (("state", "fenced"),))), Sign.ABOVE, 0
            ),
            for_s=5,
            severity=Severity.WARNING,
            scope=Scope.CLUSTER,
            summary="{value} nodes are out of service",
            why="Others lead what they led, with one copy less of everything.",
            remedy="See why the process ended or cannot be reached. A node that is to go for good is taken out with `ropewalk cluster remove`.",
        ),
        Rule(
            name="RopewalkNodeBehind",
            condition=_above(metrics.NODES_BEHIND, 0),
            severity=Severity.CRITICAL,
            scope=Scope.CLUSTER,
            summary="{value} nodes do not follow the metadata; ropewalk cluster health names them",
            why="Such a node answers its clients by what the cluster was: it may send them to leaders that are none any more.",
            remedy="Its journal says what it cannot read. If it does not come back by itself, start it again.",
        ),
        Rule(
            name="RopewalkNodeUnwell",
            condition=_above(metrics.NODES_UNWELL, 0),
            severity=Severity.WARNING,
            scope=Scope.CLUSTER,
            summary="{value} nodes say that something is wrong with them; ropewalk cluster health says what",
            why="Nodes tell the controller with their heartbeats what their own /healthz would say.",
            remedy="`ropewalk cluster health` has the words; `ropewalk doctor` asks each node.",
        ),
        Rule(
            name="RopewalkUpgradeUnfinished",
            condition=Compared(Quotient(Series(metrics.LEVEL_MAX), Series(metrics.LEVEL)), Sign.ABOVE, 1),
            for_s=_DAY_S,
            severity=Severity.WARNING,
            summary="{instance} could work at a higher level than the cluster does, for more than a day",
            why="What the newer release brought is not there yet, and a cluster of two releases is for the time of an upgrade only.",
            remedy="`ropewalk cluster upgrade status` says what holds it back.",
        ),
    ),
)

_NODES: Final = RuleGroup(
    "ropewalk-nodes",
    "Nodes",
    (
        Rule(
            name="RopewalkNotReady",
            condition=Either(Compared(Series(metrics.READY), Sign.EQUAL, 0), Compared(Seen(), Sign.EQUAL, 0)),
            for_s=_MINUTE_S,
            severity=Severity.CRITICAL,
            summary="{instance} does not take clients; /readyz says why",
            why="Clients that are connected to it wait or are sent away.",
            remedy="/readyz?verbose of the node lists every check. After a crash it may be recovering logs, which its journal says.",
        ),
        Rule(
            name="RopewalkMetadataParted",
            condition=_is_set(metrics.METADATA_PARTED),
            severity=Severity.CRITICAL,
            summary="the metadata was put back to an earlier state under {instance}, which is out of service until it is started again",
            why="What the node knows and what the cluster decides have parted; it serves nobody, so that it cannot do harm.",
            remedy="Start it again. If the metadata was restored on purpose, all nodes are to be started again.",
        ),
        Rule(
            name="RopewalkClock",
            condition=Compared(
                Magnitude(Series(metrics.CLOCK_DIFFERENCE)), Sign.ABOVE, CLOCK_DIFFERENCE_MS_MAX / 1000
            ),
            severity=Severity.WARNING,
            summary="the clocks of {instance} and of the controller differ by {value} s",
            why="Retention, delays of messages and logins go by clocks.",
            remedy="Let a time service set the clocks of all machines.",
        ),
        Rule(
            name="RopewalkLoopStalls",
            condition=_slowest(metrics.LOOP_DELAY, 0.05),
            for_s=10 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="the event loop of {instance} wakes {value} s late; every client waits as long",
            why="The node has one loop for all its clients: what stalls it delays everybody.",
            remedy="See whether its processor is busy (`process_cpu_seconds_total`), and whether others use the machine. More nodes share the load.",
        ),
        Rule(
            name="RopewalkDescriptors",
            condition=Compared(
                Quotient(Series(metrics.PROCESS_FILES), Series(metrics.PROCESS_FILES_MAX)), Sign.ABOVE, 0.8
            ),
            for_s=10 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="{instance} will soon be out of file descriptors",
            why="Without one nobody can connect, and no segment can be opened.",
            remedy="Raise the limit (`LimitNOFILE` of the unit), or see who opens so many connections: `ropewalk_connections`.",
        ),
        Rule(
            name="RopewalkCertificateEnds",
            condition=Compared(Series(metrics.CERTIFICATE_LEFT), Sign.BELOW, 7 * _DAY_S),
            severity=Severity.WARNING,
            summary="{file} on {instance} is good for {value} s more; after that nobody can connect by TLS",
            why="Clients and other nodes refuse a certificate that has ended.",
            remedy="Put a new certificate in its place; the node reads it again by itself.",
        ),
    ),
)

_DISKS: Final = RuleGroup(
    "ropewalk-disks",
    "Disks and logs",
    (
        Rule(
            name="RopewalkDiskFull",
            condition=_is_set(metrics.DISK_FULL),
            severity=Severity.CRITICAL,
            summary="the disk of {instance} is full: writes are refused until there is room",
            why="What is there can be read. Producers hear KAFKA_STORAGE_ERROR.",
            remedy="Shorten the retention of large topics or delete records: a reserve is kept back for that. Then give the node more room.",
        ),
        Rule(
            name="RopewalkDiskFilling",
            condition=Compared(Predicted(Series(metrics.DISK_FREE), 6 * _HOUR_S, _DAY_S), Sign.BELOW, 0),
            for_s=30 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="the disk of {instance} will be full within a day",
            why="It goes by the last six hours.",
            remedy="`ropewalk topic ls` shows sizes; shorten retention, add a node or give this one more room.",
        ),
        Rule(
            name="RopewalkRetentionBehind",
            condition=_above(metrics.RETENTION_USED, 1.5),
            for_s=_HOUR_S,
            severity=Severity.WARNING,
            summary="{instance} keeps more than retention allows by {by}",
            why="Retention takes whole segments, so some more is usual; half as much again is not.",
            remedy="A transaction that nobody ends, or a queue's oldest message, may hold the beginning of a log: see `ropewalk doctor`.",
        ),
        Rule(
            name="RopewalkSlowDisk",
            condition=_slowest(metrics.SYNC_TIME, 0.25),
            for_s=10 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="one sync in a hundred takes {value} s on {instance}",
            why="Producers wait for the disk with every acknowledged write.",
            remedy="See what else uses the disk. A node on a slow disk can be kept from leading with `ropewalk cluster maintenance`.",
        ),
        Rule(
            name="RopewalkPartitionDamaged",
            condition=Either(_above(metrics.PARTITIONS_DAMAGED, 0), _above(metrics.PARTITIONS_UNOPENED, 0)),
            severity=Severity.CRITICAL,
            summary="{instance} has partitions that it cannot serve whole; /healthz?verbose names them",
            why="A range of the log fails its checksums, or could not be opened for want of room. What is damaged is not given to anybody.",
            remedy="A copy is fetched again from another replica by itself. Where there is none, the range is lost: see the page about reliability.",
        ),
    ),
)

_CLIENTS: Final = RuleGroup(
    "ropewalk-clients",
    "What clients see",
    (
        Rule(
            name="RopewalkErrorBudgetFast",
            condition=_burning(14.4, _HOUR_S, 5 * _MINUTE_S),
            severity=Severity.CRITICAL,
            summary="{instance} fails {value} of its {kind} requests: a month's budget of errors would be gone in two days",
            why=f"The objective is that {OBJECTIVE:.1%} of Produce and Fetch requests are served well. Both the last hour and the last five minutes are far from it.",
            remedy="`ropewalk_request_errors_total` says which errors: KAFKA_STORAGE_ERROR is the disk, NOT_ENOUGH_REPLICAS the other nodes, REQUEST_TIMED_OUT either.",
        ),
        Rule(
            name="RopewalkErrorBudgetSlow",
            condition=_burning(6, 6 * _HOUR_S, 30 * _MINUTE_S),
            severity=Severity.WARNING,
            summary="{instance} fails {value} of its {kind} requests: a month's budget of errors would be gone in five days",
            why="As above, less and for longer: over six hours and over the last half hour.",
            remedy="As above.",
        ),
        Rule(
            name="RopewalkTransactionHanging",
            condition=_above(metrics.TRANSACTIONS_HANGING, 0),
            severity=Severity.WARNING,
            summary="readers of committed records wait in {value} partitions of {instance} for a transaction that nobody ends",
            why="Readers with read_committed get nothing beyond it, and retention cannot remove it.",
            remedy="`ropewalk txn hanging` finds it, `ropewalk txn abort` ends it.",
        ),
        Rule(
            name="RopewalkLag",
            condition=Compared(
                Gathered(Gathering.SUM, Series(metrics.GROUP_LAG), ("consumergroup", "topic")),
                Sign.ABOVE,
                10_000,
            ),
            for_s=5 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="{consumergroup} is {value} records behind in {topic}",
            why="Its consumers read more slowly than is written, or stand still.",
            remedy="`ropewalk group describe` shows members and partitions: one partition that stands still points to a record that its consumer cannot take.",
        ),
        Rule(
            name="RopewalkLagSeconds",
            condition=Compared(
                Gathered(Gathering.MAX, Series(metrics.GROUP_LAG_SECONDS), ("consumergroup", "topic")),
                Sign.ABOVE,
                10 * _MINUTE_S,
            ),
            for_s=5 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="{consumergroup} would next read in {topic} what is {value} s old",
            why="Seconds mean the same in a busy topic and in a quiet one, which numbers of records do not.",
            remedy="As for RopewalkLag.",
        ),
        Rule(
            name="RopewalkGroupWithoutMembers",
            condition=Both(
                Compared(Series(metrics.GROUP_MEMBERS), Sign.EQUAL, 0),
                Compared(
                    Gathered(Gathering.SUM, Series(metrics.GROUP_LAG), ("consumergroup",)), Sign.ABOVE, 0
                ),
                on=("consumergroup",),
            ),
            for_s=15 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="nobody reads for {consumergroup}, and records wait",
            why="All its consumers are gone, or cannot join.",
            remedy="Start them. A group that is not needed any more is removed with `ropewalk group delete`.",
        ),
    ),
)

_QUEUES: Final = RuleGroup(
    "ropewalk-queues",
    "Queues",
    (
        Rule(
            name="RopewalkQueueOld",
            condition=Compared(
                Gathered(Gathering.MAX, Series(metrics.QUEUE_OLDEST_AGE), ("queue",)), Sign.ABOVE, _HOUR_S
            ),
            for_s=10 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="the oldest message of {queue} was sent {value} s ago",
            why="Nobody takes it, or whoever does fails with it each time.",
            remedy="`ropewalk queue describe` shows what is visible and in flight; with a redrive policy such messages go to another queue.",
        ),
        Rule(
            name="RopewalkDeadLetters",
            condition=Compared(
                Gathered(Gathering.MAX, Series(metrics.QUEUE_DEAD), ("queue",)), Sign.ABOVE, 0
            ),
            for_s=_MINUTE_S,
            severity=Severity.WARNING,
            summary="{queue} holds dead letters",
            why="Messages that were received often enough in vain were put there, and wait for a person.",
            remedy="`ropewalk queue peek` shows them. When the cause is mended, `ropewalk queue redrive` gives them back.",
        ),
        Rule(
            name="RopewalkDeadTargetMissing",
            condition=Compared(
                Gathered(Gathering.MAX, Series(metrics.QUEUE_DEAD_TARGET_MISSING), ("queue",)), Sign.ABOVE, 0
            ),
            for_s=_MINUTE_S,
            severity=Severity.WARNING,
            summary="dead letters of {queue} have nowhere to go: the queue that should take them is not there",
            why="They stay where they are, out of sight of receivers, until there is somewhere to put them.",
            remedy="`ropewalk queue describe` names the missing queue: make it with `ropewalk queue create`, or change the redrive policy.",
        ),
        Rule(
            name="RopewalkQueueWindowFull",
            condition=Compared(
                Gathered(Gathering.MAX, Series(metrics.QUEUE_WINDOWS_FULL), ("queue",)), Sign.ABOVE, 0
            ),
            for_s=5 * _MINUTE_S,
            severity=Severity.WARNING,
            summary="messages of {queue} are not looked at until others are deleted",
            why="Its first 120,000 messages are delayed or of groups that are locked; what is behind them waits.",
            remedy="See which consumer keeps messages without deleting them; shorter delays help, too.",
        ),
    ),
)

GROUPS: Final = (_CLUSTER, _NODES, _DISKS, _CLIENTS, _QUEUES)
RULES: Final[tuple[Rule, ...]] = tuple(rule for group in GROUPS for rule in group.rules)
