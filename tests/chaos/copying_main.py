"""The command line of `tests/chaos/run-copying`."""

import argparse
import sys

from tests.chaos.copying import run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-copying",
        description="Kill programs that copy a topic exactly once, and nodes under them, over and over.",
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--copiers", type=int, default=2)
    parser.add_argument("--etcd", action="store_true", help="keep the metadata in three members of etcd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    totals = run(
        arguments.kills,
        seed=arguments.seed,
        etcd=arguments.etcd,
        copier_count=arguments.copiers,
        progress=progress,
    )
    print(totals)
    for violation in totals.violations:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
