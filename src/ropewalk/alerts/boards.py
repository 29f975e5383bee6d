"""Boards for Grafana: what to look at, in the order in which one would ask.

What a reader could get wrong
    A node tells only of what it leads or looks after. Boards sum over nodes, so that all of it is shown whichever node is chosen; the board of
    a node is the one that has a choice.
    `$__rate_interval` is Grafana's: a window that holds some scrapes.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base import metrics
from ropewalk.base.metrics import Kind, Metric

OF_NODE: Final = 'instance=~"$instance"'
"""What queries of a board with a choice of nodes are narrowed to."""

WINDOW: Final = "$__rate_interval"


class Curve(Struct, frozen=True):
    query: str
    legend: str
    """With the names of labels in double braces."""


class Panel(Struct, frozen=True):
    title: str
    unit: str
    """As Grafana names it."""
    curves: tuple[Curve, ...]
    is_number: bool = False
    """One large number instead of a course over time."""
    tells: str = ""
    """For whoever looks at it for the first time."""


class Board(Struct, frozen=True):
    name: str
    """As a word of a file's name and of `ropewalk generate grafana`."""
    title: str
    panels: tuple[Panel, ...]
    has_nodes: bool = False
    """Whether one chooses nodes."""


def _sum(metric: Metric, by: str = "", where: str = "") -> str:
    return f"sum({_said(metric, where)}){_by(by)}"


def _max(metric: Metric, by: str = "", where: str = "") -> str:
    return f"max({_said(metric, where)}){_by(by)}"


def _rate(metric: Metric, by: str = "", where: str = "", part: str = "") -> str:
    return f"sum(rate({_said(metric, where, part)}[{WINDOW}])){_by(by)}"


def _slowest(metric: Metric, by: str = "", where: str = "") -> str:
    """99 of 100 are quicker."""
    labels = ", ".join(("le", *filter(None, (by,))))
    return f"histogram_quantile(0.99, {_rate(metric, labels, where, 'bucket')})"


def _said(metric: Metric, where: str = "", part: str = "") -> str:
    assert (metric.kind is Kind.HISTOGRAM) == bool(part), f"{metric.name} and its part {part!r}"
    name = f"{metric.name}_{part}" if part else metric.name
    return f"{name}{{{where}}}" if where else name


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""


def _one(title: str, unit: str, query: str, legend: str, *, tells: str = "") -> Panel:
    return Panel(title, unit, (Curve(query, legend),), tells=tells)


def _number(title: str, unit: str, query: str, legend: str, *, tells: str = "") -> Panel:
    return Panel(title, unit, (Curve(query, legend),), is_number=True, tells=tells)


def _served_well(where: str, by: str) -> str:
    return f"1 - {_rate(metrics.SERVED_BADLY, by, where)} / {_rate(metrics.SERVED, by, where)}"


_CLUSTER: Final = Board(
    "cluster",
    "Ropewalk: cluster",
    (
        _number("Brokers in service", "short", _max(metrics.BROKERS), "brokers"),
        _number("Without leader", "short", _max(metrics.PARTITIONS_LEADERLESS), "partitions"),
        _number("Below minimum", "short", _max(metrics.PARTITIONS_BELOW_MINIMUM), "partitions"),
        _number("Under-replicated", "short", _sum(metrics.UNDER_REPLICATED), "partitions"),
        _number("Nodes unwell", "short", _max(metrics.NODES_UNWELL), "nodes"),
        _number("Level", "short", _max(metrics.LEVEL), "level"),
        _one("Ready", "short", "min(ropewalk_ready) by (instance)", "{{instance}}"),
        _one("Nodes by state", "short", _max(metrics.NODES, "state"), "{{state}}"),
        _one("Age of what nodes know", "s", _max(metrics.CONTROLLER_HEARD, "instance"), "{{instance}}"),
        _one(
            "Served well",
            "percentunit",
            _served_well("", "kind"),
            "{{kind}}",
            tells="Requests in which nothing failed for a reason of the cluster.",
        ),
        _one("Records per second", "cps", _rate(metrics.CURRENT_OFFSET, "topic"), "{{topic}}"),
        Panel(
            "Network",
            "Bps",
            (
                Curve(_rate(metrics.RECEIVED_BYTES), "in"),
                Curve(_rate(metrics.SENT_BYTES), "out"),
            ),
        ),
        _one("Time to acknowledge, 99 %", "s", _slowest(metrics.COMMIT_TIME), "all"),
        _one("Age of records when read, 99 %", "s", _slowest(metrics.END_TO_END_TIME), "all"),
        _one("Alerts of nodes", "short", _sum(metrics.ALERTS, "alert, state"), "{{alert}} {{state}}"),
        _one("Partitions led", "short", _sum(metrics.PARTITIONS, "instance"), "{{instance}}"),
        _one("Clock differences", "s", _max(metrics.CLOCK_DIFFERENCE, "instance"), "{{instance}}"),
        _one("Replica lag", "short", _max(metrics.REPLICA_LAG_MAX, "instance"), "{{instance}}"),
    ),
)

