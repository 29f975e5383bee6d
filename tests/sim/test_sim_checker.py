"""The checker on histories made by hand: each kind of lie is found, and the truth passes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.checker import HISTORY_END, check
from ropewalk.sim.judges.history import (
    CORRUPT,
    Acknowledged,
    BoundsSeen,
    ClockJumped,
    Created,
    Deleted,
    DeletionAsked,
    EndedItself,
    Event,
    Failed,
    Fetched,
    FinalRead,
    Forgotten,
    PowerFailed,
    Promise,
    Refused,
    Returned,
    Rotted,
    Sent,
    StartFailed,
    SurvivedFailedSync,
    WriteBackFailed,
)

P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)


def sent(
    send: int,
    *values: int,
    idempotent: bool = False,
    producer: str = "p",
    connection: int = 1,
    to: TopicPartition = P,
) -> Sent:
    return Sent(send, producer, to, values, -1, idempotent, connection)


def keyed(send: int, *records: tuple[int, str], deletes: Sequence[int] = (), at_ms: int = 0) -> Sent:
    """A batch of (value, key) for a compacted partition; `deletes` are tombstones."""
    values, keys = zip(*records, strict=True)
    return Sent(send, "p", P, values, -1, False, 1, at_ms, keys, frozenset(deletes))


def compacted(
    *, delete_retention_ms: int = 100, retention_ms: int | None = None, has_copies: bool = False
) -> Created:
    return Created(
        P.topic,
        Promise(
            is_compacted=True,
            delete_retention_ms=delete_retention_ms,
            retention_ms=retention_ms,
            has_copies=has_copies,
        ),
    )


def swept(
    *records: tuple[int, int], covers: tuple[int, int], at_ms: int = 0, began: int = HISTORY_END
) -> Fetched:
    """A read of a compacted partition: fewer records than offsets."""
    return Fetched(began, "c", P, covers[0], records, (covers,), at_ms)


def swept_at_end(*records: tuple[int, int], end: int, start: int = 0, at_ms: int = 0) -> FinalRead:
    return FinalRead(P, start, end, records, (), ((start, end),), at_ms)


def acked(send: int, base_offset: int) -> Acknowledged:
    return Acknowledged(send, base_offset)


def failed(send: int, *, definite: bool = False) -> Failed:
    return Failed(send, definite, "reason")


def covered(records: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges that records without gaps take up."""
    ranges: list[tuple[int, int]] = []
    for offset, _ in records:
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return tuple(ranges)


def fetched(offset: int, *records: tuple[int, int], began: int = 0) -> Fetched:
    return Fetched(began, "c", P, offset, records, covered(records))


def refused(offset: int, *, storage: bool = True, began: int = 99) -> Refused:
    return Refused(began, "c", P, offset, storage)


def ended(end_offset: int, began: int) -> BoundsSeen:
    return BoundsSeen(began, P, None, end_offset)


def started(start_offset: int) -> BoundsSeen:
    return BoundsSeen(0, P, start_offset, None)


def final(*values: int | None, start: int = 0, end: int | None = None) -> FinalRead:
    """The whole log from `start`; None stands for an offset that was refused."""
    numbered = list(enumerate(values, start))
    held = tuple((offset, value) for offset, value in numbered if value is not None)
    return FinalRead(
        P,
        start,
        start + len(values) if end is None else end,
        held,
        tuple(offset for offset, value in numbered if value is None),
        covered(held),
    )


