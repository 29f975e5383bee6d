"""Queues in the image: found by name, by topic and by where their dead letters go, after any history of facts."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import OwnerId, TopicId
from ropewalk.base.limits import MOVE_TASKS_REMEMBERED_MAX, QUEUES_DELETED_REMEMBERED_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.queues import Queue, Redrive
from ropewalk.metadata.records import (
    MetadataRecord,
    MoveTaskCancelling,
    MoveTaskEnded,
    MoveTaskStarted,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    TopicCreated,
    TopicDeleted,
    decode_records,
    encode_records,
)

NAMES = ("dead", "jobs", "jobs.fifo", "mail")
POLICIES = {
    name: f'{{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:000000000000:{name}","maxReceiveCount":3}}'
    for name in NAMES
}


def identity(number: int) -> bytes:
    return number.to_bytes(16, "big")


def created(number: int, name: str, **fields: object) -> list[MetadataRecord]:
    topic_id = TopicId(identity(number))
    made = {"queue_id": OwnerId(identity(1000 + number)), "name": name, "topic_id": topic_id, **fields}
    return [TopicCreated(topic_id, f"{name}-topic-{number}"), QueueCreated(**made)]  # type: ignore[arg-type]


def image_of(records: Sequence[MetadataRecord]) -> Image:
    image = Image()
    image.apply_all(records)
    return image


@st.composite
def histories(draw: st.DrawFn) -> list[MetadataRecord]:
    """Records as decisions would have made them: each fits the image that the ones before it add up to."""
    records: list[MetadataRecord] = []
    queues: dict[str, tuple[OwnerId, TopicId]] = {}
    tasks: list[tuple[bytes, OwnerId]] = []
    for step in range(draw(st.integers(0, 30))):
        name = draw(st.sampled_from(NAMES))
        match draw(
            st.sampled_from(["make", "change", "delete", "delete topic", "move", "cancel move", "end move"])
        ):
            case "make" if name not in queues:
                records += created(
                    step,
                    name,
                    attributes={"RedrivePolicy": POLICIES[draw(st.sampled_from(NAMES))]},
                    tags={"team": "a"},
                    owner=draw(st.sampled_from([None, "me"])),
                    created_at_ms=step,
                    is_adopted=draw(st.booleans()),
                    starts=draw(st.sampled_from([(), (5, 0)])),
                )
                queues[name] = OwnerId(identity(1000 + step)), TopicId(identity(step))
            case "change" if name in queues:
                policy = draw(st.sampled_from([None, *POLICIES.values()]))
                tags = draw(st.dictionaries(st.sampled_from("xy"), st.sampled_from([None, "1"])))
                records.append(QueueChanged(queues[name][0], {"RedrivePolicy": policy}, tags, step))
            case "delete" if name in queues:
                records.append(QueueDeleted(queues.pop(name)[0], name, step))
            case "delete topic" if name in queues:
                records.append(TopicDeleted(queues.pop(name)[1]))
            case "move" if name in queues:
                tasks.append((identity(step), queues[name][0]))
                target = draw(st.sampled_from([None, "mail"]))
                records.append(MoveTaskStarted(*tasks[-1], target, None, step, to_move_count=7))
            case "cancel move" if tasks and any(tasks[-1][1] == each[0] for each in queues.values()):
                records.append(MoveTaskCancelling(*tasks[-1]))
            case "end move" if tasks:
                task_id, queue_id = tasks.pop()
                if any(queue_id == each[0] for each in queues.values()):
                    records.append(MoveTaskEnded(task_id, queue_id, "FAILED", 3, step, "no origin"))
    return records


def everything(image: Image) -> object:
    index = image.queues
    return (
        list(index),
        index.names(),
        {name: (index.get(name), index.sources_of(name), index.deleted_at_ms(name)) for name in NAMES},
        {queue.name: (index.by_topic(queue.topic_id), index.by_id(queue.queue_id)) for queue in index},
        {queue.name: index.moves_of(queue.queue_id) for queue in index},
    )


@given(histories(), st.data())
def test_a_snapshot_at_any_point_and_the_rest_of_the_log_give_the_same_queues(
    records: list[MetadataRecord], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    earlier = image_of(records[:cut])
    later = image_of(decode_records(encode_records(tuple(earlier.facts()))))
    later.apply_all(records[cut:])
    assert everything(later) == everything(image_of(records))


@given(histories())
def test_every_way_to_a_queue_leads_to_the_same_one(records: list[MetadataRecord]) -> None:
    index = image_of(records).queues
    assert len(index) == len(index.names())
    assert list(index.names()) == sorted(index.names())
    for queue in index:
        assert index.get(queue.name) is index.by_topic(queue.topic_id) is index.by_id(queue.queue_id) is queue
    for name in NAMES:
        sources = [queue.name for queue in index if queue.redrive and queue.redrive.target == name]
        assert list(index.sources_of(name)) == sources


def test_an_image_that_becomes_a_snapshot_keeps_its_index() -> None:
    image = image_of(created(1, "jobs"))
    index, version = image.queues, image.queues.version
    image.replace(image_of(created(2, "mail")).facts(), 2)
    assert image.queues is index
    assert list(index.names()) == ["mail"]
    assert index.version > version


def test_names_come_in_their_order_from_a_prefix_on() -> None:
    image = image_of(
        [record for number, name in enumerate(reversed(NAMES)) for record in created(number, name)]
    )
    assert list(image.queues.names()) == list(NAMES)
    assert list(image.queues.names("jobs")) == ["jobs", "jobs.fifo"]
    assert list(image.queues.names("n")) == []


def test_a_queue_is_replaced_and_never_changed() -> None:
    image = image_of(created(1, "jobs", attributes={"DelaySeconds": "1"}, tags={"a": "b"}))
    before = image.queues.get("jobs")
    assert isinstance(before, Queue)
    image.apply(
        QueueChanged(before.queue_id, {"DelaySeconds": None, "VisibilityTimeout": "5"}, {"c": "d"}, 9)
    )
    after = image.queues.get("jobs")
    assert isinstance(after, Queue)
    assert (before.attributes, before.tags) == ({"DelaySeconds": "1"}, {"a": "b"})
    assert (after.attributes, after.tags) == ({"VisibilityTimeout": "5"}, {"a": "b", "c": "d"})
    assert (before.modified_at_ms, after.modified_at_ms) == (0, 9)


def test_deleting_the_topic_deletes_the_queue_and_its_name_does_not_rest() -> None:
    image = image_of([*created(1, "jobs"), TopicDeleted(TopicId(identity(1)))])
    assert image.queues.get("jobs") is None
    assert image.queues.deleted_at_ms("jobs") is None


def test_a_deleted_queue_leaves_its_topic_and_the_time() -> None:
    image = image_of([*created(1, "jobs"), QueueDeleted(OwnerId(identity(1001)), "jobs", 77)])
    assert image.queues.get("jobs") is None
    assert image.queues.deleted_at_ms("jobs") == 77
    assert "jobs-topic-1" in image.topics


def test_only_so_many_deleted_names_are_remembered() -> None:
    image = Image()
    for number in range(QUEUES_DELETED_REMEMBERED_MAX + 3):
        image.apply(QueueDeleted(OwnerId(identity(number)), f"queue-{number}", number))
    remembered = [
        number
        for number in range(QUEUES_DELETED_REMEMBERED_MAX + 3)
        if image.queues.deleted_at_ms(f"queue-{number}") is not None
    ]
    assert remembered == list(range(3, QUEUES_DELETED_REMEMBERED_MAX + 3))


def test_only_so_many_move_tasks_are_remembered() -> None:
    image = image_of(created(1, "dead"))
    queue_id = OwnerId(identity(1001))
    for number in range(MOVE_TASKS_REMEMBERED_MAX + 2):
        image.apply(MoveTaskStarted(identity(number), queue_id, None, None, number))
    assert [task.started_at_ms for task in image.queues.moves_of(queue_id)] == list(
        range(2, MOVE_TASKS_REMEMBERED_MAX + 2)
    )


def test_a_redrive_policy_names_its_target_by_the_last_part_of_its_arn() -> None:
    image = image_of(created(1, "jobs", attributes={"RedrivePolicy": POLICIES["dead"]}))
    queue = image.queues.get("jobs")
    assert queue is not None
    assert queue.redrive == Redrive("dead", 3)
