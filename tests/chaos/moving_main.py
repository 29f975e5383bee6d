"""The command line of `tests/chaos/run-moving`."""

import argparse
import sys

from tests.chaos.moving_rounds import run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-moving",
        description="Move the metadata of a cluster from a node's directory to etcd and back, over and over.",
    )
    parser.add_argument("--rounds", type=int, default=30, help="each is there and back (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    totals = run(2 * arguments.rounds, seed=arguments.seed, progress=progress)
    print(totals)
    for violation in totals.violations:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