GOOD: list[tuple[str, list[Event]]] = [
    (
        "a copy that has neither a value nor its deletion, and another that has both still",
        [
            compacted(has_copies=True),
            keyed(1, (10, "a"), (11, "a"), deletes=[11]),
            acked(1, 0),
            swept(covers=(1, 2), at_ms=100),
            swept((0, 10), covers=(0, 1), at_ms=100),
            swept((1, 11), covers=(1, 2), at_ms=100),
        ],
    ),
    ("nothing happened", []),
    ("sent, acknowledged, read", [sent(1, 10, 11), acked(1, 0), fetched(0, (0, 10), (1, 11)), final(10, 11)]),
    ("an unknown outcome may be there", [sent(1, 10), failed(1), final(10)]),
    ("an unknown outcome may be missing", [sent(1, 10), failed(1), final()]),
    ("a definite refusal is missing", [sent(1, 10), failed(1, definite=True), final()]),
    ("acks=0 may be there", [sent(1, 10), final(10)]),
    ("a plain producer sent twice", [sent(1, 10), failed(1), sent(2, 10), acked(2, 1), final(10, 10)]),
    (
        "refused once, sent again",
        [sent(1, 10), failed(1, definite=True), sent(2, 10), acked(2, 0), final(10)],
    ),
    (
        "an idempotent producer sent again and heard the old offset",
        [
            sent(1, 10, idempotent=True),
            failed(1),
            sent(2, 20, producer="other"),
            acked(2, 1),
            sent(3, 10, idempotent=True),
            acked(3, 0),
            final(10, 20),
        ],
    ),
    (
        "concurrent sends of two producers take any order",
        [sent(1, 10), sent(2, 20, producer="other"), acked(2, 0), acked(1, 1), final(20, 10)],
    ),
    (
        "a plain producer that reconnected may be reordered",
        [sent(1, 10), failed(1), sent(2, 11, connection=2), failed(2), final(11, 10)],
    ),
    (
        "a fetch may begin before what was asked for",
        [sent(1, 10, 11), acked(1, 0), fetched(1, (0, 10), (1, 11))],
    ),
    ("nothing new at the end", [sent(1, 10), acked(1, 0), fetched(1, began=2)]),
    ("an end asked for before the acknowledgement", [sent(1, 10), acked(1, 0), ended(0, began=1)]),
    (
        "rotten and refused",
        [sent(1, 10, 11), acked(1, 0), Rotted(P, 0, 1), refused(0), final(None, 11)],
    ),
    ("rotten and still served right", [sent(1, 10), acked(1, 0), Rotted(P, 0, 1), final(10)]),
    (
        "deleted on demand",
        [
            sent(1, 10, 11),
            acked(1, 0),
            DeletionAsked(P, 1),
            started(1),
            refused(0, storage=False),
            final(11, start=1),
        ],
    ),
    (
        "asked to delete, not told that it was done",
        [sent(1, 10, 11), acked(1, 0), DeletionAsked(P, 1), final(10, 11)],
    ),
    ("refused where nothing is known to be", [sent(1, 10), refused(0), final()]),
    (
        "superseded and gone",
        [
            compacted(),
            keyed(1, (10, "a"), (11, "a")),
            acked(1, 0),
            swept((1, 11), covers=(0, 2)),
            swept_at_end((1, 11), end=2),
        ],
    ),
    (
        "superseded by a record that nobody has seen yet",
        [
            compacted(),
            keyed(1, (10, "a")),
            acked(1, 0),
            keyed(2, (11, "a")),
            failed(2),
            swept(covers=(0, 1)),
            swept_at_end((1, 11), end=2),
        ],
    ),
    (
        "a tombstone after its time",
        [
            compacted(),
            keyed(1, (10, "a"), (11, "a"), deletes=[11]),
            acked(1, 0),
            swept((1, 11), covers=(0, 2), at_ms=99),
            swept(covers=(0, 2), at_ms=100),
            swept_at_end(end=2, at_ms=100),
        ],
    ),
    (
        "a tombstone that nobody ever saw, with all it deleted",
        [
            compacted(),
            keyed(1, (10, "a")),
            acked(1, 0),
            keyed(2, (11, "a"), deletes=[11]),
            failed(2),
            swept_at_end(end=2, at_ms=100),
        ],
    ),
    (
        "a tombstone while the node's clock jumped",
        [
            compacted(),
            keyed(1, (10, "a"), deletes=[10]),
            acked(1, 0),
            ClockJumped(),
            swept(covers=(0, 1)),
            swept_at_end(end=1),
        ],
    ),
    (
        "the last of its key is refused as rotten",
        [
            compacted(),
            keyed(1, (10, "a")),
            acked(1, 0),
            Rotted(P, 0, 1),
            FinalRead(P, 0, 1, (), (0,), (), 0),
        ],
    ),
    (
        "expired",
        [
            Created(P.topic, Promise(retention_ms=100)),
            sent(1, 10, 11),
            acked(1, 0),
            BoundsSeen(3, P, 1, None, 100),
            Refused(3, "c", P, 0, False, 100),
            FinalRead(P, 2, 2, (), (), (), 100),
        ],
    ),
    (
        "a power cut that the topic does not survive",
        [
            Created(P.topic, Promise(survives_power_cuts=False)),
            sent(1, 10),
            acked(1, 0),
            sent(2, 11),
            PowerFailed(),
            acked(2, 1),
            fetched(0, began=6),
            sent(3, 12),
            acked(3, 0),
            final(12),
        ],
    ),
    (
        "a failure of the disk that the topic does not survive",
        [
            Created(P.topic, Promise(survives_power_cuts=False)),
            sent(1, 10),
            acked(1, 0),
            WriteBackFailed(),
            sent(2, 11),
            acked(2, 0),
            final(11),
        ],
    ),
    ("two partitions do not mix", [sent(1, 10), sent(2, 20, to=Q), acked(1, 0), acked(2, 0), final(10)]),
]

