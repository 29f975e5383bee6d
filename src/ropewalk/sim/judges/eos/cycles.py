"""Who must have come before whom: a circle of operations is one that no order explains (G1c).

An operation comes before whoever reads, as committed, what it wrote, and before whoever began when it was over. That writes of
transactions are mingled (G0) is Kafka's model, so which of two writes comes first says nothing about who wrote them.

What a reader could get wrong
    "Over before the other began" has as many pairs as a square. It is enough to lead to each operation from those that were over
    and that nobody else who was over had begun after: `_realtime` keeps these and no others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ropewalk.sim.judges.eos.history import Began, Ended, Event, Polled
from ropewalk.sim.judges.eos.records import Ledger, Report


def check_cycles(history: Sequence[Event], ledger: Ledger, report: Report) -> None:
    after: dict[int, set[int]] = {number: set() for number in ledger.operations}
    reads: set[tuple[int, int]] = set()
    for event in history:
        if isinstance(event, Polled) and event.is_committed_only:
            for _, value in event.records:
                writer = ledger.writer_of(value)
                if writer is not None and writer.number != event.operation:
                    reads.add((writer.number, event.operation))
    for former, latter in [*reads, *_realtime(history)]:
        after[former].add(latter)
    for ring in strongly_connected(after):
        members = sorted(ring)
        if len(members) > 1 and any(former in ring and latter in ring for former, latter in reads):
            names = ", ".join(str(ledger.operations[number]) for number in members[:4])
            report("G1c", f"no order explains {len(members)} operations: {names}")


def _realtime(history: Sequence[Event]) -> Iterator[tuple[int, int]]:
    frontier: dict[int, None] = {}
    began_after: dict[int, list[int]] = {}
    for event in history:
        match event:
            case Began(number):
                began_after[number] = list(frontier)
                for former in frontier:
                    yield former, number
            case Ended(number):
                for former in began_after.pop(number, []):
                    frontier.pop(former, None)
                frontier[number] = None
            case _:
                pass


def strongly_connected(after: Mapping[int, Iterable[int]]) -> Iterator[set[int]]:
    """Tarjan's algorithm, without recursion; every set of nodes that all lead to each other."""
    indexes: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in after:
        if root in indexes:
            continue
        work = [(root, iter(sorted(after[root])))]
        indexes[root] = lowest[root] = len(indexes)
        path.append(root)
        on_path.add(root)
        while work:
            node, following = work[-1]
            successor = next(following, None)
            if successor is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == indexes[node]:
                    ring = {node}
                    while (member := path.pop()) != node:
                        ring.add(member)
                    on_path -= ring
                    yield ring
            elif successor not in indexes:
                indexes[successor] = lowest[successor] = len(indexes)
                path.append(successor)
                on_path.add(successor)
                work.append((successor, iter(sorted(after[successor]))))
            elif successor in on_path:
                lowest[node] = min(lowest[node], indexes[successor])
