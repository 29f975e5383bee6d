"""The checker must see what it is there for."""

import pytest

from tests.chaos.checker import Sent, Stored, Tally

SIZE = 40


def tally() -> Tally:
    """Two writers have sent three records each; one of each was acknowledged, one was consumed."""
    known = Tally(partition=0, value_bytes=SIZE, idempotent_writers=frozenset({"once"}))
    for writer in ("once", "often"):
        for _ in range(3):
            known.on_sent(writer)
    known.on_acknowledged(0, Sent("once", 0))
    known.on_acknowledged(1, Sent("often", 0))
    known.on_consumed(Stored(2, Sent("once", 1).encode(0, SIZE)))
    return known


def log(*records: tuple[str, int]) -> list[Stored]:
    return [Stored(offset, Sent(*record).encode(0, SIZE)) for offset, record in enumerate(records)]


GOOD = [("once", 0), ("often", 0), ("once", 1)]


@pytest.mark.parametrize(
    ("stored", "claim"),
    [
        pytest.param(log(*GOOD), None, id="as it should be"),
        pytest.param(log(*GOOD, ("often", 0), ("often", 2)), None, id="a plain producer may repeat itself"),
        pytest.param(log(*GOOD, ("once", 2)), None, id="unacknowledged records may be there"),
        pytest.param(log(*GOOD[:2]), "what was consumed stays", id="the end is lost"),
        pytest.param([], "acknowledged records are there", id="all is lost"),
        pytest.param(
            log(("once", 0), ("once", 1)), "acknowledged records are there", id="another at its offset"
        ),
        pytest.param(
            log(*GOOD, ("once", 1)),
            "idempotent records are there once, in order",
            id="an idempotent record twice",
        ),
        pytest.param(
            log(*GOOD, ("once", 2), ("once", 1)),
            "idempotent records are there once, in order",
            id="out of order",
        ),
        pytest.param(log(*GOOD, ("often", 3)), "nothing is invented", id="never sent"),
        pytest.param(log(*GOOD, ("nobody", 0)), "nothing is invented", id="nobody sent it"),
        pytest.param([*log(*GOOD), Stored(3, b"garbage")], "nothing is invented", id="garbage"),
        pytest.param(
            [*log(*GOOD), Stored(3, Sent("often", 1).encode(1, SIZE))],
            "nothing is invented",
            id="another partition's",
        ),
        pytest.param(
            [*log(*GOOD), Stored(3, Sent("often", 1).encode(0, SIZE)[:-1] + b"x")],
            "nothing is invented",
            id="half of another record",
        ),
        pytest.param(
            [*log(*GOOD), Stored(4, Sent("often", 1).encode(0, SIZE))], "no offset is left out", id="a gap"
        ),
    ],
)
def test_what_the_checker_says_of_a_log(stored: list[Stored], claim: str | None) -> None:
    known = tally()
    known.check(stored, known.known())
    claims = {violation.claim for violation in known.violations}
    assert (claim in claims) if claim else not claims


def test_two_acknowledgements_of_one_offset_are_a_violation() -> None:
    known = tally()
    known.on_acknowledged(0, Sent("often", 2))
    assert [violation.claim for violation in known.violations] == ["one offset is acknowledged once"]


def test_a_record_acknowledged_without_an_offset_must_be_somewhere() -> None:
    known = tally()
    known.on_acknowledged(-1001, Sent("once", 2))
    known.check(log(*GOOD, ("once", 2)), known.known())
    assert not known.violations
    known.check(log(*GOOD), known.known())
    assert [violation.claim for violation in known.violations] == ["acknowledged records are there"]


def test_a_consumer_that_is_told_two_stories_is_a_violation() -> None:
    known = tally()
    known.on_consumed(Stored(2, Sent("often", 2).encode(0, SIZE)))
    assert [violation.claim for violation in known.violations] == ["what was consumed stays"]
