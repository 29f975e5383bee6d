"""The command line of `tests/chaos/run-failing-disk`."""

import argparse
import sys

from tests.chaos.failing_rounds import run

VIOLATIONS_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-failing-disk", description="Let a node's disk fail under load, over and over."
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    totals = run(arguments.rounds, seed=arguments.seed, progress=progress)
    print(totals)
    for violation in totals.violations[:VIOLATIONS_SHOWN]:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
