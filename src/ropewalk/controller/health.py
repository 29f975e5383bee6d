"""Whether a cluster is well: what nobody leads, what is below its minimum, who is out of service, behind or unwell.

`Survey` walks over the partitions of an image in slices and counts; `NodeReports` keeps what nodes said of themselves with their
heartbeats. Both only look: nothing is decided by them.

What a reader could get wrong
    A node is behind when it has not reached, for a while, what the metadata's end was at the beginning of that while. To be a few
    records behind at any one moment is what every node is while something changes.
    Nodes that are to leave the cluster are no trouble when they are gone.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import HEALTH_SLICE_COUNT, NODE_BEHIND_MS_MAX, TROUBLES_NAMED_MAX
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.records import BrokerState
from ropewalk.metadata.settings.applied import AppliedSettings

NO_CONTROLLER: Final = "no controller"
KNOWLEDGE_OLD: Final = "knowledge is old"
NOTHING_CHANGES: Final = "nothing can change"
NOBODY_LEADS: Final = "nobody leads"
BELOW_MINIMUM: Final = "below its minimum"
NODE_FENCED: Final = "node is fenced"
NO_ANSWER: Final = "does not answer"
NODE_BEHIND: Final = "node is behind"
NODE_UNWELL: Final = "node is unwell"
UNDER_REPLICATED: Final = "under-replicated"

_WORST_FIRST: Final = (
    NO_CONTROLLER,
    KNOWLEDGE_OLD,
    NOTHING_CHANGES,
    NOBODY_LEADS,
    BELOW_MINIMUM,
    NODE_FENCED,
    NO_ANSWER,
    NODE_BEHIND,
    NODE_UNWELL,
    UNDER_REPLICATED,
)
_RANKS: Final = {what: rank for rank, what in enumerate(_WORST_FIRST)}


class Trouble(Struct, frozen=True):
    what: str
    where: str
    """The cluster, a node, a topic or a partition."""
    why: str


class Complaint(Struct, frozen=True):
    """What a node says is wrong with itself: the name of a check, and a few words for a person."""

    check: str
    problem: str


def worst_first(troubles: Iterable[Trouble]) -> list[Trouble]:
    """What the cluster cannot do at all before what it does with less."""
    return sorted(troubles, key=lambda each: _RANKS.get(each.what, len(_RANKS)))


def as_trouble(node_id: int, complaint: Complaint) -> Trouble:
    """Without its controller, or the metadata's home, a node can do everything but change the cluster."""
    if complaint.check in ("controller", "metadata"):
        return Trouble(NOTHING_CHANGES, f"node {node_id}", complaint.problem)
    if complaint.check == "following":
        return Trouble(NODE_BEHIND, f"node {node_id}", complaint.problem)
    return Trouble(NODE_UNWELL, f"node {node_id}", f"{complaint.check}: {complaint.problem}")


class _TopicCount:
    """Partitions of one topic that have the same trouble."""

    __slots__ = ("indexes", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.indexes: list[int] = []

    def why(self) -> str:
        named = ", ".join(map(str, self.indexes[:TROUBLES_NAMED_MAX]))
        more = " and more" if len(self.indexes) > TROUBLES_NAMED_MAX else ""
        return f"{len(self.indexes)} of {self.total} partitions ({named}{more})"


class Survey:
    """One walk over all partitions. `walk` first; then the counts are those of the image at that time."""

    def __init__(self, image: Image, settings: AppliedSettings) -> None:
        self._image = image
        self._settings = settings
        self._found: dict[str, dict[str, _TopicCount]] = {
            NOBODY_LEADS: {},
            BELOW_MINIMUM: {},
            UNDER_REPLICATED: {},
        }

    def walk(self) -> Iterator[None]:
        """Yields where the event loop may have a turn."""
        seen_count = 0
        for topic in list(self._image.topics.values()):
            for partition in topic.partitions:
                what = self._trouble_of(topic, partition)
                if what is not None:
                    counted = self._found[what].setdefault(topic.name, _TopicCount(len(topic.partitions)))
                    counted.indexes.append(partition.index)
                seen_count += 1
                if seen_count % HEALTH_SLICE_COUNT == 0:
                    yield

    def _trouble_of(self, topic: Topic, partition: Partition) -> str | None:
        """The worst that is wrong with it."""
        if partition.leader is None:
            return NOBODY_LEADS
        if len(partition.isr) >= len(partition.replicas):
            return None
        if len(partition.isr) < self._settings.minimum_in_sync(topic, partition):
            return BELOW_MINIMUM
        wanted = [node for node in partition.replicas if node not in partition.adding]
        return None if all(node in partition.isr for node in wanted) else UNDER_REPLICATED

    def count(self, what: str) -> int:
        return sum(len(counted.indexes) for counted in self._found[what].values())

    def troubles(self) -> list[Trouble]:
        """One for each topic and kind."""
        return [
            Trouble(what, topic, counted.why())
            for what, topics in self._found.items()
            for topic, counted in sorted(topics.items())
        ]


class _Report:
    __slots__ = ("complaints", "offset", "since_ms", "target")

    def __init__(self, now_ms: int) -> None:
        self.offset = 0
        self.target = 0
        """Where the metadata ended at `since_ms`, which the node is to reach."""
        self.since_ms = now_ms
        self.complaints: Sequence[Complaint] = ()


class NodeReports:
    """What nodes have said of themselves to this controller."""

    def __init__(self) -> None:
        self._reports: dict[NodeId, _Report] = {}

    def clear(self) -> None:
        self._reports.clear()

    def on_heartbeat(
        self,
        node_id: NodeId,
        metadata_offset: int,
        complaints: Sequence[Complaint],
        *,
        end_offset: int,
        now_ms: int,
    ) -> None:
        """`end_offset`: where the metadata ends, `metadata_offset`: how far the node has followed it."""
        report = self._reports.setdefault(node_id, _Report(now_ms))
        report.offset = metadata_offset
        report.complaints = tuple(complaints)
        if metadata_offset >= report.target:
            report.target, report.since_ms = end_offset, now_ms

    def behind(self, now_ms: int) -> dict[NodeId, int]:
        """Nodes that do not follow, with how many records they lack of what they should have."""
        return {
            node_id: report.target - report.offset
            for node_id, report in sorted(self._reports.items())
            if report.offset < report.target and now_ms - report.since_ms >= NODE_BEHIND_MS_MAX
        }

    def complaints(self, node_id: NodeId) -> Sequence[Complaint]:
        report = self._reports.get(node_id)
        return () if report is None else report.complaints


def troubles_of_nodes(image: Image, reports: NodeReports, now_ms: int) -> list[Trouble]:
    behind = reports.behind(now_ms)
    troubles: list[Trouble] = []
    for node_id, broker in sorted(image.brokers.items()):
        where = f"node {node_id}"
        if broker.state is BrokerState.FENCED:
            if not broker.is_leaving:
                troubles.append(Trouble(NODE_FENCED, where, "the controller does not hear of it"))
            continue
        said = [as_trouble(node_id, each) for each in reports.complaints(node_id)]
        if node_id in behind and all(each.what != NODE_BEHIND for each in said):
            why = f"it lacks {behind[node_id]} records of the metadata"
            troubles.append(Trouble(NODE_BEHIND, where, why))
        troubles += said
    return troubles
