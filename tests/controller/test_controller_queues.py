"""Making, changing, tagging and deleting queues: what is decided and what is refused."""

from random import Random
from typing import Any

import msgspec
import pytest

from ropewalk.base.errors import (
    InvalidPartitionCount,
    InvalidQueue,
    InvalidSetting,
    MoveTaskOver,
    MoveTaskRunning,
    NotInForce,
    PolicyViolation,
    QueueDeletedRecently,
    QueueExists,
    TopicDeletionDisabled,
    UnknownMoveTask,
    UnknownQueue,
)
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import QUEUE_ATTRIBUTES_BYTES_MAX, QUEUE_TAGS_MAX
from ropewalk.controller.queues import (
    CancelMoveTask,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    EndMoveTask,
    QueueCommand,
    StartMoveTask,
    decide_queue,
    known_queue,
)
from ropewalk.controller.settings import (
    Alteration,
    Operation,
    decide_alter_broker_settings,
    decide_alter_topic_settings,
)
from ropewalk.controller.topics import CreatePartitions, decide_create_partitions, decide_delete_topic
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from ropewalk.metadata.queues import Queue
from ropewalk.metadata.records import (
    BrokerSettingsChanged,
    LevelChanged,
    MetadataRecord,
    PartitionCreated,
    QueueCreated,
    QueueDeleted,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.effective import SettingsView
from tests.controller.imagined import NOW_MS, ImaginedCluster

BY_GROUP = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


def arn(name: str, region: str = "eu-west-1") -> str:
    return f"arn:aws:sqs:{region}:000000000000:{name}"


def redrive(target: str, count: object = 3, region: str = "eu-west-1") -> dict[str, str]:
    policy = {"deadLetterTargetArn": arn(target, region), "maxReceiveCount": count}
    return {"RedrivePolicy": msgspec.json.encode(policy).decode()}


def allow(permission: str, *sources: str) -> dict[str, str]:
    policy: dict[str, object] = {"redrivePermission": permission}
    if sources:
        policy["sourceQueueArns"] = [arn(source) for source in sources]
    return {"RedriveAllowPolicy": msgspec.json.encode(policy).decode()}


def made_cluster(level: int = 2, **configuration: str) -> ImaginedCluster:
    made = ImaginedCluster(3, {name.replace("_", "."): value for name, value in configuration.items()})
    if level:
        made.apply([LevelChanged(level)])
    return made


def decide(made: ImaginedCluster, command: QueueCommand, *, now_ms: int = NOW_MS) -> list[MetadataRecord]:
    records = decide_queue(made.image, command, made.settings, Random(1), now_ms=now_ms)
    return made.apply(records)


def create(
    made: ImaginedCluster, name: str, attributes: dict[str, str] | None = None, **fields: Any
) -> Queue:
    decide(made, CreateQueue(name=name, attributes=attributes or {}, **fields))
    return known_queue(made.image, name)


def test_a_queue_is_made_with_the_topic_of_its_name_in_one_change() -> None:
    made = made_cluster()
    records = decide(
        made, CreateQueue(name="jobs", attributes={"VisibilityTimeout": "5"}, tags={"a": "b"}, owner="me")
    )
    assert [type(record) for record in records] == [
        TopicCreated,
        PartitionCreated,
        TopicSettingsChanged,
        QueueCreated,
    ]
    queue, topic = known_queue(made.image, "jobs"), made.image.topic("jobs")
    assert (queue.topic, queue.topic_id, queue.is_adopted, queue.is_fifo) == (
        "jobs",
        topic.topic_id,
        False,
        False,
    )
    assert (queue.attributes, queue.tags, queue.owner) == ({"VisibilityTimeout": "5"}, {"a": "b"}, "me")
    assert queue.created_at_ms == queue.modified_at_ms == NOW_MS
    applied = made.settings.of_topic(topic)
    assert (applied.queue_delete, applied.retention_ms, applied.retention_bytes) == ("erase", -1, -1)
    assert (applied.partitions_auto_max, applied.max_message_bytes) == (8, 1_114_112)
    assert made.image.queues.by_topic(topic.topic_id) is queue
    made.check()


def test_what_the_brokers_have_as_defaults_does_not_make_a_queue_lose_messages() -> None:
    made = made_cluster(
        log_cleanup_policy="compact", log_retention_bytes="1", log_message_timestamp_type="LogAppendTime"
    )
    create(made, "jobs")
    applied = made.settings.of_topic(made.image.topic("jobs"))
    assert (applied.compacts, applied.retention_bytes, applied.message_timestamp_type) == (
        False,
        -1,
        "CreateTime",
    )


def test_the_topic_of_a_fifo_queue_does_not_grow() -> None:
    made = made_cluster()
    create(made, "jobs.fifo", {"FifoQueue": "true"})
    assert made.settings.of_topic(made.image.topic("jobs.fifo")).partitions_auto_max is None
    command = CreatePartitions(name="jobs.fifo", partition_count=2)
    with pytest.raises(InvalidPartitionCount, match="FIFO"):
        decide_create_partitions(made.image, command, made.settings.of_broker, Random(1), now_ms=0)
    create(made, "mail")
    command = CreatePartitions(name="mail", partition_count=2)
    made.apply(decide_create_partitions(made.image, command, made.settings.of_broker, Random(1), now_ms=0))
    assert len(made.image.topic("mail").partitions) == 2


@pytest.mark.parametrize(
    ("held", "named"),
    [
        pytest.param({}, {}, id="nothing is named"),
        pytest.param({"DelaySeconds": "1"}, {}, id="what is not named is not compared"),
        pytest.param({"DelaySeconds": "1"}, {"DelaySeconds": "1"}, id="the same"),
        pytest.param({}, {"VisibilityTimeout": "30", "DelaySeconds": "0"}, id="what it is anyway"),
        pytest.param({"DelaySeconds": "0"}, {"DelaySeconds": "0"}, id="what it is anyway, and was set"),
        pytest.param(
            redrive("dead"), redrive("dead", region="us-east-1"), id="another region in the same ARN"
        ),
    ],
)
def test_to_make_a_queue_again_that_agrees_changes_nothing(
    held: dict[str, str], named: dict[str, str]
) -> None:
    made = made_cluster()
    create(made, "dead")
    before = create(made, "jobs", held)
    assert decide(made, CreateQueue(name="jobs", attributes=named, tags={"new": "tag"})) == []
    assert known_queue(made.image, "jobs") is before


@pytest.mark.parametrize(
    ("held", "named", "differing"),
    [
        ({}, {"VisibilityTimeout": "31"}, "VisibilityTimeout"),
        ({"DelaySeconds": "1"}, {"DelaySeconds": "2"}, "DelaySeconds"),
        ({"DelaySeconds": "1"}, {"VisibilityTimeout": "30", "DelaySeconds": "0"}, "DelaySeconds"),
        (redrive("dead"), redrive("dead", 4), "RedrivePolicy"),
        ({}, redrive("dead"), "RedrivePolicy"),
        ({}, {"Policy": "{}"}, "Policy"),
    ],
)
def test_to_make_a_queue_again_that_differs_names_the_first_difference(
    held: dict[str, str], named: dict[str, str], differing: str
) -> None:
    made = made_cluster()
    create(made, "dead")
    create(made, "jobs", held)
    with pytest.raises(QueueExists, match=f"attribute {differing}") as refused:
        create(made, "jobs", named)
    assert refused.value.attribute == differing


INVALID: list[Any] = [
    pytest.param("", {}, {}, "no name", id="no name"),
    pytest.param(".fifo", {}, {}, "no name", id="nothing before the suffix"),
    pytest.param("a.b", {}, {}, "no name", id="a dot"),
    pytest.param("ä", {}, {}, "no name", id="an umlaut"),
    pytest.param("x" * 81, {}, {}, "no name", id="too long"),
    pytest.param("x" * 76 + ".fifo", {}, {}, "no name", id="too long with its suffix"),
    pytest.param("jobs", {"FifoQueue": "true"}, {}, "end in .fifo", id="FIFO by attribute alone"),
    pytest.param("jobs.fifo", {"FifoQueue": "false"}, {}, "end in .fifo", id="FIFO by name alone"),
    pytest.param("jobs", {"DelaySeconds": "901"}, {}, "0 to 900", id="too large a number"),
    pytest.param("jobs", {"MaximumMessageSize": "1"}, {}, "1024 to", id="too small a number"),
    pytest.param("jobs", {"VisibilityTimeout": "soon"}, {}, "0 to 43200", id="no number"),
    pytest.param("jobs", {"VisibilityTimeout": "-1"}, {}, "0 to 43200", id="a negative number"),
    pytest.param("jobs", {"VisibilityTimeout": "٣"}, {}, "0 to 43200", id="a digit that is not ASCII"),
    pytest.param("jobs", {"VisibilityTimeout": "9" * 5000}, {}, "0 to 43200", id="endless digits"),
    pytest.param("jobs", {"DeduplicationScope": "queue"}, {}, "is for FIFO", id="FIFO's, on a standard one"),
    pytest.param("jobs.fifo", {"DeduplicationScope": "all"}, {}, "one of", id="an unknown choice"),
    pytest.param("jobs", redrive("nobody"), {}, "no queue 'nobody'", id="no dead-letter queue"),
    pytest.param("jobs", redrive("dead.fifo"), {}, "the other is not", id="standard to FIFO"),
    pytest.param("jobs.fifo", redrive("dead"), {}, "the other is not", id="FIFO to standard"),
    pytest.param("jobs", redrive("dead", 0), {}, "1 to 1000", id="received too seldom"),
    pytest.param("jobs", redrive("dead", 1001), {}, "1 to 1000", id="received too often"),
    pytest.param("jobs", redrive("dead", "3"), {}, "cannot be read", id="a count that is a text"),
    pytest.param("jobs", {"RedrivePolicy": "{"}, {}, "cannot be read", id="no JSON"),
    pytest.param("jobs", redrive("closed"), {}, "does not take", id="denyAll"),
    pytest.param("jobs", redrive("choosy"), {}, "does not take", id="byQueue, and not named"),
    pytest.param("jobs", allow("never"), {}, "cannot be read", id="an unknown permission"),
    pytest.param("jobs", allow("byQueue"), {}, "names 0 queues", id="byQueue without queues"),
    pytest.param("jobs", allow("allowAll", "a"), {}, "names 1 queues", id="allowAll with queues"),
    pytest.param("jobs", allow("byQueue", *"abcdefghijk"), {}, "names 11 queues", id="too many queues"),
    pytest.param("jobs", {"Policy": "x" * QUEUE_ATTRIBUTES_BYTES_MAX}, {}, "attributes", id="too much"),
    pytest.param("jobs", {}, {"tags": {"t": "x" * QUEUE_ATTRIBUTES_BYTES_MAX}}, "tags", id="too long a tag"),
    pytest.param("jobs", {}, {"tags": {str(n): "" for n in range(QUEUE_TAGS_MAX + 1)}}, "51 tags", id="tags"),
    pytest.param("jobs", {}, {"owner": ""}, "an owner", id="an empty owner"),
    pytest.param("jobs", {}, {"partition_count": 0}, "0 partitions", id="no partitions"),
    pytest.param("jobs", {}, {"partition_count": -1}, "-1 partitions", id="the broker's default"),
    pytest.param("jobs.fifo", {}, {"partition_count": 2}, "2 partitions", id="FIFO in parts by queue"),
    pytest.param("orders", {}, {}, "never else", id="a topic of that name"),
    pytest.param("events-x", {}, {"topic": "nothing"}, "no topic", id="no such topic to adopt"),
    pytest.param("jobs", {}, {"topic": OFFSETS_TOPIC}, "own", id="the cluster's own"),
    pytest.param("jobs", {}, {"topic": "dead"}, "already", id="another queue's topic"),
    pytest.param("jobs", {}, {"topic": "latest"}, "compacted", id="a compacted topic"),
    pytest.param("jobs.fifo", {}, {"topic": "grows"}, "grows by itself", id="FIFO on what grows"),
    pytest.param("jobs", {}, {"topic": "orders", "starts": (1, 2, 3)}, "no start", id="too many starts"),
    pytest.param("jobs", {}, {"topic": "orders", "starts": (-1,)}, "no start", id="a negative start"),
    pytest.param(
        "jobs.fifo",
        {"DeduplicationScope": "queue"},
        {"topic": "orders"},
        "must be messageGroup",
        id="FIFO on several partitions by queue",
    ),
    pytest.param("dead_fifo", {}, {}, "count as the same", id="a topic that differs in a dot"),
]


@pytest.mark.parametrize(("name", "attributes", "fields", "reason"), INVALID)
def test_a_queue_that_cannot_be_is_refused(
    name: str, attributes: dict[str, str], fields: dict[str, Any], reason: str
) -> None:
    made = made_cluster()
    create(made, "dead")
    create(made, "dead.fifo")
    create(made, "closed", allow("denyAll"))
    create(made, "choosy", allow("byQueue", "others"))
    made.topic("orders", (0,), (1,))
    made.topic("latest", (0,), cleanup_policy="compact")
    made.topic("grows", (0,), partitions_auto_max="4")
    made.topic(OFFSETS_TOPIC, (0,))
    end_offset = made.image.end_offset
    with pytest.raises(InvalidQueue, match=reason):
        create(made, name, attributes, **fields)
    assert made.image.end_offset == end_offset


def test_a_dead_letter_queue_that_names_the_queue_takes_from_it() -> None:
    made = made_cluster()
    create(made, "choosy", allow("byQueue", "others", "jobs"))
    create(made, "open", allow("allowAll"))
    create(made, "jobs", redrive("choosy"))
    create(made, "mail", redrive("open"))
    assert list(made.image.queues.sources_of("choosy")) == ["jobs"]
    assert list(made.image.queues.sources_of("open")) == ["mail"]


def test_an_adopted_topic_stays_as_it_is() -> None:
    made = made_cluster()
    topic_id = made.topic("orders", (0,), (1,), retention_ms="1000")
    queue = create(made, "jobs", topic="orders", starts=(5, 7))
    assert (queue.topic, queue.topic_id, queue.is_adopted, queue.starts) == ("orders", topic_id, True, (5, 7))
    applied = made.settings.of_topic(made.image.topic("orders"))
    assert (applied.queue_delete, applied.retention_ms) == ("keep", 1000)
    assert decide(made, CreateQueue(name="jobs", topic="orders")) == []
    with pytest.raises(InvalidQueue, match="a queue of the topic orders"):
        create(made, "jobs", topic="other")


def test_an_adopted_topic_is_not_compacted_when_the_default_is_another() -> None:
    made = made_cluster()
    made.topic("orders", (0,))
    create(made, "jobs", topic="orders")
    made.apply([BrokerSettingsChanged(None, {"log.cleanup.policy": "compact"})])
    assert not made.settings.of_topic(made.image.topic("orders")).compacts


def test_a_fifo_queue_on_several_partitions_goes_by_group() -> None:
    made = made_cluster()
    made.topic("orders", (0,), (1,))
    assert create(made, "orders.fifo", topic="orders").attributes == BY_GROUP
    fast = create(made, "fast.fifo", BY_GROUP, partition_count=4)
    assert len(made.image.topic("fast.fifo").partitions) == 4
    assert fast.attributes == BY_GROUP
    with pytest.raises(InvalidQueue, match=r"4 partitions.*DeduplicationScope must be messageGroup"):
        decide(made, ChangeQueue(name="fast.fifo", attributes={"DeduplicationScope": "queue"}))
    with pytest.raises(InvalidQueue, match="FifoThroughputLimit must be"):
        decide(made, ChangeQueue(name="fast.fifo", attributes={"FifoThroughputLimit": None}))


@pytest.mark.parametrize(
    ("wait_ms", "later_ms", "is_refused"),
    [("0", 0, False), ("60000", 59_999, True), ("60000", 60_000, False), ("60000", -5, True)],
)
def test_a_name_rests_after_its_queue_was_deleted(wait_ms: str, later_ms: int, is_refused: bool) -> None:
    made = made_cluster(sqs_delete_wait_ms=wait_ms)
    first = create(made, "jobs")
    decide(made, DeleteQueue("jobs"), now_ms=NOW_MS)
    again = CreateQueue(name="jobs")
    if is_refused:
        with pytest.raises(QueueDeletedRecently, match="rests for 60000 ms"):
            decide(made, again, now_ms=NOW_MS + later_ms)
    else:
        made.apply(decide_queue(made.image, again, made.settings, Random(2), now_ms=NOW_MS + later_ms))
        second = known_queue(made.image, "jobs")
        assert second.queue_id != first.queue_id
        assert second.topic_id != first.topic_id


def test_deleting_a_queue_deletes_the_topic_that_was_made_for_it_and_no_other() -> None:
    made = made_cluster()
    queue = create(made, "jobs")
    made.topic("orders", (0,))
    create(made, "adopted", topic="orders")
    assert decide(made, DeleteQueue("jobs")) == [
        QueueDeleted(queue.queue_id, "jobs", NOW_MS),
        TopicDeleted(queue.topic_id),
    ]
    assert [type(record) for record in decide(made, DeleteQueue("adopted"))] == [QueueDeleted]
    assert list(made.image.topics) == ["orders"]
    assert list(made.image.queues.names()) == []


def test_deleting_the_topic_deletes_the_queue() -> None:
    made = made_cluster()
    create(made, "jobs")
    topic = made.image.topic("jobs")
    made.apply(decide_delete_topic(made.image, topic, made.settings.of_broker))
    with pytest.raises(UnknownQueue, match="no queue 'jobs'"):
        decide(made, DeleteQueue("jobs"))
    create(made, "jobs")


def test_a_queue_is_not_deleted_where_topics_are_not() -> None:
    made = made_cluster(delete_topic_enable="false")
    create(made, "jobs")
    with pytest.raises(TopicDeletionDisabled):
        decide(made, DeleteQueue("jobs"))
    assert made.image.queues.get("jobs") is not None


def test_attributes_and_tags_are_changed_by_name() -> None:
    made = made_cluster()
    create(made, "dead")
    create(made, "jobs", {"DelaySeconds": "1", "VisibilityTimeout": "5"}, tags={"a": "1", "b": "2"})
    changes: dict[str, str | None] = {"DelaySeconds": None, "MessageRetentionPeriod": "60", **redrive("dead")}
    decide(made, ChangeQueue(name="jobs", attributes=changes), now_ms=NOW_MS + 1)
    decide(made, ChangeQueue(name="jobs", tags={"a": None, "c": "3"}), now_ms=NOW_MS + 2)
    queue = known_queue(made.image, "jobs")
    assert queue.attributes == {"MessageRetentionPeriod": "60", "VisibilityTimeout": "5", **redrive("dead")}
    assert queue.tags == {"b": "2", "c": "3"}
    assert (queue.created_at_ms, queue.modified_at_ms) == (NOW_MS, NOW_MS + 2)
    assert list(made.image.queues.sources_of("dead")) == ["jobs"]


@pytest.mark.parametrize(
    "command",
    [
        ChangeQueue(name="jobs"),
        ChangeQueue(name="jobs", attributes={"DelaySeconds": "1", "Policy": None}),
        ChangeQueue(name="jobs", tags={"a": "1", "b": None}),
    ],
)
def test_a_change_of_nothing_is_none(command: ChangeQueue) -> None:
    made = made_cluster()
    create(made, "jobs", {"DelaySeconds": "1"}, tags={"a": "1"})
    assert decide(made, command) == []


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        pytest.param("jobs", {"DelaySeconds": "901"}, "0 to 900", id="out of bounds"),
        pytest.param("jobs", redrive("jobs"), "its own", id="its own dead letters"),
        pytest.param("jobs", redrive("gone"), "no queue 'gone'", id="no dead-letter queue"),
        pytest.param("jobs", {"FifoQueue": "true"}, "cannot be changed", id="another kind"),
        pytest.param("jobs.fifo", {"FifoQueue": "false"}, "cannot be changed", id="another kind back"),
    ],
)
def test_a_change_that_cannot_be_is_refused(name: str, change: dict[str, str | None], reason: str) -> None:
    made = made_cluster()
    create(made, "jobs")
    create(made, "jobs.fifo")
    with pytest.raises(InvalidQueue, match=reason):
        decide(made, ChangeQueue(name=name, attributes=change))


