"""What `cluster status`, `nodes` and `health` show: nodes and partitions, put together from what a broker tells."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.client import Client
from ropewalk.client.membership import ClusterViewer, Membership, Node, PartitionState, TopicState


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


class Trouble(Struct, frozen=True):
    what: str
    where: str
    why: str


class ClusterState(Struct, frozen=True):
    membership: Membership
    topics: tuple[TopicState, ...]

    def summary(self) -> dict[str, object]:
        partitions = [partition for _, partition in self._partitions()]
        nodes = self.membership.nodes
        return {
            "cluster": self.membership.cluster_id,
            "controller": self.membership.controller,
            "controller_epoch": self.membership.controller_epoch,
            "metadata_offset": self.membership.metadata_offset,
            "nodes": len(nodes),
            "nodes_active": sum(node.state == "active" for node in nodes),
            "topics": len(self.topics),
            "partitions": len(partitions),
            "partitions_without_leader": sum(each.leader is None for each in partitions),
            "partitions_under_replicated": sum(map(_is_under_replicated, partitions)),
            "partitions_moving": sum(bool(each.adding or each.removing) for each in partitions),
            "leaders_not_preferred": sum(map(_is_led_by_another, partitions)),
            "losses": len(self.membership.losses),
            "health": "bad" if self.troubles() else "good",
        }

    def nodes(self) -> list[NodeRow]:
        return [self._node_row(node) for node in self.membership.nodes]

    def troubles(self) -> list[Trouble]:
        """What is wrong at present; what was lost before is `losses`."""
        return [*self._troubles_of_nodes(), *self._troubles_of_partitions()]

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
        )

    def _troubles_of_nodes(self) -> Iterator[Trouble]:
        if self.membership.controller is None:
            yield Trouble("no controller", "cluster", "nothing can be changed until a node decides")
        for node in self.membership.nodes:
            if node.state == "fenced":
                yield Trouble("node is fenced", f"node {node.node_id}", "the controller does not hear of it")

    def _troubles_of_partitions(self) -> Iterator[Trouble]:
        for topic, partition in self._partitions():
            name = f"{topic.name}-{partition.index}"
            if partition.leader is None:
                may_lead = _listed((*partition.isr, *partition.eligible))
                yield Trouble(
                    "nobody leads", name, f"may lead: {may_lead}; offline: {_listed(partition.offline)}"
                )
            elif _is_under_replicated(partition):
                behind = [node for node in _wanted(partition) if node not in partition.isr]
                yield Trouble("under-replicated", name, f"not in sync: {_listed(behind)}")


async def collect(client: Client) -> ClusterState:
    viewer = ClusterViewer(client)
    return ClusterState(await viewer.describe(), tuple(await viewer.topics()))


def _wanted(partition: PartitionState) -> list[int]:
    """Those that are to be in sync: of a move that is under way, those that were there before and stay."""
    return [node for node in partition.replicas if node not in partition.adding]


def _is_under_replicated(partition: PartitionState) -> bool:
    return any(node not in partition.isr for node in _wanted(partition))


def _is_led_by_another(partition: PartitionState) -> bool:
    return partition.leader is not None and partition.leader != partition.replicas[0]


def _listed(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"
