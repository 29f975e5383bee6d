"""Random histories of a cluster: whatever happens to its brokers, the rules hold and nothing acknowledged is forgotten.

Beside the image runs a model of the only thing that counts: which replicas hold all that was acknowledged. A write is
acknowledged by everybody in sync, and takes place only while they are enough.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Protocol

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.controller.alter_partition import PartitionAlteration, decide_alter_partition
from ropewalk.controller.departure import decide_leave, decide_stay
from ropewalk.controller.leadership import (
    decide_balance_leaders,
    decide_elect_any,
    decide_elect_preferred,
    decide_elect_unclean,
)
from ropewalk.controller.membership import Heartbeat, decide_heartbeat, decide_stop_broker
from ropewalk.controller.reassignment import decide_reassign
from ropewalk.metadata.image import Partition
from ropewalk.metadata.records import BrokerState, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings
from tests.controller.imagined import NOW_MS, ImaginedCluster, losses

Chosen = Callable[[Partition], list[NodeId]]


class Decided(Protocol):
    def __call__(self, *, settings: AppliedSettings, now_ms: int) -> Sequence[MetadataRecord]: ...


BROKER_COUNT = 4
TOPICS: dict[str, tuple[tuple[tuple[int, ...], ...], dict[str, str]]] = {
    "three": (((0, 1, 2), (1, 2, 3)), {}),
    "two": (((2, 3),), {}),
    "one": (((3,),), {}),
    "strict": (((0, 1, 2),), {"min_insync_replicas": "3"}),
    "cached": (((1, 2, 3),), {"flush": "os"}),
    "volatile": (((0, 2, 3),), {"storage": "memory"}),
    "careless": (((0, 1, 3),), {"unclean_leader_election_enable": "true"}),
}


class History:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.cluster = ImaginedCluster(BROKER_COUNT)
        self.generations = dict.fromkeys(range(BROKER_COUNT), 0)
        self.complete: dict[tuple[TopicId, int], set[NodeId]] = {}
        for name, (replicas, overrides) in TOPICS.items():
            topic_id = self.cluster.topic(name, *replicas, **overrides)
            for index, held in enumerate(replicas):
                self.complete[topic_id, index] = {NodeId(number) for number in held}

    def step(self, kind: str) -> None:
        try:
            records = getattr(self, kind)() or []
        except RopewalkError:
            records = []
        for loss in losses(records):
            self.complete[loss.topic_id, loss.index] = {loss.leader}
        self.cluster.check()
        for topic in self.cluster.image.topics.values():
            for partition in topic.partitions:
                trusted = {*partition.isr, *partition.eligible}
                assert trusted <= self.complete[topic.topic_id, partition.index], f"{topic.name}, {kind}"

    def restart(self) -> list[MetadataRecord]:
        number = self.rng.randrange(BROKER_COUNT)
        is_clean = self.rng.random() < 0.5
        is_replaced = self.rng.random() < 0.2
        self.generations[number] += is_replaced
        damaged = [] if self.rng.random() < 0.8 else [self.rng.choice(list(self.complete))]
        for (topic_id, index), holders in self.complete.items():
            topic = self.cluster.image.topic_by_id(topic_id)
            is_single = topic.partitions[index].replication_factor == 1
            loses = (
                (is_replaced and not (is_single and topic.name == "volatile"))
                or (not is_single and topic.name == "volatile")
                or (not is_single and topic.name == "cached" and not is_clean)
                or (not is_single and (topic_id, index) in damaged)
            )
            if loses:  # what a single replica forgets under flush=os or in memory is its topic's bargain
                holders.discard(NodeId(number))
        return self.cluster.register(
            number, generation=self.generations[number], is_clean=is_clean, damaged=damaged
        )

    def unfence(self) -> list[MetadataRecord]:
        node_id = NodeId(self.rng.randrange(BROKER_COUNT))
        beat = Heartbeat(
            node_id=node_id,
            broker_epoch=self.cluster.epoch(node_id),
            metadata_offset=self.cluster.image.end_offset,
        )
        return self.decided(partial(decide_heartbeat, self.cluster.image, beat))

    def fence(self) -> list[MetadataRecord]:
        return self.cluster.fence(self.rng.randrange(BROKER_COUNT))

    def stop(self) -> list[MetadataRecord]:
        node_id = NodeId(self.rng.randrange(BROKER_COUNT))
        return self.decided(partial(decide_stop_broker, self.cluster.image, node_id))

    def leave(self) -> list[MetadataRecord]:
        node_id = NodeId(self.rng.randrange(BROKER_COUNT))
        return self.decided(partial(decide_leave, self.cluster.image, node_id))

    def stay(self) -> list[MetadataRecord]:
        node_id = NodeId(self.rng.randrange(BROKER_COUNT))
        return self.cluster.apply(decide_stay(self.cluster.image, node_id))

    def write(self) -> None:
        """Everything that can be written is, and acknowledged."""
        for topic in self.cluster.image.topics.values():
            for partition in topic.partitions:
                minimum = self.cluster.settings.minimum_in_sync(topic, partition)
                if partition.leader is not None and len(partition.isr) >= minimum:
                    self.complete[topic.topic_id, partition.index] = set(partition.isr)

    def catch_up(self) -> list[MetadataRecord]:
        """A leader takes everybody in who may be."""
        return self.alter(
            lambda partition: [
                node_id
                for node_id in partition.replicas
                if node_id in partition.isr or self.cluster.image.brokers[node_id].is_active
            ]
        )

    def fall_behind(self) -> list[MetadataRecord]:
        return self.alter(
            lambda partition: [
                node_id for node_id in partition.isr if node_id == partition.leader or self.rng.random() < 0.5
            ]
        )

    def alter(self, isr_of: Chosen) -> list[MetadataRecord]:
        topic = self.rng.choice(list(self.cluster.image.topics.values()))
        partition = self.rng.choice(topic.partitions)
        if partition.leader is None:
            return []
        isr = isr_of(partition)
        records, (altered,) = decide_alter_partition(
            self.cluster.image,
            partition.leader,
            self.cluster.epoch(partition.leader),
            [
                PartitionAlteration(
                    topic_id=topic.topic_id,
                    index=partition.index,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                    isr=[(node_id, self.cluster.epoch(node_id)) for node_id in isr],
                )
            ],
            settings=self.cluster.settings,
            now_ms=NOW_MS,
        )
        assert isinstance(altered.outcome, Partition), altered.outcome
        self.complete[topic.topic_id, partition.index].update(isr)
        return self.cluster.apply(records)

    def move(self) -> list[MetadataRecord]:
        name, index = self.any_partition()
        wanted = [NodeId(number) for number in range(BROKER_COUNT)]
        self.rng.shuffle(wanted)
        replicas = wanted[: self.rng.randrange(1, BROKER_COUNT)] if self.rng.random() < 0.8 else None
        return self.decided(partial(decide_reassign, self.cluster.image, name, index, replicas))

    def elect(self) -> list[MetadataRecord]:
        name, index = self.any_partition()
        decide = self.rng.choice([decide_elect_preferred, decide_elect_any])
        return self.decided(partial(decide, self.cluster.image, name, index))

    def force(self) -> list[MetadataRecord]:
        name, index = self.any_partition()
        return self.decided(partial(decide_elect_unclean, self.cluster.image, name, index))

    def balance(self) -> list[MetadataRecord]:
        return self.decided(partial(decide_balance_leaders, self.cluster.image, changes_max=3))

    def any_partition(self) -> tuple[str, int]:
        name = self.rng.choice(list(self.cluster.image.topics))
        return name, self.rng.randrange(len(self.cluster.image.topic(name).partitions))

    def decided(self, decide: Decided) -> list[MetadataRecord]:
        return self.cluster.apply(decide(settings=self.cluster.settings, now_ms=NOW_MS))

    def heal(self) -> None:
        """Everybody is back and in step."""
        for number in range(BROKER_COUNT):
            broker = self.cluster.image.brokers[NodeId(number)]
            if broker.state is BrokerState.STOPPING:
                self.cluster.fence(number)
                self.cluster.register(number, generation=self.generations[number])
            self.cluster.unfence(number)


KINDS = (
    ["restart", "unfence", "unfence", "fence", "stop", "write", "write", "move", "elect", "balance"]
    + ["leave", "stay"]
    + ["catch_up"] * 4
    + ["fall_behind"] * 2
    + ["force"]
)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(KINDS), max_size=60))
def test_nothing_acknowledged_is_forgotten_without_being_told(rng: Random, kinds: list[str]) -> None:
    history = History(rng)
    for kind in kinds:
        history.step(kind)


@settings(max_examples=75, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from([kind for kind in KINDS if kind not in ("restart", "move")]), max_size=60),
)
def test_every_partition_has_a_leader_when_everybody_is_back(rng: Random, kinds: list[str]) -> None:
    history = History(rng)
    for kind in kinds:
        history.step(kind)
    history.heal()
    for topic in history.cluster.image.topics.values():
        for partition in topic.partitions:
            assert partition.leader is not None, topic.name
