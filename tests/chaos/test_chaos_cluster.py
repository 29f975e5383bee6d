"""Clusters of real processes that lose nodes, wires, power and etcd under load.

One scene for each kind of surroundings, since starting a cluster takes longer than what is done to it. Each ends with the same
questions: is everything acknowledged where it was, is nothing there twice, and are all replicas the same bytes.
`tests/chaos/run-cluster` does as many rounds as one has patience for.
"""

import time
from random import Random

import pytest

from ropewalk.wire.error_code import ErrorCode
from tests.chaos import straight
from tests.chaos.cluster_rounds import Destruction, run
from tests.chaos.load import PARTITION_COUNT, TOPIC, VALUE_BYTES, Load
from tests.chaos.scene import Scene, scene
from tests.chaos.straight import Written

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

RECORDS = 400
WITHIN_S = 60.0
ETCD_AWAY_S = 10.0
NOT_ACKNOWLEDGED = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
SOON_FENCED = ("node.session.timeout.ms=2000",)


def go_on(load: Load, record_count: int = RECORDS) -> None:
    """At least so many of the records that are sent from here on are acknowledged."""
    load.grant(RECORDS)
    load.wait_for(record_count, within_s=WITHIN_S)


def write_straight(playing: Scene, node_id: int, partition: int, timeout_ms: int = 2_000) -> Written:
    """One record with acks=all to that node, which may be the wrong one."""
    tally = playing.load.tallies[partition]
    value = tally.on_sent("straight").encode(partition, VALUE_BYTES)
    return straight.write(
        playing.cluster.nodes[node_id].address, TOPIC, partition, value, timeout_ms=timeout_ms
    )


def led_by(playing: Scene, node_id: int) -> list[int]:
    leaders = playing.cluster.leaders(TOPIC)
    return [partition for partition, (leader, _) in leaders.items() if leader == node_id]


def test_with_local_metadata_nothing_is_lost_whichever_node_is_killed() -> None:
    with scene() as playing:
        cluster, load = playing.cluster, playing.load
        go_on(load)
        cluster.nodes[1].kill()
        cluster.wait_for_new_leaders(TOPIC, gone=1)
        go_on(load)
        cluster.nodes[1].start()
        playing.wait_until_healed()

        (partition, *_) = led_by(playing, 2)
        cluster.nodes[0].kill()  # which keeps the metadata, and is in sync: nobody may take it out
        for other in (1, 2):
            status = cluster.nodes[other].wait_until_page_says(
                "/readyz", "controller degraded: topics, leaders"
            )
            assert status == 200
        assert write_straight(playing, 2, partition).error is ErrorCode.REQUEST_TIMED_OUT
        load.grant(RECORDS)
        cluster.nodes[0].start()
        load.wait_for(RECORDS, within_s=WITHIN_S)
        playing.wait_until_healed()
        for node in cluster.nodes:
            node.wait_until_page_says("/readyz?verbose", "controller ok")
    assert playing.violations == []


def test_with_etcd_nothing_is_lost_whoever_is_killed_and_nothing_waits_for_etcd(etcd: None) -> None:
    with scene(with_etcd=True) as playing:
        cluster, load, members = playing.cluster, playing.load, playing.members
        assert members is not None
        go_on(load)
        decided = cluster.controller()
        cluster.nodes[decided].kill()
        cluster.wait_for_new_leaders(TOPIC, gone=decided)
        go_on(load)
        assert cluster.controller() != decided
        cluster.nodes[decided].start()
        playing.wait_until_healed()

        members.kill(members.leader())
        go_on(load)
        members.wait_until_healthy()  # until they have elected, whether a change was made may stay unknown
        load.make_topic("made-while-a-member-is-away")
        for member in members.running:
            members.kill(member)
        go_on_without_etcd(playing, for_s=ETCD_AWAY_S)
        for member in range(members.member_count):
            members.start(member)
        members.wait_until_healthy()
        for node in cluster.nodes:
            node.wait_until_page_says("/readyz?verbose", "metadata ok")
        load.make_topic("made-when-etcd-is-back")
        go_on(load)
    assert playing.violations == []


