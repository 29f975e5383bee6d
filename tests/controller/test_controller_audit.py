"""What a change comes to, for people: every kind of fact, no secrets, and never too much of it."""

from typing import get_args

import pytest

from ropewalk.base.ids import LeaderEpoch, NodeId, OwnerId, ProducerId, TopicId
from ropewalk.base.limits import AUDIT_DETAILS_MAX, AUDIT_RECORDS_READ_MAX, AUDIT_TEXT_MAX
from ropewalk.controller.audit import summary
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    AclAdded,
    AclRemoved,
    BrokerLeaving,
    BrokerMaintenance,
    BrokerRegistered,
    BrokerRemoved,
    BrokerSettingsChanged,
    BrokerState,
    BrokerStateChanged,
    ChangeMade,
    ClientQuotasChanged,
    ClusterCreated,
    ControllerChanged,
    DecoyKeySet,
    Endpoint,
    Fact,
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
    ScramCredentialRemoved,
    ScramCredentialSet,
    TokenKeyAdded,
    TokenKeyRemoved,
    TopicChanged,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.security.access import Operation, Pattern, Permission, ResourceType

SECRET = b"planted secret"
ORDERS, JOBS, NEW = TopicId(b"o" * 16), TopicId(b"j" * 16), TopicId(b"n" * 16)
QUEUE = OwnerId(b"q" * 16)
BOTH = (NodeId(1), NodeId(2))
RULE = (ResourceType.TOPIC, "orders", Pattern.PREFIXED, "User:bob", "*", Operation.WRITE, Permission.DENY)
KEY = TokenKeyAdded("k1", SECRET, 5)
CREDENTIAL = ScramCredentialSet("bob", 2, 8192, SECRET, SECRET, SECRET)
TASK = MoveTaskStarted(b"t", QUEUE, None, None, 0)


def an_image() -> Image:
    image = Image()
    image.apply_all(
        [
            ClusterCreated("c"),
            LevelChanged(2),
            TopicCreated(ORDERS, "orders", "User:ann"),
            PartitionCreated(ORDERS, 0, BOTH, BOTH, NodeId(1), LeaderEpoch(0), 0),
            TopicSettingsChanged(ORDERS, {"retention.ms": "5"}),
            BrokerRegistered(NodeId(1), 1, b"d", (Endpoint("P", "h", 1),)),
            ClientQuotasChanged((("user", "bob"),), {"producer_byte_rate": 4.0}),
            CREDENTIAL,
            KEY,
            TopicCreated(JOBS, "jobs"),
            QueueCreated(QUEUE, "jobs", JOBS, {"DelaySeconds": "1"}, {"team": "a"}),
            TASK,
        ]
    )
    return image


def moved(*, leader: int | None, replicas: tuple[int, ...] = (1, 2)) -> PartitionChanged:
    nodes = tuple(map(NodeId, replicas))
    led = None if leader is None else NodeId(leader)
    return PartitionChanged(ORDERS, 0, nodes, nodes, led, LeaderEpoch(1), 1)


SAID: list[tuple[MetadataRecord, list[tuple[str, str, str | None, str | None]]]] = [
    (TopicCreated(NEW, "new", "User:ann"), [("topic.created", "Topic:new", None, "User:ann")]),
    (TopicDeleted(ORDERS), [("topic.deleted", "Topic:orders", None, None)]),
    (TopicChanged(ORDERS, "User:bob", 7), [("topic.owner", "Topic:orders", "User:ann", "User:bob")]),
    (
        TopicSettingsChanged(ORDERS, {"retention.ms": None, "segment.ms": "7"}),
        [
            ("topic.setting", "Topic:orders:retention.ms", "5", None),
            ("topic.setting", "Topic:orders:segment.ms", None, "7"),
        ],
    ),
    (
        PartitionCreated(ORDERS, 1, BOTH, BOTH, NodeId(1), LeaderEpoch(0), 0),
        [("topic.partitions", "Topic:orders", "1", "2")],
    ),
    (moved(leader=2), [("partition.leader", "Topic:orders-0", "1", "2")]),
    (moved(leader=None), [("partition.leader", "Topic:orders-0", "1", None)]),
    (moved(leader=1, replicas=(1, 3)), [("partition.replicas", "Topic:orders-0", "1,2", "1,3")]),
    (
        LossRecorded(ORDERS, 0, NodeId(1), LeaderEpoch(1), 0, "asked for"),
        [("partition.loss", "Topic:orders-0", None, "asked for")],
    ),
    (
        BrokerSettingsChanged(NodeId(1), {"log.retention.ms": "7"}),
        [("broker.setting", "Broker:1:log.retention.ms", None, "7")],
    ),
    (
        BrokerSettingsChanged(None, {"num.partitions": "7"}),
        [("cluster.setting", "cluster:num.partitions", None, "7")],
    ),
    (
        ClientQuotasChanged((("user", "bob"),), {"producer_byte_rate": None}),
        [("quota", "Quota:user=bob:producer_byte_rate", "4", None)],
    ),
    (CREDENTIAL, [("user.credential", "User:bob", "SHA_512", "SHA_512, 8192")]),
    (ScramCredentialRemoved("bob", 2), [("user.credential", "User:bob", "SHA_512", None)]),
    (KEY, [("token.key", "TokenKey:k1", None, "signs")]),
    (TokenKeyRemoved("k1"), [("token.key", "TokenKey:k1", "signed", None)]),
    (AclAdded(*RULE), [("acl", "Topic(prefixed):orders", None, "DENY WRITE to User:bob from *")]),
    (AclRemoved(*RULE), [("acl", "Topic(prefixed):orders", "DENY WRITE to User:bob from *", None)]),
    (
        QueueCreated(QUEUE, "jobs", JOBS, {"DelaySeconds": "1"}, {"team": "a"}, is_adopted=True),
        [
            ("queue.created", "Queue:jobs", None, "adopted"),
            ("queue.attribute", "Queue:jobs:DelaySeconds", None, "1"),
            ("queue.tag", "Queue:jobs:team", None, "a"),
        ],
    ),
    (
        QueueChanged(QUEUE, {"DelaySeconds": "2"}, {"team": None}),
        [
            ("queue.attribute", "Queue:jobs:DelaySeconds", "1", "2"),
            ("queue.tag", "Queue:jobs:team", "a", None),
        ],
    ),
    (QueueDeleted(QUEUE, "jobs", 7), [("queue.deleted", "Queue:jobs", None, None)]),
    (TASK, [("queue.move", "Queue:jobs", None, "to where they came from")]),
    (MoveTaskCancelling(b"t", QUEUE), [("queue.move", "Queue:jobs", "moving", "cancelled")]),
    (BrokerLeaving(NodeId(1), is_leaving=True), [("broker.leaving", "Broker:1", "no", "yes")]),
    (BrokerMaintenance(NodeId(1), is_on=False), [("broker.maintenance", "Broker:1", "yes", "no")]),
    (BrokerRemoved(NodeId(1)), [("broker.removed", "Broker:1", None, None)]),
    (LevelChanged(3), [("cluster.level", "cluster", "2", "3")]),
]

