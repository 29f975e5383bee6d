"""Acknowledgement from consumer to producer: wait until a group has committed past certain offsets.

The coordinator is asked again and again, less often the longer it takes: nothing in Kafka's protocol tells of a commit.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from ropewalk.base.errors import TimedOut
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls import group_offsets
from ropewalk.client.connections.coordinators import Coordinators
from ropewalk.client.connections.session import Session

_PAUSE_MS_MIN: Final = 10.0
_PAUSE_MS_MAX: Final = 500.0


async def wait_processed(
    session: Session, group: str, ends: Mapping[TopicPartition, int], *, timeout_ms: int | None
) -> None:
    """`ends` are the offsets after the last record that must be processed. Raises `TimedOut`, and says what is missing."""
    coordinators = Coordinators(session)
    clock = session.clock
    until_ms = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
    pause_ms = _PAUSE_MS_MIN
    missing = dict(ends)
    seen: Mapping[TopicPartition, group_offsets.Committed] | None = None
    while missing:
        allowed_ms = session.deadline_ms()
        deadline_ms = allowed_ms if until_ms is None else min(until_ms, allowed_ms)
        try:
            committed = await group_offsets.fetch(coordinators, group, deadline_ms=deadline_ms)
        except TimedOut:
            if seen is None or until_ms is None or clock.monotonic_ms() < until_ms:
                raise
            # What the group lacks says more than that the last question had no time left for its answer.
            raise _timed_out(group, missing, seen, timeout_ms) from None
        seen = committed
        missing = {
            partition: end
            for partition, end in missing.items()
            if partition not in committed or committed[partition].offset < end
        }
        if not missing:
            return
        pause_ms = min(2 * pause_ms, _PAUSE_MS_MAX)
        waited_ms = pause_ms * session.rng.uniform(0.8, 1.2)
        if until_ms is not None and clock.monotonic_ms() + waited_ms >= until_ms:
            raise _timed_out(group, missing, committed, timeout_ms)
        await asyncio.sleep(waited_ms / 1000)


def _timed_out(
    group: str,
    missing: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, group_offsets.Committed],
    timeout_ms: int | None,
) -> TimedOut:
    partition, end = min(missing.items())
    reached = committed[partition].offset if partition in committed else "nothing"
    return TimedOut(
        f"{group} has not processed {len(missing)} partitions within {timeout_ms} ms; "
        f"of {partition} it has committed {reached}, {end} is wanted"
    )
