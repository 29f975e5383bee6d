"""The image is the sum of the records, from whichever point one starts adding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ropewalk.base.errors import UnknownPartition, UnknownTopic, UnknownTopicId
from ropewalk.base.ids import LeaderEpoch, NodeId, ProducerId, TopicId
from ropewalk.base.limits import TOPICS_DELETED_REMEMBERED_MAX
from ropewalk.metadata import audit
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.records import (
    AclAdded,
    AclRemoved,
    BrokerRegistered,
    BrokerSettingsChanged,
    ChangeBegun,
    ChangeEnded,
    ChangeMade,
    ClientQuotasChanged,
    ClusterCreated,
    Endpoint,
    MetadataRecord,
    PartitionChanged,
    PartitionCreated,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
    decode_records,
    encode_records,
)
from tests.security.rules import rules

SETTING_NAMES = ("retention.ms", "segment.bytes", "flush")


@st.composite
def histories(draw: st.DrawFn) -> list[MetadataRecord]:
    """Records as decisions would have made them: each fits the image that the ones before it add up to."""
    records: list[MetadataRecord] = [ClusterCreated("cluster")]
    partitions: dict[TopicId, list[PartitionCreated | PartitionChanged]] = {}
    end_producer_id = 0
    for step in range(draw(st.integers(0, 25))):
        topic_id = draw(st.sampled_from(sorted(partitions))) if partitions else None
        match draw(
            st.sampled_from(
                [
                    "broker",
                    "topic",
                    "partition",
                    "change",
                    "delete",
                    "settings",
                    "node",
                    "ids",
                    "quotas",
                    "rule",
                    "asked",
                ]
            )
        ):
            case "broker":
                node_id = NodeId(draw(st.integers(0, 3)))
                endpoint = Endpoint("PLAINTEXT", "localhost", draw(st.integers(1, 65_535)))
                rack = draw(st.sampled_from([None, "a", "b"]))
                records.append(
                    BrokerRegistered(node_id, len(records), bytes([node_id]) * 16, (endpoint,), rack)
                )
            case "topic":
                fresh = TopicId(step.to_bytes(16, "big"))
                partitions[fresh] = []
                records.append(TopicCreated(fresh, f"topic-{step}"))
            case "partition" if topic_id is not None:
                nodes = (NodeId(0), NodeId(1))
                created = PartitionCreated(
                    topic_id, len(partitions[topic_id]), nodes, nodes, NodeId(0), LeaderEpoch(0), 0
                )
                partitions[topic_id].append(created)
                records.append(created)
            case "change" if topic_id is not None and partitions[topic_id]:
                before = draw(st.sampled_from(partitions[topic_id]))
                changed = PartitionChanged(
                    topic_id,
                    before.index,
                    before.replicas,
                    (NodeId(1),),
                    draw(st.sampled_from([None, NodeId(1)])),
                    LeaderEpoch(before.leader_epoch + 1),
                    before.partition_epoch + 1,
                )
                partitions[topic_id][before.index] = changed
                records.append(changed)
            case "delete" if topic_id is not None:
                del partitions[topic_id]
                records.append(TopicDeleted(topic_id))
            case "settings" if topic_id is not None:
                records.append(TopicSettingsChanged(topic_id, draw(changes)))
            case "node":
                node = draw(st.sampled_from([None, NodeId(0)]))
                records.append(BrokerSettingsChanged(node, draw(changes)))
            case "ids":
                end_producer_id += 1000
                records.append(ProducerIdsAllocated(NodeId(0), ProducerId(end_producer_id)))
            case "quotas":
                entity = draw(st.sampled_from([(("user", None),), (("client-id", "c"), ("user", "u"))]))
                quotas = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([None, 1.5, 2.0]))
                records.append(ClientQuotasChanged(entity, draw(quotas)))
            case "asked":
                records.append(ChangeMade(step + 1, "CreateTopics", "User:ann", step))
            case "rule":
                said = structs.astuple(draw(rules))
                records.append(AclAdded(*said) if draw(st.booleans()) else AclRemoved(*said))
    return records


changes = st.dictionaries(st.sampled_from(SETTING_NAMES), st.sampled_from([None, "1", "2"]), max_size=3)


def image_of(records: list[MetadataRecord]) -> Image:
    image = Image()
    for record in records:
        image.apply(record)
    return image


def everything(image: Image) -> object:
    return (
        image.end_offset,
        image.cluster_id,
        image.end_producer_id,
        dict(image.brokers),
        list(image.topics.items()),
        image.broker_settings(None),
        image.broker_settings(NodeId(0)),
        image.client_quotas,
        list(image.acls),
        [change.number for change in image.audit.after(0)],
        [image.was_deleted(TopicId(number.to_bytes(16, "big"))) for number in range(25)],
    )


@given(histories(), st.data())
def test_a_snapshot_at_any_point_and_the_rest_of_the_log_give_the_same_image(
    records: list[MetadataRecord], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    earlier = image_of(records[:cut])
    later = image_of([*decode_records(encode_records(tuple(earlier.facts())))])
    later.end_offset = earlier.end_offset
    for record in records[cut:]:
        later.apply(record)
    assert everything(later) == everything(image_of(records))


@given(histories(), st.data())
def test_records_applied_together_give_what_they_give_one_by_one(
    records: list[MetadataRecord], data: st.DataObject
) -> None:
    """Also as a large change, of which a part is snapshotted before it has ended."""
    together = Image()
    effective = together.apply_all(records)
    assert everything(together) == everything(image_of(records))
    assert effective == records
    cut = data.draw(st.integers(0, len(records)))
    amid = Image()
    assert amid.apply_all([ChangeBegun(), *records[:cut]]) == []
    resumed = Image()
    resumed.replace(decode_records(encode_records(tuple(amid.facts()))), amid.end_offset)
    assert resumed.apply_all([*records[cut:], ChangeEnded()]) == records
    resumed.end_offset -= 2
    assert everything(resumed) == everything(image_of(records))
    assert resumed.replica_count == together.replica_count


def test_a_topic_is_replaced_once_by_all_that_comes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One copy for each record would be a hundred million entries for a topic of ten thousand partitions."""
    topic_id, pair = TopicId(bytes(16)), (NodeId(0), NodeId(1))
    created = [
        PartitionCreated(topic_id, index, pair, pair, NodeId(0), LeaderEpoch(0), 0) for index in range(100)
    ]
    changed = [
        PartitionChanged(topic_id, index, pair, pair[1:], NodeId(1), LeaderEpoch(1), 1)
        for index in range(100)
    ]
    image = image_of([TopicCreated(topic_id, "orders"), *created])
    replaced: list[Topic] = []
    put = Image._put

    def counted(image: Image, topic: Topic) -> None:
        replaced.append(topic)
        put(image, topic)

    monkeypatch.setattr(Image, "_put", counted)
    image.apply_all([ChangeBegun(), *changed[:50]])
    image.apply_all(changed[50:])
    assert not replaced, "nobody sees a part of a change"
    image.apply_all([ChangeEnded()])
    assert len(replaced) == 1
    assert {partition.leader for partition in image.topic("orders").partitions} == {NodeId(1)}


