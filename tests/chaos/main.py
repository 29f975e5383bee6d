"""The command line of `tests/chaos/run`."""

import argparse
import sys

from tests.chaos.rounds import KINDS, run

VIOLATIONS_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run", description="End a node under load, over and over."
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    totals = run(
        arguments.kind,
        arguments.rounds,
        seed=arguments.seed,
        settings=tuple(arguments.settings),
        progress=progress,
    )
    print(totals)
    for violation in totals.violations[:VIOLATIONS_SHOWN]:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
