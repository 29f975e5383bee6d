"""The command line of `tests/fuzz/run`."""

import argparse
import signal
import sys

from tests.fuzz.campaign import Plan, Report, run

VIOLATIONS_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/fuzz/run", description="Send mutated and hostile requests to a live node."
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--frames", type=int, help="stop after so many (default: 200,000)")
    extent.add_argument("--seconds", type=float, help="stop after so long")
    extent.add_argument(
        "--volley", type=int, help="send only this volley of the seed, to see a finding again"
    )
    parser.add_argument("--first", type=int, default=0, help="the volley to begin with")
    parser.add_argument("--repeat", type=int, default=1, help="how often to send the one volley")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--storage", choices=("memory", "disk"), default="memory")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--memory-mib-max", type=int, default=1024, help="what the node may use")
    arguments = parser.parse_args()
    plan = Plan(
        seed=arguments.seed,
        frames=arguments.frames if arguments.frames or arguments.seconds else 200_000,
        seconds=arguments.seconds,
        in_memory=arguments.storage == "memory",
        settings=tuple(arguments.settings),
        memory_bytes_max=arguments.memory_mib_max << 20,
        first=arguments.first,
        volley=arguments.volley,
        repeat=arguments.repeat,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the node must not outlive the run
    report = run(plan, lambda line: print(line, flush=True))
    _show(plan, report)
    return 1 if report.violations else 0


def _show(plan: Plan, report: Report) -> None:
    tally = report.tally
    print(
        f"seed {plan.seed}, {'memory' if plan.in_memory else 'disk'}: {tally.frames:,} frames over "
        f"{tally.volleys:,} connections in {report.seconds:.0f} s "
        f"({tally.frames / max(report.seconds, 0.001):,.0f}/s), {tally.answers:,} answers checked"
    )
    print(
        "connections ended by: "
        + ", ".join(f"{name} {count:,}" for name, count in tally.by_ending.most_common())
    )
    print("answers: " + ", ".join(f"{name} {count:,}" for name, count in tally.by_api.most_common()))
    print(
        f"node: at most {report.memory_mib_max} MiB ({report.memory_mib_end} at the end), "
        f"{report.descriptors_max} descriptors, "
        f"{report.topic_count:,} topics of {report.partition_count:,} partitions, {report.node_cpu_s:.0f} s of CPU (the fuzzer {report.own_cpu_s:.0f} s), "
        f"{report.log_lines_of_refusals:,} lines about refused connections, "
        f"stopped in {report.stop_s:.1f} s, started again in {report.start_again_s:.1f} s"
    )
    print(
        f"neighbour: {report.neighbour.get('records')} records there and back, "
        f"median {report.neighbour.get('median_ms', 0):.1f} ms, worst {report.neighbour.get('worst_ms', 0):.1f} ms"
    )
    print(f"violations: {len(report.violations)}")
    for violation in report.violations[:VIOLATIONS_SHOWN]:
        print(" ", violation)


if __name__ == "__main__":
    sys.exit(main())
