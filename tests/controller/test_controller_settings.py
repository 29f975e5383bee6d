"""Altering settings: what is decided, what is refused, and that nothing is changed by half."""

import pytest

from ropewalk.base.errors import InvalidRequest, InvalidSetting, RopewalkError, UnknownTopic
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.controller.agreement import decide_agreement
from ropewalk.controller.settings import (
    Alteration,
    Operation,
    check_configuration,
    decide_alter_broker_settings,
    decide_alter_topic_settings,
    decide_replace_topic_settings,
)
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerSettingsChanged,
    ControllerChanged,
    PartitionCreated,
    TopicChanged,
    TopicCreated,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.broker import AGREED_SETTINGS, BROKER_SETTINGS
from ropewalk.metadata.settings.effective import SettingsView, Source
from tests.controller.imagined import ImaginedCluster

NODE, TOPIC = NodeId(0), TopicId(bytes(16))
SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT


def cluster(**overrides: str) -> tuple[Image, SettingsView]:
    image = Image()
    image.apply(BrokerRegistered(NODE, 0, bytes(16), ()))
    image.apply(TopicCreated(TOPIC, "orders"))
    image.apply(PartitionCreated(TOPIC, 0, (NODE,), (NODE,), NODE, LeaderEpoch(0), 0))
    image.apply(
        TopicSettingsChanged(TOPIC, {name.replace("_", "."): value for name, value in overrides.items()})
    )
    return image, SettingsView(image, NODE, {})


@pytest.mark.parametrize(
    ("alterations", "expected"),
    [
        pytest.param([Alteration("segment.ms", SET, "7")], {"segment.ms": "7"}, id="set"),
        pytest.param([Alteration("retention.ms", SET, "5")], {}, id="set to what it is"),
        pytest.param([Alteration("retention.ms", DELETE)], {"retention.ms": None}, id="delete"),
        pytest.param([Alteration("segment.ms", DELETE)], {}, id="delete what is not set"),
        pytest.param(
            [Alteration("cleanup.policy", APPEND, "compact")],
            {"cleanup.policy": "delete,compact"},
            id="append",
        ),
        pytest.param(
            [Alteration("cleanup.policy", APPEND, "delete")],
            {"cleanup.policy": "delete"},
            id="append what is there",
        ),
        pytest.param(
            [Alteration("cleanup.policy", SUBTRACT, "delete")], {"cleanup.policy": ""}, id="subtract"
        ),
        pytest.param(
            [Alteration("min.insync.replicas", SET, "majority")],
            {"min.insync.replicas": "1"},
            id="a majority is kept as a number",
        ),
        pytest.param([Alteration("storage", SET, "disk")], {"storage": "disk"}, id="storage as it is"),
    ],
)
def test_alterations_of_a_topic(alterations: list[Alteration], expected: dict[str, str | None]) -> None:
    image, view = cluster(retention_ms="5")
    records = decide_alter_topic_settings(image, view, "orders", alterations, now_ms=7)
    assert records == (
        [TopicSettingsChanged(TOPIC, expected), TopicChanged(TOPIC, None, 7)] if expected else []
    )


@pytest.mark.parametrize(
    ("alterations", "error"),
    [
        ([Alteration("retention.msec", SET, "5")], InvalidSetting),
        ([Alteration("retention.ms", SET, None)], InvalidRequest),
        ([Alteration("retention.ms", SET, "-9")], InvalidSetting),
        ([Alteration("retention.ms", APPEND, "9")], InvalidSetting),
        ([Alteration("cleanup.policy", APPEND, "shred")], InvalidSetting),
        ([Alteration("storage", SET, "memory")], InvalidSetting),
        ([Alteration("remote.storage.enable", SET, "true")], InvalidSetting),
        ([Alteration("segment.ms", SET, "5"), Alteration("segment.ms", DELETE)], InvalidRequest),
        ([Alteration("segment.ms", SET, "5"), Alteration("retention.ms", SET, "x")], InvalidSetting),
    ],
)
def test_alterations_that_are_refused(alterations: list[Alteration], error: type[RopewalkError]) -> None:
    image, view = cluster()
    with pytest.raises(error):
        decide_alter_topic_settings(image, view, "orders", alterations, now_ms=7)


def test_settings_of_no_topic_are_not_altered() -> None:
    image, view = cluster()
    with pytest.raises(UnknownTopic):
        decide_alter_topic_settings(image, view, "order", [], now_ms=7)


def test_replacing_drops_every_override_that_is_not_named() -> None:
    image, view = cluster(retention_ms="5", segment_ms="7", storage="disk")
    records = decide_replace_topic_settings(image, view, "orders", {"retention.ms": "6"}, now_ms=7)
    changed = TopicSettingsChanged(TOPIC, {"retention.ms": "6", "segment.ms": None})
    assert records == [changed, TopicChanged(TOPIC, None, 7)]


