"""`ropewalk-sim`: run many seeds, print what they saw, and for a failure the one line that shows it again."""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final, NoReturn

import structlog

from ropewalk.sim.machines.sometimes import EXPECTED, EXPECTED_OF_KERNEL_SYNCS, never
from ropewalk.sim.runs.cluster.scenario import run_seed as run_cluster
from ropewalk.sim.runs.cluster.sometimes import EXPECTED as EXPECTED_OF_CLUSTERS
from ropewalk.sim.runs.cores.scenario import run_seed as run_cores
from ropewalk.sim.runs.cores.sometimes import EXPECTED as EXPECTED_OF_CORES
from ropewalk.sim.runs.eos.scenario import run_seed as run_eos
from ropewalk.sim.runs.eos.sometimes import EXPECTED as EXPECTED_OF_EOS
from ropewalk.sim.runs.node.boot import boot
from ropewalk.sim.runs.node.scenario import run_seed
from ropewalk.sim.runs.outcome import Outcome, total
from ropewalk.sim.runs.queue_cluster.scenario import run_seed as run_queue_cluster
from ropewalk.sim.runs.queue_cluster.sometimes import EXPECTED as EXPECTED_OF_QUEUE_CLUSTERS
from ropewalk.sim.runs.queues.scenario import run_seed as run_queues
from ropewalk.sim.runs.queues.sometimes import EXPECTED as EXPECTED_OF_QUEUES

_EXPECTED: Final = {
    "cores": EXPECTED_OF_CORES,
    "cluster": EXPECTED_OF_CLUSTERS,
    "eos": EXPECTED_OF_EOS,
    "queues": EXPECTED_OF_QUEUES,
    "queue-cluster": EXPECTED_OF_QUEUE_CLUSTERS,
    "node": EXPECTED,
}

_FAST: Final = ("cores", "queues")
"""Seeds that take less than a second."""


def main() -> NoReturn:
    options = _parser().parse_args()
    seeds = _parse_seeds(options.seeds)
    began_s = time.monotonic()
    outcomes: list[Outcome] = []
    failed: list[Outcome] = []
    level = next((level for level in _EXPECTED if getattr(options, level.replace("-", "_"), False)), "node")
    run = partial(
        _run,
        level=level,
        kernel_syncs=options.kernel_syncs,
        mixed_levels=options.mixed_levels,
        show_log=options.log,
    )
    for outcome in _run_all(run, seeds, options.jobs, level):
        outcomes.append(outcome)
        if options.verbose:
            print(_line(outcome), flush=True)
        if outcome.violations:
            failed.append(outcome)
            _print_failure(outcome, _flags(options, level))
            if options.fail_fast:
                break
    counts = total(outcomes)
    expected = (*_EXPECTED[level], *(EXPECTED_OF_KERNEL_SYNCS if options.kernel_syncs else ()))
    _print_totals(outcomes, counts, expected, time.monotonic() - began_s)
    is_enough = len(outcomes) >= (options.sometimes_from or (1000 if level in _FAST else 100))
    missing = never(counts, expected) if is_enough else []
    for what in missing:
        print(f"never happened: {what}")
    sys.exit(1 if failed or missing else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ropewalk-sim", description=__doc__)
    parser.add_argument("--seeds", default="0..99", help="one seed, or FIRST..LAST (default %(default)s)")
    parser.add_argument(
        "--cores", action="store_true", help="clusters of 3 and 5 nodes, cores only (default: one whole node)"
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="clusters of 3 and 5 whole nodes under faults, judged from above as well",
    )
    parser.add_argument(
        "--eos",
        action="store_true",
        help="transactions and groups over clusters of whole nodes under faults, judged as exactly once",
    )
    parser.add_argument("--queues", action="store_true", help="queues under changes of leader, cores only")
    parser.add_argument(
        "--queue-cluster",
        action="store_true",
        help="queues over clusters of whole nodes and front ends under faults, judged by what their clients were told",
    )
    parser.add_argument(
        "--kernel-syncs",
        action="store_true",
        help="the machines sync a few files without a thread (not with --cores and --queues, which have no files)",
    )
    parser.add_argument(
        "--mixed-levels",
        action="store_true",
        help="with --cluster: nodes go from the release before to this one and back in all runs, not in some",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default %(default)s)")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first violation")
    parser.add_argument("--verbose", action="store_true", help="one line per seed")
    parser.add_argument("--log", action="store_true", help="show what the nodes log")
    parser.add_argument(
        "--sometimes-from",
        type=int,
        metavar="COUNT",
        help="with so many seeds or more, everything that may happen must (default 100, or 1000 with --cores and --queues)",
    )
    return parser


def _parse_seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    try:
        return range(int(first), int(last if dots else first) + 1)
    except ValueError:
        sys.exit(f"ropewalk-sim: {text!r} is neither a seed nor FIRST..LAST")


def _run_all(run: Callable[[int], Outcome], seeds: Iterable[int], jobs: int, level: str) -> Iterator[Outcome]:
    if jobs <= 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, seeds, chunksize=8 if level in _FAST else 1)


def _run(seed: int, *, level: str, kernel_syncs: bool, mixed_levels: bool, show_log: bool) -> Outcome:
    least_serious = logging.DEBUG if show_log else logging.CRITICAL
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(least_serious))
    match level:
        case "cores":
            return run_cores(seed)
        case "queues":
            return run_queues(seed)
        case "queue-cluster":
            return run_queue_cluster(seed, kernel_syncs=kernel_syncs)
        case "cluster":
            return run_cluster(seed, kernel_syncs=kernel_syncs, mixed_levels=mixed_levels)
        case "eos":
            return run_eos(seed, kernel_syncs=kernel_syncs)
        case _:
            return run_seed(seed, boot, kernel_syncs=kernel_syncs)


def _line(outcome: Outcome) -> str:
    return (
        f"seed {outcome.seed}: {outcome.digest} {outcome.simulated_s:.1f} s, {outcome.step_count} steps, "
        f"{outcome.operation_count} operations, {outcome.fault_count} faults"
    )


def _flags(options: argparse.Namespace, level: str) -> str:
    """What a seed has to be run with to give the same run again."""
    said = [("" if level == "node" else f"--{level} ")]
    said += ["--kernel-syncs "] if options.kernel_syncs else []
    said += ["--mixed-levels "] if options.mixed_levels else []
    return "".join(said)


def _print_failure(outcome: Outcome, flags: str) -> None:
    for violation in outcome.violations[:5]:
        print(f"seed {outcome.seed}: {violation}")
    if len(outcome.violations) > 5:
        print(f"seed {outcome.seed}: and {len(outcome.violations) - 5} more")
    for line in outcome.last_words:
        print(f"    {line}")
    print(f"reproduce: ropewalk-sim {flags}--seeds {outcome.seed}", flush=True)


def _print_totals(
    outcomes: list[Outcome], counts: Counter[str], expected: Sequence[str], real_s: float
) -> None:
    print(
        f"{len(outcomes)} seeds, {sum(outcome.simulated_s for outcome in outcomes):.0f} simulated seconds "
        f"in {real_s:.0f} s, {sum(outcome.operation_count for outcome in outcomes)} operations, "
        f"{sum(outcome.fault_count for outcome in outcomes)} faults, "
        f"{sum(len(outcome.violations) for outcome in outcomes)} violations"
    )
    for what in expected:
        print(f"{counts[what]:8}  {what}")


if __name__ == "__main__":
    main()
