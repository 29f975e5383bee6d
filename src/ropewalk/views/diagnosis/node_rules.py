"""Rules about what nodes tell of themselves in figures: disks, logs, time, clients, queues."""

from collections.abc import Callable, Iterator
from typing import Final

from ropewalk.base import metrics
from ropewalk.base.limits import CLOCK_DIFFERENCE_MS_MAX
from ropewalk.base.metrics import Metric
from ropewalk.views.diagnosis.facts import Directory, Facts
from ropewalk.views.diagnosis.figures import Figures
from ropewalk.views.diagnosis.rule import Rule, Sighting, Verdict

FREE_BYTES_LOW: Final = 1 << 30
_FREE_SHARE_LOW: Final = 0.1
_DAY_S: Final = 86_400
_CERTIFICATE_DAYS_MIN: Final = 7
_CLOCK_S_MAX: Final = CLOCK_DIFFERENCE_MS_MAX / 1000
_STALL_S: Final = 0.05
_SYNC_S: Final = 0.25
_SHARE_SLOW: Final = 0.01
_MEASURED_MIN: Final = 1_000
"""Of fewer a share says nothing: a start alone stalls the loop once or twice."""
_FILES_SHARE_MAX: Final = 0.8
_BUFFERS_SHARE_MAX: Final = 0.9
_RETENTION_MAX: Final = 1.5
_BAD_SHARE_MAX: Final = 0.001
_QUEUE_AGE_S_MAX: Final = 3_600

Look = Callable[[Facts], Iterator[Sighting]]


def _each(see: Callable[[Figures], str | None]) -> Look:
    """What is seen in the figures of any one node."""

    def look(facts: Facts) -> Iterator[Sighting]:
        for node in facts.nodes:
            what = None if node.figures is None else see(node.figures)
            if what is not None:
                yield Sighting(node.where, what)

    return look


def _above(metric: Metric, limit: float, text: str) -> Look:
    def see(figures: Figures) -> str | None:
        value = figures.value(metric)
        return text.format(value=f"{value:,.12g}") if value > limit else None

    return _each(see)


def _slow(metric: Metric, bound_s: float, text: str) -> Look:
    def see(figures: Figures) -> str | None:
        share = figures.share_above(metric, bound_s)
        if figures.count(metric) < _MEASURED_MIN or share <= _SHARE_SLOW:
            return None
        return text.format(share=f"{share:.1%}")

    return _each(see)


def _of_queues(metric: Metric, limit: float, text: str) -> Look:
    """The largest of all nodes, for each queue."""

    def look(facts: Facts) -> Iterator[Sighting]:
        found: dict[str, float] = {}
        for node in facts.nodes:
            for labels, value in [] if node.figures is None else node.figures.rows(metric):
                queue = labels.get("queue", "")
                found[queue] = max(value, found.get(queue, value))
        for queue, value in sorted(found.items()):
            if value > limit:
                yield Sighting(queue, text.format(value=f"{value:,.0f}"))

    return look


