"""What `cluster status`, `nodes` and `health` show: nodes and partitions, put together from what every node tells.

What a reader could get wrong
    The answer of the node that knows best is shown, with its age. Where that is above the session timeout it may be wrong about any node,
    and nobody may be told that all is well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import TROUBLES_NAMED_MAX
from ropewalk.client.administration.membership import (
    Answerer,
    ClusterViewer,
    Membership,
    Node,
    PartitionState,
    TopicState,
)
from ropewalk.client.calls.client import Client
from ropewalk.controller.health import (
    BELOW_MINIMUM,
    KNOWLEDGE_OLD,
    NO_ANSWER,
    NO_CONTROLLER,
    NOBODY_LEADS,
    NODE_BEHIND,
    NODE_FENCED,
    UNDER_REPLICATED,
    Complaint,
    Trouble,
    as_trouble,
    worst_first,
)
from ropewalk.views.asking import ask_everyone, is_behind


class NodeRow(Struct, frozen=True):
    node: int
    state: str
    kafka: str | None
    http: str | None
    peer: str | None
    rack: str | None
    roles: tuple[str, ...]
    epoch: int | None
    controller: bool
    leaders: int
    replicas: int
    replicas_behind: int
    """Of its replicas those that are not in sync."""
    observers: int
    metadata_offset: int | None
    """How much of the metadata it has; None where it was not asked, or did not answer."""
    heard_ms: int | None
    """How long ago it heard the controller."""
    answer: str | None
    """ok, or why there is none; None where it was not asked."""


class ClusterState(Struct, frozen=True):
    membership: Membership
    """As the node tells it that knows best."""
    topics: tuple[TopicState, ...]
    answers: Mapping[NodeId, Membership | RopewalkError] = {}
    """What every node told that was asked, or why it did not."""

    @property
    def age_ms(self) -> int | None:
        """How old the best knowledge is; None where the broker does not say."""
        answerer = self.membership.answerer
        return None if answerer is None else answerer.age_ms

    @property
    def is_fresh(self) -> bool:
        answerer = self.membership.answerer
        return answerer is None or answerer.age_ms <= answerer.session_timeout_ms

    def summary(self) -> dict[str, object]:
        partitions = [partition for _, partition in self._partitions()]
        nodes = self.membership.nodes
        return {
            "cluster": self.membership.cluster_id,
            "controller": self.membership.controller,
            "controller_epoch": self.membership.controller_epoch,
            "controller_heard_ms_ago": self.age_ms,
            "metadata_offset": self.membership.metadata_offset,
            "nodes": len(nodes),
            "nodes_answering": sum(isinstance(answer, Membership) for answer in self.answers.values()),
            "nodes_behind": sum(is_behind(answer, self.membership) for answer in self.answers.values()),
            "nodes_active": sum(node.state == "active" for node in nodes),
            "topics": len(self.topics),
            "partitions": len(partitions),
            "partitions_without_leader": sum(each.leader is None for each in partitions),
            "partitions_below_minimum": sum(map(_is_below_minimum, partitions)),
            "partitions_under_replicated": sum(map(_is_under_replicated, partitions)),
            "partitions_moving": sum(bool(each.adding or each.removing) for each in partitions),
            "leaders_not_preferred": sum(map(_is_led_by_another, partitions)),
            "losses": len(self.membership.losses),
            "health": "bad" if self.troubles() else "good",
        }

    def nodes(self) -> list[NodeRow]:
        return [self._node_row(node) for node in self.membership.nodes]

    def troubles(self) -> list[Trouble]:
        """What is wrong at present, the worst first, each partition by itself; what was lost before is `losses`."""
        return worst_first([*self._troubles_of_nodes(), *self._troubles_of_partitions()])

    def grouped_troubles(self) -> list[Trouble]:
        """As `troubles`, with one line for all partitions of a topic that have the same."""
        return worst_first([*self._troubles_of_nodes(), *self._troubles_of_topics()])

    def losses(self) -> list[Trouble]:
        """What was recorded when a replica had to lead that may have lacked records."""
        return [
            Trouble(
                "records may be lost",
                f"{loss.topic or '(deleted)'}-{loss.partition}",
                f"{loss.reason} (leader {loss.leader})",
            )
            for loss in self.membership.losses
        ]

    def leaderless(self, names: Sequence[str]) -> list[tuple[TopicPartition, PartitionState]]:
        """Of the topics and partitions named, those that nobody leads."""
        return [
            (TopicPartition(topic.name, partition.index), partition)
            for topic, partition in self._partitions()
            if partition.leader is None
            and (topic.name in names or f"{topic.name}-{partition.index}" in names)
        ]

    def _partitions(self) -> Iterator[tuple[TopicState, PartitionState]]:
        for topic in self.topics:
            for partition in topic.partitions:
                yield topic, partition

    def _node_row(self, node: Node) -> NodeRow:
        held = [each for _, each in self._partitions() if node.node_id in each.replicas]
        answer = self.answers.get(node.node_id)
        answerer = _answerer(answer)
        doors = {name.lower(): str(address) for name, address in node.doors}
        return NodeRow(
            node=node.node_id,
            state=node.state,
            kafka=None if node.address is None else str(node.address),
            http=doors.get("http"),
            peer=doors.get("peer"),
            rack=node.rack,
            roles=node.roles,
            epoch=node.epoch,
            controller=node.node_id == self.membership.controller,
            leaders=sum(each.leader == node.node_id for each in held),
            replicas=len(held),
            replicas_behind=sum(node.node_id not in each.isr for each in held),
            observers=sum(node.node_id in each.observers for _, each in self._partitions()),
            metadata_offset=answer.metadata_offset if isinstance(answer, Membership) else None,
            heard_ms=None if answerer is None else answerer.age_ms,
            answer="ok" if isinstance(answer, Membership) else None if answer is None else str(answer),
        )

    def _troubles_of_nodes(self) -> Iterator[Trouble]:
        if self.membership.controller is None:
            yield Trouble(NO_CONTROLLER, "cluster", "nothing can be changed until a node decides")
        answerer = self.membership.answerer
        if answerer is not None and not self.is_fresh:
            why = f"the controller was last heard {answerer.age_ms / 1000:.0f} s ago, by node {answerer.node_id}"
            yield Trouble(KNOWLEDGE_OLD, "cluster", f"{why}; what is said of the cluster may be wrong")
        for node in self.membership.nodes:
            yield from self._troubles_of_node(node)

    def _troubles_of_node(self, node: Node) -> Iterator[Trouble]:
        where, answer = f"node {node.node_id}", self.answers.get(node.node_id)
        if node.state == "fenced":
            unheard = "" if answer is None or isinstance(answer, Membership) else f"; {answer}"
            yield Trouble(NODE_FENCED, where, f"the controller does not hear of it{unheard}")
        elif isinstance(answer, RopewalkError) and node.state != "left":
            yield Trouble(NO_ANSWER, where, str(answer))
        answerer = _answerer(answer)
        problems = () if answerer is None else answerer.problems
        said = [as_trouble(node.node_id, Complaint(each.check, each.problem)) for each in problems]
        yield from said
        is_said = any(each.what == NODE_BEHIND for each in said)
        if isinstance(answer, Membership) and is_behind(answer, self.membership) and not is_said:
            here, there = answer.metadata_offset, self.membership.metadata_offset
            yield Trouble(NODE_BEHIND, where, f"its metadata ends at {here}, the controller's at {there}")

    def _troubles_of_partitions(self) -> Iterator[Trouble]:
        for topic, partition in self._partitions():
            what = _trouble_of(partition)
            if what is not None:
                yield Trouble(what, f"{topic.name}-{partition.index}", _why(what, [partition]))

    def _troubles_of_topics(self) -> Iterator[Trouble]:
        for topic in self.topics:
            found: dict[str, list[PartitionState]] = {}
            for partition in topic.partitions:
                if (what := _trouble_of(partition)) is not None:
                    found.setdefault(what, []).append(partition)
            for what, partitions in found.items():
                named = ", ".join(str(each.index) for each in partitions[:TROUBLES_NAMED_MAX])
                more = " and more" if len(partitions) > TROUBLES_NAMED_MAX else ""
                count = f"{len(partitions)} of {len(topic.partitions)} partitions ({named}{more})"
                yield Trouble(what, topic.name, f"{count}; {_why(what, partitions)}")


async def collect(client: Client) -> ClusterState:
    """Asks every node; raises where none answers."""
    answers = await ask_everyone(client)
    topics = await ClusterViewer(client).topics(at=answers.best_address)
    return ClusterState(answers.best, tuple(topics), answers.by_node)


def _answerer(answer: Membership | RopewalkError | None) -> Answerer | None:
    return answer.answerer if isinstance(answer, Membership) else None


def _trouble_of(partition: PartitionState) -> str | None:
    """The worst that is wrong with it."""
    if partition.leader is None:
        return NOBODY_LEADS
    if _is_below_minimum(partition):
        return BELOW_MINIMUM
    return UNDER_REPLICATED if _is_under_replicated(partition) else None


def _why(what: str, partitions: Sequence[PartitionState]) -> str:
    if what == NOBODY_LEADS:
        may_lead = _listed(node for each in partitions for node in (*each.isr, *each.eligible))
        offline = _listed(node for each in partitions for node in each.offline)
        return f"may lead: {may_lead}; offline: {offline}"
    missing = _listed(node for each in partitions for node in _wanted(each) if node not in each.isr)
    if what == BELOW_MINIMUM:
        return f"writes with acks=all are refused; not in sync: {missing}"
    return f"not in sync: {missing}"


def _wanted(partition: PartitionState) -> list[int]:
    """Those that are to be in sync: of a move that is under way, those that were there before and stay."""
    return [node for node in partition.replicas if node not in partition.adding]


def _is_under_replicated(partition: PartitionState) -> bool:
    return any(node not in partition.isr for node in _wanted(partition))


def _is_below_minimum(partition: PartitionState) -> bool:
    return partition.leader is not None and len(partition.isr) < partition.minimum_in_sync


def _is_led_by_another(partition: PartitionState) -> bool:
    return partition.leader is not None and partition.leader != partition.replicas[0]


def _listed(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(nodes)))) or "none"
