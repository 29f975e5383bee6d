"""How old what a node knows of its cluster is, and whether it keeps up with what it hears of."""

import pytest

from ropewalk.base.limits import NODE_BEHIND_MS_MAX
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.cluster.knowledge import Knowledge

SESSION_MS = 6_000


class Clock:
    def __init__(self) -> None:
        self.elapsed_ms = 1_000.0

    def now_ms(self) -> int:
        return int(self.elapsed_ms)

    def monotonic_ms(self) -> float:
        return self.elapsed_ms


class Heartbeats:
    def __init__(self) -> None:
        self.controller_heard_at_ms: float | None = None
        self.controller_offset = 0
        self.clock_difference_ms = 0.0


class Node:
    """A node's knowledge, and the world it is about."""

    def __init__(self, *, is_alone: bool = False) -> None:
        self.clock, self.heartbeats, self.facts = Clock(), Heartbeats(), Facts()
        self.unheard: str | None = None
        self.knowledge = Knowledge(
            self.facts,
            None if is_alone else self.heartbeats,
            lambda: self.unheard,
            self.clock,
            session_timeout_ms=SESSION_MS,
        )

    def pass_time(self, duration_ms: int, *, is_controller_heard: bool = True) -> None:
        for _ in range(duration_ms // 500):
            self.clock.elapsed_ms += 500
            if is_controller_heard:
                self.heartbeats.controller_heard_at_ms = self.clock.elapsed_ms
            self.knowledge.look()


@pytest.mark.parametrize(
    ("is_alone", "is_controller_heard", "unheard", "age_ms"),
    [
        pytest.param(False, True, None, 0, id="controller and metadata are heard"),
        pytest.param(
            False, False, None, SESSION_MS + 500, id="the controller is silent, its metadata are not"
        ),
        pytest.param(False, True, "no home", SESSION_MS + 500, id="the controller cannot reach the metadata"),
        pytest.param(False, False, "no home", SESSION_MS + 500, id="nothing is heard"),
        pytest.param(True, False, None, 0, id="a node alone hears itself"),
        pytest.param(True, False, "no home", SESSION_MS + 500, id="a node alone without its metadata"),
    ],
)
def test_knowledge_is_as_old_as_the_older_of_what_it_rests_on(
    is_alone: bool, is_controller_heard: bool, unheard: str | None, age_ms: int
) -> None:
    node = Node(is_alone=is_alone)
    node.pass_time(2_000)
    assert (node.knowledge.age_ms, node.knowledge.is_old) == (0, False)
    node.unheard = unheard
    node.pass_time(SESSION_MS + 500, is_controller_heard=is_controller_heard)
    assert (node.knowledge.age_ms, node.knowledge.is_old) == (age_ms, age_ms > 0)
    node.unheard = None
    node.pass_time(500)
    assert (node.knowledge.age_ms, node.knowledge.is_old) == (0, False)


def test_a_node_that_has_never_heard_a_controller_knows_nothing_since_it_began() -> None:
    node = Node()
    node.pass_time(SESSION_MS + 500, is_controller_heard=False)
    assert (node.knowledge.age_ms, node.knowledge.is_old) == (SESSION_MS + 500, True)


def test_a_node_that_hears_the_controller_and_gets_no_records_says_what_it_lacks() -> None:
    node = Node()
    node.heartbeats.controller_offset = 7
    told: list[str | None] = []
    for duration_ms in (500, NODE_BEHIND_MS_MAX):
        node.pass_time(duration_ms)
        told.append(node.knowledge.lack)
    node.facts.followed_offset = 7
    node.pass_time(500)
    told.append(node.knowledge.lack)
    seconds = NODE_BEHIND_MS_MAX / 1000
    assert told == [None, f"for {seconds:.0f} s it has lacked 7 records that the controller has", None]
    assert node.knowledge.age_ms == 0


def test_a_node_that_follows_at_a_distance_lacks_nothing() -> None:
    node = Node()
    for offset in range(2 * NODE_BEHIND_MS_MAX // 500):
        node.heartbeats.controller_offset = offset + 2
        node.facts.followed_offset = offset
        node.pass_time(500)
    assert node.knowledge.lack is None
