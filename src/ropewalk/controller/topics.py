"""Creating, growing and deleting topics.

Behaviour worth knowing
    A partition count or replication factor of -1 takes the broker's default.
    Replicas assigned by hand must number the partitions from 0 without a gap, name registered brokers, each
    once per partition, and be equally many everywhere; the counts must then be -1.
    Partitions are only ever added: removing one would lose records, and every key would move.
    Every new partition starts with all its replicas in sync that are in service, led by the first of them, in epoch 0.
    Observers are put where no replica is. They are counted as replicas are where room is concerned, and nowhere else.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import (
    InvalidPartitionCount,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
    TopicDeletionDisabled,
    TopicExists,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId, format_id
from ropewalk.base.limits import TOPIC_OWNER_CHARACTERS_MAX, TOPIC_PARTITIONS_MAX
from ropewalk.base.ports import Rng
from ropewalk.controller.own_topics import INTERNAL_FACTOR, LAYOUTS
from ropewalk.controller.placement import place
from ropewalk.controller.settings import check_growth, check_topic_settings
from ropewalk.controller.topic_names import check_collision, check_topic_name
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.internal_topics import AUDIT_TOPIC, CLIENTS_TOPICS, INTERNAL_TOPICS
from ropewalk.metadata.records import (
    MetadataRecord,
    PartitionCreated,
    TopicChanged,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import BrokerSettings

BROKER_DEFAULT: Final = -1
"""In a count: whatever the broker's settings say."""


class CreateTopic(Struct, frozen=True, kw_only=True):
    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Mapping[int, Sequence[NodeId]] = {}
    """Replicas by partition, chosen by hand; empty leaves the choice to the controller."""
    settings: Mapping[str, str | None] = {}
    owner: str | None = None
    observer_count: int = 0
    """Copies of each partition that nobody waits for."""


class CreatePartitions(Struct, frozen=True, kw_only=True):
    name: str
    partition_count: int
    """The total there will be, not the number to add."""
    assignments: Sequence[Sequence[NodeId]] | None = None
    """Replicas of the added partitions, in order, chosen by hand."""


def decide_create_topic(
    image: Image, command: CreateTopic, broker_settings: BrokerSettings, rng: Rng, *, now_ms: int
) -> list[MetadataRecord]:
    check_topic_name(command.name)
    if command.name in image.topics:
        raise TopicExists(
            f"Topic '{command.name}' already exists."
        )  # scripts look for these words of Kafka's
    check_collision(command.name, image.topics)
    command = _laid_out(image, command)
    if command.assignments:
        replicas = _assigned_by_hand(image, command)
    else:
        replicas = _placed(image, command, broker_settings, rng)
    settings = check_topic_settings(command.settings, len(replicas[0]))
    check_growth(command.name, settings.get("partitions.auto.max"), settings.get("cleanup.policy"))
    if command.name not in INTERNAL_TOPICS:  # the node's own topics must not depend on what clients left
        _check_room(image, broker_settings, replicas)
    topic_id = _new_topic_id(image, rng)
    owner = None if command.owner is None else checked_owner(command.owner)
    records: list[MetadataRecord] = [TopicCreated(topic_id, command.name, owner, now_ms)]
    records.extend(_partitions(image, topic_id, 0, replicas, command.observer_count))
    if settings:
        records.append(TopicSettingsChanged(topic_id, settings))
    return records


