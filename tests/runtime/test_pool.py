"""The disk pool: a call that was begun comes to its end, whoever has gone meanwhile, and that end can be waited for."""

import asyncio
import threading

from ropewalk.runtime.pool import ThreadPool


def test_to_drain_waits_for_calls_that_nobody_waits_for_any_more() -> None:
    async def story() -> tuple[bool, bool, bool]:
        pool, begun, may_end, ended = ThreadPool(2), threading.Event(), threading.Event(), threading.Event()

        def call() -> None:
            begun.set()
            may_end.wait(30)
            ended.set()
            raise OSError("heard by nobody")

        waiting = pool.run(call)
        await asyncio.to_thread(begun.wait, 30)
        waiting.cancel()
        draining = asyncio.ensure_future(pool.drain())
        await asyncio.sleep(0)
        was_done = draining.done()
        may_end.set()
        await draining
        pool.stop()
        return waiting.cancelled(), was_done, ended.is_set()

    assert asyncio.run(story()) == (True, False, True)


def test_to_drain_does_not_wait_for_calls_that_come_later() -> None:
    async def story() -> bool:
        pool, may_end = ThreadPool(2), threading.Event()
        draining = asyncio.ensure_future(pool.drain())
        await asyncio.sleep(0)
        later = pool.run(may_end.wait, 30)
        await draining
        may_end.set()
        await later
        pool.stop()
        return True

    assert asyncio.run(story())
