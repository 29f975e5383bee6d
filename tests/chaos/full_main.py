"""The command line of `tests/chaos/run-full`."""

import argparse
import sys

from tests.chaos.full_rounds import KINDS, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-full",
        description="Fill the disks of a cluster under load and see whether it empties them, over and over.",
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all if none is given")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    totals = run(
        arguments.kinds or KINDS,
        arguments.rounds,
        seed=arguments.seed,
        settings=tuple(arguments.settings),
        progress=lambda line: print(line, flush=True),
    )
    print(totals)
    for violation in totals.violations:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
