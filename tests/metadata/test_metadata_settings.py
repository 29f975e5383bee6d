"""Settings: the catalogues hold together, values are checked, and the right one applies."""

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.base.limits import TOPIC_SETTINGS_REMEMBERED_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerSettingsChanged,
    MetadataRecord,
    PartitionCreated,
    TopicCreated,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import (
    AppliedSettings,
    resolve_broker_settings,
    resolve_topic_settings,
)
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.effective import Candidate, SettingsView, Source, known_setting
from ropewalk.metadata.settings.setting import Kind, Setting
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS

NODE = NodeId(0)
TOPIC = TopicId(bytes(16))


def cluster(*, brokers: int = 1, replication_factor: int = 1) -> Image:
    image = Image()
    for number in range(brokers):
        image.apply(BrokerRegistered(NodeId(number), number, bytes([number]) * 16, ()))
    nodes = tuple(NodeId(number) for number in range(replication_factor))
    image.apply(TopicCreated(TOPIC, "orders"))
    image.apply(PartitionCreated(TOPIC, 0, nodes, nodes, NODE, LeaderEpoch(0), 0))
    return image


@pytest.mark.parametrize("catalogue", [TOPIC_SETTINGS, BROKER_SETTINGS], ids=["topic", "broker"])
def test_every_default_is_a_value_its_setting_takes(catalogue: dict[str, Setting]) -> None:
    for setting in catalogue.values():
        setting.parse(setting.default)
        assert setting.documentation.endswith("."), setting.name


