"""The command line of `tests/chaos/run-cluster`."""

import argparse
import sys

from tests.chaos.cluster_rounds import ETCD_KINDS, FAULT_S_MAX, KINDS, run

VIOLATIONS_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-cluster",
        description="End, pause and cut off the nodes of a cluster under load, over and over.",
    )
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all that can be if none is given"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--etcd", action="store_true", help="keep the metadata in three members of etcd")
    parser.add_argument(
        "--fault-seconds",
        type=float,
        default=FAULT_S_MAX,
        help="the longest that pauses, cuts and the like last",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    possible = [kind for kind in KINDS if arguments.etcd or kind not in ETCD_KINDS]
    if impossible := set(arguments.kinds) - set(possible):
        parser.error(f"{', '.join(sorted(impossible))} without --etcd")

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    totals = run(
        arguments.kinds or possible,
        arguments.rounds,
        node_count=arguments.nodes,
        etcd=arguments.etcd,
        seed=arguments.seed,
        settings=tuple(arguments.settings),
        fault_s_max=arguments.fault_seconds,
        progress=progress,
    )
    print(totals)
    for violation in totals.violations[:VIOLATIONS_SHOWN]:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
