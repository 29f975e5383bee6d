"""The checker of groups on histories made by hand: each kind of lie is found, and the truth passes."""

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges import group_checker
from ropewalk.sim.judges.checker import HISTORY_END
from ropewalk.sim.judges.group_checker import check_groups
from ropewalk.sim.judges.group_history import (
    FORGED,
    NO_OFFSET,
    Assigned,
    CommitAnswered,
    CommitSent,
    GroupEvent,
    Jumped,
    Led,
    OffsetSeen,
)

P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)


def commit(
    number: int, *offsets: int, generation: int = 1, member: str = "m", owner: str | None = None
) -> CommitSent:
    return CommitSent(
        number, "g", owner or member, member, generation, tuple((P, offset) for offset in offsets)
    )


def stored(number: int) -> CommitAnswered:
    return CommitAnswered(number, (True,))


def refused(number: int) -> CommitAnswered:
    return CommitAnswered(number, (False,))


def unknown(number: int) -> CommitAnswered:
    return CommitAnswered(number, (None,))


def seen(offset: int, *, began: int = HISTORY_END, is_of_former: bool = False) -> OffsetSeen:
    return OffsetSeen(began, "g", P, offset, is_of_former)


def led(generation: int, **shares: tuple[TopicPartition, ...]) -> Led:
    return Led("g", generation, tuple(shares.items()))


def assigned(
    generation: int,
    member: str,
    *share: TopicPartition,
    owner: str | None = None,
    began: int = HISTORY_END,
) -> Assigned:
    return Assigned(began, "g", generation, owner or member, member, share)


SETTLED: list[GroupEvent] = [commit(99, 990, generation=-1), stored(99)]
"""The group has an offset, so it is not forgotten."""

GOOD: list[tuple[str, list[GroupEvent]]] = [
    ("nothing happened", []),
    ("nothing committed, nothing there", [seen(NO_OFFSET)]),
    ("committed and there", [commit(1, 10), stored(1), seen(10)]),
    ("committed over", [commit(1, 10), stored(1), commit(2, 11), stored(2), seen(11)]),
    (
        "what was committed while a former coordinator led",
        [commit(1, 10), stored(1), commit(2, 11), stored(2), seen(10, is_of_former=True), seen(11)],
    ),
    ("an unknown outcome that is there", [commit(1, 10), unknown(1), seen(10)]),
    ("an unknown outcome that is not there", [commit(1, 10), unknown(1), seen(NO_OFFSET)]),
    ("an unknown outcome that came late", [commit(1, 10), commit(2, 11), stored(2), seen(11), seen(10)]),
    ("refused and not there", [commit(1, 10), refused(1), seen(NO_OFFSET)]),
    ("asked before it was acknowledged", [commit(1, 10), stored(1), seen(NO_OFFSET, began=1)]),
    ("two at once, in either order", [commit(1, 10), commit(2, 11), stored(1), stored(2), seen(10)]),
    ("expired when the clock jumped", [commit(1, 10), stored(1), Jumped(), seen(NO_OFFSET)]),
    (
        "a generation, its shares, and the next",
        [
            *SETTLED,
            led(1, m=(P,), n=(Q,)),
            assigned(1, "m", P),
            assigned(1, "n", Q),
            commit(1, 10),
            stored(1),
            led(2, m=(P, Q)),
            assigned(2, "m", P, Q),
            commit(2, 11, generation=2),
            stored(2),
        ],
    ),
    (
        "a stale member is refused",
        [*SETTLED, led(2, n=(P,)), assigned(2, "n", P), commit(1, 10, generation=1), refused(1)],
    ),
    (
        "sent before anybody knew better",
        [*SETTLED, led(2, n=(P,)), commit(1, 10, generation=1), assigned(2, "n", P), stored(1)],
    ),
    (
        "a static member back under another id, in the same generation",
        [
            *SETTLED,
            led(1, i=(P,)),
            assigned(1, "m", P, owner="i"),
            assigned(1, "n", P, owner="i"),
            commit(1, 10, member="n", owner="i"),
            stored(1),
        ],
    ),
    (
        "a static member back under another id, which never heard of its share",
        [
            *SETTLED,
            led(1, i=(P,)),
            assigned(1, "m", P, owner="i"),
            commit(1, 10, member="n", owner="i"),
            stored(1),
        ],
    ),
    (
        "a group without offsets is forgotten and begins anew",
        [led(3, m=(P,)), assigned(3, "m", P), led(1, n=(P,)), assigned(1, "n", P)],
    ),
    (
        "a generation that nobody had a share of is used again",
        [*SETTLED, led(2, m=(P,)), led(2, n=(P,)), assigned(2, "n", P)],
    ),
]

