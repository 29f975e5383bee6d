"""AlterPartition: compare-and-set, and who may be let into an ISR."""

from typing import Any

import pytest
from msgspec import structs

from ropewalk.base.errors import (
    FencedEpoch,
    IneligibleReplica,
    InvalidRequest,
    NotLeader,
    RopewalkError,
    StaleBrokerEpoch,
    StalePartitionEpoch,
    UnknownEpoch,
    UnknownPartition,
    UnknownTopicId,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration, decide_alter_partition
from ropewalk.controller.membership import decide_stop_broker
from ropewalk.metadata.image import Partition
from ropewalk.metadata.records import MetadataRecord
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter


def cluster_of_four() -> ImaginedCluster:
    """`orders-0` on 0, 1 and 2, of which 2 is out of sync; 3 stands by."""
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 1, 2))
    alter(cluster, 0, (0, 1))
    return cluster


def asked(cluster: ImaginedCluster, *isr: int, **changes: Any) -> PartitionAlteration:
    partition = cluster.partition("orders")
    fields: dict[str, Any] = {
        "topic_id": cluster.image.topic("orders").topic_id,
        "index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "isr": [(NodeId(number), cluster.epoch(number)) for number in isr],
    }
    return PartitionAlteration(**(fields | changes))


def decide(
    cluster: ImaginedCluster, *alterations: PartitionAlteration, node: int = 0
) -> tuple[list[MetadataRecord], list[AlteredPartition]]:
    return decide_alter_partition(
        cluster.image,
        NodeId(node),
        cluster.epoch(node),
        alterations,
        settings=cluster.settings,
        now_ms=NOW_MS,
    )


def refusal(
    cluster: ImaginedCluster, alteration: PartitionAlteration, node: int = 0
) -> type[RopewalkError] | None:
    records, (altered,) = decide(cluster, alteration, node=node)
    if isinstance(altered.outcome, Partition):
        return None
    assert not records
    return type(altered.outcome)


@pytest.mark.parametrize(
    ("changes", "node", "expected"),
    [
        pytest.param({}, 0, None, id="as it should be"),
        pytest.param({"topic_id": TopicId(b"x" * 16)}, 0, UnknownTopicId, id="no such topic"),
        pytest.param({"index": 1}, 0, UnknownPartition, id="no such partition"),
        pytest.param({"index": -1}, 0, UnknownPartition, id="a partition below the first"),
        pytest.param({"leader_epoch": LeaderEpoch(-1)}, 0, FencedEpoch, id="an older leader epoch"),
        pytest.param({"leader_epoch": LeaderEpoch(1)}, 0, UnknownEpoch, id="a later leader epoch"),
        pytest.param({"partition_epoch": 0}, 0, StalePartitionEpoch, id="an older partition epoch"),
        pytest.param({"partition_epoch": 2}, 0, StalePartitionEpoch, id="a later partition epoch"),
        pytest.param({}, 1, NotLeader, id="not the leader"),
    ],
)
def test_who_asks_must_lead_and_know_the_partition(
    changes: dict[str, Any], node: int, expected: type[RopewalkError] | None
) -> None:
    cluster = cluster_of_four()
    assert refusal(cluster, asked(cluster, 0, 1, 2, **changes), node) is expected


@pytest.mark.parametrize(
    ("isr", "expected"),
    [
        pytest.param((0, 1, 2), None, id="one more"),
        pytest.param((0,), None, id="one less"),
        pytest.param((0, 1), None, id="the same"),
        pytest.param((1, 2), InvalidRequest, id="without the leader"),
        pytest.param((0, 0), InvalidRequest, id="twice"),
        pytest.param((0, 3), InvalidRequest, id="no replica"),
        pytest.param((), InvalidRequest, id="nobody"),
    ],
)
def test_members_are_replicas_and_the_leader_is_one(
    isr: tuple[int, ...], expected: type[RopewalkError] | None
) -> None:
    cluster = cluster_of_four()
    assert refusal(cluster, asked(cluster, *isr)) is expected


def test_the_same_set_again_changes_the_partition_epoch_alone() -> None:
    """Whatever the leader asked before, and does not know the outcome of, is refused from then on."""
    cluster = cluster_of_four()
    before, earlier = cluster.partition("orders"), asked(cluster, 0, 1, 2)
    records, (altered,) = decide(cluster, asked(cluster, 0, 1))
    cluster.apply(records)
    assert cluster.partition("orders") == structs.replace(before, partition_epoch=before.partition_epoch + 1)
    assert altered.outcome == cluster.partition("orders")
    assert refusal(cluster, earlier) is StalePartitionEpoch


def test_nobody_joins_who_is_fenced_stopping_or_has_started_again() -> None:
    cluster = cluster_of_four()
    cluster.fence(2)
    assert refusal(cluster, asked(cluster, 0, 1, 2)) is IneligibleReplica
    cluster.unfence(2)
    late = asked(cluster, 0, 1, 2)
    cluster.register(2)
    cluster.unfence(2)
    assert refusal(cluster, late) is IneligibleReplica
    cluster.apply(decide_stop_broker(cluster.image, NodeId(2), settings=cluster.settings, now_ms=NOW_MS))
    assert refusal(cluster, asked(cluster, 0, 1, 2)) is IneligibleReplica


def test_who_is_in_sync_may_stay_while_it_stops() -> None:
    cluster = cluster_of_four()
    cluster.apply(decide_stop_broker(cluster.image, NodeId(1), settings=cluster.settings, now_ms=NOW_MS))
    assert cluster.seats("orders") == (0, (0, 1), ())
    assert refusal(cluster, asked(cluster, 0, 1, 2)) is None


def test_below_the_minimum_whoever_is_dropped_stays_eligible() -> None:
    cluster = cluster_of_four()
    assert alter(cluster, 0, (0,)).eligible == (1,)
    assert alter(cluster, 0, (0, 2)).eligible == ()


def test_one_partition_that_is_refused_does_not_keep_others_from_being_changed() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (0, 1, 2), (0, 1, 2))
    bad, good = asked(cluster, 0, 0), asked(cluster, 0, 1, index=1)
    records, altered = decide(cluster, bad, good, good)
    assert [isinstance(one.outcome, Partition) for one in altered] == [False, True, False]
    cluster.apply(records)
    assert cluster.seats("orders", 0) == (0, (0, 1, 2), ())
    assert cluster.seats("orders", 1) == (0, (0, 1), ())


def test_a_former_process_or_a_fenced_one_changes_nothing() -> None:
    cluster = cluster_of_four()
    late, epoch = asked(cluster, 0, 1, 2), cluster.epoch(0)
    cluster.register(0)
    with pytest.raises(StaleBrokerEpoch):
        decide_alter_partition(
            cluster.image, NodeId(0), epoch, [late], settings=cluster.settings, now_ms=NOW_MS
        )
    with pytest.raises(IneligibleReplica):
        decide(cluster, late)
