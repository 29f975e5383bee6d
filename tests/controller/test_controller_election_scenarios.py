"""Every story in `scenarios/` still ends as it is told there. REWRITE=1 writes them anew, for a look at the difference.

Brokers 0 to 2 keep a topic, led by 0, of which two must be in sync unless a setting says something else.

    topic [min.insync.replicas=1] [unclean.leader.election.enable=true]
    fence 1, unfence 1, stop 1                     gone, back, about to stop
    return 1 [unclean] [empty]                     as a new process: after a crash, on an empty disk
    isr 0,1                                        the leader asks for it
    elect preferred|any|unclean                    an operator asks
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.leadership import decide_elect_any, decide_elect_preferred, decide_elect_unclean
from ropewalk.controller.membership import decide_stop_broker
from ropewalk.metadata.records import MetadataRecord
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter, losses
from tests.stories import numbers, options, retell

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
ELECT: dict[str, Callable[..., list[MetadataRecord]]] = {
    "preferred": decide_elect_preferred,
    "any": decide_elect_any,
    "unclean": decide_elect_unclean,
}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_story_ends_as_it_is_told(path: Path) -> None:
    told = retell(path.read_text(), Teller().run)
    if os.environ.get("REWRITE"):
        path.write_text(told)
    assert path.read_text() == told


def test_there_are_stories() -> None:
    assert len(SCENARIOS) >= 5


class Teller:
    def __init__(self) -> None:
        self._cluster = ImaginedCluster(3)

    def run(self, words: list[str]) -> Iterator[str]:
        try:
            records = self._decided(*words)
        except RopewalkError as error:
            yield f"{type(error).__name__}: {error}"
            records = []
        if losses(records):
            yield "something may be lost"
        self._cluster.check()
        leader, isr, eligible = self._cluster.seats("orders")
        partition = self._cluster.partition("orders")
        leads = "nobody leads" if leader is None else f"{leader} leads in epoch {partition.leader_epoch}"
        yield f"{leads}, in sync {_listed(isr)}" + (f", eligible {_listed(eligible)}" if eligible else "")

    def _decided(self, command: str, *given: str) -> list[MetadataRecord]:
        cluster = self._cluster
        match command:
            case "topic":
                settings = {"min_insync_replicas": "2", **_underscored(options(given))}
                cluster.topic("orders", (0, 1, 2), **settings)
            case "fence":
                return cluster.fence(int(given[0]))
            case "unfence":
                return cluster.unfence(int(given[0]))
            case "stop":
                node_id = NodeId(int(given[0]))
                return cluster.apply(
                    decide_stop_broker(cluster.image, node_id, settings=cluster.settings, now_ms=NOW_MS)
                )
            case "return":
                number = int(given[0])
                found = cluster.register(
                    number, is_clean="unclean" not in given, generation=int("empty" in given)
                )
                return found + cluster.unfence(number)
            case "isr":
                leader = cluster.partition("orders").leader
                assert leader is not None, "nobody leads who could ask"
                alter(cluster, leader, numbers(given[0]))
            case "elect":
                decide = ELECT[given[0]]
                return cluster.apply(
                    decide(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)
                )
            case _:
                raise AssertionError(f"no story knows {command}")
        return []


def _underscored(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in settings.items()}


def _listed(node_ids: tuple[int, ...]) -> str:
    return ",".join(map(str, node_ids)) or "-"