BAD: list[tuple[str, str, list[Event]]] = [
    ("lost", "acknowledged and gone", [sent(1, 10), acked(1, 0), final()]),
    ("lost", "acknowledged and replaced", [sent(1, 10), sent(2, 20), acked(1, 0), final(20)]),
    ("lost", "the tail of a batch is gone", [sent(1, 10, 11), acked(1, 0), final(10)]),
    (
        "lost",
        "behind the rot everything is gone",
        [sent(1, 10, 11), acked(1, 0), Rotted(P, 0, 1), final(None)],
    ),
    ("lost", "rotten and cut without a word", [sent(1, 10), acked(1, 0), Rotted(P, 0, 1), final()]),
    ("vanished", "read and gone", [sent(1, 10), fetched(0, (0, 10)), failed(1), final()]),
    (
        "inconsistent",
        "two acknowledgements for one offset",
        [sent(1, 10), sent(2, 20), acked(1, 0), acked(2, 0)],
    ),
    ("inconsistent", "two reads of one offset", [sent(1, 10, 20), fetched(0, (0, 10)), fetched(0, (0, 20))]),
    ("inconsistent", "read other than acknowledged", [sent(1, 10, 20), acked(1, 0), fetched(0, (0, 20))]),
    ("corrupt", "a consumer was given rot", [sent(1, 10), acked(1, 0), fetched(0, (0, CORRUPT))]),
    ("corrupt", "rot at the end", [sent(1, 10), acked(1, 0), Rotted(P, 0, 1), final(CORRUPT)]),
    ("invented", "never sent", [fetched(0, (0, 10))]),
    ("invented", "sent to another partition", [sent(1, 10, to=Q), fetched(0, (0, 10))]),
    ("invented", "definitely refused, and there", [sent(1, 10), failed(1, definite=True), final(10)]),
    (
        "duplicate",
        "an idempotent producer's value twice",
        [sent(1, 10, idempotent=True), failed(1), sent(2, 10, idempotent=True), acked(2, 1), final(10, 10)],
    ),
    ("duplicate", "sent once, there twice", [sent(1, 10), acked(1, 0), final(10, 10)]),
    (
        "reordered",
        "sent after an acknowledgement, placed before it",
        [sent(1, 10), acked(1, 1), sent(2, 20, producer="other"), acked(2, 0), final(20, 10)],
    ),
    (
        "reordered",
        "one connection's requests changed places",
        [sent(1, 10), sent(2, 11), failed(1), failed(2), final(11, 10)],
    ),
    (
        "reordered",
        "an idempotent producer's order over two connections",
        [
            sent(1, 10, idempotent=True),
            sent(2, 11, idempotent=True),
            sent(3, 10, idempotent=True, connection=2),
            final(11, 10),
        ],
    ),
    ("skipped", "a hole within a fetch", [sent(1, 10, 11, 12), fetched(0, (0, 10), (2, 12))]),
    ("skipped", "a fetch that starts too late", [sent(1, 10, 11), fetched(0, (1, 11))]),
    ("skipped", "a fetch that ends too early", [sent(1, 10, 11), fetched(1, (0, 10))]),
    ("skipped", "a hole at the end", [sent(1, 10, 11), final(10, end=2)]),
    ("unseen", "nothing where something was acknowledged", [sent(1, 10), acked(1, 0), fetched(0, began=2)]),
    ("unseen", "an end below what was acknowledged", [sent(1, 10), acked(1, 0), ended(0, began=2)]),
    ("unseen", "an end that went back", [sent(1, 10, 11), ended(2, began=1), ended(1, began=2)]),
    ("unreadable", "refused though sound", [sent(1, 10), acked(1, 0), refused(0)]),
    ("unreadable", "out of range though acknowledged", [sent(1, 10), acked(1, 0), refused(0, storage=False)]),
    ("unreadable", "refused at the end though sound", [sent(1, 10), acked(1, 0), final(None)]),
    ("deleted", "nobody asked", [sent(1, 10), acked(1, 0), started(1)]),
    ("deleted", "nobody asked, at the end", [sent(1, 10, 11), acked(1, 0), final(11, start=1)]),
    (
        "resurrected",
        "deleted records are back",
        [sent(1, 10, 11), acked(1, 0), DeletionAsked(P, 1), Deleted(P, 1), final(10, 11)],
    ),
    (
        "resurrected",
        "a start that somebody was told of moved back",
        [sent(1, 10, 11), acked(1, 0), DeletionAsked(P, 1), started(1), final(10, 11)],
    ),
    ("resurrected", "a deleted topic", [sent(1, 10), acked(1, 0), Returned(P, "it is served")]),
    (
        "resurrected",
        "deleted by a tombstone that is gone already",
        [
            compacted(),
            keyed(1, (10, "a"), (11, "a"), deletes=[11]),
            acked(1, 0),
            swept(covers=(1, 2), at_ms=100),
            swept((0, 10), covers=(0, 2), at_ms=100),
        ],
    ),
    (
        "resurrected",
        "deleted by a tombstone that is gone from the same copy",
        [
            compacted(has_copies=True),
            keyed(1, (10, "a"), (11, "a"), deletes=[11]),
            acked(1, 0),
            swept((0, 10), covers=(0, 2), at_ms=100),
        ],
    ),
    (
        "resurrected",
        "a value whose deletion is gone at the end",
        [
            compacted(),
            keyed(1, (10, "a"), (11, "a"), deletes=[11]),
            acked(1, 0),
            swept_at_end((0, 10), end=2, at_ms=100),
        ],
    ),
    (
        "compacted",
        "the last value of a key, in a read",
        [compacted(), keyed(1, (10, "a"), (11, "b")), acked(1, 0), swept((1, 11), covers=(0, 2))],
    ),
    (
        "compacted",
        "the last value of a key, at the end",
        [compacted(), keyed(1, (10, "a"), (11, "b")), acked(1, 0), swept_at_end((1, 11), end=2)],
    ),
    (
        "compacted",
        "superseded by a record that is not there in the end",
        [
            compacted(),
            keyed(1, (10, "a")),
            acked(1, 0),
            keyed(2, (11, "a")),
            failed(2),
            swept(covers=(0, 1)),
            swept_at_end(end=1),
        ],
    ),
    (
        "compacted",
        "a live tombstone",
        [compacted(), keyed(1, (10, "a"), deletes=[10]), acked(1, 0), swept(covers=(0, 1), at_ms=99)],
    ),
    (
        "compacted",
        "a live tombstone at the end, on a clock that jumped before it was sent",
        [
            compacted(),
            ClockJumped(),
            keyed(1, (10, "a"), deletes=[10]),
            acked(1, 0),
            swept_at_end(end=1, at_ms=99),
        ],
    ),
    (
        "duplicate",
        "a record that compaction moved",
        [compacted(), keyed(1, (10, "a"), (11, "b")), acked(1, 0), swept((1, 10), covers=(0, 2))],
    ),
    (
        "skipped",
        "a gap between batches of a compacted partition",
        [
            compacted(),
            keyed(1, (10, "a"), (11, "a"), (12, "b")),
            Fetched(1, "c", P, 0, ((0, 10), (2, 12)), ((0, 1), (2, 3))),
        ],
    ),
    (
        "deleted",
        "before its time",
        [
            Created(P.topic, Promise(retention_ms=100)),
            sent(1, 10),
            acked(1, 0),
            BoundsSeen(3, P, 1, None, 99),
        ],
    ),
    (
        "lost",
        "after the last power cut, on a topic that does not survive them",
        [
            Created(P.topic, Promise(survives_power_cuts=False)),
            sent(1, 10),
            PowerFailed(),
            sent(2, 11),
            acked(2, 0),
            final(),
        ],
    ),
    (
        "lost",
        "after a failure of the disk, on a topic that survives it",
        [sent(1, 10), acked(1, 0), WriteBackFailed(), final()],
    ),
    ("forgotten", "a producer's place", [sent(1, 10), acked(1, 0), Forgotten(P, "sequence 1")]),
    ("survivor", "a failed sync was survived", [SurvivedFailedSync("node")]),
    ("unstartable", "a sound disk", [StartFailed("node", "reason")]),
    ("ended", "a sound disk", [EndedItself("node", "reason")]),
]