def decide_create_partitions(
    image: Image, command: CreatePartitions, broker_settings: BrokerSettings, rng: Rng, *, now_ms: int
) -> list[MetadataRecord]:
    topic = image.topic(command.name)
    if topic.name in INTERNAL_TOPICS:
        raise InvalidPartitionCount(f"{topic.name} cannot grow: what is in it would be looked for elsewhere")
    queue = image.queues.by_topic(topic.topic_id)
    if queue is not None and queue.is_fifo:
        raise InvalidPartitionCount(
            f"{topic.name} is the topic of the FIFO queue {queue.name} and cannot grow: groups would go elsewhere"
        )
    existing = len(topic.partitions)
    added = command.partition_count - existing
    if added == 0:
        raise InvalidPartitionCount(f"Topic already has {existing} partition(s).")
    if added < 0:
        raise InvalidPartitionCount(
            f"The topic {topic.name} currently has {existing} partition(s); "
            f"{command.partition_count} would not be an increase."
        )
    _check_partition_count(command.partition_count)
    observer_count = 0
    if command.assignments is None:
        observer_count = len(topic.partitions[0].observers)
        replicas = place(
            image.brokers.values(),
            partition_count=added,
            replication_factor=topic.replication_factor + observer_count,
            rng=rng,
        )
    else:
        replicas = _added_by_hand(image, topic, command.assignments, added)
    _check_room(image, broker_settings, replicas)
    partitions = _partitions(image, topic.topic_id, existing, replicas, observer_count)
    return [*partitions, TopicChanged(topic.topic_id, topic.owner, now_ms)]


def decide_change_owner(
    image: Image, topic_name: str, owner: str | None, *, now_ms: int
) -> list[MetadataRecord]:
    topic = image.topic(topic_name)
    owner = None if owner is None else checked_owner(owner)
    return [] if owner == topic.owner else [TopicChanged(topic.topic_id, owner, now_ms)]


def checked_owner(owner: str) -> str:
    if not 1 <= len(owner) <= TOPIC_OWNER_CHARACTERS_MAX or not owner.isprintable():
        raise InvalidRequest(
            f"an owner has 1 to {TOPIC_OWNER_CHARACTERS_MAX} printable characters, {owner!r} has not"
        )
    return owner


def decide_delete_topic(image: Image, topic: Topic, broker_settings: BrokerSettings) -> list[MetadataRecord]:
    """`topic` as the caller found it, by name or by id; it may have been deleted since."""
    if topic.name == AUDIT_TOPIC:
        raise TopicDeletionDisabled(f"{topic.name} is not deleted: it tells who asked for changes")
    if topic.name in CLIENTS_TOPICS:
        raise TopicDeletionDisabled(
            f"{topic.name} is the cluster's own: jobs would not know how far they have come"
        )
    if not broker_settings.delete_topic_enable:
        raise TopicDeletionDisabled("topics cannot be deleted: delete.topic.enable is false")
    return [TopicDeleted(image.topic_by_id(topic.topic_id).topic_id)]


def _laid_out(image: Image, command: CreateTopic) -> CreateTopic:
    """As it is, unless the topic is one of the cluster's own that clients write and ask for."""
    layout = LAYOUTS.get(command.name)
    if layout is None:
        return command
    return CreateTopic(
        name=command.name,
        partition_count=layout.partition_count,
        replication_factor=max(1, min(INTERNAL_FACTOR, image.replica_taker_count)),
        settings=layout.settings,
    )


def _placed(
    image: Image, command: CreateTopic, broker_settings: BrokerSettings, rng: Rng
) -> list[tuple[NodeId, ...]]:
    partition_count = command.partition_count
    if partition_count == BROKER_DEFAULT:
        partition_count = broker_settings.num_partitions
    replication_factor = command.replication_factor
    if replication_factor == BROKER_DEFAULT:
        replication_factor = broker_settings.default_replication_factor
    _check_partition_count(partition_count)
    if replication_factor < 1:
        raise InvalidReplicationFactor(
            f"Replication factor must be larger than 0, or -1 to use the default value; it is {replication_factor}"
        )
    if command.observer_count < 0:
        raise InvalidRequest(f"{command.observer_count} observers are asked for, 0 is the least")
    return place(
        image.brokers.values(),
        partition_count=partition_count,
        replication_factor=replication_factor + command.observer_count,
        rng=rng,
    )


def _check_partition_count(partition_count: int) -> None:
    if partition_count < 1:
        raise InvalidPartitionCount(
            f"Number of partitions was set to an invalid non-positive value: {partition_count}"
        )
    if partition_count > TOPIC_PARTITIONS_MAX:
        raise InvalidPartitionCount(
            f"{partition_count} partitions asked for, 1 to {TOPIC_PARTITIONS_MAX} are allowed"
        )


