"""Moves that the cluster works out by itself: away from a broker, and onto brokers that have joined.

Behaviour worth knowing
    A broker is drained in steps of a few moves at a time. Each step is decided on the cluster as it is by then, so it can be
    repeated by whoever decides, until the broker holds nothing. A partition that has nowhere else to go refuses the whole.
    The cluster's own topics are made while it is small. They are raised to their factor as brokers join, before
    anything else is moved: with fewer copies than its topics have, a cluster would forget its groups first.
"""

from collections.abc import Collection, Iterator

from ropewalk.base.errors import InvalidReplicaAssignment, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.controller.elections import all_partitions
from ropewalk.controller.own_topics import INTERNAL_FACTOR
from ropewalk.controller.reassignment import decide_reassign, decide_set_observers, moves
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.internal_topics import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class Homes:
    """Finds brokers for replicas, one after the other, and counts what it has given them."""

    __slots__ = ("_brokers", "_counts")

    def __init__(self, image: Image) -> None:
        self._brokers = image.brokers
        self._counts = dict.fromkeys(image.brokers, 0)
        for _, partition in all_partitions(image):
            for node_id in partition.holders:
                if node_id in self._counts:
                    self._counts[node_id] += 1

    def find(self, beside: Collection[NodeId], *, never: Collection[NodeId] = ()) -> NodeId | None:
        """A broker in service, in a rack where those `beside` are not if there is one, that holds the least."""
        racks = [self._brokers[node_id].rack for node_id in beside if node_id in self._brokers]
        candidates = [
            broker
            for broker in self._brokers.values()
            if broker.is_active
            and broker.takes_replicas
            and broker.node_id not in beside
            and broker.node_id not in never
        ]
        if not candidates:
            return None
        best = min(
            candidates,
            key=lambda broker: (
                0 if broker.rack is None else racks.count(broker.rack),
                self._counts[broker.node_id],
                broker.node_id,
            ),
        )
        self._counts[best.node_id] += 1
        return best.node_id


def decide_drain_broker(
    image: Image,
    node_id: NodeId,
    *,
    settings: AppliedSettings,
    now_ms: int,
    moves_max: int,
    onto: NodeId | None = None,
) -> list[MetadataRecord]:
    """Begin to move what the broker holds elsewhere, `moves_max` partitions at a time; all `onto` one broker if it is named.

    Nothing where as many are under way, or where it holds nothing (`held_count`).
    """
    if node_id not in image.brokers:
        raise UnknownBroker(f"broker {node_id} is not registered")
    homes = Homes(image)
    room = moves_max - sum(node_id in partition.removing for _, partition in moves(image))
    records: list[MetadataRecord] = []
    for topic, partition in _held(image, node_id):
        home = homes.find(partition.holders, never=(node_id,)) if onto is None else onto
        if home is None or (onto is not None and home in partition.holders):
            raise InvalidReplicaAssignment(
                f"{topic.name}-{partition.index} is on {list(partition.holders)} and there is no other broker in "
                f"service for what {node_id} holds of it"
            )
        if room > 0:
            records.extend(_moved(image, topic, partition, node_id, home, settings, now_ms))
            room -= 1
    return records


def held_count(image: Image, node_id: NodeId) -> int:
    """Partitions of which the broker keeps a copy."""
    return sum(node_id in partition.holders for _, partition in all_partitions(image))


def decide_raise_internal_topics(
    image: Image, *, settings: AppliedSettings, now_ms: int, moves_max: int
) -> list[MetadataRecord]:
    """Begin to bring the cluster's own topics to their factor, as far as there are brokers in service for it."""
    wanting = [
        (topic, partition)
        for name, topic in image.topics.items()
        if name in INTERNAL_TOPICS
        for partition in topic.partitions
        if len(partition.replicas) < _factor(topic, settings)
        and not partition.is_moving
        and partition.leader is not None
    ]
    if not wanting:  # nearly always, and then nobody has to look at every partition of the cluster
        return []
    homes = Homes(image)
    records: list[MetadataRecord] = []
    room = moves_max
    for topic, partition in wanting:
        replicas = list(partition.replicas)
        while len(replicas) < _factor(topic, settings):
            home = homes.find((*replicas, *partition.observers))
            if home is None:
                break
            replicas.append(home)
        if room > 0 and len(replicas) > len(partition.replicas):
            room -= 1
            records.extend(
                decide_reassign(
                    image, topic.name, partition.index, replicas, settings=settings, now_ms=now_ms
                )
            )
    return records


def _factor(topic: Topic, settings: AppliedSettings) -> int:
    if topic.name == OFFSETS_TOPIC:
        return settings.of_broker.offsets_topic_replication_factor
    if topic.name == TRANSACTIONS_TOPIC:
        return settings.of_broker.transaction_state_log_replication_factor
    return INTERNAL_FACTOR


def _held(image: Image, node_id: NodeId) -> Iterator[tuple[Topic, Partition]]:
    """What the broker holds and is not leaving yet."""
    for topic, partition in all_partitions(image):
        if node_id in partition.holders and node_id not in partition.removing:
            yield topic, partition


def _moved(
    image: Image,
    topic: Topic,
    partition: Partition,
    node_id: NodeId,
    home: NodeId,
    settings: AppliedSettings,
    now_ms: int,
) -> list[MetadataRecord]:
    index = partition.index
    if node_id in partition.observers:
        observers = [home if held == node_id else held for held in partition.observers]
        return decide_set_observers(image, topic.name, index, observers, settings=settings, now_ms=now_ms)
    staying = [held for held in partition.replicas if held not in partition.removing]
    replicas = [home if held == node_id else held for held in staying]
    return decide_reassign(image, topic.name, index, replicas, settings=settings, now_ms=now_ms)
