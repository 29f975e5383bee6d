"""Who works at which log: snapshots of one log are written one after the other."""

import asyncio

from ropewalk.broker.partitions.log_work import LogWork
from tests.log.given import a_disk, open_log


def test_two_who_delete_at_once_write_one_snapshot_after_the_other() -> None:
    """At one offset they have the same name, and whoever is second would find the first one's file gone."""
    work, log, writing = LogWork(), open_log(a_disk()), 0

    async def write() -> int:
        nonlocal writing
        async with work.writing_snapshot(log):
            writing += 1
            seen = writing
            await asyncio.sleep(0)
            writing -= 1
            return seen

    async def main() -> list[int]:
        return await asyncio.gather(*[write() for _ in range(3)])

    assert asyncio.run(main()) == [1, 1, 1]


def test_a_log_that_nobody_writes_a_snapshot_of_is_forgotten() -> None:
    work, log = LogWork(), open_log(a_disk())

    async def main() -> None:
        async with work.writing_snapshot(log):
            pass

    asyncio.run(main())
    assert not work._snapshots
    assert not work._snapshot_writers
