"""What became of one seed, whatever was run with it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.world import World


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


def outcome_of(
    seed: int,
    world: World,
    workload: Workload,
    *,
    fault_count: int,
    sometimes: Mapping[str, int],
    violations: Iterable[Violation],
) -> Outcome:
    """Of a run of whole nodes."""
    return Outcome(
        seed,
        world.trace.hexdigest(),
        world.now_s,
        world.loop.step_count,
        workload.operation_count,
        fault_count,
        dict(sorted(sometimes.items())),
        tuple(str(violation) for violation in violations),
    )


def shortcomings(
    workload: Workload, fault_count: int, *, operations_min: int, faults_min: int
) -> list[Violation]:
    """A run that did too little proves too little."""
    if workload.operation_count >= operations_min and fault_count >= faults_min:
        return []
    return [Violation("idle", f"{workload.operation_count} operations, {fault_count} faults")]


def total(outcomes: list[Outcome]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.sometimes)
    return counts


def complaint_of(play: Callable[[], None], violation: type[Exception]) -> str | None:
    """What a run on a bare event queue is to be blamed for, of which a `violation` says all itself; None: nothing."""
    try:
        play()
    except violation as found:
        return str(found)
    except Exception as error:  # noqa: BLE001  # whatever a run dies of is its result
        return f"crashed: {describe(error)}"
    return None


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
