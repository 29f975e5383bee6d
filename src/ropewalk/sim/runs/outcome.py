"""What became of one seed, whatever was run with it."""

from collections import Counter

from msgspec import Struct


class Outcome(Struct, frozen=True):
    """What became of one seed."""

    seed: int
    digest: str
    simulated_s: float
    step_count: int
    operation_count: int
    fault_count: int
    sometimes: dict[str, int]
    violations: tuple[str, ...]
    last_words: tuple[str, ...] = ()
    """What happened before a violation."""


def total(outcomes: list[Outcome]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.sometimes)
    return counts


def describe(error: BaseException) -> str:
    """What a run died of, and the innermost places that it came through."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions)
    traceback, where = error.__traceback__, []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        where.append(f"{code.co_filename.rpartition('ropewalk/')[2]}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {error} ({' < '.join(reversed(where[-5:]))})"
