"""The data directory of a node: whose it is, which partitions are in it, and how far each is known to be good.

    lock                      held by the process that uses the directory
    identity                  layout version, cluster id, node id, the directory's own id
    lives                     how many processes have used the directory
    recovery-points           per partition, the offset below which everything is durable
    log-starts                per partition, the offset below which everything is deleted
    high-watermarks           per replicated partition, an offset below which everything was committed
    unsynced                  per partition, the offset from which on records may have been acknowledged that were not on disk
    reserve                   room that is given up to empty a disk that is full
    damaged                   the ranges of logs that are known to be damaged
    clean-shutdown            there while, and only while, nothing has been written since an orderly stop
    <topic>-<n>/partition     the topic id
    <topic>-<n>/*.log …       the log
    *.creating, *.deleted     left by a crash; removed at the next start
    *.stray                   of a topic that nobody remembers, whose name another has; for a person to look at

What a reader could get wrong
    Everything here blocks, except what only changes or copies what is in memory (`note_…`, `take_…`).
    A partition comes into being, and ceases to be, by one rename, whatever is in it.
    The clean-shutdown marker is gone, durably, before any log is opened. Until `begin` nothing in a directory is changed: it may
    yet turn out to be another cluster's, and then goes back as it was.
"""

from collections.abc import Sequence
from errno import ENOSPC
from os import strerror
from typing import Final

from msgspec import Struct, structs

from ropewalk.base.errors import DirectoryInUse, DirectoryRefused, StorageFailed
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId, TopicPartition, format_id, parse_id
from ropewalk.base.ports import Disk, Rng, write_all_atomically, write_atomically
from ropewalk.log.checkpoints import Checkpoint, CheckpointWrite, encode_checked, read_checked
from ropewalk.log.contents import LEADER_EPOCH_MAX
from ropewalk.log.known_damage import KnownDamage
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage

LAYOUT_VERSION: Final = 1

_CREATING: Final = ".creating"
_DELETED: Final = ".deleted"
_STRAY: Final = ".stray"


class Identity(Struct, frozen=True, kw_only=True):
    layout_version: int
    cluster_id: str
    node_id: int
    directory_id: str
    """A wiped disk comes back with another one, and so as another replica."""


class Lives(Struct, frozen=True):
    count: int


class PartitionIdentity(Struct, frozen=True):
    topic_id: str


class Held(Struct, frozen=True):
    """A partition that the directory holds."""

    name: TopicPartition
    topic_id: TopicId


