"""The image: what the metadata records add up to, in memory, on every node.

`apply` writes and never fails: a record that is in the log has been decided, so one that does not fit the image
is a bug in a decision and an `assert` says so. Everything else only reads. Topics and partitions are replaced,
never changed in place, so that a caller may keep one across an `await` and compare it afterwards.

A topic is replaced once for all the records of a call that name its partitions (`apply_all`): a change of ten thousand
partitions would else copy a topic of ten thousand partitions ten thousand times.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, assert_never

from msgspec import Struct, structs

from ropewalk.base.errors import UnknownPartition, UnknownTopic, UnknownTopicId
from ropewalk.base.ids import LeaderEpoch, NodeId, ProducerId, TopicId, format_id
from ropewalk.base.levels import LEVEL_FIRST, Software
from ropewalk.base.limits import LOSSES_REMEMBERED_MAX, REIGNS_REMEMBERED_MAX, TOPICS_DELETED_REMEMBERED_MAX
from ropewalk.metadata.audit import AuditTrail
from ropewalk.metadata.lineage import Position, Reign, holds, placed, position_of
from ropewalk.metadata.queues import QueueIndex
from ropewalk.metadata.records import (
    ALL_ROLES,
    OTHER_LISTENERS,
    AclAdded,
    AclRemoved,
    BrokerLeaving,
    BrokerMaintenance,
    BrokerRegistered,
    BrokerRemoved,
    BrokerSettingsChanged,
    BrokerState,
    BrokerStateChanged,
    ChangeAbandoned,
    ChangeBegun,
    ChangeEnded,
    ChangeMade,
    ClientQuotasChanged,
    ClusterCreated,
    ControllerChanged,
    DecoyKeySet,
    Endpoint,
    Fact,
    HomeLeft,
    LevelChanged,
    LossRecorded,
    MetadataRecord,
    MoveTaskCancelling,
    MoveTaskEnded,
    MoveTaskStarted,
    PartitionChanged,
    PartitionCreated,
    ProducerIdsAllocated,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    QuotaEntity,
    ScramCredentialRemoved,
    ScramCredentialSet,
    TokenKeyAdded,
    TokenKeyRemoved,
    TopicChanged,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.metadata.tokens import TokenKeyIndex
from ropewalk.metadata.users import UserIndex
from ropewalk.security.access import Rule, Rules

V = TypeVar("V", str, float)


class Broker(Struct, frozen=True):
    node_id: NodeId
    epoch: int
    directory: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    roles: tuple[str, ...] = ALL_ROLES
    state: BrokerState = BrokerState.ACTIVE
    is_leaving: bool = False
    """It is to be taken away for good, whatever its state."""
    in_maintenance: bool = False
    """Others lead where they can, whatever its state."""
    life: int = 0
    """How many processes have used its directory; a copy that was taken earlier has seen fewer. 0: nobody counted."""
    process: bytes = b""
    """Which of them this is."""
    version: str = ""
    """Of its software; empty where it did not say."""
    level_min: int = LEVEL_FIRST
    level_max: int = LEVEL_FIRST

    @property
    def software(self) -> Software:
        return Software(self.version, self.level_min, self.level_max)

    @property
    def is_active(self) -> bool:
        """Whether it may lead, and count as in sync."""
        return self.state is BrokerState.ACTIVE

    @property
    def takes_replicas(self) -> bool:
        """Whether new replicas may be put there, now or when it is back in service."""
        return "broker" in self.roles and self.state is not BrokerState.STOPPING and not self.is_leaving

    @property
    def client_endpoint(self) -> Endpoint | None:
        """The first by which Kafka's clients reach this broker, if they do."""
        return next((each for each in self.endpoints if each.listener not in OTHER_LISTENERS), None)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where clients of the listener of that name reach this broker, if it has one."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class Partition(Struct, frozen=True, gc=False):
    index: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId | None
    leader_epoch: LeaderEpoch
    partition_epoch: int
    eligible: tuple[NodeId, ...] = ()
    last_leader: NodeId | None = None
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()
    observers: tuple[NodeId, ...] = ()
    start_offset: int = 0
    """Nobody leads with records below it. Most starts are later: retention, and deletions that all replicas have followed, are
    known to their logs alone."""

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def holders(self) -> tuple[NodeId, ...]:
        """Everybody who keeps a copy."""
        return (*self.replicas, *self.observers)

    @property
    def replication_factor(self) -> int:
        """Replicas that are no newcomers: what a move adds does not count before it is in step."""
        return len(self.replicas) - len(self.adding)