def _check_room(
    image: Image, broker_settings: BrokerSettings, replicas: Sequence[tuple[NodeId, ...]]
) -> None:
    added = sum(map(len, replicas))
    replicas_max = broker_settings.max_broker_partitions * len(image.brokers)
    if image.replica_count + added > replicas_max:
        raise PolicyViolation(
            f"{added} more would be {image.replica_count + added} replicas of partitions on {len(image.brokers)} "
            f"brokers; max.broker.partitions allows {replicas_max}"
        )


def _assigned_by_hand(image: Image, command: CreateTopic) -> list[tuple[NodeId, ...]]:
    if (command.partition_count, command.replication_factor) != (BROKER_DEFAULT, BROKER_DEFAULT):
        raise InvalidRequest(
            f"{command.name}: partition count and replication factor must be -1 where replicas are assigned by hand"
        )
    if command.observer_count:
        raise InvalidRequest(
            f"{command.name}: observers cannot be placed where replicas are assigned by hand"
        )
    count = len(command.assignments)
    _check_partition_count(count)
    if set(command.assignments) != set(range(count)):
        raise InvalidReplicaAssignment(
            f"{command.name}: {count} partitions are assigned, but they are not numbered 0 to {count - 1}"
        )
    replicas = [tuple(command.assignments[index]) for index in range(count)]
    check_replicas(image, replicas, first_index=0, replication_factor=len(replicas[0]))
    return replicas


def _added_by_hand(
    image: Image, topic: Topic, assignments: Sequence[Sequence[NodeId]], added: int
) -> list[tuple[NodeId, ...]]:
    if len(assignments) != added:
        raise InvalidReplicaAssignment(
            f"{topic.name}: {added} partitions are added, {len(assignments)} are assigned"
        )
    replicas = [tuple(assignment) for assignment in assignments]
    check_replicas(
        image, replicas, first_index=len(topic.partitions), replication_factor=topic.replication_factor
    )
    return replicas


def check_replicas(
    image: Image, replicas: Sequence[tuple[NodeId, ...]], *, first_index: int, replication_factor: int
) -> None:
    for index, nodes in enumerate(replicas, first_index):
        if not nodes:
            raise InvalidReplicaAssignment(f"partition {index} has no replicas")
        if len(nodes) != replication_factor:
            raise InvalidReplicaAssignment(
                f"partition {index} has {len(nodes)} replicas, the others {replication_factor}"
            )
        if len(set(nodes)) != len(nodes):
            raise InvalidReplicaAssignment(f"partition {index} names a broker twice: {list(nodes)}")
        for node_id in nodes:
            if node_id not in image.brokers:
                raise InvalidReplicaAssignment(
                    f"partition {index} names broker {node_id}, which is not registered"
                )
        if not any(image.brokers[node_id].is_active for node_id in nodes):
            raise InvalidReplicaAssignment(
                f"partition {index} is on {list(nodes)}, none of which is in service"
            )


def _partitions(
    image: Image,
    topic_id: TopicId,
    first_index: int,
    holders: Sequence[tuple[NodeId, ...]],
    observer_count: int,
) -> Iterator[PartitionCreated]:
    """The last of the holders are the observers."""
    for index, nodes in enumerate(holders, first_index):
        replicas = nodes[: len(nodes) - observer_count]
        isr = tuple(node_id for node_id in replicas if image.brokers[node_id].is_active)
        yield PartitionCreated(
            topic_id=topic_id,
            index=index,
            replicas=replicas,
            isr=isr,
            leader=isr[0],
            leader_epoch=LeaderEpoch(0),
            partition_epoch=0,
            observers=nodes[len(replicas) :],
        )


def _new_topic_id(image: Image, rng: Rng) -> TopicId:
    """A random UUID that no topic has. One that prints with a leading dash would look like an option to command lines."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        topic_id = TopicId(bytes(raw))
        if topic_id not in image.topics_by_id and not format_id(topic_id).startswith("-"):
            return topic_id
