"""Changing the settings of topics and brokers.

Behaviour worth knowing
    A change is checked as a whole: one bad value and nothing is changed.
    Taking a setting away that was not set, or that does not exist, is a success, as it is in Kafka. To set one to nothing that
    may be without a value is to take it away: that is how it is described then, and what was described can be sent back.
    APPEND and SUBTRACT work on lists only; an item that is there already is not added twice, and one that is not there
    may be taken away.
    `min.insync.replicas=majority` of a topic is kept as a number, more than half of its replicas as they are then.
    Whoever changes how many replicas must be in sync changes the epoch of every partition concerned with it. So a leader that
    has not heard of it yet cannot change the ISR, and never means another number by an epoch than the controller does.
    What all nodes must agree on is set for all brokers, and for no single one (ADR 0013).
    The topic of a queue is never compacted, and that of a FIFO queue does not grow.
    What a topic's `storage` is was decided when it was created: changing it would mean losing the records.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct, structs

from ropewalk.base.errors import InvalidRequest, InvalidSetting
from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.internal_topics import AUDIT_TOPIC, INTERNAL_TOPICS
from ropewalk.metadata.records import (
    BrokerSettingsChanged,
    MetadataRecord,
    PartitionChanged,
    TopicChanged,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.effective import EffectiveSetting, SettingsView, Source, known_setting
from ropewalk.metadata.settings.setting import Change, Kind, Setting
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS

_MINIMUM: Final = "min.insync.replicas"


class Operation(IntEnum):
    """What to do with one setting, by the code IncrementalAlterConfigs gives it."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(Struct, frozen=True):
    name: str
    operation: Operation
    value: str | None = None


def check_topic_settings(
    settings: Mapping[str, str | None], replication_factor: int
) -> dict[str, str | None]:
    """The overrides of a topic about to be created with that many replicas, or `InvalidSetting`."""
    resolved = {
        name: _resolved(name, value, replication_factor) if value is not None else None
        for name, value in settings.items()
    }
    for name, value in resolved.items():
        _check_value(known_setting(TOPIC_SETTINGS, name), value)
    return resolved


def check_growth(topic_name: str, partitions_max: str | None, policy: str | None) -> None:
    """Raise `InvalidSetting` where a topic is to grow by itself that must not."""
    if partitions_max is None:
        return
    if topic_name in INTERNAL_TOPICS:
        raise InvalidSetting(
            f"{topic_name} is the cluster's own and cannot grow: partitions.auto.max is refused"
        )
    if policy is not None and "compact" in policy:
        raise InvalidSetting(
            f"{topic_name} is compacted and cannot grow, since keys would go elsewhere: partitions.auto.max is refused"
        )


def decide_alter_topic_settings(
    image: Image, view: SettingsView, topic_name: str, alterations: Sequence[Alteration], *, now_ms: int
) -> list[MetadataRecord]:
    topic = image.topic(topic_name)
    _check_named_once(alterations)
    changes: dict[str, str | None] = {}
    for asked in _meaningful(alterations, TOPIC_SETTINGS):
        alteration = asked
        if asked.operation is Operation.SET and asked.value is not None:
            number = _resolved(asked.name, asked.value, topic.replication_factor)
            alteration = Alteration(asked.name, Operation.SET, number)
        effective = view.of_topic(topic, alteration.name)
        value = _altered(effective, alteration)
        if effective.setting.change is Change.READ_ONLY and value != effective.value:
            raise InvalidSetting(f"{alteration.name} of {topic_name} cannot be changed after creation")
        changes[alteration.name] = value
    changes = {name: value for name, value in changes.items() if topic.settings.get(name) != value}
    _check_audit(topic_name, changes)
    if not changes:
        return []
    merged = {**topic.settings, **changes}
    overrides = {name: value for name, value in merged.items() if value is not None}
    policy = view.of_new_topic(overrides, topic.replication_factor, "cleanup.policy").value
    _check_queue(image, topic, overrides.get("partitions.auto.max"), policy)
    check_growth(topic_name, overrides.get("partitions.auto.max"), policy)
    minimum = _MinimumChange(view)
    if _MINIMUM in changes:
        for partition in topic.partitions:
            after = view.of_new_topic(overrides, partition.replication_factor, _MINIMUM)
            minimum.add(topic, partition, after.value)
    return [
        *minimum.lowered,
        TopicSettingsChanged(topic.topic_id, changes),
        TopicChanged(topic.topic_id, topic.owner, now_ms),
        *minimum.raised,
    ]