BAD: list[tuple[str, str, list[GroupEvent]]] = [
    ("stale", "acknowledged and gone", [commit(1, 10), stored(1), seen(NO_OFFSET)]),
    (
        "stale",
        "acknowledged, and the one before it is back",
        [commit(1, 10), stored(1), commit(2, 11), stored(2), seen(10)],
    ),
    ("stale", "seen and gone", [commit(1, 10), unknown(1), seen(10), seen(NO_OFFSET)]),
    (
        "stale",
        "seen, and the one before it is back",
        [commit(1, 10), stored(1), commit(2, 11), unknown(2), seen(11), seen(10)],
    ),
    (
        "stale",
        "an unknown outcome took effect twice",
        [commit(1, 10), unknown(1), seen(10), commit(2, 11), stored(2), seen(10)],
    ),
    ("unknown", "0 for nothing", [seen(0)]),
    ("unknown", "nobody committed it", [commit(1, 10), stored(1), seen(11)]),
    ("unknown", "nobody committed it, a former coordinator says so", [seen(11, is_of_former=True)]),
    ("unknown", "refused, and there", [commit(1, 10), refused(1), seen(10)]),
    ("unknown", "with another's metadata", [commit(1, 10), stored(1), seen(FORGED)]),
    (
        "unfenced",
        "a generation that is over",
        [*SETTLED, led(2, n=(P,)), assigned(2, "n", P), commit(1, 10, generation=1), stored(1)],
    ),
    (
        "unfenced",
        "an instance that is somebody else",
        [
            *SETTLED,
            led(1, i=(P,)),
            assigned(1, "m", P, owner="i"),
            assigned(1, "n", P, owner="i"),
            commit(1, 10, member="m", owner="i"),
            stored(1),
        ],
    ),
    (
        "shared",
        "two owners in one generation",
        [*SETTLED, led(1, m=(P,)), assigned(1, "m", P), led(1, n=(P,)), assigned(1, "n", P)],
    ),
    (
        "shared",
        "two shares for one owner",
        [*SETTLED, led(1, m=(P,)), assigned(1, "m", P), led(1, m=(Q,)), assigned(1, "m", Q)],
    ),
    ("shared", "another's share", [*SETTLED, led(1, m=(P,), n=(Q,)), assigned(1, "m", Q)]),
    (
        "regressed",
        "back to a former number",
        [*SETTLED, led(2, m=(P,)), assigned(2, "m", P), led(1, n=(P,)), assigned(1, "n", P)],
    ),
]


@pytest.mark.parametrize("history", [pytest.param(history, id=name) for name, history in GOOD])
def test_the_truth_passes(history: list[GroupEvent]) -> None:
    assert check_groups(history) == []


@pytest.mark.parametrize(("kind", "history"), [pytest.param(kind, h, id=name) for kind, name, h in BAD])
def test_a_lie_is_found(kind: str, history: list[GroupEvent]) -> None:
    assert kind in {violation.kind for violation in check_groups(history)}


def test_every_kind_in_the_docstring_has_a_lie() -> None:
    assert group_checker.__doc__ is not None
    kinds = group_checker.__doc__.split("\n\n")[1].splitlines()
    assert {line.split()[0] for line in kinds} == {kind for kind, _, _ in BAD}


def test_groups_do_not_mix() -> None:
    other = OffsetSeen(HISTORY_END, "h", P, NO_OFFSET)
    assert check_groups([commit(1, 10), stored(1), other]) == []
