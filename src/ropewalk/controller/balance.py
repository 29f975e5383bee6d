"""A plan that evens out what the brokers carry: leaders first, which costs nothing, then replicas, which are copied.

A leader carries what is written and what is read, a follower what is written. Every replica has a small weight of its own
beside that, and every leader too, so that quiet partitions are spread by number. The plan takes, step by step, the change that
evens out most, away from the broker that carries most. It looks at nothing but the image and the load, so it can be shown
first and carried out afterwards; given the same, it is the same.

Behaviour worth knowing
    A partition that is being moved, or has no leader, is left alone.
    A leader is put only on a replica that is in sync, or that the plan itself brings there, and becomes the preferred one. Where
    it has to be copied first it leads when leaders are balanced next (`leadership.decide_balance_leaders`).
    No move has a partition in fewer racks than before, or on a broker that is out of service or about to stop.
    It ends when nothing evens out by more than a small share, so that the same plan twice is no plan.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import log2
from typing import Final

from msgspec import Struct, structs

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.controller.elections import Elections, Standing, all_partitions
from ropewalk.controller.load import ClusterLoad
from ropewalk.controller.reassignment import decide_reassign
from ropewalk.metadata.image import Broker, Image, Partition, Topic
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings

_OWN_SHARE: Final = 0.1
"""What a replica weighs by itself, as a share of what replicas carry on average; a leader again as much."""

_GAIN_MIN: Final = 0.002
"""The least that a change must even out, as a share of the unevenness that one replica of average weight makes."""


class Change(Struct, frozen=True):
    """The replicas of one partition, the leader first, before and after."""

    topic_id: TopicId
    topic_name: str
    index: int
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]

    @property
    def copies(self) -> bool:
        """Whether records have to be copied for it."""
        return set(self.before) != set(self.after)


class Plan(Struct, frozen=True):
    changes: tuple[Change, ...]
    load_before: Mapping[NodeId, float]
    load_after: Mapping[NodeId, float]
    """In shares of everything that is carried."""


def plan_balance(image: Image, load: ClusterLoad, *, changes_max: int) -> Plan:
    draft = _Draft(image, load)
    before = draft.shares()
    while len(draft.changed) < changes_max and (draft.move_leader() or draft.move_replica()):
        pass
    return Plan(draft.changes(), before, draft.shares())


def decide_balance(
    image: Image, changes: Iterable[Change], *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """Carry changes of a plan out. Those whose partition has changed since are left out."""
    elections = Elections(Standing(image), settings, now_ms)
    records: list[MetadataRecord] = []
    for change in changes:
        topic = image.topics_by_id.get(change.topic_id)
        if topic is None or topic.partitions[change.index].is_moving:
            continue
        partition = topic.partitions[change.index]
        if set(partition.replicas) != set(change.before):
            continue
        if change.copies:
            records.extend(
                decide_reassign(
                    image, topic.name, change.index, change.after, settings=settings, now_ms=now_ms
                )
            )
        else:
            wanted = structs.replace(partition, replicas=change.after)
            elections.settle(topic, partition, wanted, leader=change.after[0])
    return [*records, *elections.records]


class _Seat:
    """One partition in the draft; the leader is the first of the replicas."""

    __slots__ = ("before", "follower_weight", "isr", "leader_weight", "partition", "replicas", "topic")

    def __init__(self, topic: Topic, partition: Partition, in_weight: float, out_weight: float) -> None:
        self.topic = topic
        self.partition = partition
        assert partition.leader is not None, "partitions without a leader are left alone"
        others = [node_id for node_id in partition.replicas if node_id != partition.leader]
        self.replicas: list[NodeId] = [partition.leader, *others]
        self.before = tuple(self.replicas)
        self.isr = frozenset(partition.isr)
        self.follower_weight = in_weight
        self.leader_weight = in_weight + out_weight

    def weight_on(self, node_id: NodeId) -> float:
        return self.leader_weight if self.replicas[0] == node_id else self.follower_weight

    def kind(self) -> object:
        """The same for seats of which it makes no difference which is changed, within a fifth of their weight."""
        weights = round(4 * log2(self.leader_weight)), round(4 * log2(self.follower_weight))
        return tuple(self.replicas), self.before, self.isr, self.partition.observers, weights


class _Draft:
    def __init__(self, image: Image, load: ClusterLoad) -> None:
        self._brokers: dict[NodeId, Broker] = {
            broker.node_id: broker
            for broker in image.brokers.values()
            if broker.is_active and broker.takes_replicas
        }
        found = [
            (topic, partition)
            for topic, partition in all_partitions(image)
            if partition.leader is not None and not partition.is_moving
        ]
        replica_count = sum(len(partition.replicas) for _, partition in found)
        carried = 0
        for topic, partition in found:
            traffic = load.of(topic.topic_id, partition.index)
            carried += traffic.bytes_in * len(partition.replicas) + traffic.bytes_out
        own = max(1.0, _OWN_SHARE * carried / max(1, replica_count))
        self._seats: list[_Seat] = []
        self._loads: dict[NodeId, float] = dict.fromkeys(self._brokers, 0.0)
        for topic, partition in found:
            traffic = load.of(topic.topic_id, partition.index)
            seat = _Seat(topic, partition, own + traffic.bytes_in, own + traffic.bytes_out)
            self._seats.append(seat)
            for node_id in seat.replicas:
                if node_id in self._loads:
                    self._loads[node_id] += seat.weight_on(node_id)
        average = sum(self._loads.values()) / max(1, replica_count)
        self._gain_min = _GAIN_MIN * average * average
        self.changed: set[int] = set()
        """Positions of the seats that are not as they were."""
        self._alike: dict[NodeId, dict[object, dict[int, None]]] = {node_id: {} for node_id in self._brokers}
        """By broker: the seats it has a replica of, those together that lie alike and weigh about the same. One of them stands
        for all, so that a step takes as long as there are kinds of partitions, not partitions."""
        for position in range(len(self._seats)):
            self._file(position)

    def move_leader(self) -> bool:
        """The change of one leader that evens out most, if any does."""

        def candidates(heavy: NodeId) -> Iterator[tuple[float, int, NodeId]]:
            for position in self._kinds(heavy):
                seat = self._seats[position]
                if seat.replicas[0] != heavy:
                    continue
                delta = seat.leader_weight - seat.follower_weight
                for node_id in seat.replicas[1:]:
                    if node_id in self._loads and (node_id in seat.isr or node_id not in seat.before):
                        yield self._gain(heavy, node_id, delta), position, node_id

        for heavy in self._heaviest_first():
            gain, position, light = max(
                candidates(heavy), key=lambda found: (found[0], -found[1]), default=(0.0, 0, heavy)
            )
            if gain > self._gain_min:
                seat = self._seats[position]
                others = [node_id for node_id in seat.replicas if node_id != light]
                self._put(position, [light, *others])
                return True
        return False

    def move_replica(self) -> bool:
        """The move of one replica that evens out most, if any does; rather a follower than a leader."""

        def candidates(heavy: NodeId) -> Iterator[tuple[float, bool, int, NodeId]]:
            lightest_first = sorted(self._loads, key=lambda node_id: (self._loads[node_id], node_id))
            for position in self._kinds(heavy):
                seat = self._seats[position]
                light = next(
                    (
                        node_id
                        for node_id in lightest_first
                        if node_id not in seat.partition.holders
                        and node_id not in seat.replicas
                        and self._keeps_racks(seat, heavy, node_id)
                    ),
                    None,
                )
                if light is not None:
                    gain = self._gain(heavy, light, seat.weight_on(heavy))
                    yield gain, seat.replicas[0] != heavy, position, light

        for heavy in self._heaviest_first():
            gain, _, position, light = max(
                candidates(heavy),
                key=lambda found: (found[0], found[1], -found[2]),
                default=(0.0, False, 0, heavy),
            )
            if gain > self._gain_min:
                replicas = self._seats[position].replicas
                self._put(position, [light if node_id == heavy else node_id for node_id in replicas])
                return True
        return False

    def changes(self) -> tuple[Change, ...]:
        return tuple(
            Change(
                seat.topic.topic_id,
                seat.topic.name,
                seat.partition.index,
                seat.before,
                tuple(seat.replicas),
            )
            for position, seat in enumerate(self._seats)
            if position in self.changed
        )

    def shares(self) -> dict[NodeId, float]:
        total = sum(self._loads.values()) or 1.0
        return {node_id: load / total for node_id, load in sorted(self._loads.items())}

    def _put(self, position: int, replicas: list[NodeId]) -> None:
        seat = self._seats[position]
        for node_id in seat.replicas:
            if node_id in self._loads:
                self._loads[node_id] -= seat.weight_on(node_id)
                group = self._alike[node_id][seat.kind()]
                del group[position]
                if not group:
                    del self._alike[node_id][seat.kind()]
        seat.replicas = replicas
        for node_id in seat.replicas:
            if node_id in self._loads:
                self._loads[node_id] += seat.weight_on(node_id)
        self._file(position)
        self.changed.discard(position)
        if tuple(replicas) != seat.before:
            self.changed.add(position)

    def _file(self, position: int) -> None:
        seat = self._seats[position]
        for node_id in seat.replicas:
            if node_id in self._alike:
                self._alike[node_id].setdefault(seat.kind(), {})[position] = None

    def _kinds(self, node_id: NodeId) -> Iterator[int]:
        """Of each kind of seats that the broker has a replica of, one."""
        return (next(iter(group)) for group in self._alike[node_id].values())

    def _heaviest_first(self) -> list[NodeId]:
        return sorted(self._loads, key=lambda node_id: (-self._loads[node_id], node_id))

    def _gain(self, heavy: NodeId, light: NodeId, delta: float) -> float:
        """By how much the sum of squares falls, halved, when `delta` goes from one to the other."""
        return delta * (self._loads[heavy] - self._loads[light] - delta)

    def _keeps_racks(self, seat: _Seat, heavy: NodeId, light: NodeId) -> bool:
        after = [light if node_id == heavy else node_id for node_id in seat.replicas]
        return self._rack_count(after) >= self._rack_count(seat.replicas)

    def _rack_count(self, nodes: Iterable[NodeId]) -> int:
        """A broker without a rack, or out of service, counts as a rack of its own."""
        racks = set()
        for node_id in nodes:
            broker = self._brokers.get(node_id)
            rack = None if broker is None else broker.rack
            racks.add(("", node_id) if rack is None else (rack, NodeId(-1)))
        return len(racks)