def _check_audit(topic_name: str, changes: Mapping[str, str | None]) -> None:
    if topic_name == AUDIT_TOPIC and "cleanup.policy" in changes:
        raise InvalidSetting(f"{topic_name} keeps every event for its time: cleanup.policy is refused")


def decide_replace_topic_settings(
    image: Image,
    view: SettingsView,
    topic_name: str,
    settings: Mapping[str, str | None],
    *,
    now_ms: int,
) -> list[MetadataRecord]:
    """The settings given become the topic's only overrides (AlterConfigs)."""
    kept = [Alteration(name, Operation.SET, value) for name, value in settings.items()]
    dropped = [
        Alteration(name, Operation.DELETE)
        for name in image.topic(topic_name).settings
        if name not in settings and TOPIC_SETTINGS[name].change is not Change.READ_ONLY
    ]
    return decide_alter_topic_settings(image, view, topic_name, [*kept, *dropped], now_ms=now_ms)


def decide_alter_broker_settings(
    image: Image, view: SettingsView, node_id: NodeId | None, alterations: Sequence[Alteration]
) -> list[MetadataRecord]:
    """With no `node_id` the settings of all brokers."""
    if node_id is not None and node_id not in image.brokers:
        raise InvalidRequest(f"broker {node_id} is not registered")
    _check_named_once(alterations)
    changes: dict[str, str | None] = {}
    for alteration in _meaningful(alterations, BROKER_SETTINGS):
        effective = view.of_broker(alteration.name)
        if effective.setting.change is Change.READ_ONLY:
            raise InvalidRequest(
                f"{alteration.name} is read when a node starts; change the node's configuration"
            )
        changes[alteration.name] = _altered(effective, alteration)
    known = image.broker_settings(node_id)
    changes = {name: value for name, value in changes.items() if known.get(name) != value}
    if not changes:
        return []
    if node_id is not None:
        for name, value in changes.items():
            if BROKER_SETTINGS[name].agreed and value is not None:
                raise InvalidRequest(f"{name} must be the same on all brokers; set it for all of them")
    policy = changes.get("log.cleanup.policy")
    if policy is not None:
        for topic in image.topics.values():
            if "cleanup.policy" not in topic.settings:
                _check_queue(image, topic, None, policy)
    minimum = _MinimumChange(view)
    if _MINIMUM in changes and node_id is None:
        for topic in image.topics.values():
            if _MINIMUM not in topic.settings:
                for partition in topic.partitions:
                    after = _minimum_of_all(view, changes[_MINIMUM], partition.replication_factor)
                    minimum.add(topic, partition, after)
    return [*minimum.lowered, BrokerSettingsChanged(node_id, changes), *minimum.raised]


def decide_replace_broker_settings(
    image: Image, view: SettingsView, node_id: NodeId | None, settings: Mapping[str, str | None]
) -> list[MetadataRecord]:
    """The settings given become the only overrides of that broker, or with no `node_id` of all brokers."""
    kept = [Alteration(name, Operation.SET, value) for name, value in settings.items()]
    dropped = [
        Alteration(name, Operation.DELETE) for name in image.broker_settings(node_id) if name not in settings
    ]
    return decide_alter_broker_settings(image, view, node_id, [*kept, *dropped])


def check_configuration(configuration: Mapping[str, str]) -> None:
    """Raise `InvalidSetting` for the first setting in a node's own configuration that cannot be."""
    for name, value in configuration.items():
        _check_value(known_setting(BROKER_SETTINGS, name), value)


def _check_queue(image: Image, topic: Topic, partitions_max: str | None, policy: str | None) -> None:
    """Raise `InvalidSetting` for what a queue's topic must not be."""
    queue = image.queues.by_topic(topic.topic_id)
    if queue is None:
        return
    if policy is not None and "compact" in policy:
        raise InvalidSetting(
            f"{topic.name} is the topic of the queue {queue.name} and cannot be compacted: messages would disappear"
        )
    if partitions_max is not None and queue.is_fifo:
        raise InvalidSetting(
            f"{topic.name} is the topic of the FIFO queue {queue.name} and cannot grow, since groups would go elsewhere: "
            "partitions.auto.max is refused"
        )