def test_every_synonym_is_a_broker_setting() -> None:
    for setting in TOPIC_SETTINGS.values():
        for synonym in setting.synonyms:
            assert synonym.name in BROKER_SETTINGS


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("cleanup.policy", Kind.LIST, "delete"),
        ("compression.type", Kind.STRING, "producer"),
        ("flush.ms", Kind.LONG, "9223372036854775807"),
        ("max.message.bytes", Kind.INT, "1048588"),
        ("message.timestamp.after.max.ms", Kind.LONG, "3600000"),
        ("min.cleanable.dirty.ratio", Kind.DOUBLE, "0.5"),
        ("retention.bytes", Kind.LONG, "-1"),
        ("retention.ms", Kind.LONG, "604800000"),
        ("segment.bytes", Kind.INT, "1073741824"),
        ("unclean.leader.election.enable", Kind.BOOLEAN, "false"),
    ],
)
def test_types_and_defaults_of_topics_are_those_of_kafka(name: str, kind: Kind, default: str) -> None:
    setting = TOPIC_SETTINGS[name]
    assert (setting.kind, setting.default) == (kind, default)


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("log.retention.hours", Kind.INT, "168"),
        ("log.retention.minutes", Kind.INT, None),
        ("log.retention.ms", Kind.LONG, None),
        ("log.roll.hours", Kind.INT, "168"),
        ("log.segment.bytes", Kind.INT, "1073741824"),
        ("message.max.bytes", Kind.INT, "1048588"),
        ("num.partitions", Kind.INT, "1"),
        ("offsets.topic.replication.factor", Kind.SHORT, "3"),
        ("socket.request.max.bytes", Kind.INT, "104857600"),
    ],
)
def test_types_and_defaults_of_brokers_are_those_of_kafka(name: str, kind: Kind, default: str | None) -> None:
    setting = BROKER_SETTINGS[name]
    assert (setting.kind, setting.default) == (kind, default)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: must be at least -1"),
        ("retention.ms", "soon", "must be a whole number"),
        ("retention.ms", "1.5", "must be a whole number"),
        ("retention.ms", "", "must be a whole number"),
        ("retention.ms", "-+5", "must be a whole number"),
        ("retention.ms", "٣", "must be a whole number"),
        ("retention.ms", "9223372036854775808", "must fit in 64 bits"),
        ("segment.bytes", "2147483648", "must fit in 32 bits"),
        (
            "segment.bytes",
            "1048575",
            "Invalid value 1048575 for configuration segment.bytes: must be at least 1048576",
        ),
        ("compression.gzip.level", "0", "must be at least 1"),
        ("compression.gzip.level", "10", "must be at most 9"),
        ("min.cleanable.dirty.ratio", "1.1", "must be at most 1"),
        ("min.cleanable.dirty.ratio", "nan", "must be a number"),
        ("min.cleanable.dirty.ratio", "half", "must be a number"),
        ("preallocate", "yes", "must be true or false"),
        ("cleanup.policy", "shred", "must be one of compact, delete"),
        ("cleanup.policy", "delete,", "has an empty item"),
        ("cleanup.policy", "delete,delete", "names something twice"),
        ("message.timestamp.type", "createtime", "must be one of CreateTime, LogAppendTime"),
        ("flush", "always", "must be one of group, os"),
        ("storage", "tape", "must be one of disk, memory"),
        ("remote.storage.enable", "true", "is refused: this version has no remote tier"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_bound(name: str, text: str, complaint: str) -> None:
    with pytest.raises(InvalidSetting, match=complaint):
        TOPIC_SETTINGS[name].parse(text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", "-1", -1),
        ("retention.ms", " 5 ", 5),
        ("compression.gzip.level", "-1", -1),
        ("cleanup.policy", "compact, delete", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", "0.25", 0.25),
    ],
)
def test_a_value_is_read_as_its_type(name: str, text: str, value: object) -> None:
    assert TOPIC_SETTINGS[name].parse(text) == value


def test_a_misspelt_setting_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(
        InvalidSetting, match=r"Unknown topic config name: retention.mss; did you mean retention.ms\?"
    ):
        known_setting(TOPIC_SETTINGS, "retention.mss")


def test_a_setting_without_effect_admits_it() -> None:
    assert "does not act on it" in TOPIC_SETTINGS["flush.messages"].description
    assert "does not act on it" not in TOPIC_SETTINGS["retention.ms"].description


def test_the_nearest_source_applies_and_the_rest_are_listed_behind_it() -> None:
    image = cluster()
    configuration = {"log.retention.hours": "1", "log.retention.minutes": "7"}
    view = SettingsView(image, NODE, configuration)
    steps: list[tuple[MetadataRecord, str, Candidate]] = [
        (
            TopicSettingsChanged(TOPIC, {}),
            "420000",
            Candidate("log.retention.minutes", "7", Source.NODE_CONFIGURATION),
        ),
        (
            BrokerSettingsChanged(None, {"log.retention.ms": "11"}),
            "11",
            Candidate("log.retention.ms", "11", Source.ALL_BROKERS),
        ),
        (
            BrokerSettingsChanged(NODE, {"log.retention.ms": "12"}),
            "12",
            Candidate("log.retention.ms", "12", Source.BROKER),
        ),
        (
            TopicSettingsChanged(TOPIC, {"retention.ms": "13"}),
            "13",
            Candidate("retention.ms", "13", Source.TOPIC),
        ),
    ]
    seen: list[Candidate] = []
    for record, value, candidate in steps:
        image.apply(record)
        effective = view.of_topic(image.topic("orders"), "retention.ms")
        assert (effective.value, effective.source) == (value, candidate.source)
        seen.insert(0, candidate)
        assert list(effective.candidates[: len(seen)]) == seen
    assert seen[0].source is Source.TOPIC


def test_a_negative_number_means_the_same_in_every_unit() -> None:
    image = cluster()
    view = SettingsView(image, NODE, {"log.retention.hours": "-1"})
    assert view.of_topic(image.topic("orders"), "retention.ms").value == "-1"


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_the_default_replication_factor_is_three_or_as_many_as_there_are_brokers(
    brokers: int, factor: int
) -> None:
    view = SettingsView(cluster(brokers=brokers), NODE, {})
    assert resolve_broker_settings(view).default_replication_factor == factor


@pytest.mark.parametrize(
    ("replication_factor", "override", "minimum"),
    [
        pytest.param(1, None, 1, id="one replica"),
        pytest.param(2, None, 1, id="two replicas tolerate the loss of one"),
        pytest.param(3, None, 2, id="three replicas"),
        pytest.param(5, None, 2, id="five replicas"),
        pytest.param(3, "1", 1, id="an override wins"),
        pytest.param(2, "3", 2, id="never more than there are replicas"),
    ],
)
def test_the_minimum_of_in_sync_replicas(replication_factor: int, override: str | None, minimum: int) -> None:
    image = cluster(brokers=5, replication_factor=replication_factor)
    image.apply(TopicSettingsChanged(TOPIC, {"min.insync.replicas": override}))
    view = SettingsView(image, NODE, {})
    assert resolve_topic_settings(view, image.topic("orders")).min_insync_replicas == minimum


@pytest.mark.parametrize(
    ("policy", "deletes", "compacts"),
    [("delete", True, False), ("compact", False, True), ("compact,delete", True, True), ("", False, False)],
)
def test_a_topic_deletes_or_compacts_or_both_and_needs_keys_where_it_compacts(
    policy: str, deletes: bool, compacts: bool
) -> None:
    image = cluster()
    image.apply(TopicSettingsChanged(TOPIC, {"cleanup.policy": policy}))
    settings = resolve_topic_settings(SettingsView(image, NODE, {}), image.topic("orders"))
    assert (settings.deletes, settings.compacts, settings.keys_required) == (deletes, compacts, compacts)


def test_settings_that_are_remembered_follow_every_change() -> None:
    image = cluster(brokers=1)
    settings = AppliedSettings(SettingsView(image, NODE, {}))
    before = settings.of_topic(image.topic("orders"))
    assert settings.of_topic(image.topic("orders")) is before
    image.apply(TopicSettingsChanged(TOPIC, {"retention.ms": "1000"}))
    assert settings.of_topic(image.topic("orders")).retention_ms == 1000
    image.apply(TopicSettingsChanged(TOPIC, {"retention.ms": None}))
    assert settings.of_topic(image.topic("orders")) is before
    for node_id, hours in ((None, "7"), (NODE, "8")):
        image.apply(BrokerSettingsChanged(node_id, {"log.retention.hours": hours}))
        assert settings.of_topic(image.topic("orders")).retention_ms == int(hours) * 3_600_000
    image.apply(BrokerSettingsChanged(NODE, {"num.partitions": "4"}))
    assert settings.of_broker.num_partitions == 4
    assert settings.of_broker.default_replication_factor == 1
    image.apply(BrokerRegistered(NodeId(77), 1, bytes(16), (), None))
    assert settings.of_broker.default_replication_factor == 2


def test_only_so_many_sets_of_settings_are_remembered() -> None:
    image = cluster()
    settings = AppliedSettings(SettingsView(image, NODE, {}))
    for number in range(3 * TOPIC_SETTINGS_REMEMBERED_MAX):
        image.apply(TopicSettingsChanged(TOPIC, {"retention.ms": str(number)}))
        assert settings.of_topic(image.topic("orders")).retention_ms == number


@pytest.mark.parametrize(
    ("codec", "level"),
    [("producer", None), ("snappy", None), ("gzip", None), ("lz4", 9), ("zstd", 3)],
)
def test_the_compression_level_is_that_of_the_codec(codec: str, level: int | None) -> None:
    image = cluster()
    image.apply(TopicSettingsChanged(TOPIC, {"compression.type": codec}))
    settings = resolve_topic_settings(SettingsView(image, NODE, {}), image.topic("orders"))
    assert settings.compression_level == level