def go_on_without_etcd(playing: Scene, *, for_s: float) -> None:
    """Every single write is acknowledged and can be read at once, by whoever led when etcd went."""
    leaders = {partition: leader for partition, (leader, _) in playing.cluster.leaders(TOPIC).items()}
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        for partition, leader in leaders.items():
            written = write_straight(playing, leader, partition)
            assert written.error is ErrorCode.NONE
            address = playing.cluster.nodes[leader].address
            error, value = straight.read(address, TOPIC, partition, written.offset)
            assert error is ErrorCode.NONE
            assert value is not None
    for node in playing.cluster.nodes:
        assert node.wait_until_page_says("/readyz", "metadata degraded: topics, leaders") == 200
    go_on(playing.load)


def test_the_minority_side_of_a_cut_acknowledges_nothing_and_pauses_and_loss_lose_nothing(
    network_spaces: None,
) -> None:
    with scene(with_wires=True, settings=SOON_FENCED) as playing:
        go_on(playing.load)
        cut_off_a_leader(playing)
        cut_off_the_controller(playing)
        destruction = Destruction(playing, Random(1), fault_s_max=4)
        for kind in ("pause", "loss"):
            destruction.bring(kind, RECORDS)
            playing.wait_until_healed()
    assert playing.violations == []


def cut_off_a_leader(playing: Scene) -> None:
    """The others get a new leader. The one cut off has records that it will have to forget."""
    cluster, wires = playing.cluster, playing.wires
    assert wires is not None
    partitions = led_by(playing, 1)
    assert partitions
    wires.cut(1, [0, 2])
    answers = [write_straight(playing, 1, partition) for partition in partitions]
    cluster.wait_for_new_leaders(TOPIC, gone=1)
    go_on(
        playing.load, RECORDS // 4
    )  # clients still reach the one cut off, and wait there for as long as they like
    answers += [write_straight(playing, 1, partition) for partition in range(PARTITION_COUNT)]
    assert {written.error for written in answers} <= NOT_ACKNOWLEDGED
    wires.heal()
    playing.wait_until_healed()


def cut_off_the_controller(playing: Scene) -> None:
    """It may change who is in sync, and does: it is alone then, and alone is not enough."""
    cluster, wires = playing.cluster, playing.wires
    assert wires is not None
    leaders = {partition: leader for partition, (leader, _) in cluster.leaders(TOPIC).items()}
    assert 0 in leaders.values()
    wires.cut(0, [1, 2])
    answers = [write_straight(playing, leader, partition) for partition, leader in leaders.items()]
    until = time.monotonic() + WITHIN_S
    while answers[-1].error is not ErrorCode.NOT_ENOUGH_REPLICAS:
        assert time.monotonic() < until, answers
        answers.append(write_straight(playing, 0, partition=0))
    assert {written.error for written in answers} <= NOT_ACKNOWLEDGED
    wires.heal()
    playing.wait_until_healed()


def test_nothing_is_lost_when_the_power_of_one_node_or_of_all_is_cut(fuse: None) -> None:
    assert run(("power", "dark"), rounds=2, records_per_round=RECORDS).violations == []


def test_a_node_that_hangs_keeps_nobody_from_finding_the_controller_again() -> None:
    with scene(settings=SOON_FENCED) as playing:
        cluster, load = playing.cluster, playing.load
        go_on(load)
        cluster.nodes[1].freeze()
        cluster.wait_for_new_leaders(TOPIC, gone=1)
        cluster.nodes[0].freeze()  # which decides, long enough for the others to look for it
        time.sleep(1.0)
        cluster.nodes[0].thaw()
        deadline = time.monotonic() + WITHIN_S
        time.sleep(4.0)  # longer than a node that is not heard of stays in service
        while not all(isr == (0, 2) for _, isr in cluster.leaders(TOPIC).values()):
            assert time.monotonic() < deadline, "node 2 does not come back while node 1 hangs"
        go_on(load)
        cluster.nodes[1].thaw()
        playing.wait_until_healed()
    assert playing.violations == []


def test_an_etcd_that_is_full_or_stands_still_or_is_put_back_loses_nothing(etcd: None) -> None:
    kinds = ("full", "frozen", "restored")
    totals = run(kinds, rounds=3, etcd=True, records_per_round=RECORDS, fault_s_max=4, settings=SOON_FENCED)
    assert totals.violations == []