class _MinimumChange:
    """Partitions in epochs of their own, since their minimum is another. Any prefix of the change must be true.

    `lowered` go before the setting: a leader that knows it commits without the eligible, who must be none by then. `raised`
    go after it: whoever knows the epoch knows the setting, and commits nothing without those who stay eligible.
    """

    __slots__ = ("_view", "lowered", "raised")

    def __init__(self, view: SettingsView) -> None:
        self._view = view
        self.lowered: list[PartitionChanged] = []
        self.raised: list[PartitionChanged] = []

    def add(self, topic: Topic, partition: Partition, value: str | None) -> None:
        factor = partition.replication_factor
        held = self._view.of_new_topic(topic.settings, factor, _MINIMUM).value
        assert held is not None, "there is a default"
        assert value is not None, "there is a default"
        before, after = min(int(held), factor), min(int(value), factor)
        if before == after:
            return
        changed = structs.replace(
            partition,
            partition_epoch=partition.partition_epoch + 1,
            eligible=() if len(partition.isr) >= after else partition.eligible,
        )
        record = PartitionChanged(topic.topic_id, **structs.asdict(changed))
        (self.lowered if after < before else self.raised).append(record)


def _minimum_of_all(view: SettingsView, value: str | None, replication_factor: int) -> str | None:
    """What applies to topics without an override once `value` is set for all brokers."""
    if value is not None:
        return value
    candidates = view.of_new_topic({}, replication_factor, _MINIMUM).candidates
    return next(found.value for found in candidates if found.source is not Source.ALL_BROKERS)


def _check_named_once(alterations: Sequence[Alteration]) -> None:
    names = [alteration.name for alteration in alterations]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"{name} is altered twice in one request")


def _meaningful(alterations: Sequence[Alteration], catalogue: Mapping[str, Setting]) -> Iterator[Alteration]:
    for alteration in alterations:
        if alteration.operation is Operation.DELETE:
            if alteration.name in catalogue:
                yield alteration
        elif alteration.operation is Operation.SET and _is_nothing(catalogue, alteration):
            yield Alteration(alteration.name, Operation.DELETE)
        elif alteration.value is None:
            raise InvalidRequest(f"{alteration.name} needs a value")
        else:
            yield alteration


def _is_nothing(catalogue: Mapping[str, Setting], alteration: Alteration) -> bool:
    """Of a setting that may be without a value. Tools that cannot send null send an empty text."""
    setting = known_setting(catalogue, alteration.name)
    if setting.default is not None:
        return False
    return alteration.value is None or (not alteration.value.strip() and setting.kind is not Kind.LIST)


def _resolved(name: str, value: str, replication_factor: int) -> str:
    """`majority` as the number it is now: who adds replicas later says whether more of them must have a write."""
    if name == _MINIMUM and value.strip() == "majority":
        return str(replication_factor // 2 + 1)
    return value


def _check_value(setting: Setting, value: str | None) -> None:
    if value is None:
        raise InvalidSetting(f"{setting.name} needs a value")
    setting.parse(value)


def _altered(effective: EffectiveSetting, alteration: Alteration) -> str | None:
    """The text after the alteration; None where the override is taken away."""
    setting = effective.setting
    if alteration.operation is Operation.DELETE:
        return None
    assert alteration.value is not None, "a missing value was refused"
    if alteration.operation is Operation.SET:
        setting.parse(alteration.value)
        return alteration.value
    if setting.kind is not Kind.LIST:
        raise InvalidSetting(f"{setting.name} is no list, so nothing can be added to it or taken from it")
    items = _items(setting, effective.value)
    if alteration.operation is Operation.SUBTRACT:
        unwanted = [item.strip() for item in alteration.value.split(",")]
        return ",".join(item for item in items if item not in unwanted)
    added = _items(setting, alteration.value)
    return ",".join([*items, *(item for item in added if item not in items)])


def _items(setting: Setting, text: str | None) -> tuple[str, ...]:
    value = setting.parse(text)
    assert isinstance(value, tuple), "the catalogue says it is a list"
    return value
