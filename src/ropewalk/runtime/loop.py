"""Start an event loop: uvloop where there is one, asyncio's own elsewhere."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import TypeVar

from ropewalk.base.limits import COLLECT_OLDER_AFTER, COLLECT_YOUNG_AFTER, PARTITIONS_FROZEN_MIN

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def freeze_start_up_objects() -> None:
    """What a node has built by the time it serves lives as long as the node: keep the collector off it.

    And have it look at everything else less often. What refers to itself here is short-lived and found with the young; a look at the
    old ones takes a tenth of a second after thousands of partitions have changed hands, and came several times in that second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_YOUNG_AFTER, COLLECT_OLDER_AFTER, COLLECT_OLDER_AFTER)


def freeze_what_was_opened(partition_count: int) -> None:
    """The same for thousands of partitions that came while it serves: to look through them all takes a tenth of a second, each time."""
    if partition_count >= PARTITIONS_FROZEN_MIN:
        gc.freeze()