class DataDirectory:
    """Made by `open`, or by `claim` and `begin`; one per process and path."""

    def __init__(self, storage: Storage, path: str, identity: Identity, *, was_clean: bool) -> None:
        self.storage = storage
        self.path = path
        self.identity = identity
        self.was_clean = was_clean
        """Whether the node that used the directory last stopped in order."""

        self.life = 0
        """How many processes have used the directory, this one included; known from `begin` on."""

        self._topic_ids: dict[str, TopicId] = {}
        """Of the partitions whose `partition` file has been read or written, by name."""

        self.recovery_points = Checkpoint(storage.disk_to_go_on, f"{path}/recovery-points")
        self.log_starts = Checkpoint(storage.disk_to_delete, f"{path}/log-starts")
        self.high_watermarks = Checkpoint(storage.disk_to_go_on, f"{path}/high-watermarks")
        self.unsynced = Checkpoint(storage.disk_to_go_on, f"{path}/unsynced")
        self.unsynced_before = frozenset(self.unsynced.partitions()) if self.unsynced.existed else None
        """What a former process had acknowledged from the page cache; None where it left no word of it, as did those that kept none."""
        self.known_damage = KnownDamage(storage.disk_to_go_on, f"{path}/damaged")

    @classmethod
    def open(
        cls, storage: Storage, path: str, *, node_id: NodeId, rng: Rng, cluster_id: str | None = None
    ) -> "DataDirectory":
        """`claim`, and `begin` at once. Blocks."""
        directory = cls.claim(storage, path, node_id=node_id, rng=rng, cluster_id=cluster_id)
        directory.begin()
        return directory

    @classmethod
    def claim(
        cls, storage: Storage, path: str, *, node_id: NodeId, rng: Rng, cluster_id: str | None = None
    ) -> "DataDirectory":
        """Take possession of the directory, which is made if it is not there. Blocks.

        Refuses with `DirectoryInUse` while another process has it, with `DirectoryRefused` if it belongs to another
        cluster or node or has a layout this version does not know. Without a `cluster_id` the one found is
        taken, or a new one made.
        """
        disk = storage.disk
        disk.make_directory(path)
        try:
            disk.lock(f"{path}/lock")
        except BlockingIOError:
            raise DirectoryInUse(
                f"{path} is in use by another node; stop it, or choose another directory"
            ) from None
        identity = read_checked(disk, f"{path}/identity", Identity)
        if identity is None:
            identity = _create_identity(disk, path, node_id=node_id, rng=rng, cluster_id=cluster_id)
        _check_identity(identity, path, node_id=node_id, cluster_id=cluster_id)
        was_clean = disk.exists(f"{path}/clean-shutdown")
        return cls(storage, path, identity, was_clean=was_clean)

    def begin(self) -> None:
        """From here on logs may be opened, and a stop that is not in order leaves doubts. Blocks."""
        disk = self.storage.disk
        if disk.can_sync_everything:
            disk.hear_former_errors()
        disk.remove(f"{self.path}/clean-shutdown")
        for name in disk.list(self.path):
            if name.endswith((_CREATING, _DELETED)):
                disk.remove(f"{self.path}/{name}")
        disk.sync_directory(self.path)
        self.look_for_room()
        lives = read_checked(disk, f"{self.path}/lives", Lives)
        self.life = 1 if lives is None else lives.count + 1
        write_atomically(self.storage.disk_to_go_on, f"{self.path}/lives", encode_checked(Lives(self.life)))

    def become_another(self, rng: Rng) -> None:
        """Be another directory from here on, durably: what is in it does not count as what the former one held. Blocks."""
        self.identity = structs.replace(self.identity, directory_id=format_id(rng.randbytes(16)))
        write_atomically(self.storage.disk_to_go_on, f"{self.path}/identity", encode_checked(self.identity))

    def look_for_room(self) -> None:
        """See whether the disk has room, and keep back what a full disk is emptied with. Blocks."""
        self.storage.reserve.look(partition_count=len(self.recovery_points))

    def partitions(self) -> list[Held]:
        """What is here, by name. Blocks."""
        held = []
        for name in self.storage.disk.list(self.path):
            topic, dash, index = name.rpartition("-")
            if not dash or not index.isdigit():
                continue
            topic_id = self._topic_id_of(name)
            if topic_id is not None:
                held.append(Held(TopicPartition(topic, int(index)), topic_id))
        return held

    def create_partitions(self, wanted: Sequence[Held]) -> list[str]:
        """Make partitions, durably and with few syncs. One that is there with the same topic id is left as it is. Blocks.

        What a topic of another id has left under the name of one is set aside, not removed: perhaps it is the metadata that
        is of another day. Answers where that is now.
        """
        disk = self.storage.disk
        set_aside = [path for each in wanted if (path := self._set_aside(each)) is not None]
        missing = [each for each in wanted if not self._has(each)]
        if not missing:
            return set_aside
        if self.storage.reserve.is_full:
            raise OSError(ENOSPC, strerror(ENOSPC), self.path)
        contents: list[tuple[str, bytes]] = []
        for each in missing:
            temporary = self._temporary_path(each, _CREATING)
            disk.remove(temporary)
            disk.make_directory(temporary)
            identity = PartitionIdentity(format_id(each.topic_id))
            contents.append((f"{temporary}/partition", encode_checked(identity)))
        write_all_atomically(disk, contents)
        try:
            for each in missing:
                disk.rename(self._temporary_path(each, _CREATING), f"{self.path}/{each.name}")
        finally:  # those that have their name are found at the next attempt, and taken to be durable
            disk.sync_directory(self.path)
        for each in missing:
            self._topic_ids[str(each.name)] = each.topic_id
        return set_aside

    def holds(self, partition: Held) -> bool:
        """Whether it is here, and of this topic. Blocks."""
        name = str(partition.name)
        return (
            self.storage.disk.exists(f"{self.path}/{name}") and self._topic_id_of(name) == partition.topic_id
        )

    def create_partition(self, name: TopicPartition, topic_id: TopicId) -> None:
        self.create_partitions([Held(name, topic_id)])

    def open_log(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        settings: LogSettings,
        *,
        now_ms: int,
        leader_epoch_max: LeaderEpoch = LEADER_EPOCH_MAX,
    ) -> Log:
        """Open the log of a partition that is here; what was found is in its `recovered`. Blocks.

        `leader_epoch_max` as for `Log.open`.
        """
        self._check_topic_id(name, topic_id)
        return Log.open(
            self.storage,
            f"{self.path}/{name}",
            settings,
            recovery_point=self.recovery_points.get(str(name), topic_id),
            start_offset=self.log_starts.get(str(name), topic_id),
            clean=self.was_clean,
            now_ms=now_ms,
            leader_epoch_max=leader_epoch_max,
            doubts=self.known_damage.find(str(name), topic_id),
        )

    def delete_partitions(self, unwanted: Sequence[Held]) -> None:
        """Remove partitions; gone, durably, at the rename, which needs room itself. Their logs must have been told to `forget`. Blocks."""
        disk = self.storage.disk_to_delete
        there = [each for each in unwanted if self._has(each)]
        for each in there:
            removed = self._temporary_path(each, _DELETED)
            disk.remove(removed)
            disk.rename(f"{self.path}/{each.name}", removed)
            self._topic_ids.pop(str(each.name), None)
        if there:
            disk.sync_directory(self.path)
        for each in there:
            disk.remove(self._temporary_path(each, _DELETED))

    def forget_partition(self, name: TopicPartition) -> None:
        """Drop a deleted partition from the checkpoints."""
        self.recovery_points.drop(str(name))
        self.log_starts.drop(str(name))
        self.high_watermarks.drop(str(name))
        self.unsynced.drop(str(name))
        self.known_damage.drop(str(name))

    def note(self, name: TopicPartition, topic_id: TopicId, log: Log) -> None:
        """Copy how far a log is durable, and where it is to start, into the checkpoints to be taken next."""
        self.recovery_points.set(str(name), topic_id, log.recovery_point)
        self.log_starts.set(str(name), topic_id, log.trimming.planned_start_offset)

    def note_high_watermark(self, name: TopicPartition, topic_id: TopicId, offset: Offset) -> bool:
        """Put it into the checkpoint to be taken next; False if it stands there already."""
        if self.high_watermarks.get(str(name), topic_id) == offset:
            return False
        self.high_watermarks.set(str(name), topic_id, offset)
        return True

    def lower_high_watermark(self, name: TopicPartition, topic_id: TopicId, offset: Offset) -> bool:
        """What lies above `offset` is about to be cut. Put it into the checkpoint to be taken next; False if none is higher."""
        if self.high_watermarks.get(str(name), topic_id) <= offset:
            return False
        return self.note_high_watermark(name, topic_id, offset)

    def take_recovery_points(self) -> CheckpointWrite:
        return self.recovery_points.take()

    def take_log_starts(self) -> CheckpointWrite:
        return self.log_starts.take()

    def take_high_watermarks(self) -> CheckpointWrite:
        return self.high_watermarks.take()

    def take_unsynced(self) -> CheckpointWrite:
        return self.unsynced.take()

    def mark_clean(self) -> None:
        """Say that the node stopped in order: every log is durable, its closing snapshot written. Blocks.

        Of a log that is known to be damaged it says nothing. Nothing at all is said after a sync that failed, whoever heard of it.
        """
        disk = self.storage.disk
        self.recovery_points.take().run()
        self.log_starts.take().run()
        self.high_watermarks.take().run()
        if not self.known_damage.is_saved:
            self.known_damage.take().run()
        if disk.can_sync_everything:
            disk.sync_everything()
        disk.syncs.check()
        write_atomically(self.storage.disk_to_go_on, f"{self.path}/clean-shutdown", b"")

    def _set_aside(self, partition: Held) -> str | None:
        """Give what has the partition's name and is of another topic another name, if there is such."""
        name = str(partition.name)
        path = f"{self.path}/{name}"
        found = self._topic_id_of(name) if self.storage.disk.exists(path) else None
        if found is None or found == partition.topic_id:
            return None
        stray = self._temporary_path(Held(partition.name, found), _STRAY)
        self.storage.disk.rename(path, stray)
        self.storage.disk.sync_directory(self.path)
        del self._topic_ids[name]
        return stray

    def _has(self, partition: Held) -> bool:
        """Whether it is there; `StorageFailed` if what is there under its name is another's."""
        if not self.storage.disk.exists(f"{self.path}/{partition.name}"):
            return False
        self._check_topic_id(partition.name, partition.topic_id)
        return True

    def _check_topic_id(self, name: TopicPartition, topic_id: TopicId) -> None:
        found = self._topic_id_of(str(name))
        if found != topic_id:
            raise StorageFailed(
                f"{self.path}/{name} should belong to topic id {format_id(topic_id)} and carries "
                f"{'none' if found is None else format_id(found)}"
            )

    def _topic_id_of(self, name: str) -> TopicId | None:
        topic_id = self._topic_ids.get(name)
        if topic_id is None:
            identity = read_checked(self.storage.disk, f"{self.path}/{name}/partition", PartitionIdentity)
            if identity is None:
                return None
            topic_id = self._topic_ids[name] = TopicId(parse_id(identity.topic_id))
        return topic_id

    def _temporary_path(self, partition: Held, suffix: str) -> str:
        """Named by id: a topic's own name may be as long as the file system allows."""
        return f"{self.path}/{format_id(partition.topic_id)}-{partition.name.partition}{suffix}"


