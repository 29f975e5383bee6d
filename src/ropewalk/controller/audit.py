"""What a change comes to, for people: from the facts that were decided and the image that they were decided on.

Every kind of fact has its line here, so a new one does not type-check without. What nodes decide on their own account has none to tell:
nobody asked for it.

What a reader could get wrong
    No secret is told, nor what one could be guessed from: of a credential its mechanism, of a key its id, of a password setting that
    it was set.
    A change may have ten thousand facts. Some are told, as many as a reader reads, and the others are counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias, assert_never

from ropewalk.base.ids import OwnerId, TopicId, format_id
from ropewalk.base.limits import AUDIT_DETAILS_MAX, AUDIT_RECORDS_READ_MAX, AUDIT_TEXT_MAX
from ropewalk.metadata.image import Image, Partition
from ropewalk.metadata.records import (
    AclAdded,
    AclRemoved,
    BrokerLeaving,
    BrokerMaintenance,
    BrokerRegistered,
    BrokerRemoved,
    BrokerSettingsChanged,
    BrokerStateChanged,
    ChangeAbandoned,
    ChangeBegun,
    ChangeDetail,
    ChangeEnded,
    ChangeMade,
    ClientQuotasChanged,
    ClusterCreated,
    ControllerChanged,
    DecoyKeySet,
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
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.setting import Kind
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS
from ropewalk.security.scram import Mechanism

CLUSTER: Final = "cluster"
HIDDEN: Final = "(hidden)"


def summary(image: Image, records: Sequence[MetadataRecord]) -> tuple[tuple[ChangeDetail, ...], int]:
    """What `records` make different from `image`, and how many facts are not told."""
    reading = _Reading(image)
    details: list[ChangeDetail] = []
    told_count = 0
    for record in islice(records, AUDIT_RECORDS_READ_MAX):
        found = list(reading.details(record))
        if len(details) + len(found) > AUDIT_DETAILS_MAX:
            found = found[: AUDIT_DETAILS_MAX - len(details)]
            details += found
            break
        details += found
        told_count += 1
    details += reading.counted()
    return tuple(details), len(records) - told_count


_OfTopic: TypeAlias = (
    TopicCreated
    | TopicChanged
    | TopicDeleted
    | TopicSettingsChanged
    | PartitionCreated
    | PartitionChanged
    | LossRecorded
)
_OfQueue: TypeAlias = QueueCreated | QueueChanged | QueueDeleted | MoveTaskStarted | MoveTaskCancelling


class _Reading:
    """Of the facts of one change, in their order."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._created: dict[TopicId, str] = {}
        self._partitions: dict[TopicId, int] = {}

    def details(self, record: MetadataRecord) -> Iterator[ChangeDetail]:
        match record:
            case (
                TopicCreated()
                | TopicChanged()
                | TopicDeleted()
                | TopicSettingsChanged()
                | PartitionCreated()
                | PartitionChanged()
                | LossRecorded()
            ):
                yield from self._of_topic(record)
            case QueueCreated() | QueueChanged() | QueueDeleted() | MoveTaskStarted() | MoveTaskCancelling():
                yield from self._of_queue(record)
            case BrokerSettingsChanged(node_id=None, changes=changes):
                yield from _settings("cluster.setting", CLUSTER, self._image.broker_settings(None), changes)
            case BrokerSettingsChanged(node_id=node_id, changes=changes):
                settings = self._image.broker_settings(node_id)
                yield from _settings("broker.setting", f"Broker:{node_id}", settings, changes)
            case ClientQuotasChanged(entity=entity, changes=changes):
                held = self._image.client_quotas.get(entity, {})
                for name, value in changes.items():
                    yield _detail(
                        "quota",
                        f"Quota:{_entity(entity)}:{name}",
                        _number(held.get(name)),
                        _number(value),
                    )
            case ScramCredentialSet(user=user, mechanism=number):
                mechanism = Mechanism(number)
                is_there = mechanism in self._image.users.of(user)
                text = mechanism.name
                yield _detail(
                    "user.credential",
                    f"User:{user}",
                    text if is_there else None,
                    f"{text}, {record.iterations}",
                )
            case ScramCredentialRemoved(user=user, mechanism=number):
                yield _detail("user.credential", f"User:{user}", Mechanism(number).name, None)
            case TokenKeyAdded(key_id=key_id):
                yield _detail("token.key", f"TokenKey:{key_id}", None, "signs")
            case TokenKeyRemoved(key_id=key_id):
                yield _detail("token.key", f"TokenKey:{key_id}", "signed", None)
            case AclAdded():
                yield _detail("acl", _resource(record), None, _rule(record))
            case AclRemoved():
                yield _detail("acl", _resource(record), _rule(record), None)
            case BrokerLeaving(node_id=node_id, is_leaving=is_leaving):
                yield _detail("broker.leaving", f"Broker:{node_id}", _flag(not is_leaving), _flag(is_leaving))
            case BrokerMaintenance(node_id=node_id, is_on=is_on):
                yield _detail("broker.maintenance", f"Broker:{node_id}", _flag(not is_on), _flag(is_on))
            case BrokerRemoved(node_id=node_id):
                yield _detail("broker.removed", f"Broker:{node_id}")
            case LevelChanged(level=level):
                yield _detail("cluster.level", CLUSTER, str(self._image.level), str(level))
            case (
                ClusterCreated()
                | ControllerChanged()
                | HomeLeft()
                | BrokerRegistered()
                | BrokerStateChanged()
                | MoveTaskEnded()
                | ProducerIdsAllocated()
                | DecoyKeySet()
                | ChangeMade()
                | ChangeBegun()
                | ChangeEnded()
                | ChangeAbandoned()
            ):
                return
            case _:
                assert_never(record)

    def _of_topic(self, record: _OfTopic) -> Iterator[ChangeDetail]:
        match record:
            case TopicCreated(topic_id=topic_id, name=name, owner=owner):
                self._created[topic_id] = name
                yield _detail("topic.created", f"Topic:{name}", None, owner)
            case PartitionCreated(topic_id=topic_id):
                self._partitions[topic_id] = self._partitions.get(topic_id, 0) + 1
            case PartitionChanged():
                yield from self._partition(record)
            case TopicChanged(topic_id=topic_id, owner=owner):
                topic = self._image.topics_by_id.get(topic_id)
                if topic is not None and topic.owner != owner:
                    yield _detail("topic.owner", self._topic(topic_id), topic.owner, owner)
            case TopicDeleted(topic_id=topic_id):
                yield _detail("topic.deleted", self._topic(topic_id))
            case TopicSettingsChanged(topic_id=topic_id, changes=changes):
                topic = self._image.topics_by_id.get(topic_id)
                before = {} if topic is None else topic.settings
                yield from _settings("topic.setting", self._topic(topic_id), before, changes)
            case LossRecorded(topic_id=topic_id, index=index, reason=reason):
                yield _detail("partition.loss", f"{self._topic(topic_id)}-{index}", None, reason)
            case _:
                assert_never(record)

    def _of_queue(self, record: _OfQueue) -> Iterator[ChangeDetail]:
        match record:
            case QueueCreated(name=name):
                yield _detail(
                    "queue.created", f"Queue:{name}", None, "adopted" if record.is_adopted else None
                )
                yield from _texts("queue.attribute", name, {}, record.attributes)
                yield from _texts("queue.tag", name, {}, record.tags)
            case QueueChanged(queue_id=queue_id):
                queue = self._image.queues.by_id(queue_id)
                name = "" if queue is None else queue.name
                attributes = {} if queue is None else queue.attributes
                tags = {} if queue is None else queue.tags
                yield from _texts("queue.attribute", name, attributes, record.attributes)
                yield from _texts("queue.tag", name, tags, record.tags)
            case QueueDeleted(name=name):
                yield _detail("queue.deleted", f"Queue:{name}")
            case MoveTaskStarted(queue_id=queue_id, target=target):
                yield _detail(
                    "queue.move", self._queue(queue_id), None, f"to {target or 'where they came from'}"
                )
            case MoveTaskCancelling(queue_id=queue_id):
                yield _detail("queue.move", self._queue(queue_id), "moving", "cancelled")
            case _:
                assert_never(record)

    def counted(self) -> Iterator[ChangeDetail]:
        """What is told once for many facts: how many partitions topics have."""
        for topic_id, count in islice(self._partitions.items(), AUDIT_DETAILS_MAX):
            topic = self._image.topics_by_id.get(topic_id)
            before = 0 if topic is None else len(topic.partitions)
            yield _detail(
                "topic.partitions",
                self._topic(topic_id),
                str(before) if before else None,
                str(before + count),
            )

    def _partition(self, after: PartitionChanged) -> Iterator[ChangeDetail]:
        topic = self._image.topics_by_id.get(after.topic_id)
        if topic is None or after.index >= len(topic.partitions):
            return
        before: Partition = topic.partitions[after.index]
        resource = f"{self._topic(after.topic_id)}-{after.index}"
        if after.replicas != before.replicas:
            yield _detail("partition.replicas", resource, _nodes(before.replicas), _nodes(after.replicas))
        if after.observers != before.observers:
            yield _detail("partition.observers", resource, _nodes(before.observers), _nodes(after.observers))
        if after.leader != before.leader:
            yield _detail("partition.leader", resource, _number(before.leader), _number(after.leader))

    def _topic(self, topic_id: TopicId) -> str:
        name = self._created.get(topic_id)
        if name is None:
            topic = self._image.topics_by_id.get(topic_id)
            name = format_id(topic_id) if topic is None else topic.name
        return f"Topic:{name}"

    def _queue(self, queue_id: OwnerId) -> str:
        queue = self._image.queues.by_id(queue_id)
        return "Queue:" if queue is None else f"Queue:{queue.name}"