@pytest.mark.parametrize("node_id", [None, NODE])
def test_alterations_of_brokers(node_id: NodeId | None) -> None:
    image, view = cluster()
    records = decide_alter_broker_settings(image, view, node_id, [Alteration("log.retention.ms", SET, "5")])
    assert records == [BrokerSettingsChanged(node_id, {"log.retention.ms": "5"})]
    image.apply(records[0])
    assert view.of_topic(image.topic("orders"), "retention.ms").value == "5"


@pytest.mark.parametrize(
    ("node_id", "alteration", "error"),
    [
        (NodeId(7), Alteration("log.retention.ms", SET, "5"), InvalidRequest),
        (NODE, Alteration("node.id", SET, "5"), InvalidRequest),
        (NODE, Alteration("log.retention", SET, "5"), InvalidSetting),
        (NODE, Alteration("log.retention.ms", SET, "soon"), InvalidSetting),
    ],
)
def test_alterations_of_brokers_that_are_refused(
    node_id: NodeId, alteration: Alteration, error: type[RopewalkError]
) -> None:
    image, view = cluster()
    with pytest.raises(error):
        decide_alter_broker_settings(image, view, node_id, [alteration])


def test_a_configuration_is_checked_by_the_same_rules() -> None:
    check_configuration({"num.partitions": "4", "flush": "os"})
    with pytest.raises(InvalidSetting, match=r"did you mean num\.partitions"):
        check_configuration({"num.partition": "4"})
    with pytest.raises(InvalidSetting, match="must be at least 1"):
        check_configuration({"num.partitions": "0"})


def three_replicas() -> tuple[ImaginedCluster, SettingsView]:
    """`orders` is led by 2, the only one in sync, with 1 eligible; `idle` has everybody in sync."""
    made = ImaginedCluster(3)
    made.topic("orders", (0, 1, 2))
    made.topic("idle", (0, 1, 2))
    made.fence(0)
    made.fence(1)
    assert made.seats("orders") == (2, (2,), (1,))
    return made, SettingsView(made.image, NODE, {})


@pytest.mark.parametrize(
    ("minimum", "eligible", "is_changed"),
    [
        pytest.param("1", (), True, id="one is enough"),
        pytest.param("3", (1,), True, id="more are needed"),
        pytest.param("2", (1,), False, id="as by default"),
        pytest.param("majority", (1,), False, id="as a majority is"),
    ],
)
def test_another_minimum_is_another_epoch_of_the_partition(
    minimum: str, eligible: tuple[int, ...], is_changed: bool
) -> None:
    made, view = three_replicas()
    before = made.partition("orders")
    alterations = [Alteration("min.insync.replicas", SET, minimum)]
    made.apply(decide_alter_topic_settings(made.image, view, "orders", alterations, now_ms=7))
    after = made.partition("orders")
    assert after.eligible == eligible
    assert after.partition_epoch - before.partition_epoch == is_changed
    assert after.leader_epoch == before.leader_epoch
    made.check()


def test_another_minimum_of_all_brokers_reaches_topics_without_their_own() -> None:
    made, view = three_replicas()
    own = [Alteration("min.insync.replicas", SET, "2")]
    made.apply(decide_alter_topic_settings(made.image, view, "idle", own, now_ms=7))
    epochs = [made.partition(name).partition_epoch for name in ("orders", "idle")]
    for alteration, eligible in (
        (Alteration("min.insync.replicas", SET, "1"), ()),
        (Alteration("min.insync.replicas", DELETE), ()),
    ):
        made.apply(decide_alter_broker_settings(made.image, view, None, [alteration]))
        epochs[0] += 1
        assert [made.partition(name).partition_epoch for name in ("orders", "idle")] == epochs
        assert made.partition("orders").eligible == eligible
        made.check()


@pytest.mark.parametrize("of_topic", [True, False])
def test_a_lower_minimum_is_never_known_before_the_eligible_are_gone(of_topic: bool) -> None:
    """A leader that knows it commits without them, and a controller may fail within a change of many records."""
    made, view = three_replicas()
    lower = [Alteration("min.insync.replicas", SET, "1")]
    if of_topic:
        records = decide_alter_topic_settings(made.image, view, "orders", lower, now_ms=7)
    else:
        records = decide_alter_broker_settings(made.image, view, None, lower)
    for record in records:
        made.apply([record])
        minimum = view.of_topic(made.image.topic("orders"), "min.insync.replicas").value
        assert minimum == "2" or made.partition("orders").eligible == ()
    assert minimum == "1"


@pytest.mark.parametrize("of_topic", [True, False])
def test_a_higher_minimum_is_known_to_whoever_knows_the_epoch(of_topic: bool) -> None:
    """A leader that knows the epoch may change the ISR, and must not commit without those who are eligible then."""
    made, view = three_replicas()
    higher = [Alteration("min.insync.replicas", SET, "3")]
    if of_topic:
        records = decide_alter_topic_settings(made.image, view, "orders", higher, now_ms=7)
    else:
        records = decide_alter_broker_settings(made.image, view, None, higher)
    epoch = made.partition("orders").partition_epoch
    for record in records:
        made.apply([record])
        minimum = view.of_topic(made.image.topic("orders"), "min.insync.replicas").value
        assert minimum == "3" or made.partition("orders").partition_epoch == epoch
    assert made.partition("orders").partition_epoch == epoch + 1


