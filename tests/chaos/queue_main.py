"""The command line of `tests/chaos/run-queues`."""

import argparse
import sys

from tests.chaos.queue_rounds import run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-queues",
        description="Kill, stop and pause nodes and front ends under workers of a standard and of a FIFO queue, behind HAProxy, over and over.",
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument(
        "--local", action="store_true", help="keep the metadata on the first node, not in etcd"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=24 * 60,
        help="begin no round after so long, and judge what there was",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    totals = run(
        arguments.rounds,
        seed=arguments.seed,
        etcd=not arguments.local,
        minutes_max=arguments.minutes,
        progress=progress,
    )
    print(totals._replace(violations=[]))
    print(f"{len(totals.violations)} violations")
    for violation in totals.violations[:50]:
        print(" ", violation)
    return 1 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
