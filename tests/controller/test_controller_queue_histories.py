"""Whatever is asked about queues and their topics, in whatever order, the facts hold together and can be rebuilt."""

from contextlib import suppress
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.queues import (
    CancelMoveTask,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    EndMoveTask,
    QueueCommand,
    StartMoveTask,
    decide_queue,
)
from ropewalk.controller.settings import Alteration, Operation, decide_alter_topic_settings
from ropewalk.controller.topics import CreatePartitions, decide_create_partitions, decide_delete_topic
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import LevelChanged, MetadataRecord, decode_records, encode_records
from ropewalk.metadata.settings.effective import SettingsView
from tests.controller.imagined import NOW_MS, ImaginedCluster

NAMES = ("dead", "jobs", "a.fifo", "b.fifo")
TOPICS = ("orders", "events", *NAMES)


def policy(target: str) -> str:
    text = {"deadLetterTargetArn": f"arn:aws:sqs:x:0:{target}", "maxReceiveCount": 2}
    return msgspec.json.encode(text).decode()


names = st.sampled_from(NAMES)
attributes = st.sampled_from(
    [
        {},
        {"DelaySeconds": "900"},
        {"DelaySeconds": "901"},
        {"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'},
        {"RedrivePolicy": ""},
        {"DeduplicationScope": "queue"},
        {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
        *({"RedrivePolicy": policy(name)} for name in NAMES),
    ]
)
removals = st.dictionaries(st.sampled_from(["RedrivePolicy", "DeduplicationScope"]), st.none())
task_ids = st.sampled_from([b"1", b"2"])
commands: st.SearchStrategy[QueueCommand | str] = st.one_of(
    st.builds(
        CreateQueue,
        name=names,
        attributes=attributes,
        partition_count=st.sampled_from([1, 1, 3]),
        topic=st.sampled_from([None, None, None, "orders", "events"]),
    ),
    st.builds(ChangeQueue, name=names, attributes=attributes | removals),
    st.builds(DeleteQueue, names),
    st.builds(StartMoveTask, name=names, task_id=task_ids, target=st.none() | names),
    st.builds(CancelMoveTask, name=names, task_id=task_ids),
    st.builds(EndMoveTask, name=names, task_id=task_ids, status=st.just("COMPLETED"), moved_count=st.just(1)),
    st.sampled_from([f"{what} {topic}" for what in ("delete", "grow", "compact") for topic in TOPICS]),
)


def decided(made: ImaginedCluster, command: QueueCommand | str, step: int) -> list[MetadataRecord]:
    if not isinstance(command, str):
        return decide_queue(made.image, command, made.settings, Random(step), now_ms=NOW_MS + step)
    what, _, name = command.partition(" ")
    broker = made.settings.of_broker
    if what == "delete":
        return decide_delete_topic(made.image, made.image.topic(name), broker)
    if what == "grow":
        grown = CreatePartitions(name=name, partition_count=4)
        return decide_create_partitions(made.image, grown, broker, Random(step), now_ms=NOW_MS)
    view = SettingsView(made.image, NodeId(0), {})
    compact = [
        Alteration("cleanup.policy", Operation.SET, "compact"),
        Alteration("partitions.auto.max", Operation.DELETE),
    ]
    return decide_alter_topic_settings(made.image, view, name, compact, now_ms=NOW_MS)


def check(made: ImaginedCluster) -> None:
    image = made.image
    for queue in image.queues:
        topic = image.topic_by_id(queue.topic_id)
        assert topic.name == queue.topic
        assert queue.is_adopted or queue.topic == queue.name
        assert not made.settings.of_topic(topic).compacts
        if queue.is_fifo and len(topic.partitions) > 1:
            assert queue.attributes["DeduplicationScope"] == "messageGroup"
        if queue.redrive is not None:
            assert queue.redrive.target.endswith(".fifo") is queue.is_fifo
            assert queue.name in image.queues.sources_of(queue.redrive.target)
        running = [task for task in image.queues.moves_of(queue.queue_id) if task.ended_at_ms is None]
        assert len(running) <= 1
    made.check()


def everything(image: Image) -> object:
    return (
        list(image.queues),
        [image.queues.deleted_at_ms(name) for name in NAMES],
        [image.queues.sources_of(name) for name in NAMES],
        [image.queues.moves_of(queue.queue_id) for queue in image.queues],
        list(image.topics.items()),
    )


@settings(max_examples=150)
@given(st.lists(commands, min_size=5, max_size=25), st.integers(0, 25))
def test_facts_about_queues_hold_together_and_can_be_rebuilt(
    asked: list[QueueCommand | str], cut: int
) -> None:
    made, copy = ImaginedCluster(3), Image()
    made.apply([LevelChanged(2)])
    made.topic("orders", (0,), (1,))
    made.topic("events", (2,))
    for number, name in enumerate(("dead", "a.fifo", "jobs")):
        made.apply(decided(made, CreateQueue(name=name), 100 + number))
    for step, command in enumerate(asked):
        if step == cut:
            copy.replace(decode_records(encode_records(tuple(made.image.facts()))), made.image.end_offset)
        records: list[MetadataRecord] = []
        with suppress(RopewalkError):
            records = decided(made, command, step)
        made.apply(records)
        check(made)
        if step >= cut:
            copy.apply_all(records)
    if cut < len(asked):
        assert everything(copy) == everything(made.image)