@pytest.mark.parametrize("name", [each for each in AGREED_SETTINGS if each != "storage"])
def test_no_broker_has_a_value_of_its_own_of_what_all_must_agree_on(name: str) -> None:
    made, view = three_replicas()
    value = {"min.insync.replicas": "1"}.get(name, BROKER_SETTINGS[name].default)
    with pytest.raises(InvalidRequest, match=f"{name} must be the same on all brokers"):
        decide_alter_broker_settings(made.image, view, NodeId(2), [Alteration(name, SET, value)])
    assert decide_alter_broker_settings(made.image, view, NodeId(2), [Alteration(name, DELETE)]) == []


def test_what_becomes_of_topics_in_memory_cannot_be_changed_for_those_that_are_there() -> None:
    made, view = three_replicas()
    with pytest.raises(InvalidRequest, match="storage is read when a node starts"):
        decide_alter_broker_settings(made.image, view, None, [Alteration("storage", SET, "memory")])


def test_the_first_controller_settles_what_all_must_agree_on_and_no_other_does_again() -> None:
    image = Image()
    first = decide_agreement(image, configuration={"flush": "os", "num.partitions": "4"}, is_alone=False)
    assert set(first) == set(AGREED_SETTINGS)
    assert {name for name, value in first.items() if value is not None} == {"flush"}
    image.apply(ControllerChanged(NodeId(1), 1, first))
    second = decide_agreement(image, configuration={"min.insync.replicas": "1"}, is_alone=False)
    assert second == {}
    view = SettingsView(image, NodeId(2), {"flush": "group", "min.insync.replicas": "1"})
    flush = view.of_broker("flush")
    assert (flush.value, flush.source) == ("os", Source.NODE_CONFIGURATION)
    assert view.of_new_topic({}, 3, "min.insync.replicas").value == "2"
    assert list(view.ignored()) == [
        ("flush", "group", "os"),
        ("min.insync.replicas", "1", "2 with three or more replicas, else 1"),
    ]
    image.apply(BrokerSettingsChanged(None, {"flush": "group"}))
    assert (view.of_broker("flush").value, view.of_broker("flush").source) == ("group", Source.ALL_BROKERS)
    assert [name for name, _, _ in view.ignored()] == ["min.insync.replicas"]


def test_metadata_that_is_older_than_an_agreement_is_settled_by_the_next_controller() -> None:
    image = Image()
    image.apply(ControllerChanged(NodeId(1), 1, {"flush": "os"}))
    own = SettingsView(image, NodeId(2), {"min.insync.replicas": "1"})
    assert own.of_new_topic({}, 3, "min.insync.replicas").value == "1"
    settled = decide_agreement(image, configuration={"flush": "group"}, is_alone=False)
    assert "flush" not in settled
    assert set(settled) == set(AGREED_SETTINGS) - {"flush"}
    applied = AppliedSettings(own)
    replicas = NodeId(1), NodeId(2), NodeId(3)
    topic = Topic(TOPIC, "orders", (Partition(0, replicas, replicas, None, LeaderEpoch(0), 0),))
    assert applied.of_topic(topic).min_insync_replicas == 1
    image.apply(ControllerChanged(NodeId(2), 2, settled))
    assert applied.of_topic(topic).min_insync_replicas == 2, "what was resolved before is resolved anew"
    copy = Image()
    copy.replace(list(image.facts()), image.end_offset)
    assert copy.agreed_settings == image.agreed_settings, "a snapshot has it"


def test_the_file_of_a_node_that_is_alone_counts_at_every_start() -> None:
    image = Image()
    image.apply(ControllerChanged(NodeId(0), 1, decide_agreement(image, configuration={}, is_alone=True)))
    again = decide_agreement(image, configuration={"flush": "os"}, is_alone=True)
    assert again == {"flush": "os"}
    image.apply(ControllerChanged(NodeId(0), 2, again))
    assert SettingsView(image, NodeId(0), {"flush": "os"}).of_broker("flush").value == "os"
    assert decide_agreement(image, configuration={}, is_alone=True) == {"flush": None}


@pytest.mark.parametrize(
    ("name", "before", "alterations"),
    [
        pytest.param("orders", {"cleanup_policy": "compact"}, [("partitions.auto.max", "9")], id="compacted"),
        pytest.param(
            "orders",
            {"partitions_auto_max": "9"},
            [("cleanup.policy", "compact,delete")],
            id="to be compacted",
        ),
        pytest.param(OFFSETS_TOPIC, {}, [("partitions.auto.max", "9")], id="the cluster's own"),
    ],
)
def test_topics_that_must_not_grow_by_themselves(
    name: str, before: dict[str, str], alterations: list[tuple[str, str]]
) -> None:
    made = ImaginedCluster(1)
    made.topic(name, (0,), **before)
    asked = [Alteration(setting, SET, value) for setting, value in alterations]
    view = SettingsView(made.image, NODE, {})
    with pytest.raises(InvalidSetting, match="cannot grow"):
        decide_alter_topic_settings(made.image, view, name, asked, now_ms=7)
