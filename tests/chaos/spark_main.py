"""The command line of `tests/chaos/run-spark`."""

import argparse
import signal
import sys
from math import inf

from tests.chaos.spark_pipelines import CONTROLS, IN_TABLES, PIPELINES
from tests.chaos.spark_rounds import MASTER, run

EXIT_TERMINATED = 128 + signal.SIGTERM


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-spark",
        description="Kill drivers, executors and brokers under pipelines on Spark, over and over.",
    )
    parser.add_argument(
        "pipelines", nargs="*", metavar="PIPELINE", help=f"{', '.join(PIPELINES)}; all if none is given"
    )
    parser.add_argument("--kills", type=int, default=5, help="of each victim, in each pipeline")
    parser.add_argument("--minutes", type=float, default=inf, help="no kill after that, in each pipeline")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument(
        "--master", default=MASTER, help="with local-cluster[…] whole executors are killed as well"
    )
    parser.add_argument(
        "--s3",
        action="store_true",
        help="tables in an object store: a server of S3's API is started for them",
    )
    parser.add_argument(
        "--control", action="store_true", help="without what makes it exactly once: must show duplicates"
    )
    parser.add_argument("--quiet", action="store_true", help="print the totals only")
    arguments = parser.parse_args()
    offered = CONTROLS if arguments.control else PIPELINES
    if unknown := set(arguments.pipelines) - set(offered):
        parser.error(f"no pipeline {', '.join(sorted(unknown))}; there are {', '.join(offered)}")
    if arguments.s3:
        offered = {name: made for name, made in PIPELINES.items() if name in IN_TABLES}
        if strange := set(arguments.pipelines) - set(offered):
            parser.error(f"{', '.join(sorted(strange))} writes to no table")

    # Asked to end, it takes everything along that it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))

    def progress(line: str) -> None:
        if not arguments.quiet:
            print(line, flush=True)

    is_good = True
    for name in arguments.pipelines or offered:
        totals = run(
            offered[name],
            arguments.kills,
            seed=arguments.seed,
            node_count=arguments.nodes,
            master=arguments.master,
            in_s3=arguments.s3,
            seconds_max=60 * arguments.minutes,
            progress=progress,
        )
        print(totals, flush=True)
        for complaint in totals.complaints():
            print(" ", complaint, flush=True)
        if arguments.control:
            is_good &= bool(totals.verdict.doubled)
        elif totals.complaints():
            is_good = False
            print(
                f"  again with: tests/chaos/run-spark {name} --kills {arguments.kills} --seed {arguments.seed}"
                f"{' --s3' if arguments.s3 else ''}"
            )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
