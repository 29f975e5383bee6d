"""Plans that even out the load: they do, they keep the rules, and twice the same plan is none."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import NodeId
from ropewalk.controller.balance import Plan, decide_balance, plan_balance
from ropewalk.controller.leadership import decide_balance_leaders
from ropewalk.controller.load import ClusterLoad, NodeLoad, PartitionLoad, gather
from ropewalk.controller.reassignment import moves
from ropewalk.metadata.image import Image
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter


def loads(image: Image, *bytes_in: int, topic: str = "orders") -> ClusterLoad:
    """What is written to each partition of the topic; twice as much is read."""
    told: dict[NodeId, list[PartitionLoad]] = {}
    for partition, number in zip(image.topic(topic).partitions, bytes_in, strict=True):
        if partition.leader is not None:
            one = PartitionLoad(image.topic(topic).topic_id, partition.index, number, 2 * number, number)
            told.setdefault(partition.leader, []).append(one)
    return gather(image, {node: NodeLoad(partitions=tuple(found)) for node, found in told.items()})


def carry_out(cluster: ImaginedCluster, plan: Plan) -> None:
    cluster.apply(decide_balance(cluster.image, plan.changes, settings=cluster.settings, now_ms=NOW_MS))
    for topic, partition in list(moves(cluster.image)):
        assert partition.leader is not None
        isr = tuple(sorted({*partition.isr, *partition.adding}))
        alter(cluster, partition.leader, isr, topic=topic.name, index=partition.index)
    cluster.apply(
        decide_balance_leaders(cluster.image, settings=cluster.settings, now_ms=NOW_MS, changes_max=1000)
    )
    cluster.check()


def spread(shares: dict[NodeId, float] | object) -> float:
    assert isinstance(shares, dict)
    return max(shares.values()) - min(shares.values())


def test_leaders_are_moved_before_anything_is_copied() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", *[(0, 1, 2)] * 6)
    plan = plan_balance(cluster.image, loads(cluster.image, *[100] * 6), changes_max=100)
    assert len(plan.changes) == 4
    assert not any(change.copies for change in plan.changes)
    assert spread(plan.load_after) < 0.001 < spread(plan.load_before)
    carry_out(cluster, plan)
    leaders = sorted(partition.leader or 0 for partition in cluster.image.topic("orders").partitions)
    assert leaders == [0, 0, 1, 1, 2, 2]
    for partition in cluster.image.topic("orders").partitions:
        assert partition.replicas[0] == partition.leader, "it would be moved back otherwise"


def test_a_node_that_joined_takes_its_share() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", *[(index % 3, (index + 1) % 3, (index + 2) % 3) for index in range(12)])
    cluster.join(3)
    plan = plan_balance(cluster.image, loads(cluster.image, *[100] * 12), changes_max=100)
    assert plan.load_before[NodeId(3)] == 0
    assert all(0.2 < share < 0.3 for share in plan.load_after.values())
    carry_out(cluster, plan)
    again = plan_balance(cluster.image, loads(cluster.image, *[100] * 12), changes_max=100)
    assert again.changes == ()


def test_quiet_partitions_are_spread_by_number() -> None:
    cluster = ImaginedCluster(2)
    cluster.topic("orders", *[(0,)] * 8)
    plan = plan_balance(cluster.image, gather(cluster.image, {}), changes_max=100)
    assert len(plan.changes) == 4


def test_a_busy_partition_counts_for_many_quiet_ones() -> None:
    cluster = ImaginedCluster(2)
    cluster.topic("orders", *[(0,)] * 5)
    plan = plan_balance(cluster.image, loads(cluster.image, 1000, 10, 10, 10, 10), changes_max=1)
    assert [change.index for change in plan.changes] in ([0], [1])
    carry_out(cluster, plan_balance(cluster.image, loads(cluster.image, 1000, 10, 10, 10, 10), changes_max=9))
    leaders = [partition.leader for partition in cluster.image.topic("orders").partitions]
    assert leaders.count(leaders[0]) == 1, "the busy one is alone"


def test_a_plan_has_no_more_changes_than_are_asked_for() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", *[(0, 1, 2)] * 9)
    assert len(plan_balance(cluster.image, loads(cluster.image, *[1] * 9), changes_max=2).changes) == 2


def test_nobody_out_of_sync_or_out_of_service_is_given_anything() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", *[(0, 1)] * 4)
    cluster.fence(1)
    cluster.unfence(1)
    cluster.fence(2)
    assert plan_balance(cluster.image, loads(cluster.image, *[1] * 4), changes_max=9).changes == ()


def test_what_changed_since_the_plan_was_made_is_left_alone() -> None:
    cluster = ImaginedCluster(2)
    cluster.topic("orders", *[(0,)] * 4)
    plan = plan_balance(cluster.image, loads(cluster.image, *[1] * 4), changes_max=9)
    carry_out(cluster, plan)
    before = [partition.partition_epoch for partition in cluster.image.topic("orders").partitions]
    carry_out(cluster, plan)
    assert [partition.partition_epoch for partition in cluster.image.topic("orders").partitions] == before


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 6), st.integers(1, 12), st.booleans())
def test_every_plan_evens_out_and_keeps_the_rules(
    rng: Random, broker_count: int, partition_count: int, racks: bool
) -> None:
    cluster = ImaginedCluster()
    for number in range(broker_count):
        cluster.join(number, rack=rng.choice("abc") if racks else None)
    factor = rng.randrange(1, broker_count + 1)
    cluster.topic("orders", *[tuple(rng.sample(range(broker_count), factor)) for _ in range(partition_count)])
    load = loads(cluster.image, *[rng.choice((0, 1, 10, 1000)) for _ in range(partition_count)])
    plan = plan_balance(cluster.image, load, changes_max=1000)
    assert plan == plan_balance(cluster.image, load, changes_max=1000)
    assert spread(plan.load_after) <= spread(plan.load_before) + 1e-9
    rack_of = {node_id: broker.rack or node_id for node_id, broker in cluster.image.brokers.items()}
    for change in plan.changes:
        assert len(set(change.after)) == factor
        assert len({rack_of[node] for node in change.after}) >= len({rack_of[node] for node in change.before})
    carry_out(cluster, plan)
    for change in plan.changes:
        assert cluster.partition("orders", change.index).replicas == change.after
