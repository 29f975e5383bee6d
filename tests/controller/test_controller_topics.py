"""Creating, growing and deleting topics: what is decided and what is refused."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import (
    InvalidPartitionCount,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidSetting,
    InvalidTopicName,
    PolicyViolation,
    RopewalkError,
    TopicDeletionDisabled,
    TopicExists,
    UnknownTopic,
    UnknownTopicId,
)
from ropewalk.base.ids import NodeId, format_id
from ropewalk.base.limits import TOPIC_PARTITIONS_MAX
from ropewalk.controller.membership import decide_stop_broker
from ropewalk.controller.own_topics import LAYOUTS
from ropewalk.controller.topics import (
    CreatePartitions,
    CreateTopic,
    decide_change_owner,
    decide_create_partitions,
    decide_create_topic,
    decide_delete_topic,
)
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import CLIENTS_TOPICS
from ropewalk.metadata.records import (
    BrokerRegistered,
    BrokerState,
    BrokerStateChanged,
    MetadataRecord,
    PartitionCreated,
    TopicCreated,
)
from ropewalk.metadata.settings.applied import BrokerSettings, resolve_broker_settings
from ropewalk.metadata.settings.effective import SettingsView
from tests.controller.imagined import ImaginedCluster


def cluster(*, brokers: int = 3) -> Image:
    image = Image()
    for number in range(brokers):
        image.apply(BrokerRegistered(NodeId(number), number, bytes([number]) * 16, ()))
    return image


def broker_settings(image: Image, **configuration: str) -> BrokerSettings:
    names = {name.replace("_", "."): value for name, value in configuration.items()}
    return resolve_broker_settings(SettingsView(image, NodeId(0), names))


def create(image: Image, command: CreateTopic, **configuration: str) -> list[MetadataRecord]:
    records = decide_create_topic(
        image, command, broker_settings(image, **configuration), Random(1), now_ms=7
    )
    for record in records:
        image.apply(record)
    return records


@pytest.mark.parametrize(("replicas", "majority"), [(1, "1"), (2, "2"), (3, "2"), (4, "3"), (5, "3")])
def test_a_majority_of_a_new_topic_is_kept_as_a_number(replicas: int, majority: str) -> None:
    image = cluster(brokers=5)
    settings = {"min.insync.replicas": "majority"}
    create(image, CreateTopic(name="t", replication_factor=replicas, settings=settings))
    assert image.topic("t").settings == {"min.insync.replicas": majority}


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(number) for number in numbers)


@pytest.mark.parametrize(
    "name", ["a", "A.b_c-9", "_", "-", "...", "x" * 249, "__consumer_offsets"], ids=lambda name: name[:20]
)
def test_a_name_that_is_allowed(name: str) -> None:
    image = cluster()
    create(image, CreateTopic(name=name))
    assert list(image.topics) == [name]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a b", "other than ASCII alphanumerics"),
        ("a/b", "other than ASCII alphanumerics"),
        ("é", "other than ASCII alphanumerics"),
        ("a\n", "other than ASCII alphanumerics"),
        ("taken.name", "collides with existing topic: taken_name"),
    ],
    ids=lambda text: text[:20],
)
def test_a_name_that_is_refused(name: str, complaint: str) -> None:
    image = cluster()
    create(image, CreateTopic(name="taken_name"))
    with pytest.raises(InvalidTopicName, match=complaint):
        create(image, CreateTopic(name=name))


def test_a_topic_that_exists_is_not_created_again() -> None:
    image = cluster()
    create(image, CreateTopic(name="orders"))
    with pytest.raises(TopicExists, match="orders"):
        create(image, CreateTopic(name="orders"))


@pytest.mark.parametrize(
    ("brokers", "command", "configuration", "partitions", "replicas"),
    [
        pytest.param(1, CreateTopic(name="t"), {}, 1, 1, id="one broker"),
        pytest.param(5, CreateTopic(name="t"), {}, 1, 3, id="three replicas by default"),
        pytest.param(5, CreateTopic(name="t"), {"num_partitions": "7"}, 7, 3, id="partitions by setting"),
        pytest.param(
            5, CreateTopic(name="t"), {"default_replication_factor": "2"}, 1, 2, id="replicas by setting"
        ),
        pytest.param(
            5, CreateTopic(name="t", partition_count=4, replication_factor=5), {}, 4, 5, id="as asked"
        ),
    ],
)
def test_counts_of_minus_one_take_the_default(
    brokers: int, command: CreateTopic, configuration: dict[str, str], partitions: int, replicas: int
) -> None:
    image = cluster(brokers=brokers)
    create(image, command, **configuration)
    topic = image.topic("t")
    assert (len(topic.partitions), topic.replication_factor) == (partitions, replicas)
    for partition in topic.partitions:
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (CreateTopic(name="t", partition_count=0), InvalidPartitionCount),
        (CreateTopic(name="t", partition_count=-2), InvalidPartitionCount),
        (CreateTopic(name="t", partition_count=TOPIC_PARTITIONS_MAX + 1), InvalidPartitionCount),
        (CreateTopic(name="t", replication_factor=0), InvalidReplicationFactor),
        (CreateTopic(name="t", replication_factor=4), InvalidReplicationFactor),
        (CreateTopic(name="t", settings={"no.such.setting": "1"}), InvalidSetting),
        (CreateTopic(name="t", settings={"retention.ms": "soon"}), InvalidSetting),
        (CreateTopic(name="t", settings={"retention.ms": None}), InvalidSetting),
        (CreateTopic(name="t", settings={"remote.storage.enable": "true"}), InvalidSetting),
        (CreateTopic(name="t", partition_count=1, assignments={0: nodes(0)}), InvalidRequest),
        (CreateTopic(name="t", assignments={1: nodes(0)}), InvalidReplicaAssignment),
        (CreateTopic(name="t", assignments={0: nodes(0), 2: nodes(0)}), InvalidReplicaAssignment),
        (CreateTopic(name="t", assignments={0: nodes()}), InvalidReplicaAssignment),
        (CreateTopic(name="t", assignments={0: nodes(0, 0)}), InvalidReplicaAssignment),
        (CreateTopic(name="t", assignments={0: nodes(9)}), InvalidReplicaAssignment),
        (CreateTopic(name="t", assignments={0: nodes(0, 1), 1: nodes(0)}), InvalidReplicaAssignment),
    ],
)
def test_a_topic_that_cannot_be_is_refused(command: CreateTopic, error: type[RopewalkError]) -> None:
    image = cluster(brokers=3)
    before = image.end_offset
    with pytest.raises(error):
        create(image, command)
    assert image.end_offset == before


def test_replicas_assigned_by_hand_are_taken_as_they_are() -> None:
    image = cluster(brokers=3)
    create(image, CreateTopic(name="t", assignments={1: nodes(0, 2), 0: nodes(2, 1)}))
    assert [partition.replicas for partition in image.topic("t").partitions] == [nodes(2, 1), nodes(0, 2)]


def test_brokers_out_of_service_are_not_counted_as_in_sync() -> None:
    """Seed 1 of the cores: a topic was made while one of its brokers was fenced (M4)."""
    image = cluster(brokers=3)
    image.apply(BrokerStateChanged(NodeId(0), 0, BrokerState.FENCED))
    by_hand = create(image, CreateTopic(name="by-hand", assignments={0: nodes(0, 1, 2)}))
    placed = create(image, CreateTopic(name="placed", partition_count=4, replication_factor=3))
    spared = create(image, CreateTopic(name="spared", partition_count=4, replication_factor=2))
    for record in [*by_hand, *placed, *spared]:
        if isinstance(record, PartitionCreated):
            assert set(record.isr) == set(record.replicas) - {NodeId(0)}
            assert record.leader == record.isr[0]
    assert all(NodeId(0) not in record.replicas for record in spared if isinstance(record, PartitionCreated))


def test_a_partition_needs_a_broker_in_service() -> None:
    image = cluster(brokers=2)
    for node_id in nodes(0, 1):
        image.apply(BrokerStateChanged(node_id, node_id, BrokerState.FENCED))
    with pytest.raises(InvalidReplicaAssignment, match="none of which is in service"):
        create(image, CreateTopic(name="by-hand", assignments={0: nodes(0, 1)}))
    with pytest.raises(InvalidReplicationFactor, match="none of the 2 registered brokers is in service"):
        create(image, CreateTopic(name="placed", partition_count=1, replication_factor=1))


def test_settings_given_at_creation_are_kept() -> None:
    image = cluster()
    create(image, CreateTopic(name="t", settings={"retention.ms": "5", "cleanup.policy": "compact"}))
    assert image.topic("t").settings == {"cleanup.policy": "compact", "retention.ms": "5"}


def test_deciding_alone_changes_nothing() -> None:
    image = cluster()
    records = decide_create_topic(image, CreateTopic(name="t"), broker_settings(image), Random(1), now_ms=7)
    assert [type(record) for record in records] == [TopicCreated, PartitionCreated]
    assert not image.topics


@given(st.randoms(use_true_random=False))
def test_topic_ids_are_version_4_uuids_that_do_not_look_like_options(rng: Random) -> None:
    image = cluster()
    created = decide_create_topic(image, CreateTopic(name="t"), broker_settings(image), rng, now_ms=7)[0]
    assert isinstance(created, TopicCreated)
    assert (created.topic_id[6] >> 4, created.topic_id[8] >> 6) == (4, 2)
    assert not format_id(created.topic_id).startswith("-")


def test_partitions_are_added_behind_those_there_are() -> None:
    image = cluster(brokers=3)
    create(image, CreateTopic(name="t", partition_count=2, replication_factor=2))
    before = image.topic("t").partitions
    for record in decide_create_partitions(
        image, CreatePartitions(name="t", partition_count=5), broker_settings(image), Random(2), now_ms=7
    ):
        image.apply(record)
    topic = image.topic("t")
    assert topic.partitions[:2] == before
    assert [len(partition.replicas) for partition in topic.partitions] == [2] * 5


def test_added_partitions_may_be_assigned_by_hand() -> None:
    image = cluster(brokers=3)
    create(image, CreateTopic(name="t", replication_factor=2))
    command = CreatePartitions(name="t", partition_count=3, assignments=[nodes(0, 1), nodes(1, 2)])
    for record in decide_create_partitions(image, command, broker_settings(image), Random(2), now_ms=7):
        image.apply(record)
    assert [partition.replicas for partition in image.topic("t").partitions[1:]] == [nodes(0, 1), nodes(1, 2)]


@pytest.mark.parametrize(
    ("partition_count", "assignments", "error"),
    [
        (2, None, InvalidPartitionCount),
        (1, None, InvalidPartitionCount),
        (-1, None, InvalidPartitionCount),
        (TOPIC_PARTITIONS_MAX + 1, None, InvalidPartitionCount),
        (3, [], InvalidReplicaAssignment),
        (3, [nodes(0), nodes(1)], InvalidReplicaAssignment),
        (3, [nodes(0, 1)], InvalidReplicaAssignment),
        (3, [nodes(7)], InvalidReplicaAssignment),
    ],
)
def test_partitions_that_cannot_be_added(
    partition_count: int, assignments: Sequence[Sequence[NodeId]] | None, error: type[RopewalkError]
) -> None:
    image = cluster(brokers=3)
    create(image, CreateTopic(name="t", partition_count=2, replication_factor=1))
    command = CreatePartitions(name="t", partition_count=partition_count, assignments=assignments)
    with pytest.raises(error):
        decide_create_partitions(image, command, broker_settings(image), Random(1), now_ms=7)


def test_partitions_of_no_topic_are_not_added() -> None:
    image = cluster()
    with pytest.raises(UnknownTopic):
        decide_create_partitions(
            image, CreatePartitions(name="t", partition_count=2), broker_settings(image), Random(1), now_ms=7
        )


def test_a_cluster_takes_no_more_replicas_than_its_brokers_are_meant_to_carry() -> None:
    image = cluster(brokers=2)

    def settings() -> BrokerSettings:
        return broker_settings(image, max_broker_partitions="3")

    create(image, CreateTopic(name="t", partition_count=2, replication_factor=2), max_broker_partitions="3")
    with pytest.raises(PolicyViolation, match=r"would be 8 replicas .* on 2 brokers; .* allows 6"):
        decide_create_topic(
            image,
            CreateTopic(name="u", partition_count=2, replication_factor=2),
            settings(),
            Random(1),
            now_ms=7,
        )
    with pytest.raises(PolicyViolation):
        decide_create_partitions(
            image, CreatePartitions(name="t", partition_count=4), settings(), Random(1), now_ms=7
        )
    internal = CreateTopic(name="__consumer_offsets", partition_count=50, replication_factor=1)
    assert decide_create_topic(image, internal, settings(), Random(1), now_ms=7)
    for record in decide_delete_topic(image, image.topic("t"), settings()):
        image.apply(record)
    assert decide_create_topic(
        image, CreateTopic(name="u", partition_count=3, replication_factor=2), settings(), Random(1), now_ms=7
    )


@pytest.mark.parametrize("name", sorted(CLIENTS_TOPICS))
@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (5, 3)])
def test_what_clients_keep_in_the_clusters_own_topics_is_laid_out_by_the_cluster_and_stays(
    name: str, brokers: int, replicas: int
) -> None:
    image = cluster(brokers=brokers)
    create(image, CreateTopic(name=name, partition_count=3, settings={"cleanup.policy": "delete"}))
    topic = image.topic(name)
    assert len(topic.partitions) == LAYOUTS[name].partition_count
    assert {len(partition.replicas) for partition in topic.partitions} == {replicas}
    assert topic.settings["cleanup.policy"] == "compact"
    with pytest.raises(TopicDeletionDisabled, match="the cluster's own"):
        decide_delete_topic(image, topic, broker_settings(image))
    with pytest.raises(InvalidPartitionCount, match="cannot grow"):
        decide_create_partitions(
            image,
            CreatePartitions(name=name, partition_count=99),
            broker_settings(image),
            Random(1),
            now_ms=7,
        )


def test_a_deleted_topic_is_gone_and_its_name_free() -> None:
    image = cluster()
    create(image, CreateTopic(name="t", settings={"retention.ms": "5"}))
    topic = image.topic("t")
    for record in decide_delete_topic(image, topic, broker_settings(image)):
        image.apply(record)
    assert not image.topics
    with pytest.raises(UnknownTopicId):
        decide_delete_topic(image, topic, broker_settings(image))
    create(image, CreateTopic(name="t"))
    assert image.topic("t").settings == {}


def test_deletion_can_be_forbidden() -> None:
    image = cluster()
    create(image, CreateTopic(name="t"))
    with pytest.raises(TopicDeletionDisabled, match=r"delete\.topic\.enable is false"):
        decide_delete_topic(image, image.topic("t"), broker_settings(image, delete_topic_enable="false"))


commands = st.one_of(
    st.builds(
        CreateTopic,
        name=st.sampled_from(["a.b", "a_b", "c", "d", "bad name"]),
        partition_count=st.integers(-1, 4),
        replication_factor=st.integers(-1, 4),
        settings=st.sampled_from([{}, {"retention.ms": "5"}, {"flush": "never"}]),
    ),
    st.builds(CreatePartitions, name=st.sampled_from(["a.b", "c"]), partition_count=st.integers(0, 6)),
    st.sampled_from(["a.b", "a_b", "c", "d"]),
)


@given(st.lists(commands, max_size=15), st.integers(1, 4), st.integers(0, 1000))
def test_replaying_what_was_decided_rebuilds_the_image(
    history: list[CreateTopic | CreatePartitions | str], brokers: int, seed: int
) -> None:
    image, rng = cluster(brokers=brokers), Random(seed)
    committed = list(image.facts())
    for command in history:
        try:
            match command:
                case CreateTopic():
                    records = decide_create_topic(image, command, broker_settings(image), rng, now_ms=7)
                case CreatePartitions():
                    records = decide_create_partitions(image, command, broker_settings(image), rng, now_ms=7)
                case _:
                    records = decide_delete_topic(image, image.topic(command), broker_settings(image))
        except RopewalkError:
            continue
        for record in records:
            image.apply(record)
        committed += records
    replayed = Image()
    for record in committed:
        replayed.apply(record)
    assert replayed.topics == image.topics
    assert replayed.replica_count == image.replica_count
    assert image.replica_count == sum(
        len(partition.replicas) for topic in image.topics.values() for partition in topic.partitions
    )
    assert list(replayed.facts()) == list(image.facts())
    folded = {name.replace(".", "_") for name in image.topics}
    assert len(folded) == len(image.topics)
    for topic in image.topics.values():
        for partition in topic.partitions:
            assert len(set(partition.replicas)) == topic.replication_factor
            assert set(partition.replicas) <= set(image.brokers)


def test_a_topic_carries_its_owner_and_when_it_was_made_and_changed() -> None:
    made = ImaginedCluster(1)
    command = CreateTopic(name="t", owner="team-a")
    made.apply(decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7))
    topic = made.image.topic("t")
    assert (topic.owner, topic.created_at_ms, topic.modified_at_ms) == ("team-a", 7, 7)
    grown = CreatePartitions(name="t", partition_count=2)
    made.apply(decide_create_partitions(made.image, grown, made.settings.of_broker, Random(1), now_ms=9))
    topic = made.image.topic("t")
    assert (topic.owner, topic.created_at_ms, topic.modified_at_ms) == ("team-a", 7, 9)
    made.apply(decide_change_owner(made.image, "t", None, now_ms=11))
    assert (made.image.topic("t").owner, made.image.topic("t").modified_at_ms) == (None, 11)
    assert decide_change_owner(made.image, "t", None, now_ms=12) == []


@pytest.mark.parametrize("owner", ["", "x" * 256, "a\nb"])
def test_an_owner_that_cannot_be(owner: str) -> None:
    made = ImaginedCluster(1)
    command = CreateTopic(name="t", owner=owner)
    with pytest.raises(InvalidRequest, match="an owner has"):
        decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7)


def test_observers_are_put_beside_the_replicas_and_grow_with_them() -> None:
    made = ImaginedCluster(4)
    command = CreateTopic(name="t", partition_count=2, replication_factor=2, observer_count=1)
    made.apply(decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7))
    grown = CreatePartitions(name="t", partition_count=4)
    made.apply(decide_create_partitions(made.image, grown, made.settings.of_broker, Random(1), now_ms=7))
    for partition in made.image.topic("t").partitions:
        assert (len(partition.replicas), len(partition.observers)) == (2, 1)
        assert len(set(partition.holders)) == 3
    made.check()


def test_a_broker_out_of_service_is_used_only_where_the_others_are_too_few() -> None:
    made = ImaginedCluster(4)
    made.fence(0)
    for name, factor in (("small", 3), ("large", 4)):
        command = CreateTopic(name=name, partition_count=8, replication_factor=factor)
        made.apply(decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7))
    for partition in made.image.topic("small").partitions:
        assert NodeId(0) not in partition.replicas
    for partition in made.image.topic("large").partitions:
        assert partition.replicas[3] == 0
        assert len(partition.isr) == 3
    made.check()


def test_a_broker_that_is_about_to_stop_is_given_nothing() -> None:
    made = ImaginedCluster(3)
    assert made.settings.of_broker.default_replication_factor == 3
    made.apply(decide_stop_broker(made.image, NodeId(0), settings=made.settings, now_ms=7))
    assert made.settings.of_broker.default_replication_factor == 2
    command = CreateTopic(name="t", partition_count=4)
    made.apply(decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7))
    for partition in made.image.topic("t").partitions:
        assert sorted(partition.replicas) == [1, 2]


def test_nothing_is_made_where_nobody_is_in_service() -> None:
    made = ImaginedCluster(2)
    made.fence(0)
    made.fence(1)
    with pytest.raises(InvalidReplicationFactor, match="none of the 2 registered brokers is in service"):
        decide_create_topic(made.image, CreateTopic(name="t"), made.settings.of_broker, Random(1), now_ms=7)
    command = CreateTopic(name="t", assignments={0: (NodeId(0), NodeId(1))})
    with pytest.raises(InvalidReplicaAssignment, match="none of which is in service"):
        decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7)


def test_a_compacted_topic_is_not_made_to_grow_by_itself() -> None:
    made = ImaginedCluster(1)
    command = CreateTopic(name="t", settings={"cleanup.policy": "compact", "partitions.auto.max": "5"})
    with pytest.raises(InvalidSetting, match="t is compacted and cannot grow"):
        decide_create_topic(made.image, command, made.settings.of_broker, Random(1), now_ms=7)