def known_cluster(disk: Disk, path: str) -> str | None:
    """The cluster that a directory says it belongs to; None where there is no directory, or it does not say."""
    try:
        identity = read_checked(disk, f"{path}/identity", Identity)
    except (OSError, StorageFailed):
        return None  # whoever opens it says what is wrong
    return None if identity is None else identity.cluster_id


def _create_identity(disk: Disk, path: str, *, node_id: NodeId, rng: Rng, cluster_id: str | None) -> Identity:
    identity = Identity(
        layout_version=LAYOUT_VERSION,
        cluster_id=cluster_id or format_id(rng.randbytes(16)),
        node_id=node_id,
        directory_id=format_id(rng.randbytes(16)),
    )
    write_atomically(disk, f"{path}/identity", encode_checked(identity))
    parent = path.rpartition("/")[0]
    disk.sync_directory(parent or "/")
    return identity


def _check_identity(identity: Identity, path: str, *, node_id: NodeId, cluster_id: str | None) -> None:
    if identity.layout_version > LAYOUT_VERSION:
        raise DirectoryRefused(
            f"{path} has layout {identity.layout_version}; this version knows layouts up to {LAYOUT_VERSION}"
        )
    if identity.node_id != node_id:
        raise DirectoryRefused(f"{path} belongs to node {identity.node_id}, not to node {node_id}")
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise DirectoryRefused(f"{path} belongs to cluster {identity.cluster_id}, not to {cluster_id}")
