"""A cluster that exists only as an image: decisions are applied to it as they are made, and its rules are checked."""

from collections.abc import Iterable, Mapping

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.controller.alter_partition import PartitionAlteration, decide_alter_partition
from ropewalk.controller.brokers import Registration, decide_register_broker
from ropewalk.controller.membership import decide_fence_broker, decide_unfence_broker
from ropewalk.metadata.image import Image, Partition
from ropewalk.metadata.records import (
    BrokerState,
    ClusterCreated,
    Endpoint,
    LossRecorded,
    MetadataRecord,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.effective import SettingsView

NOW_MS = 1_000_000
ENDPOINTS = (Endpoint("PLAINTEXT", "localhost", 9092),)


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


def directory(number: int, generation: int = 0) -> bytes:
    return bytes([number, generation] * 8)


class ImaginedCluster:
    def __init__(self, broker_count: int = 0, configuration: Mapping[str, str] | None = None) -> None:
        self.image = Image()
        self.settings = AppliedSettings(SettingsView(self.image, NodeId(0), configuration or {}))
        self.apply([ClusterCreated("c")])
        for number in range(broker_count):
            self.join(number)

    def apply(self, records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
        applied = list(records)
        for record in applied:
            if isinstance(record, PartitionChanged):
                check_epochs(self.image.topic_by_id(record.topic_id).partitions[record.index], record)
            self.image.apply(record)
        return applied

    def register(
        self,
        number: int,
        *,
        generation: int = 0,
        is_clean: bool = True,
        damaged: Iterable[tuple[TopicId, int]] = (),
        unsynced: Iterable[tuple[TopicId, int]] | None = None,
        rack: str | None = None,
        is_lone: bool = False,
    ) -> list[MetadataRecord]:
        registration = Registration(
            node_id=NodeId(number),
            directory=directory(number, generation),
            endpoints=ENDPOINTS,
            rack=rack,
            clock_ms=NOW_MS,
            is_clean=is_clean,
            damaged=frozenset(damaged),
            unsynced=None if unsynced is None else frozenset(unsynced),
        )
        return self.apply(
            decide_register_broker(
                self.image, registration, settings=self.settings, now_ms=NOW_MS, is_lone=is_lone
            )
        )

    def unfence(self, number: int) -> list[MetadataRecord]:
        node_id = NodeId(number)
        return self.apply(
            decide_unfence_broker(
                self.image, node_id, self.epoch(number), settings=self.settings, now_ms=NOW_MS
            )
        )

    def fence(self, number: int) -> list[MetadataRecord]:
        node_id = NodeId(number)
        return self.apply(
            decide_fence_broker(
                self.image, node_id, self.epoch(number), settings=self.settings, now_ms=NOW_MS
            )
        )

    def join(self, number: int, *, rack: str | None = None) -> None:
        self.register(number, rack=rack)
        self.unfence(number)

    def topic(self, name: str, *replicas: tuple[int, ...], **settings: str) -> TopicId:
        """Everybody in sync, led by the first; settings with underscores for dots."""
        topic_id = TopicId(name.encode().ljust(16, b"."))
        records: list[MetadataRecord] = [TopicCreated(topic_id, name)]
        for index, numbers in enumerate(replicas):
            held = nodes(*numbers)
            records.append(PartitionCreated(topic_id, index, held, held, held[0], LeaderEpoch(0), 0))
        if settings:
            changes: dict[str, str | None] = {key.replace("_", "."): value for key, value in settings.items()}
            records.append(TopicSettingsChanged(topic_id, changes))
        self.apply(records)
        return topic_id

    def epoch(self, number: int) -> int:
        return self.image.brokers[NodeId(number)].epoch

    def partition(self, name: str, index: int = 0) -> Partition:
        return self.image.partition(name, index)

    def seats(self, name: str, index: int = 0) -> tuple[int | None, tuple[int, ...], tuple[int, ...]]:
        """Leader, ISR and eligible."""
        partition = self.partition(name, index)
        return partition.leader, tuple(sorted(partition.isr)), tuple(sorted(partition.eligible))

    def check(self) -> None:
        """M2 to M4, and what else must hold of every partition at any time."""
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                check_partition(self, partition)
                minimum = self.settings.minimum_in_sync(topic, partition)
                assert len(partition.isr) < minimum or not partition.eligible


def check_epochs(before: Partition, after: PartitionChanged) -> None:
    """M1."""
    assert after.partition_epoch == before.partition_epoch + 1
    assert after.leader_epoch - before.leader_epoch in (0, 1)
    assert after.leader == before.leader or after.leader_epoch == before.leader_epoch + 1


def check_partition(cluster: ImaginedCluster, partition: Partition) -> None:
    replicas, isr, eligible = set(partition.replicas), set(partition.isr), set(partition.eligible)
    assert partition.leader is None or partition.leader in isr, "M2"
    assert isr <= replicas, "M3"
    assert isr or partition.leader is None, "M3"
    for node_id in isr:
        assert cluster.image.brokers[node_id].state is not BrokerState.FENCED, "M4"
    assert eligible <= replicas
    assert not eligible & isr
    assert len(replicas) == len(partition.replicas)
    assert len(isr) == len(partition.isr)
    assert set(partition.adding) <= replicas
    assert set(partition.removing) <= replicas
    assert not set(partition.adding) & set(partition.removing)
    assert not set(partition.observers) & replicas
    assert partition.last_leader is None or (partition.leader is None and partition.last_leader in replicas)


def losses(records: Iterable[MetadataRecord]) -> list[LossRecorded]:
    return [record for record in records if isinstance(record, LossRecorded)]


def alter(
    cluster: ImaginedCluster, leader: int, isr: tuple[int, ...], *, topic: str = "orders", index: int = 0
) -> Partition:
    """The leader asks for an ISR, and must be given it."""
    partition = cluster.partition(topic, index)
    records, (altered,) = decide_alter_partition(
        cluster.image,
        NodeId(leader),
        cluster.epoch(leader),
        [
            PartitionAlteration(
                topic_id=cluster.image.topic(topic).topic_id,
                index=index,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                isr=[(NodeId(member), cluster.epoch(member)) for member in isr],
            )
        ],
        settings=cluster.settings,
        now_ms=NOW_MS,
    )
    assert isinstance(altered.outcome, Partition), altered.outcome
    cluster.apply(records)
    return altered.outcome
