"""What a controller finds wrong with a cluster, and how it comes to know that a node is behind."""

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import NODE_BEHIND_MS_MAX
from ropewalk.controller.health import Complaint, NodeReports, Trouble, as_trouble, worst_first

NODE = NodeId(1)


def test_what_the_cluster_cannot_do_comes_before_what_it_does_with_less() -> None:
    troubles = [
        Trouble("under-replicated", "t", ""),
        Trouble("something else", "t", ""),
        Trouble("nobody leads", "u", ""),
        Trouble("no controller", "cluster", ""),
        Trouble("nobody leads", "t", ""),
    ]
    assert [(each.what, each.where) for each in worst_first(troubles)] == [
        ("no controller", "cluster"),
        ("nobody leads", "u"),
        ("nobody leads", "t"),
        ("under-replicated", "t"),
        ("something else", "t"),
    ]


@pytest.mark.parametrize(
    ("beats", "expected"),
    [
        pytest.param([(0, 10, 10)], {}, id="it has everything"),
        pytest.param(
            [(now_ms, now_ms - 1, now_ms) for now_ms in range(1, 60_000, 500)],
            {},
            id="one record behind at every moment, and it comes on",
        ),
        pytest.param([(0, 10, 10), (500, 10, 20), (5_499, 10, 90)], {}, id="not for long"),
        pytest.param(
            [(0, 10, 10), (500, 10, 20), (1_000, 10, 20), (6_000, 10, 30)], {NODE: 10}, id="it is stuck"
        ),
        pytest.param(
            [(0, 10, 10), (500, 10, 20), (1_000, 10, 20), (6_000, 20, 30)], {}, id="it was stuck and comes on"
        ),
    ],
)
def test_a_node_is_behind_that_does_not_reach_what_was_the_end_a_while_ago(
    beats: list[tuple[int, int, int]], expected: dict[NodeId, int]
) -> None:
    reports = NodeReports()
    for now_ms, offset, end_offset in beats:
        reports.on_heartbeat(NODE, offset, (), end_offset=end_offset, now_ms=now_ms)
    assert reports.behind(beats[-1][0]) == expected


def test_a_node_that_is_silent_is_behind_only_if_it_lacks_something() -> None:
    reports = NodeReports()
    reports.on_heartbeat(NODE, 10, (), end_offset=10, now_ms=0)
    assert reports.behind(10 * NODE_BEHIND_MS_MAX) == {}


def test_what_a_node_says_of_the_way_to_the_metadata_concerns_the_cluster() -> None:
    assert as_trouble(1, Complaint("metadata", "etcd is full")) == Trouble(
        "nothing can change", "node 1", "etcd is full"
    )
    assert as_trouble(1, Complaint("disk", "full")) == Trouble("node is unwell", "node 1", "disk: full")