def _unread_figures(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        if node.figures_problem is not None:
            yield Sighting(f"{node.where} figures", node.figures_problem)


def _not_ready(figures: Figures) -> str | None:
    is_down = figures.has(metrics.READY) and figures.value(metrics.READY) == 0
    return "is not ready; /readyz?verbose says why" if is_down else None


def _low_disk(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        for each in node.directories:
            if each.error is None and _is_low(each):
                yield Sighting(f"{node.where} directory", f"{each.path}: {room(each)}")


def _failed_directory(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        for each in node.directories:
            if each.error is not None:
                yield Sighting(f"{node.where} directory", f"{each.path}: {each.error}".lstrip(": "))


def _open_directory(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        for each in node.directories:
            if each.is_open_to_others:
                yield Sighting(f"{node.where} directory: data directory", others_may_look(each.path))


def _many_syncs(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        for each in node.directories:
            if each.file_system is not None and not each.syncs_at_once:
                yield Sighting(f"{node.where} directory: file system", one_by_one(each.file_system))


def _retention(figures: Figures) -> str | None:
    worst = max(figures.rows(metrics.RETENTION_USED), key=lambda each: each[1], default=None)
    if worst is None or worst[1] <= _RETENTION_MAX:
        return None
    return f"keeps {worst[1]:.1f} times what retention allows by {worst[0].get('by', 'its settings')}"


def _clock(figures: Figures) -> str | None:
    difference = figures.value(metrics.CLOCK_DIFFERENCE)
    return (
        f"its clock differs from the controller's by {difference:.1f} s"
        if abs(difference) > _CLOCK_S_MAX
        else None
    )


def _certificates(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        for labels, left_s in [] if node.figures is None else node.figures.rows(metrics.CERTIFICATE_LEFT):
            if left_s < _CERTIFICATE_DAYS_MIN * _DAY_S:
                what = f"is good for {left_s / _DAY_S:.1f} more days" if left_s > 0 else "has ended"
                yield Sighting(f"{node.where} {labels.get('file', 'certificate')}", what)


def _files(figures: Figures) -> str | None:
    most = figures.value(metrics.PROCESS_FILES_MAX)
    used = figures.value(metrics.PROCESS_FILES)
    return f"{used:.0f} of {most:.0f} files are open" if most and used > _FILES_SHARE_MAX * most else None


def _buffers(figures: Figures) -> str | None:
    most = figures.value(metrics.BUFFER_BYTES_LIMIT)
    used = figures.value(metrics.BUFFER_BYTES)
    return (
        f"{used / most:.0%} of its buffers are in use" if most and used > _BUFFERS_SHARE_MAX * most else None
    )


def _served_badly(figures: Figures) -> str | None:
    served, badly = figures.value(metrics.SERVED), figures.value(metrics.SERVED_BADLY)
    if served < _MEASURED_MIN or badly <= _BAD_SHARE_MAX * served:
        return None
    return f"failed {badly / served:.2%} of its Produce and Fetch requests since it began"


def _logins(figures: Figures) -> str | None:
    failed, proved = figures.value(metrics.LOGINS_FAILED), figures.value(metrics.LOGINS)
    return f"refused {failed:.0f} logins and took {proved:.0f}" if failed > proved else None


def _notices(figures: Figures) -> str | None:
    lost = sum(
        value for labels, value in figures.rows(metrics.ALERT_NOTICES) if labels.get("outcome") == "dropped"
    )
    return f"{lost:.0f} notices of alerts were given up" if lost else None


def room(directory: Directory) -> str:
    return f"{directory.usable_bytes / 2**30:.1f} GiB of {directory.total_bytes / 2**30:.1f} GiB free"


def others_may_look(path: str) -> str:
    return f"others than its owner may look into {path}, where every record is; `chmod 700 {path}`"


def one_by_one(file_system: str) -> str:
    return f"{file_system}: every file is synced by itself, which many partitions feel"


def _is_low(directory: Directory) -> bool:
    return directory.total_bytes > 0 and (
        directory.usable_bytes < FREE_BYTES_LOW
        or directory.usable_bytes < _FREE_SHARE_LOW * directory.total_bytes
    )


_HEALTH: Final = (
    Rule(
        name="figures-unread",
        verdict=Verdict.ODD,
        sees="The figures of a node could not be read at its HTTP port.",
        why="Rules that look at figures say nothing of this node, and neither does Prometheus from here.",
        command="open http.listen to whoever watches, or run it again on the node's machine",
        page="operating/monitoring.md#who-may-look",
        look=_unread_figures,
    ),
    Rule(
        name="node-not-ready",
        verdict=Verdict.WRONG,
        sees="A node says that it is not ready.",
        why="Clients that are connected to it wait or are sent away.",
        command="ask /readyz?verbose of the node",
        page="reference/alerts.md#ropewalknotready",
        look=_each(_not_ready),
    ),
    Rule(
        name="metadata-parted",
        verdict=Verdict.WRONG,
        sees="The metadata was put back to an earlier state under a node.",
        why="It serves nobody until it is started again, so that it cannot do harm.",
        command="start the node again; after a restore on purpose all of them",
        page="reference/alerts.md#ropewalkmetadataparted",
        look=_above(metrics.METADATA_PARTED, 0, "the metadata was put back under it"),
    ),
    Rule(
        name="clock-differs",
        verdict=Verdict.WRONG,
        sees=f"The clock of a node differs from the controller's by more than {_CLOCK_S_MAX:g} s.",
        why="Retention, delays of messages and logins go by clocks.",
        command="let a time service set the clocks of all machines",
        page="reference/alerts.md#ropewalkclock",
        look=_each(_clock),
    ),
    Rule(
        name="loop-stalls",
        verdict=Verdict.ODD,
        sees=f"Since a node began its loop woke more than {_STALL_S * 1000:.0f} ms late in more than one case of a hundred.",
        why="One loop serves all clients of a node: what stalls it delays everybody.",
        command="see whether the machine is busy with something else; more nodes share the load",
        page="operating/monitoring.md#a-slow-node",
        look=_slow(metrics.LOOP_DELAY, _STALL_S, "its loop is late in {share} of cases"),
    ),
    Rule(
        name="descriptors-used",
        verdict=Verdict.ODD,
        sees="A node has opened more than four fifths of the files that it may.",
        why="Without one nobody can connect, and no segment can be opened.",
        command="raise LimitNOFILE of the unit",
        page="reference/alerts.md#ropewalkdescriptors",
        look=_each(_files),
    ),
    Rule(
        name="buffers-used",
        verdict=Verdict.ODD,
        sees="Requests and answers hold more than nine tenths of the memory that they may.",
        why="Beyond that connections are not read from: clients that send or fetch much at once slow everybody down.",
        command="ropewalk cluster hot",
        page="operating/capacity.md",
        look=_each(_buffers),
    ),
    Rule(
        name="node-wanted",
        verdict=Verdict.ODD,
        sees="The cluster wants another node.",
        why="The nodes that there are carry more than they should.",
        command="ropewalk cluster hot says why; ropewalk cluster add NODE when it is there",
        page="operating/cluster.md#grow",
        look=_above(metrics.NODES_WANTED, 0, "tells that another node is wanted"),
    ),
    Rule(
        name="telemetry-failing",
        verdict=Verdict.ODD,
        sees="A node could not write figures to `__telemetry`.",
        why="There is nothing to look back at for that time.",
        command="ropewalk topic describe __telemetry",
        page="operating/monitoring.md#looking-back",
        look=_above(metrics.TELEMETRY_FAILURES, 0, "{value} rounds of samples could not be written"),
    ),
    Rule(
        name="notices-dropped",
        verdict=Verdict.ODD,
        sees="Notices of alerts did not reach the webhook in a day.",
        why="Nobody was told.",
        command="ropewalk cluster config show alerts.webhook",
        page="operating/monitoring.md#alerts-without-prometheus",
        look=_each(_notices),
    ),
)
_DISKS: Final = (
    Rule(
        name="disk-full",
        verdict=Verdict.WRONG,
        sees="Only the reserve is left on the disk of a node.",
        why="Writes are refused until there is room; what is there can be read.",
        command="ropewalk topic trim or ropewalk topic delete, then more room",
        page="operating/running-a-node.md#the-disk",
        look=_above(metrics.DISK_FULL, 0, "its disk is full: writes are refused"),
    ),
    Rule(
        name="disk-low",
        verdict=Verdict.ODD,
        sees="Less than a tenth of a node's disk is free, or less than 1 GiB.",
        why="A full disk refuses writes.",
        command="ropewalk topic alter TOPIC --set retention.bytes=N, or more room",
        page="operating/running-a-node.md#the-disk",
        look=_low_disk,
    ),
    Rule(
        name="directory-failed",
        verdict=Verdict.WRONG,
        sees="A node cannot tell of its data directory, or says that it has failed.",
        why="What it holds is not served.",
        command="see its journal",
        page="operating/when-something-is-wrong.md#it-stops-by-itself",
        look=_failed_directory,
    ),
    Rule(
        name="directory-open",
        verdict=Verdict.ODD,
        sees="Others than its owner may look into the data directory of a node on this machine.",
        why="Every record is there.",
        command="chmod 700 DIRECTORY",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_open_directory,
    ),
    Rule(
        name="files-synced-singly",
        verdict=Verdict.ODD,
        sees="The file system of a node on this machine does not say whether all of it was synced.",
        why="Every file is synced by itself, which many partitions feel.",
        command="ext4, xfs or btrfs on a kernel from 5.8 on",
        page="operating/capacity.md",
        look=_many_syncs,
    ),
    Rule(
        name="disk-slow",
        verdict=Verdict.ODD,
        sees=f"Since a node began more than one sync in a hundred took longer than {_SYNC_S * 1000:.0f} ms.",
        why="Producers wait for the disk with every acknowledged write.",
        command="see what else uses the disk; ropewalk cluster maintenance on NODE keeps it from leading",
        page="reference/alerts.md#ropewalkslowdisk",
        look=_slow(metrics.SYNC_TIME, _SYNC_S, "{share} of its syncs are slow"),
    ),
    Rule(
        name="partitions-damaged",
        verdict=Verdict.WRONG,
        sees="A node has partitions with a range that fails its checksums.",
        why="What is damaged is given to nobody; without another replica it is lost.",
        command="ask /healthz?verbose of the node, which names them",
        page="operating/when-something-is-wrong.md#it-starts-and-complains",
        look=_above(metrics.PARTITIONS_DAMAGED, 0, "{value} partitions are damaged"),
    ),
    Rule(
        name="partitions-unopened",
        verdict=Verdict.WRONG,
        sees="A node could not open partitions for want of room.",
        why="It serves none of them.",
        command="make room on its disk and start it again",
        page="operating/running-a-node.md#the-disk",
        look=_above(metrics.PARTITIONS_UNOPENED, 0, "{value} partitions could not be opened"),
    ),
    Rule(
        name="retention-behind",
        verdict=Verdict.ODD,
        sees="A node keeps half as much again as retention allows, or more.",
        why="A transaction that nobody ends, or the oldest message of a queue, may hold the beginning of a log.",
        command="ropewalk txn hanging, and ropewalk queue describe QUEUE",
        page="reference/alerts.md#ropewalkretentionbehind",
        look=_each(_retention),
    ),
)
_CLIENTS: Final = (
    Rule(
        name="certificate-ends",
        verdict=Verdict.WRONG,
        sees=f"A certificate of a node is good for less than {_CERTIFICATE_DAYS_MIN} days.",
        why="After that nobody can connect by TLS.",
        command="put a new certificate in its place; the node reads it again by itself",
        page="operating/tls.md#while-a-node-runs",
        look=_certificates,
    ),
    Rule(
        name="requests-fail",
        verdict=Verdict.ODD,
        sees="More than one Produce or Fetch in a thousand failed for a reason of the cluster's own.",
        why="Clients try again and wait, or give up.",
        command="ropewalk_request_errors_total at /metrics of the node says which errors",
        page="reference/alerts.md#ropewalkerrorbudgetfast",
        look=_each(_served_badly),
    ),
    Rule(
        name="logins-refused",
        verdict=Verdict.ODD,
        sees="A node has refused more logins than it took.",
        why="A program has an old password, or somebody tries names.",
        command="see the node's journal for `a login failed`, which says where from",
        page="guides/users.md",
        look=_each(_logins),
    ),
    Rule(
        name="sessions-refused",
        verdict=Verdict.ODD,
        sees="Consumers asked for a fetch session, and there was no room.",
        why="They name all their partitions with every fetch, which costs both sides.",
        command="ropewalk cluster config set max.incremental.fetch.session.cache.slots=N",
        page="internals/fetch-sessions.md",
        look=_above(metrics.FETCH_SESSIONS_REFUSED, 0, "refused {value} fetch sessions"),
    ),
    Rule(
        name="transactions-hanging",
        verdict=Verdict.WRONG,
        sees="Readers of committed records wait for a transaction that nobody ends.",
        why="They get nothing beyond it, and retention cannot remove it.",
        command="ropewalk txn hanging, then ropewalk txn abort",
        page="operating/when-something-is-wrong.md#consumers-fall-behind",
        look=_above(metrics.TRANSACTIONS_HANGING, 0, "a transaction hangs in {value} partitions"),
    ),
)
_QUEUES: Final = (
    Rule(
        name="queue-old",
        verdict=Verdict.ODD,
        sees="The oldest message of a queue has waited for more than an hour.",
        why="Nobody takes it, or whoever does fails with it each time.",
        command="ropewalk queue describe QUEUE, ropewalk queue peek QUEUE",
        page="reference/alerts.md#ropewalkqueueold",
        look=_of_queues(
            metrics.QUEUE_OLDEST_AGE, _QUEUE_AGE_S_MAX, "its oldest message has waited {value} s"
        ),
    ),
    Rule(
        name="queue-dead-letters",
        verdict=Verdict.ODD,
        sees="Dead letters wait for a person.",
        why="Messages were received often enough in vain.",
        command="ropewalk queue peek QUEUE, and when the cause is mended ropewalk queue redrive QUEUE",
        page="guides/queues.md#dead-letters",
        look=_of_queues(metrics.QUEUE_DEAD, 0, "holds {value} dead letters"),
    ),
    Rule(
        name="queue-without-dead-letters",
        verdict=Verdict.WRONG,
        sees="The queue that should take dead letters is not there.",
        why="They stay where they are, out of sight of receivers.",
        command="ropewalk queue create, by the name that ropewalk queue describe QUEUE says",
        page="guides/queues.md#dead-letters",
        look=_of_queues(metrics.QUEUE_DEAD_TARGET_MISSING, 0, "its dead letters have nowhere to go"),
    ),
    Rule(
        name="queue-window-full",
        verdict=Verdict.ODD,
        sees="Messages of a queue are not looked at until others are deleted.",
        why="Its first messages are delayed, or of groups that are locked; what is behind them waits.",
        command="ropewalk queue describe QUEUE: who keeps messages without deleting them?",
        page="reference/alerts.md#ropewalkqueuewindowfull",
        look=_of_queues(metrics.QUEUE_WINDOWS_FULL, 0, "its window is full in {value} partitions"),
    ),
)

NODE_RULES: Final = (*_HEALTH, *_DISKS, *_CLIENTS, *_QUEUES)