def test_a_target_is_asked_when_it_is_named_and_not_again() -> None:
    made = made_cluster()
    create(made, "dead")
    create(made, "gone")
    create(made, "jobs", redrive("dead"))
    create(made, "mail", redrive("gone"))
    decide(made, ChangeQueue(name="dead", attributes={**allow("denyAll")}))
    decide(made, DeleteQueue("gone"))
    for name in ("jobs", "mail"):
        decide(made, ChangeQueue(name=name, attributes={"DelaySeconds": "7"}))
        assert known_queue(made.image, name).attributes["DelaySeconds"] == "7"
    with pytest.raises(InvalidQueue, match="does not take"):
        decide(made, ChangeQueue(name="jobs", attributes={**redrive("dead", 9)}))


@pytest.mark.parametrize(
    "command", [ChangeQueue(name="jobs", tags={"a": "b"}), DeleteQueue("jobs"), ChangeQueue(name="jobs")]
)
def test_an_unknown_queue_is_said_to_be_unknown(command: QueueCommand) -> None:
    with pytest.raises(UnknownQueue, match="jobs"):
        decide(made_cluster(), command)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("command", [CreateQueue(name="jobs"), DeleteQueue("jobs"), ChangeQueue(name="jobs")])
def test_there_are_no_queues_before_their_level(level: int, command: QueueCommand) -> None:
    with pytest.raises(NotInForce, match="queues came with level 2, and level 1 is in force"):
        decide(made_cluster(level), command)