OF_NODES: list[MetadataRecord] = [
    ClusterCreated("c"),
    ControllerChanged(NodeId(1), 1),
    HomeLeft("etcd"),
    BrokerRegistered(NodeId(1), 1, SECRET, ()),
    BrokerStateChanged(NodeId(1), 1, BrokerState.FENCED),
    MoveTaskEnded(b"t", QUEUE, "COMPLETED", 1, 2),
    ProducerIdsAllocated(NodeId(1), ProducerId(7)),
    DecoyKeySet(SECRET),
    ChangeMade(1, "CreateTopics", "User:ann", 0),
]
"""What nobody asks for, or comes along with what somebody asks for: nothing is told of it."""


@pytest.mark.parametrize(("record", "details"), SAID)
def test_every_kind_of_fact_is_told(
    record: MetadataRecord, details: list[tuple[str, str, str | None, str | None]]
) -> None:
    found, more_count = summary(an_image(), [record])
    assert [(each.kind, each.resource, each.before, each.after) for each in found] == details
    assert more_count == 0
    assert "planted" not in str(found)


@pytest.mark.parametrize("record", OF_NODES)
def test_what_nodes_decide_for_themselves_is_not(record: MetadataRecord) -> None:
    assert summary(an_image(), [record]) == ((), 0)


def test_a_new_kind_of_fact_needs_a_line_here() -> None:
    tried = {type(record) for record, _ in SAID} | {type(record) for record in OF_NODES}
    assert tried == set(get_args(Fact))


def test_of_many_facts_some_are_told_and_the_others_counted() -> None:
    many = [BrokerLeaving(NodeId(each), is_leaving=True) for each in range(AUDIT_RECORDS_READ_MAX * 3)]
    details, more_count = summary(an_image(), many)
    assert len(details) == AUDIT_DETAILS_MAX
    assert more_count == len(many) - AUDIT_DETAILS_MAX


def test_a_thousand_partitions_are_one_thing() -> None:
    made = [
        PartitionCreated(NEW, each, BOTH, BOTH, NodeId(1), LeaderEpoch(0), 0)
        for each in range(AUDIT_RECORDS_READ_MAX - 1)
    ]
    details, more_count = summary(an_image(), [TopicCreated(NEW, "new"), *made])
    assert [(each.kind, each.after) for each in details] == [
        ("topic.created", None),
        ("topic.partitions", str(len(made))),
    ]
    assert more_count == 0


def test_what_is_long_is_cut() -> None:
    (detail,), _ = summary(an_image(), [QueueChanged(QUEUE, {"Policy": "x" * 5000})])
    assert detail.after == "x" * AUDIT_TEXT_MAX + "…"


@pytest.mark.parametrize("name", ["ssl.key.password", "a.setting.of.another.version"])
def test_what_may_be_a_secret_is_hidden(name: str) -> None:
    (detail,), _ = summary(an_image(), [BrokerSettingsChanged(NodeId(1), {name: SECRET.decode()})])
    assert (detail.before, detail.after) == (None, "(hidden)")
