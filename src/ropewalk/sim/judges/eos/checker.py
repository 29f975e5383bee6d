"""Judges a history of transactions: everything in it that exactly once forbids, in words.

The kinds of violations are those of Jepsen's test of Kafka, and the rules behind them; each module below lists its own.
What Kafka's model allows is allowed: transactions whose writes are mingled (G0, int-send-skip), and consumers that go
elsewhere when their group is rebalanced. It is pure: a history in, violations out, in time that grows with its length.
"""

from collections.abc import Sequence

from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.judges.eos.cycles import check_cycles
from ropewalk.sim.judges.eos.history import Event, FinalLog
from ropewalk.sim.judges.eos.log_walk import walk
from ropewalk.sim.judges.eos.offsets import check_offsets, check_transformations
from ropewalk.sim.judges.eos.polls import check_order
from ropewalk.sim.judges.eos.records import Ledger
from ropewalk.sim.judges.eos.visibility import check_visibility


def check_eos(history: Sequence[Event]) -> list[Violation]:
    """Every violation. Only complete histories are judged: `FinalRead` of every partition that anybody wrote to."""
    found: list[Violation] = []

    def report(kind: str, text: str) -> None:
        found.append(Violation(kind, text))

    ledger = Ledger(history, report)
    check_visibility(history, ledger, report)
    check_order(history, ledger, report)
    check_offsets(history, ledger, report)
    check_transformations(history, report)
    check_cycles(history, ledger, report)
    for event in history:
        if isinstance(event, FinalLog):
            walk(event, report)
    return found