def test_a_queue_is_not_made_where_there_is_no_room_for_its_partitions() -> None:
    made = made_cluster(max_broker_partitions="1")
    create(made, "jobs")
    with pytest.raises(PolicyViolation, match=r"max\.broker\.partitions"):
        create(made, "mail")


@pytest.mark.parametrize(
    ("queue", "setting", "value", "reason"),
    [
        ("jobs", "cleanup.policy", "compact", "cannot be compacted"),
        ("jobs", "cleanup.policy", "compact,delete", "cannot"),
        ("adopted", "cleanup.policy", "compact", "cannot be compacted"),
        ("jobs.fifo", "partitions.auto.max", "4", "cannot grow"),
    ],
)
def test_settings_that_a_queues_topic_must_not_have(
    queue: str, setting: str, value: str, reason: str
) -> None:
    made = made_cluster()
    made.topic("orders", (0,))
    create(made, "jobs")
    create(made, "jobs.fifo")
    create(made, "adopted", topic="orders")
    topic = known_queue(made.image, queue).topic
    with pytest.raises(InvalidSetting, match=reason):
        alter(made.image, topic, Alteration(setting, Operation.SET, value))
    made.apply(alter(made.image, topic, Alteration("retention.ms", Operation.SET, "5")))


def test_the_default_is_not_made_compacting_under_a_queue() -> None:
    made = made_cluster()
    made.topic("orders", (0,))
    create(made, "adopted", topic="orders")
    view = SettingsView(made.image, NodeId(0), {})
    compact = [Alteration("log.cleanup.policy", Operation.SET, "compact")]
    decide_alter_broker_settings(made.image, view, None, compact)  # the topic has its own
    made.apply(alter(made.image, "orders", Alteration("cleanup.policy", Operation.DELETE)))
    with pytest.raises(InvalidSetting, match="cannot be compacted"):
        decide_alter_broker_settings(made.image, view, None, compact)


