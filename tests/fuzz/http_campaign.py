"""Sends hostile HTTP to a live node, and holds it to its answers: `python -m tests.fuzz.http_campaign --seconds 600`.

Every request that its own parser makes of the bytes is answered, in order, by a well-formed answer; what is no request is refused
once, and the connection ends; the node neither dies nor complains nor grows.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from msgspec import Struct

from ropewalk.node.http_door import BOUNDS
from tests.fuzz.http_volleys import HttpVolley, taken_apart, volley
from tests.fuzz.target import Target

CONNECTIONS = 16
PATIENCE_S = 30.0
GROWTH_BYTES_MAX = 96 << 20
VIOLATIONS_KEPT = 20


class Report(Struct):
    volley_count: int = 0
    by_status: Counter[int] = Counter()
    violations: list[str] = []
    growth_bytes: int = 0
    """Of the node's memory, from the end of the first hundred volleys."""


def run(seed: int, seconds: float) -> Report:
    report = Report(by_status=Counter(), violations=[])
    with tempfile.TemporaryDirectory(prefix="ropewalk-fuzz-") as scratch:
        target = Target(Path(scratch), in_memory=True, settings=("http.hosts=*",))
        target.start()
        try:
            asyncio.run(_campaign(seed, seconds, target, report))
            target.look()
            if not target.is_alive:
                report.violations.append(f"the node died; its last words:\n{target.last_words()}")
            elif (code := target.stop()[0]) != 0:
                report.violations.append(f"the node ended with {code} when it was told to stop")
            report.violations += [f"in the node's log: {alarm}" for alarm in target.alarms]
        finally:
            if target.is_alive:
                target.kill()
    return report


async def _campaign(seed: int, seconds: float, target: Target, report: Report) -> None:
    ends = time.monotonic() + seconds
    for number in range(100):
        await _fire(target, volley(seed, number), f"volley {number}", report)
    target.look()
    before_bytes = target.memory_bytes_max
    numbers = iter(range(100, sys.maxsize))

    async def sender() -> None:
        while time.monotonic() < ends and len(report.violations) < VIOLATIONS_KEPT and target.is_alive:
            number = next(numbers)
            await _fire(target, volley(seed, number), f"volley {number}", report)

    await asyncio.gather(*(sender() for _ in range(CONNECTIONS)))
    target.look()
    report.growth_bytes = target.memory_bytes_max - before_bytes
    if report.growth_bytes > GROWTH_BYTES_MAX:
        report.violations.append(f"the node grew by {report.growth_bytes >> 20} MiB")


async def _fire(target: Target, sent: HttpVolley, name: str, report: Report) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            received = await _exchange(target.http_address, sent)
        statuses = taken_apart(received, sent.due)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        report.violations.append(f"{name}: {error!r}")
        return
    report.volley_count += 1
    report.by_status.update(statuses)
    expected = [due.status for due in sent.due]
    if not is_as_due(statuses, expected, sum(map(len, sent.pieces))):
        report.violations.append(f"{name}: answered with {statuses}, due were {expected}")


def is_as_due(statuses: list[int], expected: list[int], sent_bytes: int) -> bool:
    """What is wrong behind the end of the largest head is refused as malformed or as too large, by where the pieces end."""
    if sent_bytes > BOUNDS.head_bytes_max and statuses and expected:
        last = {statuses[-1], expected[-1]}
        return statuses[:-1] == expected[:-1] and (len(last) == 1 or last == {400, 431})
    return statuses == expected


async def _exchange(address: tuple[str, int], sent: HttpVolley) -> bytes:
    """All that is answered, to the end of the connection, which this end announces and the node brings about."""
    reader, writer = await asyncio.open_connection(*address)
    answers = asyncio.ensure_future(reader.read())
    try:
        for piece in sent.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.write_eof()
        return await answers
    finally:
        answers.cancel()
        writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.http_campaign")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    report = run(arguments.seed, arguments.seconds)
    print(
        f"{report.volley_count:,} connections, {report.by_status.total():,} answers: {dict(sorted(report.by_status.items()))}"
    )
    print(f"the node grew by {report.growth_bytes >> 10:,} KiB; violations: {len(report.violations)}")
    for violation in report.violations:
        print(" ", violation[:2000])
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
