"""An exhaustive search over the real cores keeps every promise, and finds what is wrong with each broken variant."""

import pytest
from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.log.epochs import EpochEnd
from ropewalk.replication.follower import Follower, Question, Restart, Truncate
from ropewalk.replication.leader import Leader, Outcome, Proposal
from ropewalk.replication.lineage import LogView
from tests.replication.nodes import Cores
from tests.replication.search import Bounds, search


class TruncatesToHighWatermark(Follower):
    """Before KIP-101."""

    __slots__ = ()

    def _truncation(self, log: LogView, shared: EpochEnd) -> Truncate | Restart:
        return Truncate(self._high_watermark_told)


class TakesAnyAnswer(Follower):
    """Before KIP-320: whoever answers is taken for the leader."""

    __slots__ = ()

    def _is_open(self, question: Question, log: LogView) -> bool:
        return question.fetch_offset == log.end_offset


class AdmitsAtHighWatermark(Leader):
    """Without the rule that a replica must have reached where the leader's epoch began."""

    __slots__ = ()

    def _may_join(self, node_id: NodeId, now_ms: int) -> bool:
        return self._followers[node_id].durable_offset >= self.high_watermark


class AdmitsAnyone(Leader):
    __slots__ = ()

    def _may_join(self, node_id: NodeId, now_ms: int) -> bool:
        return self._followers[node_id].is_heard


class CountsCommittedOnly(Leader):
    """Without KIP-497: whoever is proposed counts only once the image says so."""

    __slots__ = ()

    def _recount(self) -> None:
        self._counted = tuple(self._followers[node_id] for node_id in self._isr - {self.node_id})


class TakesSilenceForRefusal(Leader):
    __slots__ = ()

    def on_outcome(self, proposal: Proposal, outcome: Outcome, now_ms: int) -> None:
        super().on_outcome(proposal, Outcome.REFUSED, now_ms)


class IgnoresTheMinimum(Leader):
    """Without KIP-966: those who are eligible fall behind."""

    __slots__ = ()

    def _advance(self) -> None:
        settings, self.settings = self.settings, type(self.settings)(isr_count_min=0)
        super()._advance()
        self.settings = settings


@pytest.mark.parametrize(
    ("bounds", "cores", "must_happen"),
    [
        pytest.param(
            Bounds(),
            Cores(),
            {"elect", "fail-over", "fence", "shrink", "expand", "fetch", "serve-stray"},
            id="questions come late",
        ),
        pytest.param(
            Bounds(records=1, late_answers=True),
            Cores(),
            {"serve", "receive", "receive-stray", "refuse"},
            id="answers come late",
        ),
        pytest.param(
            Bounds(records=1), Cores(isr_count_min=2), {"elect-eligible", "expand"}, id="two must be in sync"
        ),
        pytest.param(
            Bounds(records=2, epochs=1, doubts=1),
            Cores(),
            {"doubt", "decide-late"},
            id="nobody hears what was decided",
        ),
        pytest.param(
            Bounds(replicas=2, changes=3, crashes=1),
            Cores(syncs_late=True),
            {"crash", "sync", "expand"},
            id="power is cut",
        ),
    ],
)
@pytest.mark.timeout(300)
def test_every_history_keeps_the_promises(bounds: Bounds, cores: Cores, must_happen: set[str]) -> None:
    found = search(bounds, cores)
    assert found.broken is None, f"{found.broken} after {found.history}"
    assert must_happen <= found.steps.keys()


class Variant(Struct, frozen=True):
    cores: Cores
    bounds: Bounds
    broken: str
    """The promise that does not hold."""

    begin: tuple[str, ...] = ()
    """How histories begin, where to search them all would take too long."""


BROKEN = {
    "truncates to the high watermark": Variant(
        Cores(follower=TruncatesToHighWatermark), Bounds(changes=1), "P2"
    ),
    "takes any answer": Variant(
        Cores(follower=TakesAnyAnswer),
        Bounds(records=1, epochs=3, late_answers=True),
        "P2",
        begin=("elect 1", "fail-over 0", "write 0", "serve 2", "receive 2"),
    ),
    "serves any epoch": Variant(
        Cores(fences_epochs=False), Bounds(records=1, epochs=3), "P2", begin=("elect 1", "fail-over 0")
    ),
    "admits at the high watermark": Variant(
        Cores(leader=AdmitsAtHighWatermark),
        Bounds(changes=3, records=1, late_answers=True),
        "P2",
        begin=("fence 1",),
    ),
    "admits anyone": Variant(Cores(leader=AdmitsAnyone), Bounds(records=1, epochs=1), "P2"),
    "counts the committed set only": Variant(
        Cores(leader=CountsCommittedOnly), Bounds(records=1, epochs=1), "P2"
    ),
    "takes silence for a refusal": Variant(
        Cores(leader=TakesSilenceForRefusal), Bounds(records=1, epochs=1, doubts=1), "P2"
    ),
    "ignores the minimum": Variant(
        Cores(leader=IgnoresTheMinimum, isr_count_min=2), Bounds(replicas=2, records=1), "P2"
    ),
    "counts what is not durable": Variant(
        Cores(syncs_late=True, counts_unsynced=True), Bounds(records=1, crashes=1), "P4"
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_variant_is_refuted(name: str) -> None:
    variant = BROKEN[name]
    found = search(variant.bounds, variant.cores, begin=variant.begin)
    assert found.broken is not None
    assert found.broken.startswith(variant.broken)
