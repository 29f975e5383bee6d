"""All partitions of this node, in step with the image: opened when it names them, closed when it does not.

`find` and `find_by_id` are the way from a door to a partition.
"""

from collections.abc import Iterator, Sequence

import structlog

from ropewalk.base.errors import (
    NotLeader,
    StorageFailed,
    UnknownPartition,
    UnknownTopic,
    UnknownTopicId,
)
from ropewalk.base.ids import NodeId, Offset, TopicId, TopicPartition, format_id
from ropewalk.base.limits import SNAPSHOTS_TOGETHER_BYTES_MAX
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.group_commit import GroupCommit
from ropewalk.broker.log_starts import LogStarts
from ropewalk.broker.opening import Opening, open_logs
from ropewalk.broker.partition import Partition, node_stopping, topic_deleted
from ropewalk.broker.topic_rules import log_settings, record_rules
from ropewalk.log.checkpoints import CheckpointWrite
from ropewalk.log.directory import DataDirectory, Held
from ropewalk.log.log import Log
from ropewalk.log.snapshot import SnapshotWrite, write_snapshots
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerRemoved,
    BrokerSettingsChanged,
    BrokerStateChanged,
    ClientQuotasChanged,
    ClusterCreated,
    ControllerChanged,
    Fact,
    ProducerIdsAllocated,
)
from ropewalk.metadata.settings.applied import (
    AppliedSettings,
    BrokerSettings,
    TopicSettings,
)

_log = structlog.get_logger()


class Home:
    """A directory that holds partitions, and who makes them durable there."""

    def __init__(self, directory: DataDirectory, log_starts: LogStarts, commits: GroupCommit) -> None:
        self.directory = directory
        self.log_starts = log_starts
        self.commits = commits