def _detail(kind: str, resource: str, before: str | None = None, after: str | None = None) -> ChangeDetail:
    return ChangeDetail(kind, shortened(resource), _short(before), _short(after))


def shortened(text: str) -> str:
    return text if len(text) <= AUDIT_TEXT_MAX else f"{text[:AUDIT_TEXT_MAX]}…"


def _short(text: str | None) -> str | None:
    return None if text is None else shortened(text)


def _settings(
    kind: str, resource: str, before: Mapping[str, str], changes: Mapping[str, str | None]
) -> Iterator[ChangeDetail]:
    for name, value in changes.items():
        setting = BROKER_SETTINGS.get(name) or TOPIC_SETTINGS.get(name)
        is_secret = setting is None or setting.kind is Kind.PASSWORD
        old = before.get(name)
        yield _detail(
            kind,
            f"{resource}:{name}",
            HIDDEN if is_secret and old is not None else old,
            HIDDEN if is_secret and value is not None else value,
        )


def _texts(
    kind: str, queue: str, before: Mapping[str, str], changes: Mapping[str, str | None] | Mapping[str, str]
) -> Iterator[ChangeDetail]:
    for name, value in changes.items():
        yield _detail(kind, f"Queue:{queue}:{name}", before.get(name), value)


def _entity(entity: QuotaEntity) -> str:
    return ",".join(f"{kind}={'(default)' if name is None else name}" for kind, name in entity)


def _resource(rule: AclAdded | AclRemoved) -> str:
    pattern = "" if rule.pattern.name == "LITERAL" else f"({rule.pattern.name.lower()})"
    return f"{rule.resource_type.name.capitalize()}{pattern}:{rule.name}"


def _rule(rule: AclAdded | AclRemoved) -> str:
    return f"{rule.permission.name} {rule.operation.name} to {rule.principal} from {rule.host}"


def _nodes(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _flag(value: bool) -> str:
    return "yes" if value else "no"
