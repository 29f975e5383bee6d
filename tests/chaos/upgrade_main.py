"""The command line of `tests/chaos/run-upgrade`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.upgrade_rounds import build_versions, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-upgrade",
        description="Roll clusters from the release before to this version, back, up and to the new level, over and over.",
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--etcd", action="store_true", help="keep the metadata in three members of etcd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    with tempfile.TemporaryDirectory(prefix="upgrade-") as scratch:
        versions = build_versions(Path(scratch))
        totals = run(
            arguments.rounds,
            seed=arguments.seed,
            etcd=arguments.etcd,
            versions=versions,
            progress=progress,
        )
    print(totals)
    for violation in totals.violations:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
