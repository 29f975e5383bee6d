"""Runs a Python program whose clock is off: `late.py SECONDS PROGRAM ARGUMENTS…`. Time that is measured is right."""

import runpy
import sys
import time


def main() -> None:
    ahead_s = int(sys.argv[1])
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + ahead_s
    time.time_ns = lambda: now_ns() + ahead_s * 1_000_000_000
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