_NODE: Final = Board(
    "node",
    "Ropewalk: node",
    (
        _number("Ready", "short", _said(metrics.READY, OF_NODE), "{{instance}}"),
        _number("Partitions", "short", _sum(metrics.PARTITIONS, where=OF_NODE), "partitions"),
        _number("Connections", "short", _sum(metrics.CONNECTIONS, "door", OF_NODE), "{{door}}"),
        _number("Free disk", "bytes", _said(metrics.DISK_FREE, OF_NODE), "{{instance}}"),
        _number("Log size", "bytes", _sum(metrics.LOG_BYTES, where=OF_NODE), "bytes"),
        _number(
            "File descriptors",
            "percentunit",
            f"{_said(metrics.PROCESS_FILES, OF_NODE)} / {_said(metrics.PROCESS_FILES_MAX, OF_NODE)}",
            "{{instance}}",
        ),
        _one(
            "Requests per second",
            "reqps",
            _rate(metrics.REQUEST_TIME, "api", OF_NODE, "count"),
            "{{api}}",
        ),
        Panel(
            "Request time, 99 %",
            "s",
            (
                Curve(_slowest(metrics.REQUEST_TIME, "api", OF_NODE), "{{api}}"),
                Curve(_slowest(metrics.REQUEST_WORK, "api", OF_NODE), "{{api}} without waiting"),
            ),
            tells="A fetch may wait for records on purpose; without that wait it is told as well.",
        ),
        _one(
            "Errors per second",
            "short",
            _rate(metrics.REQUEST_ERRORS, "api, error", OF_NODE),
            "{{api}} {{error}}",
        ),
        Panel(
            "Time to acknowledge and age when read, 99 %",
            "s",
            (
                Curve(_slowest(metrics.COMMIT_TIME, where=OF_NODE), "acknowledge"),
                Curve(_slowest(metrics.END_TO_END_TIME, where=OF_NODE), "age when read"),
            ),
        ),
        _one("Served well", "percentunit", _served_well(OF_NODE, "kind"), "{{kind}}"),
        Panel(
            "Network",
            "Bps",
            (
                Curve(_rate(metrics.RECEIVED_BYTES, where=OF_NODE), "in"),
                Curve(_rate(metrics.SENT_BYTES, where=OF_NODE), "out"),
            ),
        ),
        _one("Processor", "percentunit", _rate(metrics.PROCESS_CPU, "instance", OF_NODE), "{{instance}}"),
        Panel(
            "Memory",
            "bytes",
            (
                Curve(_said(metrics.PROCESS_MEMORY, OF_NODE), "{{instance}}"),
                Curve(_said(metrics.BUFFER_BYTES, OF_NODE), "buffers {{instance}}"),
            ),
        ),
        Panel(
            "Loop delay and sync time, 99 %",
            "s",
            (
                Curve(_slowest(metrics.LOOP_DELAY, where=OF_NODE), "loop"),
                Curve(_slowest(metrics.SYNC_TIME, where=OF_NODE), "sync"),
            ),
        ),
        Panel(
            "Disk",
            "Bps",
            (
                Curve(_rate(metrics.DISK_WRITTEN, where=OF_NODE), "written"),
                Curve(_rate(metrics.DISK_READ, where=OF_NODE), "read"),
            ),
        ),
        _one(
            "Retention used",
            "percentunit",
            _max(metrics.RETENTION_USED, "by, instance", OF_NODE),
            "{{by}} {{instance}}",
        ),
    ),
    has_nodes=True,
)

