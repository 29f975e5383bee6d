"""Those who wait for a partition to come so far."""

import asyncio
import gc

from ropewalk.base.errors import TimedOut
from ropewalk.base.ids import Offset
from ropewalk.broker.partitions.waiters import Waiters


def test_nobody_complains_of_a_wait_that_failed_after_its_waiter_had_gone() -> None:
    """A connection that is lost takes along who waits for several writes; each of them fails later, unheard."""

    async def main() -> list[str]:
        complaints: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        waiters = Waiters()
        reached = waiters.add(Offset(5), deadline_ms=10)
        del reached
        waiters.expire(20, TimedOut("too late"))
        gc.collect()
        await asyncio.sleep(0)
        return complaints

    assert asyncio.run(main()) == []
