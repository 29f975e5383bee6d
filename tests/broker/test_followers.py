"""How what replicas ask for reaches whoever decides about the replicas in sync."""

from typing import Any

import pytest

from ropewalk.base.ids import NodeId, Offset
from ropewalk.broker.partitions.followers import Followers
from ropewalk.broker.partitions.partition import Partition
from ropewalk.runtime.clock import SystemClock
from tests.replication.given import facts, leader


class _Acknowledgements:
    trimmed: tuple[()] = ()


class _Partition:
    acknowledgements = _Acknowledgements()

    def advance_with(self, followers: Followers) -> None:
        """Nobody waits here."""


class _InSync:
    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, partition: Partition) -> None:
        self.told.append("note")

    def hurry(self, partition: Partition) -> None:
        self.told.append("hurry")

    def on_changed(self, *, joined_count: int, left_count: int) -> None:
        self.told.append("changed")


@pytest.mark.parametrize(
    ("node_id", "held_back", "told"),
    [
        pytest.param(2, False, [], id="in sync"),
        pytest.param(3, False, ["hurry"], id="it may join"),
        pytest.param(
            3, True, ["note"], id="a straggler, which may join after a while, and may be silent until then"
        ),
    ],
)
def test_whoever_may_join_is_not_forgotten(node_id: int, held_back: bool, told: list[str]) -> None:
    core = leader(facts(1, 2), end_offset=10, high_watermark=10, straggler_ms=100)
    core.followers[NodeId(node_id)].held_back = held_back
    in_sync = _InSync()
    partition: Any = _Partition()
    followers = Followers(partition, core, SystemClock(), in_sync)
    followers.on_fetch(NodeId(node_id), 7, Offset(10), Offset(0))
    assert in_sync.told == told