class Partitions:
    def __init__(
        self,
        *,
        image: Image,
        settings: AppliedSettings,
        node_id: NodeId,
        disk: Home,
        memory: Home,
        pool: Pool,
        clock: Clock,
    ) -> None:
        self._image = image
        self._settings = settings
        self._node_id = node_id
        self._disk = disk
        self._memory = memory
        self._pool = pool
        self._clock = clock
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[TopicId, dict[int, Partition]] = {}
        self._unopened: dict[tuple[TopicId, int], StorageFailed] = {}
        """Partitions that could not be opened for want of room; tried again by `follow`."""

    def __iter__(self) -> Iterator[Partition]:
        for partitions in list(self._by_id.values()):
            yield from list(partitions.values())

    def find(self, topic: str, index: int) -> Partition:
        """The partition, if it is led here; else an error that says where it stands."""
        partitions = self._by_name.get(topic)
        if partitions is None:
            raise UnknownTopic(f"there is no topic {topic!r}")
        partition = partitions.get(index)
        if partition is None:
            raise self._missing(topic, index)
        return partition

    def find_by_id(self, topic_id: TopicId, index: int) -> Partition:
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise UnknownTopicId(f"there is no topic with id {format_id(topic_id)}")
        partition = partitions.get(index)
        if partition is None:
            raise self._missing(self._image.topic_by_id(topic_id).name, index)
        return partition

    def led(self, topic_id: TopicId, index: int) -> Partition | None:
        """None where this node does not lead it, or has not opened it yet."""
        partitions = self._by_id.get(topic_id)
        return None if partitions is None else partitions.get(index)

    async def open_all(self, held_partitions: Sequence[Held]) -> None:
        """Open what the image says this node leads, and remove what it no longer names of what the disk holds."""
        wanted = {topic.topic_id for topic in self._image.topics.values()}
        for held in held_partitions:
            if held.topic_id in wanted:
                continue
            if self._image.was_deleted(held.topic_id):  # the node stopped before it got to removing it
                await self._pool.run(self._disk.directory.delete_partitions, [held])
                self._disk.directory.forget_partition(held.name)
            else:
                _log.error(
                    "the data directory holds a partition that the metadata has never heard of; it is left alone",
                    partition=str(held.name),
                    topic_id=format_id(held.topic_id),
                )
        await self._reconcile(list(self._image.topics.values()))
        # What recovery found may not be on disk yet. Nobody is served before it is: the end of a partition that was
        # once told would seem to have moved back.
        await self._disk.commits.settle()

    async def follow(self, records: Sequence[Fact]) -> None:
        """Bring the partitions in step with records that have just been applied to the image.

        What could not be opened before is tried again, so following nothing at all has its use.
        """
        touched: dict[TopicId, None] = dict.fromkeys(topic_id for topic_id, _ in self._unopened)
        for record in records:
            match record:
                case BrokerSettingsChanged():
                    touched.update(dict.fromkeys(topic.topic_id for topic in self._image.topics.values()))
                case (
                    ClusterCreated()
                    | ControllerChanged()
                    | BrokerRegistered()
                    | BrokerStateChanged()
                    | BrokerRemoved()
                    | ProducerIdsAllocated()
                    | ClientQuotasChanged()
                ):
                    pass
                case _:
                    touched[record.topic_id] = None
        topics = self._image.topics_by_id
        for gone in [topic_id for topic_id in touched if topic_id not in topics]:
            await self._drop(gone)
        # One that was deleted while others were being dropped is dropped when that record is followed.
        await self._reconcile([topics[topic_id] for topic_id in touched if topic_id in topics])

    async def trim(self, partition: Partition, offset: Offset) -> None:
        """Delete the records below `offset`; returns when no restart can bring them back."""
        home = self.home_of(partition)
        partition.log.plan_start(offset, limit_offset=partition.high_watermark)
        home.directory.note(partition.name, partition.topic_id, partition.log)
        durable = await home.log_starts.save()
        await self.remove_expired(partition, durable)

    async def remove_expired(self, partition: Partition, durable_starts: CheckpointWrite) -> None:
        """Start where the log does durably, and remove the files below."""
        start_offset = durable_starts.offset_of(str(partition.name))
        removal = partition.take_removal(start_offset_durable=start_offset)
        if removal is not None:
            await self._pool.run(removal.run)

    @property
    def unopened_count(self) -> int:
        """Partitions for which there was no room."""
        return len(self._unopened)

    def hosts(self, partition: Partition) -> bool:
        """Whether it is still here: a topic may be deleted while somebody goes through them all."""
        return self._by_id.get(partition.topic_id, {}).get(partition.name.partition) is partition

    def home_of(self, partition: Partition) -> Home:
        return self._memory if partition.in_memory else self._disk

    def refuse(self) -> None:
        """The node stops: take no more."""
        for partition in self:
            partition.refuse(node_stopping(partition.name))

    def end(self) -> None:
        """The node stops: send everybody away."""
        for partition in self:
            partition.end(node_stopping(partition.name))

    async def close(self) -> None:
        """Everything is durable: write what makes the next start quick."""
        directory = self._disk.directory
        snapshots: list[SnapshotWrite] = []
        size_bytes = 0
        for partition in self:
            if partition.in_memory:
                continue
            snapshot = partition.log.close(self._clock.now_ms())
            directory.note(partition.name, partition.topic_id, partition.log)
            if snapshot is None:
                continue
            snapshots.append(snapshot)
            size_bytes += len(snapshot.data)
            if size_bytes >= SNAPSHOTS_TOGETHER_BYTES_MAX:
                await self._pool.run(write_snapshots, directory.storage.disk, snapshots)
                snapshots, size_bytes = [], 0
        await self._pool.run(write_snapshots, directory.storage.disk, snapshots)
        await self._pool.run(directory.mark_clean)

    async def _reconcile(self, topics: Sequence[Topic]) -> None:
        broker_settings = self._settings.of_broker
        vacant: list[tuple[Topic, PartitionFacts, TopicSettings]] = []
        for topic in topics:
            settings = self._settings.of_topic(topic)
            hosted = self._by_id.setdefault(topic.topic_id, {})
            self._by_name[topic.name] = hosted
            for facts in topic.partitions:
                if facts.leader != self._node_id:
                    continue
                if facts.index in hosted:
                    self._update(hosted[facts.index], facts, settings, broker_settings)
                else:
                    vacant.append((topic, facts, settings))
        openings = [
            Opening(
                self._home_for(settings).directory,
                TopicPartition(topic.name, facts.index),
                topic.topic_id,
                facts.leader_epoch,
                log_settings(settings, broker_settings),
            )
            for topic, facts, settings in vacant
        ]
        logs = await open_logs(openings, self._pool, now_ms=self._clock.now_ms())
        for (topic, facts, settings), log in zip(vacant, logs, strict=True):
            if isinstance(log, Log):
                self._host(topic, facts, settings, log)
            else:
                reason = StorageFailed(f"{topic.name}-{facts.index} cannot be opened: {log.strerror}")
                _log.warning("a partition cannot be opened; it is tried again", reason=str(reason))
                self._unopened[topic.topic_id, facts.index] = reason

    def _host(self, topic: Topic, facts: PartitionFacts, settings: TopicSettings, log: Log) -> None:
        name = TopicPartition(topic.name, facts.index)
        home = self._home_for(settings)
        self._unopened.pop((topic.topic_id, facts.index), None)
        _report(name, log)
        partition = Partition(
            name,
            topic.topic_id,
            log,
            leader_epoch=facts.leader_epoch,
            rules=record_rules(settings),
            durable_first=settings.flush == "group" and home is not self._memory,
            in_memory=home is self._memory,
            commits=home.commits,
            clock=self._clock,
        )
        self._by_id[topic.topic_id][facts.index] = partition
        if log.dirty and partition.durable_first:
            home.commits.note(partition)

    def _home_for(self, settings: TopicSettings) -> Home:
        return self._memory if settings.storage == "memory" else self._disk

    def _update(
        self,
        partition: Partition,
        facts: PartitionFacts,
        settings: TopicSettings,
        broker_settings: BrokerSettings,
    ) -> None:
        partition.set_leader_epoch(facts.leader_epoch)
        partition.rules = record_rules(settings)
        partition.log.settings = log_settings(settings, broker_settings)
        partition.set_durable_first(settings.flush == "group" and not partition.in_memory)

    async def _drop(self, topic_id: TopicId) -> None:
        partitions = self._by_id.pop(topic_id, None)
        if partitions is None:  # made and deleted before it was opened
            return
        self._by_name = {name: led for name, led in self._by_name.items() if led is not partitions}
        self._unopened = {key: reason for key, reason in self._unopened.items() if key[0] != topic_id}
        for partition in partitions.values():
            partition.end(topic_deleted(partition.name))
            self.home_of(partition).commits.forget(partition)
            partition.log.forget()
        for home in (self._disk, self._memory):
            here = [each for each in partitions.values() if self.home_of(each) is home]
            held = [Held(each.name, topic_id) for each in here]
            if held:
                await self._pool.run(home.directory.delete_partitions, held)
            for each in held:
                home.directory.forget_partition(each.name)

    def _missing(self, topic: str, index: int) -> UnknownPartition | NotLeader | StorageFailed:
        facts = self._image.topic(topic).partitions
        unopened = self._unopened.get((self._image.topic(topic).topic_id, index))
        if unopened is not None:
            return unopened.with_traceback(None)  # raised often: it would remember every time
        if 0 <= index < len(facts):
            return NotLeader(f"{topic}-{index} is led by node {facts[index].leader}")
        return UnknownPartition(f"{topic} has {len(facts)} partitions, so none is numbered {index}")


def _report(name: TopicPartition, log: Log) -> None:
    """One line for a log that was not closed in order, a warning where something is lost or damaged."""
    found = log.recovered
    if found.cut_bytes:
        _log.warning(
            "partition recovered: an unacknowledged tail was cut",
            partition=str(name),
            end_offset=found.end_offset,
            cut_bytes=found.cut_bytes,
            reason=found.cut_reason,
        )
    elif not found.is_clean and found.scanned_bytes:
        _log.info(
            "partition recovered",
            partition=str(name),
            end_offset=found.end_offset,
            scanned_bytes=found.scanned_bytes,
        )
    for damaged in found.damaged:
        _log.error(
            "partition is damaged: reads of this range are refused",
            partition=str(name),
            start_offset=damaged.start_offset,
            end_offset=damaged.end_offset,
        )
