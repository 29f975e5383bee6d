"""How old what a node knows of its cluster is: when the controller was last heard, and how much of the metadata is here and there.

What a reader could get wrong
    Knowledge is as old as the older of two things: the controller's last answer, and the last moment at which nothing kept this node from
    following the metadata. A controller that cannot reach the metadata's home hears itself, and knows nothing new.
    An image may be complete and old: whoever is not heard cannot say that it has changed.
    A node that hears the controller may lack records all the same, since they come another way. It lacks them when it has not reached, for a
    while, what the controller's end was at the beginning of that while.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from ropewalk.base import metrics
from ropewalk.base.limits import HEALTH_CHECK_MS, NODE_BEHIND_MS_MAX
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.facts import Facts


class Heartbeats(Protocol):
    """What the controller has answered to this node's."""

    @property
    def controller_heard_at_ms(self) -> float | None: ...

    @property
    def controller_offset(self) -> int: ...

    @property
    def clock_difference_ms(self) -> float: ...


class Knowledge:
    def __init__(
        self,
        facts: Facts,
        heartbeats: Heartbeats | None,
        unheard: Callable[[], str | None],
        clock: Clock,
        *,
        session_timeout_ms: int,
    ) -> None:
        """No heartbeats for a node that is alone, which hears itself. `unheard` says why nothing new of the metadata is heard."""
        self._facts = facts
        self._heartbeats = heartbeats
        self._unheard = unheard
        self._clock = clock
        self._began_at_ms = self._followed_at_ms = clock.monotonic_ms()
        self._target_offset = 0
        """Where the controller's metadata ended at `_behind_since_ms`, which this node is to reach."""
        self._behind_since_ms = self._began_at_ms
        self.session_timeout_ms = session_timeout_ms
        """What is older than this may be wrong about any node."""

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(HEALTH_CHECK_MS / 1000)

    def look(self) -> None:
        """Note how far one has come, and whether anything is heard; call every now and then."""
        if self._unheard() is None:
            self._followed_at_ms = self._clock.monotonic_ms()
        if self.metadata_offset >= self._target_offset:
            self._target_offset = self.controller_offset
            self._behind_since_ms = self._clock.monotonic_ms()

    @property
    def age_ms(self) -> int:
        now_ms = self._clock.monotonic_ms()
        heard_at_ms = now_ms if self._unheard() is None else self._followed_at_ms
        if self._heartbeats is not None:
            controller_heard_at_ms = self._heartbeats.controller_heard_at_ms
            heard_at_ms = min(
                heard_at_ms, self._began_at_ms if controller_heard_at_ms is None else controller_heard_at_ms
            )
        return int(now_ms - heard_at_ms)

    @property
    def metadata_offset(self) -> int:
        """How much of the metadata this node has followed."""
        return self._facts.followed_offset if self._heartbeats is not None else self._facts.image.end_offset

    @property
    def controller_offset(self) -> int:
        """Where the metadata ended when the controller was last heard."""
        if self._heartbeats is None:
            return self._facts.image.end_offset
        return self._heartbeats.controller_offset

    @property
    def lack(self) -> str | None:
        """What this node should have followed and has not, for a person; None where it keeps up."""
        lacking_count = self._target_offset - self.metadata_offset
        behind_ms = self._clock.monotonic_ms() - self._behind_since_ms
        if lacking_count <= 0 or behind_ms < NODE_BEHIND_MS_MAX:
            return None
        return f"for {behind_ms / 1000:.0f} s it has lacked {lacking_count} records that the controller has"

    @property
    def is_old(self) -> bool:
        return self.age_ms > self.session_timeout_ms

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.CONTROLLER_HEARD, self.age_ms / 1000)
        sheet.add(metrics.CONTROLLER_OFFSET, self.controller_offset)
        if self._heartbeats is not None:
            sheet.add(metrics.CLOCK_DIFFERENCE, self._heartbeats.clock_difference_ms / 1000)
        yield