@pytest.mark.parametrize("history", [pytest.param(history, id=name) for name, history in GOOD])
def test_the_truth_passes(history: list[Event]) -> None:
    assert check(history) == []


@pytest.mark.parametrize(("kind", "history"), [pytest.param(kind, h, id=name) for kind, name, h in BAD])
def test_a_lie_is_found(kind: str, history: list[Event]) -> None:
    assert kind in {violation.kind for violation in check(history)}


def test_every_kind_in_the_docstring_has_a_lie() -> None:
    from ropewalk.sim.judges import checker

    assert checker.__doc__ is not None
    documented = {
        line.split()[0] for line in checker.__doc__.splitlines() if line.startswith("    ") and line[4] != " "
    }
    assert documented == {kind for kind, _, _ in BAD}


def _honest(batches: Sequence[int], crash_after: int) -> list[Event]:
    """A node that keeps everything, with a consumer at its heels."""
    history: list[Event] = []
    log: list[int] = []
    for number, size in enumerate(batches):
        values = tuple(range(1000 * number, 1000 * number + size))
        history.append(sent(number, *values, idempotent=number % 2 == 0, producer=f"p{number % 2}"))
        history.append(acked(number, len(log)))
        log += values
        began = len(history)
        history.append(fetched(0, *enumerate(log), began=began))
        history.append(BoundsSeen(began, P, 0, len(log)))
    kept = log[: len(log) - crash_after]
    return [*history, final(*kept)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=10), st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_losing_any_tail_of_an_honest_history_is_found(batches: list[int], lost_count: int) -> None:
    lost_count = min(lost_count, sum(batches))
    kinds = {violation.kind for violation in check(_honest(batches, lost_count))}
    assert kinds == ({"lost", "vanished"} if lost_count else set())
