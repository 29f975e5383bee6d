"""Messages leave a queue when it has kept them for as long as it should, whether or not anybody ever asks for them."""

from collections.abc import Iterator
from typing import cast

import pytest
from msgspec import structs

from ropewalk.base.limits import QUEUE_EXPIRY_LOOK_MS_MAX
from ropewalk.broker.queues.expiring import Expiring, expire
from ropewalk.broker.queues.figures import totals_of
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.queues import Queues
from tests.broker.queues.queue_bench import FIFO, STANDARD, Host, bodies_of, hosting

MINUTE_MS = 60_000
A_MINUTE = structs.replace(STANDARD, retention_ms=MINUTE_MS)
A_MINUTE_IN_ORDER = structs.replace(FIFO, retention_ms=MINUTE_MS)


class Only:
    """A node that hosts one queue."""

    def __init__(self, hosted: HostedQueue) -> None:
        self._hosted = hosted

    def __iter__(self) -> Iterator[HostedQueue]:
        return iter([self._hosted])


def expiring(host: Host) -> Expiring:
    return Expiring(cast(Queues, Only(host.hosted)), host.bench.ports.pool)


def visible_count(host: Host) -> int:
    return totals_of([host.hosted]).visible_count


@pytest.mark.parametrize("settings", [A_MINUTE, A_MINUTE_IN_ORDER], ids=["standard", "fifo"])
def test_what_nobody_asks_for_goes_when_its_time_is_over(settings: object) -> None:
    async def story(host: Host) -> None:
        upkeep = expiring(host)
        await host.send("old", "older than it looks")
        await host.pass_time(MINUTE_MS // 2)
        (young,) = await host.send("young")
        await upkeep.tick()
        await host.commit()
        assert visible_count(host) == 3, "nobody's time is over"
        await host.pass_time(MINUTE_MS // 2 + 1)
        await upkeep.tick()
        await host.commit()
        assert (visible_count(host), host.hosted.serving().state.floor) == (1, young)
        assert bodies_of(await host.receive()) == ["young"]
        await host.replace()
        assert host.hosted.serving().state.floor == young, "whoever leads next knows it, too"

    hosting(story, settings)  # type: ignore[arg-type]


def test_what_somebody_has_goes_with_its_time() -> None:
    async def story(host: Host) -> None:
        await host.send("held")
        (held,) = await host.receive(visibility_ms=10 * MINUTE_MS)
        await host.pass_time(MINUTE_MS + 1)
        await expiring(host).tick()
        await host.commit()
        assert host.hosted.serving().known_count == 0
        assert await host.delete(held) == [None], "it is deleted already"

    hosting(story, A_MINUTE)


def test_a_queue_that_keeps_messages_for_less_than_before_drops_them_at_once() -> None:
    async def story(host: Host) -> None:
        upkeep = expiring(host)
        await host.send("one")
        await host.pass_time(MINUTE_MS + 1)
        await upkeep.tick()
        await host.commit()
        assert visible_count(host) == 1
        host.hosted.change(host.queue, A_MINUTE)
        await upkeep.tick()
        await host.commit()
        assert visible_count(host) == 0

    hosting(story)


def test_the_log_is_asked_no_more_often_than_messages_can_expire() -> None:
    async def story(host: Host) -> None:
        upkeep = expiring(host)
        asked: list[int] = []
        log = host.partition.log
        find = type(log).offset_for_timestamp

        def counted(timestamp: int, *, limit_offset: int) -> object:
            asked.append(timestamp)
            return find(log, timestamp, limit_offset=limit_offset)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                type(log), "offset_for_timestamp", lambda _, *given, **named: counted(*given, **named)
            )
            await upkeep.tick()
            assert asked == [], "an empty queue is not asked"
            await host.send("one")
            for _ in range(10):
                await upkeep.tick()
                await host.pass_time(1_000)
            assert len(asked) == 1
            await host.pass_time(MINUTE_MS)
            await upkeep.tick()
            assert len(asked) == 2

    hosting(story, A_MINUTE)


def test_a_stamp_of_the_future_does_not_keep_a_queue_from_being_looked_at() -> None:
    async def story(host: Host) -> None:
        await host.send("one")
        asked_ms = host.time.now_ms()
        again_ms = await expire(host.hosted, host.bench.ports.pool)
        assert again_ms == asked_ms + QUEUE_EXPIRY_LOOK_MS_MAX, "four days are not waited for"

    hosting(story)
