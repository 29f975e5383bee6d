"""How often a client of the library sends something while it gets nothing: whoever is refused and asks again at once is seen here.

Virtual time makes a client that spins look like any other: it is as busy as the network is fast, and nobody waits for it.
"""

from typing import Final

from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.world import World

SENT_PER_SECOND_MAX: Final = 350
"""A consumer that waits for records of two leaders asks each of them a hundred times in a second at the most (`CLIENT_FETCH_SHORT_WAIT_MS`).
One that spins gets more than five hundred answers, at the latency of a simulated network."""


class Restraint:
    """Of one host."""

    def __init__(self, world: World, host: str) -> None:
        self._world = world
        self._host = host
        self._second = 0
        self._count = 0
        self.violations: list[Violation] = []
        world.network.watches[host] = self._on_sent

    def on_progress(self) -> None:
        """The client got something: what it sent for that does not count."""
        self._count = 0

    def _on_sent(self) -> None:
        second = int(self._world.now_s)
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count == SENT_PER_SECOND_MAX:
            text = f"{self._host} sent {self._count} times within a second, for nothing"
            self.violations.append(Violation("spins", text))
