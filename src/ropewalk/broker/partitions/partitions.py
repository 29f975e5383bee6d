"""All partitions of this node, in step with the image: opened when it names them, closed when it does not.

A partition that the node holds is led here or copied from another node, by two kinds of object over one log. When
the image says that the leader is another, the log goes over from the one to the other; whoever waited hears `NotLeader`.
`find` and `find_by_id` are the way from a door to a partition that is led here.

What a reader could get wrong
    What the node holds no longer is removed when a committed record says so, which this node has followed itself. That an
    image names the node nowhere is no proof while it is being read: it may be older than the files.
    A change is followed in turns of some partitions each, and only the partitions that its records name are looked at. Others
    run in between, and may find a partition that still has the role of before: epochs say so.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from errno import ENOSPC
from os import strerror
from typing import Final, TypeAlias, assert_never

import structlog

from ropewalk.base.errors import (
    NotLeader,
    RopewalkError,
    StorageFailed,
    UnknownPartition,
    UnknownTopic,
    UnknownTopicId,
)
from ropewalk.base.ids import NodeId, Offset, TopicId, TopicPartition, format_id
from ropewalk.base.limits import (
    DISK_THREADS,
    PARTITIONS_OPENED_TOGETHER,
    PARTITIONS_PER_TURN,
    RECORDS_PER_TURN,
    ROLES_PER_TURN,
    SNAPSHOTS_TOGETHER_BYTES_MAX,
)
from ropewalk.base.ports import Pool
from ropewalk.base.reserve import is_no_room
from ropewalk.broker.partitions.believed_clock import BelievedClock
from ropewalk.broker.partitions.checkpoint_saving import NO_ROOM
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.in_sync import InSyncSets
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.broker.partitions.opening import Opening, Recoveries, open_logs
from ropewalk.broker.partitions.page_cache_marks import PageCacheMarks
from ropewalk.broker.partitions.partition import Partition, node_stopping, topic_deleted
from ropewalk.broker.partitions.replica import Replica
from ropewalk.broker.partitions.roles import Roles
from ropewalk.broker.partitions.starts import Starts
from ropewalk.broker.partitions.topic_rules import log_settings
from ropewalk.log.checkpoints import CheckpointWrite
from ropewalk.log.directory import Held
from ropewalk.log.log import Log
from ropewalk.log.snapshot import SnapshotWrite, write_snapshots
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.image import Partition as PartitionFacts
from ropewalk.metadata.records import (
    AclAdded,
    AclRemoved,
    BrokerLeaving,
    BrokerMaintenance,
    BrokerRegistered,
    BrokerRemoved,
    BrokerSettingsChanged,
    BrokerStateChanged,
    ChangeMade,
    ClientQuotasChanged,
    ClusterCreated,
    ControllerChanged,
    DecoyKeySet,
    Fact,
    HomeLeft,
    LevelChanged,
    LossRecorded,
    MoveTaskCancelling,
    MoveTaskEnded,
    MoveTaskStarted,
    PartitionChanged,
    PartitionCreated,
    ProducerIdsAllocated,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    ScramCredentialRemoved,
    ScramCredentialSet,
    TokenKeyAdded,
    TokenKeyRemoved,
    TopicChanged,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import AppliedSettings, TopicSettings
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()


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
        clock: BelievedClock,
        may_lead: Callable[[], bool] = lambda: True,
        is_withdrawn: Callable[[], bool] = lambda: False,
        is_out_of_touch: Callable[[], bool] = lambda: False,
    ) -> None:
        """`may_lead`: whether the image has reached this process's registration; a node that is alone always may.
        `is_withdrawn`: whether the node has left service, for as long as the process lives: it neither leads nor follows nor is read from.
        `is_out_of_touch`: whether no controller has answered for a whole session."""
        self._image = image
        self._settings = settings
        self._node_id = node_id
        self._disk = disk
        self._memory = memory
        self._pool = pool
        self._clock = clock
        self.in_sync = InSyncSets(image, node_id, clock, is_out_of_touch=is_out_of_touch)
        self.marks = PageCacheMarks(disk)
        self._roles = Roles(
            node_id,
            image=image,
            settings=settings,
            disk=disk,
            memory=memory,
            marks=self.marks,
            in_sync=self.in_sync,
            clock=clock,
            may_lead=may_lead,
            is_withdrawn=is_withdrawn,
        )
        self._is_withdrawn = is_withdrawn
        self._has_withdrawn = False
        self.log_work = LogWork()
        self._starts = Starts(self.log_work, pool, clock)
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[TopicId, dict[int, Partition]] = {}
        """Those that are led here."""
        self._followed: dict[TopicId, dict[int, Replica]] = {}
        self._unopened: dict[tuple[TopicId, int], StorageFailed] = {}
        """Partitions that could not be opened for want of room; tried again by `follow`."""
        self._recoveries = Recoveries()
        self._following = asyncio.Lock()
        self._pace = Pace(ROLES_PER_TURN)
        self._saving_damage = asyncio.Lock()
        self.on_opened: Callable[[int], None] = _on_nothing
        """Told how many partitions were opened by one change."""

    def __iter__(self) -> Iterator[Hosted]:
        """All that are held here."""
        yield from self.all_led()
        yield from self.all_followed()

    def all_led(self) -> Iterator[Partition]:
        for partitions in list(self._by_id.values()):
            yield from list(partitions.values())

    def all_followed(self) -> Iterator[Replica]:
        for replicas in list(self._followed.values()):
            yield from list(replicas.values())

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

    def find_copy(self, topic: str, index: int) -> Hosted:
        """The partition, whether it is led here or copied."""
        if self._is_withdrawn():
            raise _withdrawn()
        facts = self._image.topics.get(topic)
        copy = None if facts is None else self.followed(facts.topic_id, index)
        return self.find(topic, index) if copy is None else copy

    def find_copy_by_id(self, topic_id: TopicId, index: int) -> Hosted:
        if self._is_withdrawn():
            raise _withdrawn()
        return self.followed(topic_id, index) or self.find_by_id(topic_id, index)

    def led(self, topic_id: TopicId, index: int) -> Partition | None:
        """None where this node does not lead it, or has not opened it yet."""
        partitions = self._by_id.get(topic_id)
        return None if partitions is None else partitions.get(index)

    def followed(self, topic_id: TopicId, index: int) -> Replica | None:
        """None where this node keeps no copy of another's, or has not opened it yet."""
        replicas = self._followed.get(topic_id)
        return None if replicas is None else replicas.get(index)

    async def open_all(self, held_partitions: Sequence[Held]) -> None:
        """Open what the image says this node holds, and remove the topics that it says are deleted."""
        wanted = {topic.topic_id for topic in self._image.topics.values()}
        for held in held_partitions:
            if held.topic_id in wanted:
                continue
            if self._image.was_deleted(held.topic_id):  # the node stopped before it got to removing it
                await self._pool.run(self._disk.directory.delete_partitions, [held])
                self._forget(self._disk, held.name)
            else:
                _log.error(
                    "the data directory holds a partition that the metadata has never heard of; it is left alone",
                    partition=str(held.name),
                    topic_id=format_id(held.topic_id),
                )
        await self._reconcile(dict.fromkeys(self._image.topics_by_id))
        self._recoveries.tell()
        # What recovery found may not be on disk yet. Nobody is served before it is: the end of a partition that was
        # once told would seem to have moved back.
        await self._disk.commits.settle()
        await self.save_damage()

    async def remove_strays(self, held_partitions: Sequence[Held]) -> None:
        """Remove what the disk holds and the image gives to others: a node that went down before it got to it.

        Only for an image that has reached this node's own registration, and is so at least as new as the files.
        """
        async with self._following:  # one that is wanted again is opened afterwards, not meanwhile
            strays = [held for held in held_partitions if self._is_stray(held)]
            if strays:
                await self._pool.run(self._disk.directory.delete_partitions, strays)
            for stray in strays:
                self._forget(self._disk, stray.name)

    async def follow(self, records: Sequence[Fact]) -> list[tuple[TopicId, int]]:
        """Bring the partitions in step with records that have just been applied to the image; answers what was opened.

        What could not be opened before is tried again, so following nothing at all has its use.
        """
        async with self._following:
            opened = await self._follow(records)
        self._recoveries.tell()
        return opened

    async def _follow(self, records: Sequence[Fact]) -> list[tuple[TopicId, int]]:
        if self._is_withdrawn():
            await self._withdraw()
            return []
        touched = await self._touched(records)
        topics = self._image.topics_by_id
        for gone in [topic_id for topic_id in touched if topic_id not in topics]:
            await self._drop(gone)
        # One that was deleted while others were being dropped is dropped when that record is followed.
        return await self._reconcile(touched)

    async def _touched(self, records: Sequence[Fact]) -> "_Touched":
        """What the records are about, and what is still to be opened."""
        touched: _Touched = {}
        for topic_id, index in self._unopened:
            _touch(touched, topic_id, index)
        pace = Pace(RECORDS_PER_TURN)
        for record in records:
            await pace.next()
            match record:
                case PartitionCreated() | PartitionChanged():
                    _touch(touched, record.topic_id, record.index)
                case TopicCreated() | TopicChanged() | TopicSettingsChanged() | TopicDeleted():
                    touched[record.topic_id] = None
                case QueueCreated(topic_id=topic_id):  # who may write to it depends on it
                    touched[topic_id] = None
                case BrokerSettingsChanged():
                    touched.update(dict.fromkeys(self._image.topics_by_id))
                case ControllerChanged(settings=settled):
                    if settled:
                        touched.update(dict.fromkeys(self._image.topics_by_id))
                case BrokerRegistered(node_id=node_id):
                    if node_id == self._node_id:  # what it may lead depends on it
                        touched.update(dict.fromkeys(self._image.topics_by_id))
                case (
                    ClusterCreated()
                    | HomeLeft()
                    | LevelChanged()
                    | BrokerStateChanged()
                    | BrokerLeaving()
                    | BrokerMaintenance()
                    | BrokerRemoved()
                    | LossRecorded()
                    | ProducerIdsAllocated()
                    | ClientQuotasChanged()
                    | ScramCredentialSet()
                    | ScramCredentialRemoved()
                    | DecoyKeySet()
                    | TokenKeyAdded()
                    | TokenKeyRemoved()
                    | AclAdded()
                    | AclRemoved()
                    | ChangeMade()
                    | QueueChanged()
                    | QueueDeleted()
                    | MoveTaskStarted()
                    | MoveTaskCancelling()
                    | MoveTaskEnded()
                ):
                    pass
                case _:
                    assert_never(record)
        return touched

    async def _withdraw(self) -> None:
        """Lead nothing and follow nobody. What is held stays as it is: nothing is opened or removed by an image that counts no more."""
        if self._has_withdrawn:
            return
        self._has_withdrawn = True
        for hosted in list(self):
            await self._send_away(hosted, _withdrawn())
            self._put(self._roles.retire(hosted))

    async def trim(self, partition: Hosted, offset: Offset) -> None:
        """Delete the records below `offset` here; returns when no restart of this node can bring them back."""
        self._check_hosts(partition)
        home = self.home_of(partition)
        # A copy follows its leader, which owners have held up before.
        is_decided = isinstance(partition, Replica)
        partition.log.trimming.plan_start(
            offset, limit_offset=partition.high_watermark, is_decided=is_decided
        )
        await self.remember_producers(partition)
        self._check_hosts(partition)
        home.directory.note(partition.name, partition.topic_id, partition.log)
        durable = await home.log_starts.save()
        await self.remove_expired(partition, durable)

    async def remember_producers(self, partition: Hosted) -> None:
        """Of whoever has written to segments that are planned to go: have a snapshot tell that a restart believes.

        Without room for it they go all the same, since nothing else makes room.
        """
        log = partition.log
        if partition.in_memory or not log.trimming.forgets or self.log_work.is_wanted(log):
            return
        home = self.home_of(partition)
        try:
            await self._write_snapshot(partition)
            if log.dirty:
                home.commits.note(partition)
                await home.commits.covered()
            if self.hosts(partition):
                home.directory.note(partition.name, partition.topic_id, log)
                await home.recovery_points.save()
        except StorageFailed as error:
            _log.warning(
                "a deletion goes on without a snapshot", partition=str(partition.name), reason=str(error)
            )
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            _log.warning(
                "a deletion goes on without a snapshot", partition=str(partition.name), reason=error.strerror
            )

    async def _write_snapshot(self, partition: Hosted) -> None:
        log, maintenance = partition.log, partition.log.maintenance
        async with self.log_work.writing_snapshot(log):
            if self.log_work.is_wanted(log) or not self.hosts(partition):  # since it waited for another
                return
            snapshot = maintenance.take_snapshot(self._clock.expiry_ms(), force=True, before_deleting=True)
            if snapshot is None:
                return
            with self.log_work.beside(log):
                try:
                    await self._pool.run(snapshot.run)
                except FileNotFoundError:
                    if self.hosts(partition):
                        raise
                else:
                    maintenance.on_snapshot(snapshot)

    async def save_damage(self) -> None:
        """Write down which logs are known to be damaged, so that no restart forgets it. Call before anybody is told of one.

        Without room for that it is tried again at the next call.
        """
        known = self._disk.directory.known_damage
        pace = Pace(PARTITIONS_PER_TURN)
        for partition in self:
            await pace.next()
            if not partition.in_memory and self.hosts(partition):
                known.note(str(partition.name), partition.topic_id, partition.log.damaged)
        async with self._saving_damage:
            if known.is_saved:
                return
            write = known.take()
            try:
                await self._pool.run(write.run)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                _log.warning("damage that was found cannot be written down yet", reason=error.strerror)
            else:
                known.on_written(write)

    async def remove_expired(self, partition: Hosted, durable_starts: CheckpointWrite) -> None:
        """Start where the log does durably, and remove the files below."""
        self._check_hosts(partition)
        if self.log_work.is_wanted(partition.log):
            return  # that the start is durable is not forgotten: it is moved along with the next
        start_offset = durable_starts.offset_of(str(partition.name))
        removal = partition.take_removal(start_offset_durable=start_offset)
        if removal is not None:
            with self.log_work.beside(partition.log):
                await self._pool.run(removal.run)

    @property
    def unopened_count(self) -> int:
        """Partitions for which there was no room."""
        return len(self._unopened)

    def hosts(self, partition: Hosted) -> bool:
        """Whether it is still here, in this role: a topic may be deleted while somebody goes through them all."""
        hosted = self._by_id if isinstance(partition, Partition) else self._followed
        return hosted.get(partition.topic_id, {}).get(partition.name.partition) is partition

    def _check_hosts(self, partition: Hosted) -> None:
        """Of one that is not here any more nothing is noted: under its name there may be another."""
        if not self.hosts(partition):
            raise NotLeader(f"{partition.name} is led by another node now")

    def home_of(self, partition: Hosted) -> Home:
        return self._memory if partition.in_memory else self._disk

    def refuse(self) -> None:
        """The node stops: take no more."""
        for partition in self:
            partition.refuse(node_stopping(partition.name))

    def end(self) -> None:
        """The node stops: send everybody away, if that is not done yet."""
        for partition in self:
            if not partition.is_over:
                partition.end(node_stopping(partition.name))

    async def close(self) -> None:
        """Everything is durable: write what makes the next start quick."""
        directory = self._disk.directory
        snapshots: list[SnapshotWrite] = []
        size_bytes = 0
        for partition in self:
            if partition.in_memory:
                continue
            snapshot = partition.log.close(self._clock.expiry_ms())
            directory.note(partition.name, partition.topic_id, partition.log)
            directory.known_damage.note(str(partition.name), partition.topic_id, partition.log.damaged)
            if snapshot is None:
                continue
            snapshots.append(snapshot)
            size_bytes += len(snapshot.data)
            if size_bytes >= SNAPSHOTS_TOGETHER_BYTES_MAX:
                await self._write_closing_snapshots(snapshots)
                snapshots, size_bytes = [], 0
        await self._write_closing_snapshots(snapshots)
        try:
            await self._pool.run(directory.mark_clean)
        except OSError as error:
            if not is_no_room(error):
                raise
            _log.warning("the disk is full; the next start reads the ends of all logs", reason=error.strerror)

    async def _write_closing_snapshots(self, snapshots: Sequence[SnapshotWrite]) -> None:
        """A log without one is read at the next start. On a full disk they would take what is needed to empty it."""
        directory = self._disk.directory
        if not snapshots:
            return
        try:
            if directory.storage.reserve.is_full:
                raise OSError(ENOSPC, strerror(ENOSPC))
            await self._pool.run(write_snapshots, directory.storage.disk, snapshots)
        except OSError as error:
            if not is_no_room(error):
                raise
            _log.warning(
                "the disk is full; what would make the next start quick is not written",
                partition_count=len(snapshots),
                reason=error.strerror,
            )

    async def _reconcile(self, touched: "_Touched") -> list[tuple[TopicId, int]]:
        """In turns. What the image says of a partition counts when its turn comes, which may be more than the records said."""
        vacant: list[_Vacant] = []
        pace = self._pace
        for topic_id, indexes in touched.items():
            topic = self._image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            self._by_name[topic.name] = self._by_id.setdefault(topic_id, {})
            for index in range(len(topic.partitions)) if indexes is None else indexes:
                await pace.next()
                topic = self._image.topics_by_id.get(topic_id)
                if topic is None:  # that record is followed next
                    break
                facts, settings = topic.partitions[index], self._settings.of_topic(topic)
                hosted = self._hosted(topic_id, index)
                if self._node_id not in facts.replicas and self._node_id not in facts.observers:
                    self._unopened.pop((topic_id, index), None)
                    if hosted is not None:
                        await self._remove([hosted], _moved_away(hosted))
                elif hosted is None:
                    vacant.append((topic, facts, settings))
                else:
                    await self._update(hosted, facts, settings)
        opened: list[tuple[TopicId, int]] = []
        for start in range(0, len(vacant), _OPENED_AT_A_TIME):
            opened += await self._open(vacant[start : start + _OPENED_AT_A_TIME])
        return opened

    async def _open(self, vacant: "Sequence[_Vacant]") -> list[tuple[TopicId, int]]:
        """Answers what was opened of it."""
        broker_settings = self._settings.of_broker
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
        opened = []
        for (topic, facts, settings), log in zip(vacant, logs, strict=True):
            await self._pace.next()
            key, name = (topic.topic_id, facts.index), TopicPartition(topic.name, facts.index)
            if not isinstance(log, Log):
                self._put_off(key, StorageFailed(f"{name} cannot be opened: {log.strerror}"))
            elif await self._leave_behind(name, topic.topic_id, log, facts, self._home_for(settings)):
                self._host(topic, facts, settings, log)
                opened.append(key)
        self.on_opened(len(opened))
        return opened

    def _put_off(self, key: tuple[TopicId, int], reason: StorageFailed) -> None:
        if key not in self._unopened:
            _log.warning("a partition cannot be opened; it is tried again", reason=str(reason))
        self._unopened[key] = reason

    async def _leave_behind(
        self, name: TopicPartition, topic_id: TopicId, log: Log, facts: PartitionFacts, home: Home
    ) -> bool:
        """Before a role has the log: nothing is left in it that the cluster says was deleted. False: that has to wait."""
        try:
            await self._starts.leave_behind(name, topic_id, log, facts, home, leads=self._roles.leads(facts))
        except StorageFailed as error:
            log.forget()
            self._put_off((topic_id, facts.index), error)
            return False
        return True

    def _hosted(self, topic_id: TopicId, index: int) -> Hosted | None:
        return self.led(topic_id, index) or self.followed(topic_id, index)

    def _is_stray(self, held: Held) -> bool:
        topic, index = self._image.topics_by_id.get(held.topic_id), held.name.partition
        return (
            topic is not None
            and index < len(topic.partitions)
            and self._node_id not in topic.partitions[index].holders
            and self._hosted(held.topic_id, index) is None
        )

    def _host(self, topic: Topic, facts: PartitionFacts, settings: TopicSettings, log: Log) -> None:
        name = TopicPartition(topic.name, facts.index)
        self._unopened.pop((topic.topic_id, facts.index), None)
        unsynced = self._disk.directory.unsynced_before
        was_unsynced = unsynced is None or (topic.topic_id, facts.index) in unsynced
        self._recoveries.add(name, log, was_unsynced=was_unsynced)
        in_memory = self._home_for(settings) is self._memory
        self._put(self._roles.make(name, topic.topic_id, log, facts, settings, in_memory=in_memory))

    def _put(self, hosted: Hosted) -> None:
        if isinstance(hosted, Partition):
            self._by_id[hosted.topic_id][hosted.name.partition] = hosted
        else:
            self._followed.setdefault(hosted.topic_id, {})[hosted.name.partition] = hosted
        if hosted.log.dirty and hosted.durable_first:
            self.home_of(hosted).commits.note(hosted)

    def _home_for(self, settings: TopicSettings) -> Home:
        return self._memory if settings.storage == "memory" else self._disk

    async def _update(self, hosted: Hosted, facts: PartitionFacts, settings: TopicSettings) -> None:
        hosted.log.settings = log_settings(settings, self._settings.of_broker)
        if not self._roles.update(hosted, facts, settings):
            await self._send_away(hosted, NotLeader(f"{hosted.name} is led by node {facts.leader} now"))
            home = self.home_of(hosted)
            if await self._leave_behind(hosted.name, hosted.topic_id, hosted.log, facts, home):
                self._put(self._roles.replace(hosted, facts, settings))
        else:
            self._starts.follow(hosted, facts, self.home_of(hosted))

    async def _send_away(self, hosted: Hosted, reason: RopewalkError) -> None:
        """Let go of a role; its log is nobody's then."""
        hosted.end(reason)
        if isinstance(hosted, Replica):
            await hosted.idle()
        roles = self._by_id if isinstance(hosted, Partition) else self._followed
        roles.get(hosted.topic_id, {}).pop(hosted.name.partition, None)
        self.home_of(hosted).commits.forget(hosted)
        self.marks.forget(hosted)

    async def _drop(self, topic_id: TopicId) -> None:
        """The topic is deleted. It may have been made and deleted before it was opened."""
        gone: list[Hosted] = [
            *self._by_id.get(topic_id, {}).values(),
            *self._followed.get(topic_id, {}).values(),
        ]
        partitions = self._by_id.pop(topic_id, None)
        self._by_name = {name: led for name, led in self._by_name.items() if led is not partitions}
        self._unopened = {key: reason for key, reason in self._unopened.items() if key[0] != topic_id}
        for hosted in gone:  # before the first wait
            hosted.end(topic_deleted(hosted.name))
        await self._remove(gone, None)
        self._followed.pop(topic_id, None)

    async def _remove(self, gone: Sequence[Hosted], reason: RopewalkError | None) -> None:
        """Give up partitions and delete their files; with a reason, tell it to whoever waits."""
        for hosted in gone:
            await self._send_away(hosted, reason or topic_deleted(hosted.name))
        for hosted in gone:
            await self.home_of(hosted).commits.left(hosted)
            hosted.log.forget()
        for home in (self._disk, self._memory):
            held = [Held(each.name, each.topic_id) for each in gone if self.home_of(each) is home]
            if held:
                await self._pool.run(home.directory.delete_partitions, held)
            for each in held:
                self._forget(home, each.name)

    def _forget(self, home: Home, name: TopicPartition) -> None:
        home.directory.forget_partition(name)
        if home is self._disk:
            self.marks.drop(name)

    def _missing(self, topic: str, index: int) -> UnknownPartition | NotLeader | StorageFailed:
        facts = self._image.topic(topic).partitions
        unopened = self._unopened.get((self._image.topic(topic).topic_id, index))
        if unopened is not None:
            return unopened.with_traceback(None)  # raised often: it would remember every time
        if 0 <= index < len(facts):
            return NotLeader(f"{topic}-{index} is led by node {facts[index].leader}")
        return UnknownPartition(f"{topic} has {len(facts)} partitions, so none is numbered {index}")


_Vacant: TypeAlias = tuple[Topic, PartitionFacts, TopicSettings]
"""A partition that this node is to hold and does not yet."""

_OPENED_AT_A_TIME: Final = DISK_THREADS * PARTITIONS_OPENED_TOGETHER
"""So many that all threads of the pool are at work, and few enough that what is made of them is no more than the garbage collector
looks through between two turns."""

_Touched: TypeAlias = dict[TopicId, dict[int, None] | None]
"""Partitions by topic, in the order in which they were named; None stands for all of a topic."""


def _touch(touched: _Touched, topic_id: TopicId, index: int) -> None:
    indexes = touched.setdefault(topic_id, {})
    if indexes is not None:
        indexes[index] = None


def _withdrawn() -> NotLeader:
    return NotLeader("this node has left service: it can never follow the metadata again")


def _on_nothing(_: int) -> None:
    """Nobody has asked to be told."""


def _moved_away(hosted: Hosted) -> RopewalkError:
    return NotLeader(f"{hosted.name} is kept by other nodes now")
