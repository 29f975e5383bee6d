"""The command line of `tests/chaos/run-truth`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.truth import FAULTS, TOLD_WITHIN_S, WATCHERS, table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/chaos/run-truth",
        description="Bring faults about, one after the other, and see who tells of them, and who is quiet when they are healed.",
    )
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help="a part of a fault's name; all if none is given"
    )
    parser.add_argument(
        "--within", type=float, default=TOLD_WITHIN_S, metavar="S", help="by when all must tell"
    )
    arguments = parser.parse_args()
    names = [
        fault.name
        for fault in FAULTS
        if not arguments.faults or any(part in fault.name for part in arguments.faults)
    ]
    print("seconds, by " + ", ".join(WATCHERS), flush=True)
    with tempfile.TemporaryDirectory() as directory:
        rows = table(
            Path(directory),
            names,
            told_within_s=arguments.within,
            progress=lambda line: print(line, flush=True),
        )
    wrong = [row.fault for row in rows if not row.holds]
    print(
        f"RESULT: {len(rows) - len(wrong)} of {len(rows)} faults are told by all and healed for all", *wrong
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