@given(histories())
def test_records_survive_encoding(records: list[MetadataRecord]) -> None:
    assert decode_records(encode_records(records)) == tuple(records)


@given(histories())
def test_topics_are_found_by_name_and_by_id_alike(records: list[MetadataRecord]) -> None:
    image = image_of(records)
    assert {topic.topic_id: topic for topic in image.topics.values()} == dict(image.topics_by_id)
    for name, topic in image.topics.items():
        assert image.topic(name) is topic
        assert image.topic_by_id(topic.topic_id) is topic
        assert [partition.index for partition in topic.partitions] == list(range(len(topic.partitions)))


def test_what_is_not_there_is_named_in_the_error() -> None:
    image = image_of([TopicCreated(TopicId(bytes(16)), "orders")])
    with pytest.raises(UnknownTopic, match="there is no topic 'order'"):
        image.topic("order")
    with pytest.raises(UnknownTopicId, match="AQEBAQEBAQEBAQEBAQEBAQ"):
        image.topic_by_id(TopicId(b"\1" * 16))
    with pytest.raises(UnknownPartition, match="orders has 0 partitions, so none is numbered 0"):
        image.partition("orders", 0)


def test_only_what_was_deleted_counts_as_deleted() -> None:
    gone, there, never = (TopicId(bytes([number]) * 16) for number in range(3))
    image = image_of([TopicCreated(gone, "a"), TopicCreated(there, "b"), TopicDeleted(gone)])
    assert [image.was_deleted(topic_id) for topic_id in (gone, there, never)] == [True, False, False]


def test_the_oldest_deletions_are_forgotten_in_the_end() -> None:
    ids = [TopicId(number.to_bytes(16, "big")) for number in range(TOPICS_DELETED_REMEMBERED_MAX + 1)]
    image = image_of(
        [record for topic_id in ids for record in (TopicCreated(topic_id, "t"), TopicDeleted(topic_id))]
    )
    assert not image.was_deleted(ids[0])
    assert all(image.was_deleted(topic_id) for topic_id in ids[1:])


def test_only_so_many_changes_tell_who_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "AUDIT_CHANGES_KEPT_MAX", 3)
    image = image_of([ChangeMade(number, "DeleteTopics", "User:ann", 0) for number in range(1, 6)])
    assert [(change.number, change.offset) for change in image.audit.after(0)] == [(3, 2), (4, 3), (5, 4)]
    assert [change.number for change in image.audit.after(4)] == [5]
    monkeypatch.setattr(audit, "AUDIT_CHANGES_BYTES_MAX", 1)
    image.apply(ChangeMade(6, "DeleteTopics", "User:ann", 0))
    assert [change.number for change in image.audit.after(0)] == [6], "the newest is always kept"


def test_an_event_within_a_large_change_has_the_place_where_that_took_effect() -> None:
    image = image_of(
        [ChangeBegun(), TopicCreated(TopicId(bytes(16)), "t"), ChangeMade(1, "CreateTopics", "User:a", 0)]
    )
    assert not len(image.audit)
    image.apply(ChangeEnded())
    assert [change.offset for change in image.audit.after(0)] == [3]
    again = Image()
    again.replace(decode_records(encode_records(tuple(image.facts()))), image.end_offset)
    assert list(again.audit.after(0)) == list(image.audit.after(0))


def test_an_epoch_that_goes_back_is_a_bug() -> None:
    topic_id, nodes = TopicId(bytes(16)), (NodeId(0),)
    state = (topic_id, 0, nodes, nodes, NodeId(0))
    image = image_of([TopicCreated(topic_id, "orders"), PartitionCreated(*state, LeaderEpoch(3), 7)])
    with pytest.raises(AssertionError):
        image.apply(PartitionChanged(*state, LeaderEpoch(3), 7))
    with pytest.raises(AssertionError):
        image.apply(PartitionChanged(*state, LeaderEpoch(2), 8))


def test_a_record_of_a_type_that_is_not_known_is_refused() -> None:
    data = encode_records([ClusterCreated("c")]).replace(b"cluster_created", b"cluster_removed")
    with pytest.raises(ValueError, match="cluster_removed"):
        decode_records(data)
