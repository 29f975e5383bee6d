"""A bell wakes those who wait, once, and remembers nothing."""

import asyncio

from ropewalk.runtime.bell import Bell


def test_everybody_who_waits_is_woken() -> None:
    async def story() -> list[bool]:
        bell = Bell()
        waits = [asyncio.ensure_future(bell.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        bell.ring()
        bell.ring()
        return await asyncio.gather(*waits)

    assert asyncio.run(story()) == [True, True, True]


def test_who_comes_after_it_rang_waits_for_the_next() -> None:
    async def story() -> bool:
        bell = Bell()
        bell.ring()
        return await bell.wait(1)

    assert asyncio.run(story()) is False


def test_who_gave_up_is_not_woken() -> None:
    async def story() -> bool:
        bell = Bell()
        waits = asyncio.ensure_future(bell.wait(60_000))
        await asyncio.sleep(0)
        waits.cancel()
        bell.ring()
        await asyncio.wait([waits])
        bell.ring()
        return waits.cancelled()

    assert asyncio.run(story())