TASK = b"t" * 16


def moving_cluster() -> ImaginedCluster:
    made = made_cluster()
    for name in ("dead", "dead.fifo", "mail"):
        create(made, name)
    create(made, "jobs", redrive("dead"))
    return made


def tasks_of(made: ImaginedCluster, name: str) -> list[tuple[str, int, str | None]]:
    queue = known_queue(made.image, name)
    return [
        (task.status, task.moved_count, task.reason) for task in made.image.queues.moves_of(queue.queue_id)
    ]


def test_a_move_task_is_started_once_and_ends_once() -> None:
    made = moving_cluster()
    start = StartMoveTask(name="dead", task_id=TASK, messages_per_second_max=500, to_move_count=9)
    decide(made, start)
    assert decide(made, start) == [], "asked for again"
    assert tasks_of(made, "dead") == [("RUNNING", 0, None)]
    with pytest.raises(MoveTaskRunning, match="one task at a time"):
        decide(made, StartMoveTask(name="dead", task_id=b"u" * 16))
    cancel = CancelMoveTask(name="dead", task_id=TASK)
    decide(made, cancel)
    assert tasks_of(made, "dead") == [("CANCELLING", 0, None)]
    assert decide(made, cancel) == [], "asked for again"
    decide(made, EndMoveTask(name="dead", task_id=TASK, status="FAILED", moved_count=4, reason="no origin"))
    with pytest.raises(MoveTaskOver, match="FAILED"):
        decide(made, cancel)
    cancelled = EndMoveTask(name="dead", task_id=TASK, status="CANCELLED", moved_count=5)
    assert decide(made, cancelled) == [], "it stays as it ended"
    decide(made, StartMoveTask(name="dead", task_id=b"u" * 16, target="mail"))
    assert tasks_of(made, "dead") == [("FAILED", 4, "no origin"), ("RUNNING", 0, None)]