_TOPICS: Final = Board(
    "topics",
    "Ropewalk: topics and groups",
    (
        _number("Topics", "short", "count(sum(kafka_topic_partitions) by (topic))", "topics"),
        _number("Partitions", "short", _sum(metrics.TOPIC_PARTITIONS), "partitions"),
        _number("Groups", "short", _sum(metrics.GROUPS, "state"), "{{state}}"),
        _number("Furthest behind", "s", _max(metrics.GROUP_LAG_SECONDS), "seconds"),
        _one(
            "Lag in records",
            "short",
            _sum(metrics.GROUP_LAG, "consumergroup, topic"),
            "{{consumergroup}} {{topic}}",
        ),
        _one(
            "Lag in seconds",
            "s",
            _max(metrics.GROUP_LAG_SECONDS, "consumergroup, topic"),
            "{{consumergroup}} {{topic}}",
            tells="How old what a group would read next is.",
        ),
        _one("Members", "short", _sum(metrics.GROUP_MEMBERS, "consumergroup"), "{{consumergroup}}"),
        _one("Records per second", "cps", _rate(metrics.CURRENT_OFFSET, "topic"), "{{topic}}"),
        _one("Bytes per second", "Bps", _rate(metrics.TOPIC_APPENDED, "topic"), "{{topic}}"),
        _one(
            "Committed per second", "cps", _rate(metrics.GROUP_OFFSET, "consumergroup"), "{{consumergroup}}"
        ),
        _one("Size", "bytes", _sum(metrics.PARTITION_BYTES, "topic"), "{{topic}}"),
        _one(
            "Rebalances",
            "short",
            f"sum(delta({metrics.GROUP_GENERATION.name}[{WINDOW}])) by (consumergroup)",
            "{{consumergroup}}",
        ),
        _one("Transactions open", "short", _sum(metrics.TRANSACTIONS_OPEN), "transactions"),
    ),
)

_QUEUES: Final = Board(
    "queues",
    "Ropewalk: queues",
    (
        _number("Visible", "short", _sum(metrics.QUEUE_MESSAGES, where='state="visible"'), "messages"),
        _number("In flight", "short", _sum(metrics.QUEUE_MESSAGES, where='state="inflight"'), "messages"),
        _number("Delayed", "short", _sum(metrics.QUEUE_MESSAGES, where='state="delayed"'), "messages"),
        _number("Dead letters", "short", _sum(metrics.QUEUE_DEAD), "messages"),
        _number("Oldest", "s", _max(metrics.QUEUE_OLDEST_AGE), "seconds"),
        _one("Messages", "short", _sum(metrics.QUEUE_MESSAGES, "queue, state"), "{{queue}} {{state}}"),
        _one("Age of the oldest message", "s", _max(metrics.QUEUE_OLDEST_AGE, "queue"), "{{queue}}"),
        _one("Received per second", "cps", _rate(metrics.QUEUE_RECEIVED, "queue"), "{{queue}}"),
        _one("Received again per second", "cps", _rate(metrics.QUEUE_REDELIVERED, "queue"), "{{queue}}"),
        _one("Empty receives per second", "cps", _rate(metrics.QUEUE_EMPTY_RECEIVES, "queue"), "{{queue}}"),
        _one("Dead letters held", "short", _sum(metrics.QUEUE_DEAD, "queue"), "{{queue}}"),
        _one("Dead letters moved per second", "cps", _rate(metrics.QUEUE_DEAD_MOVED), "moved"),
        _one("Receives that wait", "short", _sum(metrics.QUEUE_POLLS_WAITING, "queue"), "{{queue}}"),
        _one("Deleted behind an older one", "short", _sum(metrics.QUEUE_HOLES, "queue"), "{{queue}}"),
        _one("Log that cannot be freed", "bytes", _sum(metrics.QUEUE_FLOOR_LAG, "queue"), "{{queue}}"),
    ),
)

BOARDS: Final = (_CLUSTER, _NODE, _TOPICS, _QUEUES)