class Topic(Struct, frozen=True):
    """`settings` are the overrides of this topic alone; `settings/effective.py` has what applies in the end."""

    topic_id: TopicId
    name: str
    partitions: tuple[Partition, ...] = ()
    settings: Mapping[str, str] = {}
    owner: str | None = None
    created_at_ms: int = 0
    modified_at_ms: int = 0

    @property
    def replication_factor(self) -> int:
        """Of the first partition, as it will be when a move that is under way is done."""
        if not self.partitions:
            return 0
        first = self.partitions[0]
        return len(first.replicas) - len(first.removing)


class Image:
    """Cluster facts up to `end_offset` of the metadata log."""

    __slots__ = (
        "_brokers",
        "_change",
        "_change_offset",
        "_deleted",
        "_drafts",
        "_prepared",
        "_settings_by_node",
        "_topics_by_id",
        "_topics_by_name",
        "acls",
        "agreed_settings",
        "audit",
        "client_quotas",
        "cluster_id",
        "controller_epoch",
        "controller_id",
        "end_offset",
        "end_producer_id",
        "left_for",
        "level",
        "losses",
        "queues",
        "reigns",
        "replica_count",
        "replica_taker_count",
        "token_keys",
        "users",
    )

    def __init__(self) -> None:
        self.queues: Final = QueueIndex()
        self.users: Final = UserIndex()
        self.token_keys: Final = TokenKeyIndex()
        self.acls: Final = Rules()
        self.audit: Final = AuditTrail()
        self._clear()

    def _clear(self) -> None:
        self.queues.clear()
        self.users.clear()
        self.token_keys.clear()
        self.acls.clear()
        self.audit.clear()
        self.end_offset: int = 0
        """Records applied so far. It changes with every fact, so it serves as the version of anything cached."""
        self.cluster_id: str | None = None
        """None until the cluster has been created."""
        self.controller_id: NodeId | None = None
        """Who decided last. It may be gone; what it decides counts only if the log takes it."""
        self.controller_epoch: int = 0
        self.level: int = 0
        """Which is in force (`base/levels.py`); 0 where nobody has said, as in metadata that is older than levels."""
        self.agreed_settings: Mapping[str, str | None] = {}
        """What a controller's configuration said of settings that all nodes must agree on; None for the default. Another mapping
        after every change."""
        self.reigns: tuple[Reign, ...] = ()
        self.left_for: str | None = None
        """The home for which the metadata have left this one, and nobody decides here; None where they are at home."""
        """The newest controllers and where each began, by which one history of the metadata is told from another."""
        self.losses: tuple[LossRecorded, ...] = ()
        """The newest elections that may have lost records."""
        self.end_producer_id: ProducerId = ProducerId(0)
        """The first producer id that has not been allocated."""
        self.client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
        """Another mapping after every change, so that whoever keeps what follows from it can tell."""
        self.replica_count: int = 0
        """Replicas of all partitions together, which is what the brokers have to carry."""
        self.replica_taker_count: int = 0
        """Brokers on which new replicas may be put: the largest replication factor there can be."""
        self._change: list[Fact] | None = None
        """What waits for its `ChangeEnded`."""
        self._change_offset: int = 0
        """Where that began."""
        self._prepared: list[Partition | None] = []
        """What these say of partitions. It is made as they come, so that little is left to do when all take effect at once."""
        self._drafts: dict[TopicId, list[Partition]] = {}
        """Partitions of topics that are about to be replaced; empty between two calls."""
        self._brokers: dict[NodeId, Broker] = {}
        self._topics_by_name: dict[str, Topic] = {}
        self._topics_by_id: dict[TopicId, Topic] = {}
        self._settings_by_node: dict[NodeId | None, dict[str, str]] = {}
        self._deleted: dict[TopicId, None] = {}

    @property
    def brokers(self) -> Mapping[NodeId, Broker]:
        return self._brokers

    @property
    def topics(self) -> Mapping[str, Topic]:
        """By name, in the order of creation."""
        return self._topics_by_name

    @property
    def topics_by_id(self) -> Mapping[TopicId, Topic]:
        return self._topics_by_id

    def topic(self, name: str) -> Topic:
        topic = self._topics_by_name.get(name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {name!r}")
        return topic

    def topic_by_id(self, topic_id: TopicId) -> Topic:
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicId(f"there is no topic with id {format_id(topic_id)}")
        return topic

    def partition(self, topic_name: str, index: int) -> Partition:
        partitions = self.topic(topic_name).partitions
        if not 0 <= index < len(partitions):
            raise UnknownPartition(
                f"{topic_name} has {len(partitions)} partitions, so none is numbered {index}"
            )
        return partitions[index]

    def was_deleted(self, topic_id: TopicId) -> bool:
        """Whether a committed record says that this topic is gone.

        Not to be there is no proof: the metadata may be another's, or an older copy. Only this entitles a node to remove
        records from its disk.
        """
        return topic_id in self._deleted

    def broker_settings(self, node_id: NodeId | None) -> Mapping[str, str]:
        """Overrides of one broker, or with None those of all brokers."""
        return self._settings_by_node.get(node_id, _NO_SETTINGS)

    @property
    def position(self) -> Position:
        """How far this image has come, and in which history."""
        return position_of(self.reigns, self.end_offset)

    def holds(self, position: Position) -> bool:
        """Whether somebody at `position`, which is not beyond the end, has followed the history that this image is of."""
        return holds(self.reigns, position)

    @property
    def is_amid_change(self) -> bool:
        """Whether a change has begun and is neither done nor given up. Nothing else may be appended before that."""
        return self._change is not None

    @property
    def settled_offset(self) -> int:
        """Up to here everything has taken effect. `end_offset`, unless a change is under way: then where it began."""
        return self.end_offset if self._change is None else self._change_offset

    def apply(self, record: MetadataRecord) -> Sequence[Fact]:
        """Answers what took effect: mostly the record, nothing amid a change, and all of a change at its end."""
        effective = self._apply(record)
        self._finish_drafts()
        return effective

    def apply_all(self, records: Iterable[MetadataRecord]) -> list[Fact]:
        """As `apply` for each of them; nobody sees the image in between."""
        effective: list[Fact] = []
        for record in records:
            effective += self._apply(record)
        self._finish_drafts()
        return effective

    def _apply(self, record: MetadataRecord) -> Sequence[Fact]:
        self.end_offset += 1
        match record:
            case ChangeBegun():
                assert self._change is None, "a change begins within another"
                self._change, self._change_offset = [], self.end_offset - 1
                return ()
            case ChangeEnded():
                assert self._change is not None, "a change ends that has not begun"
                change, self._change = self._change, None
                prepared, self._prepared = self._prepared, []
                for fact, partition in zip(change, prepared, strict=True):
                    if partition is not None and type(fact) is PartitionChanged:
                        self._exchange(fact, partition)  # nearly all of them
                    else:
                        self._take_effect(fact, partition)
                return change
            case ChangeAbandoned():
                self._change, self._prepared = None, []
                return ()
            case ControllerChanged():
                self._change, self._prepared = None, []  # whoever began it can never end it
        if self._change is not None:
            self._change.append(record)
            self._prepared.append(_prepared(record))
            return ()
        self._take_effect(record)
        return (record,)

    def _take_effect(self, record: Fact, prepared: Partition | None = None) -> None:
        match record:
            case PartitionChanged():
                self._exchange(record, _partition(record))
            case PartitionCreated(topic_id=topic_id, index=index):
                partitions = self._draft(topic_id)
                assert index == len(partitions), f"{self._named(record)} leaves a gap"
                partitions.append(prepared or _partition(record))
                self.replica_count += len(record.replicas) + len(record.observers)
            case ClusterCreated(cluster_id=cluster_id):
                assert self.cluster_id is None, "a cluster is created once"
                self.cluster_id = cluster_id
            case ControllerChanged(node_id=node_id, epoch=epoch, settings=settled):
                assert epoch > self.controller_epoch, "a controller's epoch is larger than all before it"
                self.controller_id, self.controller_epoch = node_id, epoch
                if settled:
                    agreed = {**self.agreed_settings, **settled}
                    self.agreed_settings = {name: agreed[name] for name in sorted(agreed)}
                offset = self.end_offset - 1 if record.offset is None else record.offset
                self.left_for = None
                reign = Reign(offset, node_id, epoch, record.reign)
                self.reigns = (*self.reigns, reign)[-REIGNS_REMEMBERED_MAX:]
            case HomeLeft(to=to):
                self.left_for = to
            case LevelChanged(level=level):
                assert level > self.level, "a level never goes down"
                self.level = level
            case BrokerRegistered():
                self._on_registered(record)
            case BrokerStateChanged(node_id=node_id, broker_epoch=broker_epoch, state=state):
                broker = self._brokers[node_id]
                assert broker.epoch == broker_epoch, f"broker {node_id} has started again meanwhile"
                self._on_broker(node_id, structs.replace(broker, state=state))
            case BrokerLeaving(node_id=node_id, is_leaving=is_leaving):
                self._on_broker(node_id, structs.replace(self._brokers[node_id], is_leaving=is_leaving))
            case BrokerMaintenance(node_id=node_id, is_on=is_on):
                self._on_broker(node_id, structs.replace(self._brokers[node_id], in_maintenance=is_on))
            case BrokerRemoved(node_id=node_id):
                self._on_broker(node_id, None)
            case TopicCreated(topic_id=topic_id, name=name):
                assert topic_id not in self._topics_by_id, f"{format_id(topic_id)} was created before"
                assert name not in self._topics_by_name, f"{name} was created before"
                at_ms = record.created_at_ms
                self._put(Topic(topic_id, name, (), {}, record.owner, at_ms, at_ms))
            case TopicChanged(topic_id=topic_id, owner=owner, modified_at_ms=modified_at_ms):
                topic = self._finished(topic_id)
                self._put(structs.replace(topic, owner=owner, modified_at_ms=modified_at_ms))
            case LossRecorded():
                self.losses = (*self.losses, record)[-LOSSES_REMEMBERED_MAX:]
            case TopicDeleted(topic_id=topic_id):
                self._on_deleted(topic_id)
            case QueueCreated(topic_id=topic_id):
                self.queues.create(record, self._topics_by_id[topic_id].name)
            case QueueChanged() | QueueDeleted() | MoveTaskStarted() | MoveTaskCancelling() | MoveTaskEnded():
                self.queues.apply(record)
            case TopicSettingsChanged(topic_id=topic_id, changes=changes):
                topic = self._finished(topic_id)
                self._put(structs.replace(topic, settings=_changed(topic.settings, changes)))
            case BrokerSettingsChanged(node_id=node_id, changes=changes):
                settings = _changed(self.broker_settings(node_id), changes)
                self._settings_by_node.pop(node_id, None)
                if settings:
                    self._settings_by_node[node_id] = settings
            case ProducerIdsAllocated(end_producer_id=end_producer_id):
                assert end_producer_id > self.end_producer_id, "producer ids were allocated twice"
                self.end_producer_id = end_producer_id
            case ClientQuotasChanged(entity=entity, changes=changes):
                self._on_quotas(entity, changes)
            case ScramCredentialSet() | ScramCredentialRemoved() | DecoyKeySet():
                self.users.apply(record)
            case TokenKeyAdded() | TokenKeyRemoved():
                self.token_keys.apply(record)
            case AclAdded():
                self.acls.add(Rule(*structs.astuple(record)))
            case AclRemoved():
                self.acls.remove(Rule(*structs.astuple(record)))
            case ChangeMade():
                self.audit.add(record, offset=self.end_offset - 1)
            case _:
                assert_never(record)

    def replace(self, facts: Iterable[MetadataRecord], end_offset: int) -> list[Fact]:
        """Become what a snapshot says, whatever was there before. Answers what took effect."""
        self._clear()
        effective = self.apply_all(placed(facts, end_offset))
        if self._change is not None:  # a snapshot ends with what was begun
            self._change_offset = end_offset - len(self._change) - 1
        self.end_offset = end_offset
        return effective

    def facts(self) -> Iterator[MetadataRecord]:
        """The fewest records that rebuild this image, `end_offset` apart: what a snapshot holds."""
        if self.cluster_id is not None:
            yield ClusterCreated(self.cluster_id)
        if self.level:
            yield LevelChanged(self.level)  # before whatever it brought
        for reign in self.reigns:
            is_last = reign.epoch == self.controller_epoch
            agreed = dict(self.agreed_settings) if is_last else {}
            yield ControllerChanged(reign.node_id, reign.epoch, agreed, reign.name, reign.offset)
        if self.left_for is not None:
            yield HomeLeft(self.left_for)
        for broker in self._brokers.values():
            yield BrokerRegistered(
                broker.node_id,
                broker.epoch,
                broker.directory,
                broker.endpoints,
                broker.rack,
                broker.roles,
                broker.state,
                broker.life,
                broker.process,
                broker.version,
                broker.level_min,
                broker.level_max,
            )
            if broker.is_leaving:
                yield BrokerLeaving(broker.node_id, is_leaving=True)
            if broker.in_maintenance:
                yield BrokerMaintenance(broker.node_id, is_on=True)
        for node_id, settings in self._settings_by_node.items():
            yield BrokerSettingsChanged(node_id, dict(settings))
        for entity, quotas in self.client_quotas.items():
            yield ClientQuotasChanged(entity, dict(quotas))
        yield from self.users.facts()
        yield from self.token_keys.facts()
        yield from (AclAdded(*structs.astuple(rule)) for rule in self.acls)
        for topic in self._topics_by_name.values():
            yield TopicCreated(topic.topic_id, topic.name, topic.owner, topic.created_at_ms)
            for partition in topic.partitions:
                yield created(topic.topic_id, partition)
            if topic.settings:
                yield TopicSettingsChanged(topic.topic_id, dict(topic.settings))
            if topic.modified_at_ms != topic.created_at_ms:
                yield TopicChanged(topic.topic_id, topic.owner, topic.modified_at_ms)
        yield from self.queues.facts()
        for topic_id in self._deleted:
            yield TopicDeleted(topic_id)
        yield from self.losses
        yield from self.audit.facts()
        if self.end_producer_id > 0:
            # Whose block was the last is of interest only while it is being handed out.
            yield ProducerIdsAllocated(NodeId(-1), self.end_producer_id)
        if self._change is not None:
            yield ChangeBegun()
            yield from self._change

    def _on_registered(self, record: BrokerRegistered) -> None:
        known = self._brokers.get(record.node_id)
        self._on_broker(
            record.node_id,
            Broker(
                node_id=record.node_id,
                epoch=record.broker_epoch,
                directory=record.directory,
                endpoints=record.endpoints,
                rack=record.rack,
                roles=record.roles,
                state=record.state,
                is_leaving=known is not None and known.is_leaving,
                in_maintenance=known is not None and known.in_maintenance,
                life=record.life,
                process=record.process,
                version=record.version,
                level_min=record.level_min,
                level_max=record.level_max,
            ),
        )

    def _on_broker(self, node_id: NodeId, broker: Broker | None) -> None:
        """In its place if it is known, so that any history of the same facts looks the same."""
        if broker is None:
            del self._brokers[node_id]
        else:
            self._brokers[node_id] = broker
        self.replica_taker_count = sum(known.takes_replicas for known in self._brokers.values())

    def _on_quotas(self, entity: QuotaEntity, changes: Mapping[str, float | None]) -> None:
        quotas = _changed(self.client_quotas.get(entity, {}), changes)
        others = {other: held for other, held in self.client_quotas.items() if other != entity}
        self.client_quotas = {**others, entity: quotas} if quotas else others

    def _on_deleted(self, topic_id: TopicId) -> None:
        self._finish_drafts()
        topic = self._topics_by_id.pop(topic_id, None)
        if topic is not None:  # A snapshot remembers the deletion without the topic.
            del self._topics_by_name[topic.name]
            self.queues.on_topic_deleted(topic_id)
            self.replica_count -= sum(len(partition.holders) for partition in topic.partitions)
        self._deleted[topic_id] = None
        if len(self._deleted) > TOPICS_DELETED_REMEMBERED_MAX:
            del self._deleted[next(iter(self._deleted))]

    def _exchange(self, record: PartitionChanged, after: Partition) -> None:
        partitions = self._drafts.get(record.topic_id) or self._draft(record.topic_id)
        before = partitions[after.index]
        assert after.partition_epoch > before.partition_epoch, f"{self._named(record)} went back"
        assert after.leader_epoch >= before.leader_epoch, f"{self._named(record)} went back"
        partitions[after.index] = after
        if after.replicas != before.replicas or after.observers != before.observers:
            self.replica_count += len(after.holders) - len(before.holders)

    def _draft(self, topic_id: TopicId) -> list[Partition]:
        draft = self._drafts.get(topic_id)
        if draft is None:
            draft = self._drafts[topic_id] = list(self._topics_by_id[topic_id].partitions)
        return draft

    def _finish_drafts(self) -> None:
        if self._drafts:
            drafts, self._drafts = self._drafts, {}
            for topic_id, partitions in drafts.items():
                self._put(structs.replace(self._topics_by_id[topic_id], partitions=tuple(partitions)))

    def _finished(self, topic_id: TopicId) -> Topic:
        """The topic with all that was said of its partitions so far."""
        self._finish_drafts()
        return self._topics_by_id[topic_id]

    def _named(self, record: PartitionCreated | PartitionChanged) -> str:
        return f"{self._topics_by_id[record.topic_id].name}-{record.index}"

    def _put(self, topic: Topic) -> None:
        self._topics_by_name[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic


_NO_SETTINGS: Final[Mapping[str, str]] = {}


def _prepared(record: Fact) -> Partition | None:
    return _partition(record) if isinstance(record, PartitionCreated | PartitionChanged) else None


def _partition(record: PartitionCreated | PartitionChanged) -> Partition:
    return Partition(*structs.astuple(record)[1:])


def created(topic_id: TopicId, partition: Partition) -> PartitionCreated:
    return PartitionCreated(topic_id, *structs.astuple(partition))


def changed(topic_id: TopicId, partition: Partition) -> PartitionChanged:
    return PartitionChanged(topic_id, *structs.astuple(partition))


_FIELDS: Final = ("topic_id", *Partition.__struct_fields__)
assert PartitionCreated.__struct_fields__ == PartitionChanged.__struct_fields__ == _FIELDS, (
    "one is made of the other"
)


def _changed(settings: Mapping[str, V], changes: Mapping[str, V | None]) -> dict[str, V]:
    """`settings` after `changes`, in the order of their names, so that any history of the same facts looks the same."""
    merged = {**settings, **changes}
    return {name: value for name in sorted(merged) if (value := merged[name]) is not None}