@pytest.mark.parametrize(
    ("command", "refusal", "reason"),
    [
        pytest.param(StartMoveTask(name="x", task_id=TASK), UnknownQueue, "'x'", id="no source"),
        pytest.param(
            StartMoveTask(name="mail", task_id=TASK),
            InvalidQueue,
            "no dead-letter queue",
            id="not of dead letters",
        ),
        pytest.param(
            StartMoveTask(name="dead", task_id=TASK, target="x"), UnknownQueue, "'x'", id="no target"
        ),
        pytest.param(
            StartMoveTask(name="dead", task_id=TASK, target="dead.fifo"),
            InvalidQueue,
            "is not",
            id="another kind",
        ),
        pytest.param(
            StartMoveTask(name="dead", task_id=TASK, target="dead"), InvalidQueue, "itself", id="to itself"
        ),
        pytest.param(
            StartMoveTask(name="dead", task_id=TASK, messages_per_second_max=501),
            InvalidQueue,
            "1 to 500",
            id="fast",
        ),
        pytest.param(
            EndMoveTask(name="dead", task_id=TASK, status="FAILED", moved_count=0),
            UnknownMoveTask,
            "dead",
            id="none",
        ),
        pytest.param(
            CancelMoveTask(name="dead", task_id=TASK), UnknownMoveTask, "no move task", id="nothing to cancel"
        ),
        pytest.param(
            EndMoveTask(name="x", task_id=TASK, status="FAILED", moved_count=0),
            UnknownQueue,
            "x",
            id="no queue",
        ),
        pytest.param(
            EndMoveTask(name="dead", task_id=TASK, status="DONE", moved_count=0),
            InvalidQueue,
            "ends",
            id="no end",
        ),
    ],
)
def test_a_move_task_that_cannot_be_is_refused(
    command: QueueCommand, refusal: type[Exception], reason: str
) -> None:
    with pytest.raises(refusal, match=reason):
        decide(moving_cluster(), command)


def alter(image: Image, topic: str, alteration: Alteration) -> list[MetadataRecord]:
    view = SettingsView(image, NodeId(0), {})
    return decide_alter_topic_settings(image, view, topic, [alteration], now_ms=NOW_MS)
