"""The checker of transactions on histories made by hand: each kind of lie is found, and the truth passes."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.eos.checker import check_eos
from ropewalk.sim.judges.eos.cycles import strongly_connected
from ropewalk.sim.judges.eos.history import (
    FORGED_COMMIT,
    NO_COMMIT,
    Batch,
    Began,
    EndAsked,
    Ended,
    Event,
    FinalLog,
    FinalRead,
    OffsetSeen,
    OffsetsSent,
    Outcome,
    Placed,
    Polled,
    Positioned,
    Sent,
)

P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)
LATE = 1 << 40


def begin(operation: int, process: str = "a") -> Began:
    return Began(operation, process, True)


def wrote(operation: int, offset: int, *values: int, partition: TopicPartition = P) -> list[Event]:
    return [Sent(operation, partition, values), Placed(operation, partition, offset, values)]


def commit(operation: int) -> list[Event]:
    return [EndAsked(operation, True), Ended(operation, Outcome.COMMITTED)]


def abort(operation: int) -> list[Event]:
    return [EndAsked(operation, False), Ended(operation, Outcome.ABORTED)]


def transaction(operation: int, offset: int, *values: int, process: str = "a") -> list[Event]:
    return [begin(operation, process), *wrote(operation, offset, *values), *commit(operation)]


def plain(operation: int, offset: int, *values: int, process: str = "a") -> list[Event]:
    done = Ended(operation, Outcome.COMMITTED)
    return [Began(operation, process, False), *wrote(operation, offset, *values), done]


def polled(
    operation: int,
    *records: tuple[int, int],
    process: str = "c",
    everything: bool = False,
    stable: int = 0,
    partition: TopicPartition = P,
) -> Polled:
    return Polled(operation, process, partition, records, not everything, stable)


def poll(
    operation: int, *records: tuple[int, int], process: str = "c", everything: bool = False
) -> list[Event]:
    return [
        Began(operation, process, False),
        polled(operation, *records, process=process, everything=everything),
        Ended(operation, Outcome.COMMITTED),
    ]


def final(*records: tuple[int, int], partition: TopicPartition = P) -> FinalRead:
    return FinalRead(partition, records, True)


def handed_in(operation: int, number: int, offset: int) -> OffsetsSent:
    return OffsetsSent(operation, number, "g", ((P, offset),))


def offset_seen(number: int, offset: int, *, began: int = LATE, is_stable: bool = True) -> OffsetSeen:
    return OffsetSeen(began, "g", P, offset, number, is_stable)


def transform(operation: int, source: int, value: int, offset: int) -> list[Event]:
    """Reads `source` of P, writes `value` to Q, and commits the offset behind it."""
    return [
        begin(operation, "worker"),
        Sent(operation, Q, (value,), (("g", P, source),)),
        Placed(operation, Q, offset, (value,)),
        handed_in(operation, operation, source + 1),
        *commit(operation),
    ]


def batch(
    offset: int,
    *,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    commits: bool | None = None,
    opens: bool = True,
) -> Batch:
    return Batch(offset, offset + count, 7, epoch, sequence if commits is None else -1, opens, commits)


def log(*batches: Batch, stable: int | None = None) -> FinalLog:
    end_offset = batches[-1].end_offset
    return FinalLog(P, batches, end_offset if stable is None else stable, end_offset)


UNKNOWN_END: list[Event] = [EndAsked(1, True), Ended(1, Outcome.UNKNOWN)]

GOOD: list[tuple[str, Sequence[Event]]] = [
    ("nothing happened", []),
    ("committed and there", [*transaction(1, 0, 10, 11), final((0, 10), (1, 11))]),
    ("aborted and not there", [begin(1), *wrote(1, 0, 10), *abort(1), final()]),
    ("aborted, read by who reads everything", [begin(1), *wrote(1, 0, 10), *abort(1), *poll(2, (0, 10), everything=True)]),
    ("unknown and there", [begin(1), *wrote(1, 0, 10), *UNKNOWN_END, final((0, 10))]),
    ("unknown and not there", [begin(1), *wrote(1, 0, 10), *UNKNOWN_END, final()]),
    ("read while its end was asked for", [begin(1), *wrote(1, 0, 10), EndAsked(1, True), *poll(2, (0, 10)), Ended(1, Outcome.COMMITTED)]),
    ("a plain send", [*plain(1, 0, 10), final((0, 10))]),
    ("a marker between two transactions", [*transaction(1, 0, 10), *transaction(2, 2, 11), *poll(3, (0, 10), (2, 11))]),
    ("an aborted record between two polls", [
        *transaction(1, 0, 10), begin(2, "b"), *wrote(2, 2, 11), *abort(2), *transaction(3, 4, 12),
        *poll(4, (0, 10)), *poll(5, (4, 12)), *poll(6, (2, 11), process="all", everything=True),
    ]),
    ("mingled writes (G0, int-send-skip)", [
        begin(1, "a"), begin(2, "b"), *wrote(1, 0, 10), *wrote(2, 1, 20), *wrote(1, 2, 11), *wrote(2, 3, 21),
        *wrote(1, 1, 12, partition=Q), *wrote(2, 0, 22, partition=Q), *commit(1), *commit(2),
        final((0, 10), (1, 20), (2, 11), (3, 21)), final((0, 22), (1, 12), partition=Q),
    ]),
    ("assigned elsewhere after a rebalance", [
        *plain(1, 0, 10, 11, 12), *poll(2, (0, 10)), Positioned("c", P, 2), *poll(3, (2, 12)),
        Positioned("c", P, 0), *poll(4, (0, 10), (1, 11), (2, 12)),
    ]),
    ("stable up to an open transaction", [
        begin(1), *wrote(1, 5, 10), Began(2, "c", False), polled(2, stable=5), *commit(1),
        Began(3, "c", False), polled(3, stable=7), final((5, 10)),
    ]),
    ("an offset with its transaction", [begin(1), handed_in(1, 1, 5), *commit(1), offset_seen(1, 5)]),
    ("no offset of an aborted transaction", [begin(1), handed_in(1, 1, 5), *abort(1), offset_seen(NO_COMMIT, -1)]),
    ("an offset of which nobody knows", [begin(1), handed_in(1, 1, 5), *UNKNOWN_END, offset_seen(1, 5), offset_seen(1, 5)]),
    ("the markers of a commit are not written yet", [
        begin(1), handed_in(1, 1, 5), *commit(1), begin(2), handed_in(2, 2, 6), *commit(2),
        offset_seen(1, 5, is_stable=False), offset_seen(2, 6),
    ]),
    ("each record made into one", [
        *plain(1, 0, 10, 11), *transform(2, 0, 20, 0), *transform(3, 1, 21, 2),
        begin(4, "zombie"), Sent(4, Q, (22,), (("g", P, 1),)), Placed(4, Q, 4, (22,)), *abort(4),
        offset_seen(3, 2), final((0, 10), (1, 11)), final((0, 20), (2, 21), partition=Q),
    ]),
    ("a log of transactions", [log(
        batch(0, count=3), batch(3, sequence=3), batch(4, epoch=1, commits=True),
        batch(5, epoch=1), batch(6, epoch=1, commits=False),
        batch(7, epoch=1, sequence=1), batch(8, epoch=2, commits=True), batch(9, epoch=3, opens=False),
    )]),
    ("a marker where the producer has nothing open", [log(batch(0, epoch=3, commits=False))]),
]  # fmt: skip

BAD: list[tuple[str, Sequence[Event]]] = [
    ("inconsistent-offsets", [*plain(1, 0, 10), *plain(2, 5, 11), *poll(3, (0, 11))]),
    ("duplicate", [*plain(1, 0, 10), *poll(2, (0, 10), (1, 10))]),
    ("invented", [*poll(1, (0, 10))]),
    ("invented", [*plain(1, 0, 10), final((0, 10)), final((3, 10), partition=Q)]),
    ("aborted-read", [begin(1), *wrote(1, 0, 10), *abort(1), *poll(2, (0, 10))]),
    ("aborted-read", [begin(1), *wrote(1, 0, 10), final((0, 10))]),
    ("aborted-read", [Began(1, "a", False), Sent(1, P, (10,)), Ended(1, Outcome.ABORTED), final((0, 10))]),
    ("precommitted-read", [begin(1), *wrote(1, 0, 10), *poll(2, (0, 10)), *commit(1)]),
    ("precommitted-read", [begin(1), *wrote(1, 0, 10), polled(1, (0, 10), process="a"), *commit(1)]),
    ("torn", [begin(1), *wrote(1, 0, 10), *wrote(1, 0, 11, partition=Q), *UNKNOWN_END, final((0, 10)), final(partition=Q)]),
    ("lost-write", [*transaction(1, 0, 10), *transaction(2, 2, 11), final((2, 11))]),
    ("lost-write", [*plain(1, 0, 10), *plain(2, 1, 11), final((1, 11))]),
    ("unseen", [*transaction(1, 0, 10), *transaction(2, 2, 11), final((0, 10))]),
    ("unstable", [begin(1), *wrote(1, 5, 10), Began(2, "c", False), polled(2, stable=6), *commit(1), final((5, 10))]),
    ("poll-skip", [*plain(1, 0, 10, 11, 12), *poll(2, (0, 10)), *poll(3, (2, 12)), final((0, 10), (1, 11), (2, 12))]),
    ("poll-skip", [*plain(1, 0, 10, 11), Positioned("c", P, 0), *poll(3, (1, 11)), final((0, 10), (1, 11))]),
    ("nonmonotonic-poll", [*plain(1, 0, 10, 11), *poll(2, (0, 10), (1, 11)), *poll(3, (1, 11))]),
    ("int-poll-skip", [*plain(1, 0, 10, 11, 12), *poll(2, (0, 10), (2, 12)), final((0, 10), (1, 11), (2, 12))]),
    ("int-nonmonotonic-poll", [*plain(1, 0, 10, 11), *poll(2, (1, 11), (0, 10))]),
    ("nonmonotonic-send", [*plain(1, 1, 10), *plain(2, 0, 11), final((0, 11), (1, 10))]),
    ("int-nonmonotonic-send", [begin(1), *wrote(1, 1, 10), *wrote(1, 0, 11), *commit(1), final((0, 11), (1, 10))]),
    ("G1c", [
        begin(1, "a"), begin(2, "b"), *wrote(1, 0, 10), *wrote(2, 0, 20, partition=Q), EndAsked(1, True), EndAsked(2, True),
        polled(1, (0, 20), process="a", partition=Q), polled(2, (0, 10), process="b"),
        Ended(1, Outcome.COMMITTED), Ended(2, Outcome.COMMITTED),
    ]),
    ("G1c", [*poll(1, (0, 10)), *transaction(2, 0, 10)]),
    ("unknown-offset", [offset_seen(NO_COMMIT, 0)]),
    ("unknown-offset", [begin(1), handed_in(1, 1, 5), *commit(1), offset_seen(1, 0)]),
    ("unknown-offset", [begin(1), handed_in(1, 1, 5), *commit(1), offset_seen(FORGED_COMMIT, 5)]),
    ("aborted-offset", [begin(1), handed_in(1, 1, 5), *abort(1), offset_seen(1, 5)]),
    ("early-offset", [begin(1), handed_in(1, 1, 5), offset_seen(1, 5), *commit(1)]),
    ("stale-offset", [begin(1), handed_in(1, 1, 5), *commit(1), offset_seen(NO_COMMIT, -1)]),
    ("stale-offset", [
        begin(1), handed_in(1, 1, 5), *commit(1), begin(2), handed_in(2, 2, 6), *commit(2), offset_seen(1, 5),
    ]),
    ("made-twice", [
        *plain(1, 0, 10), *transform(2, 0, 20, 0), *transform(3, 0, 21, 2), offset_seen(3, 1),
        final((0, 10)), final((0, 20), (2, 21), partition=Q),
    ]),
    ("not-made", [
        *plain(1, 0, 10, 11), *transform(2, 1, 20, 0), offset_seen(2, 2), final((0, 10), (1, 11)), final((0, 20), partition=Q),
    ]),
    ("made-unread", [
        *plain(1, 0, 10, 11), *transform(2, 0, 20, 0), begin(3, "w"), Sent(3, Q, (21,), (("g", P, 1),)),
        Placed(3, Q, 2, (21,)), *commit(3), offset_seen(2, 1), final((0, 10), (1, 11)), final((0, 20), (2, 21), partition=Q),
    ]),
    ("hanging", [log(batch(0, count=3))]),
    ("hanging", [log(batch(0), batch(1, epoch=1, commits=True), stable=1)]),
    ("older-marker", [log(batch(0, epoch=2), batch(1, epoch=1, commits=False))]),
    ("older-epoch", [log(batch(0, epoch=1, commits=True), batch(1, epoch=0, opens=False))]),
    ("sequence", [log(batch(0, opens=False), batch(1, sequence=2, opens=False))]),
    ("sequence", [log(batch(0, opens=False), batch(1, opens=False))]),
]  # fmt: skip


@pytest.mark.parametrize("history", [history for _, history in GOOD], ids=[name for name, _ in GOOD])
def test_the_truth_passes(history: Sequence[Event]) -> None:
    assert check_eos(history) == []


@pytest.mark.parametrize(
    ("kind", "history"), BAD, ids=[f"{index}-{kind}" for index, (kind, _) in enumerate(BAD)]
)
def test_a_lie_is_found(kind: str, history: Sequence[Event]) -> None:
    assert kind in {violation.kind for violation in check_eos(history)}


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_rings_are_those_who_lead_to_each_other(edges: list[tuple[int, int]]) -> None:
    after: dict[int, set[int]] = {node: set() for node in range(8)}
    for former, latter in edges:
        after[former].add(latter)
    reached = {node: {node} for node in after}
    for _ in after:
        for node, known in reached.items():
            reached[node] = known | {latter for former in known for latter in after[former]}
    expected = {
        frozenset(other for other in after if other in reached[node] and node in reached[other])
        for node in after
    }
    rings = [frozenset(ring) for ring in strongly_connected(after)]
    assert set(rings) == expected
    assert len(rings) == len(expected)


def test_a_long_history_is_judged_without_recursion() -> None:
    history: list[Event] = []
    for number in range(1, 5001):
        history += [
            begin(number),
            *wrote(number, 2 * number, number),
            polled(number, process="a"),
            *commit(number),
        ]
        history[-3] = polled(number, *([(2 * number - 2, number - 1)] if number > 1 else []), process="a")
    history += [final(*((2 * number, number) for number in range(1, 5001)))]
    assert check_eos(history) == []
