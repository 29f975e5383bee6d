"""The doctor's facts, asked of a node that runs."""

from collections.abc import Iterator
from random import SystemRandom

import pytest

from ropewalk.base import metrics
from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.loop import run
from ropewalk.runtime.network import TcpNetwork
from ropewalk.testing import Cluster
from ropewalk.views.diagnosis.collecting import Collector
from ropewalk.views.diagnosis.facts import Facts
from ropewalk.views.diagnosis.rule import findings
from ropewalk.views.diagnosis.table import RULES


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=2, flush="os")
        yield cluster


def collected(bootstrap: str) -> Facts:
    collector = Collector(TcpNetwork(), SystemClock(), SystemRandom(), ClientSettings())
    return run(collector.collect(parse_addresses(bootstrap)))


def test_a_node_is_asked_for_all_that_rules_look_at(cluster: Cluster) -> None:
    facts = collected(cluster.bootstrap)
    assert facts.membership is not None
    assert facts.unlearnt == ()
    (node,) = facts.nodes
    assert node.figures is not None
    assert node.figures.value(metrics.READY) == 1
    assert node.figures.count(metrics.REQUEST_TIME) > 0
    assert node.directories
    orders = next(each for each in facts.topics if each.state.name == "orders")
    assert orders.settings is not None
    assert (orders.settings["flush"], orders.settings["cleanup.policy"]) == ("os", "delete")
    assert [(each.rule, each.check) for each in findings(RULES, facts)] == [("flush-by-system", "orders")]


def test_an_address_that_does_not_answer_keeps_nobody_from_the_others(cluster: Cluster) -> None:
    facts = collected(f"127.0.0.1:1,{cluster.bootstrap}")
    assert [each.problem is None for each in facts.asked] == [False, True]
    assert len(facts.nodes) == 1
    assert {each.rule for each in findings(RULES, facts)} == {"bootstrap-unreachable", "flush-by-system"}


def test_where_nobody_answers_nothing_else_is_asked() -> None:
    facts = collected("127.0.0.1:1")
    assert facts.nodes == ()
    assert [each.rule for each in findings(RULES, facts)] == ["bootstrap-unreachable"]


def test_of_several_nodes_what_is_wrong_with_one_is_said_once() -> None:
    with Cluster(nodes=3, node_session_timeout_ms=1_500) as several:
        several.create_topic("orders", partitions=3, min_insync_replicas=2)
        well = {each.rule for each in findings(RULES, collected(several.bootstrap))}
        assert well == {"controller-alone"}, "the kit has one node that decides"
        several.kill(2)
        found = set(well)
        while not {"node-fenced", "partitions-under-replicated"} <= found:  # the controller waits for it
            found = {each.rule or "" for each in findings(RULES, collected(several.bootstrap))}
    assert "bootstrap-unreachable" in found
    assert not {"node-unreachable", "node-silent"} & found, "that it is out of service says so"
