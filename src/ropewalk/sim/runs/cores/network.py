"""Messages between nodes, clients and the metadata home: late, lost, twice, out of order.

It is worse than TCP on purpose. Two messages on one way may overtake each other, a message may come twice, and what meets a
cut may be lost or arrive long after, when the cut is mended. Whoever waits for an answer has a timeout of its own.
"""

import random
from collections.abc import Callable
from typing import Any, Final, TypeVarTuple

from ropewalk.sim.runs.cores.queue import EventQueue

Ts = TypeVarTuple("Ts")

HOME: Final = -1
"""The address of the metadata home. Nodes have their ids, clients numbers from `CLIENTS` up."""

CLIENTS: Final = 100


class Weather:
    """How bad the network is for the length of a run."""

    __slots__ = ("delay_us_max", "duplicate_share", "loss_share", "tail_share")

    def __init__(self, rng: random.Random) -> None:
        self.delay_us_max: int = rng.choice([400, 1_000, 4_000])
        self.tail_share: float = rng.choice([0.0, 0.01, 0.05])
        self.loss_share: float = rng.choice([0.0, 0.0, 0.002, 0.02])
        self.duplicate_share: float = rng.choice([0.0, 0.0, 0.02, 0.1])

    def calm(self) -> None:
        self.tail_share = self.loss_share = self.duplicate_share = 0.0


class Network:
    __slots__ = ("_cut", "_held", "_queue", "_rng", "weather")

    def __init__(self, queue: EventQueue, rng: random.Random) -> None:
        self._queue = queue
        self._rng = rng
        self._cut: set[tuple[int, int]] = set()
        self._held: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.weather = Weather(rng)

    def send(self, source: int, target: int, action: Callable[[*Ts], None], *arguments: *Ts) -> None:
        """Do `action` at the target in a while, if the message gets there. What is sent to oneself always does."""
        self._send(source, target, self.weather.duplicate_share, action, arguments)

    def send_once(self, source: int, target: int, action: Callable[[*Ts], None], *arguments: *Ts) -> None:
        """For what a sender never repeats: it may be lost or late, and does not come twice."""
        self._send(source, target, 0.0, action, arguments)

    def _send(
        self,
        source: int,
        target: int,
        duplicate_share: float,
        action: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> None:
        if source == target:
            self._queue.after(1, action, *arguments)
            return
        rng, weather = self._rng, self.weather
        chance = rng.random()
        if chance < weather.loss_share:
            return
        if (source, target) in self._cut:
            if chance < 0.3 and len(self._held) < 1_000:
                self._held.append((source, target, action, arguments))
            return
        self._queue.after(self._delay_us(), action, *arguments)
        if chance > 1.0 - duplicate_share:
            self._queue.after(self._delay_us() * rng.choice([1, 10, 1000]), action, *arguments)

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self._cut

    def cut(self, source: int, target: int) -> None:
        """One way only; what is on its way already arrives."""
        self._cut.add((source, target))

    def mend(self) -> None:
        """All ways are open again, and what was held arrives after all."""
        self._cut.clear()
        held, self._held = self._held, []
        for _, _, action, arguments in held:
            self._queue.after(self._delay_us(), action, *arguments)

    def _delay_us(self) -> int:
        rng, weather = self._rng, self.weather
        delay_us = 50 + int(rng.random() * weather.delay_us_max)
        if weather.tail_share and rng.random() < weather.tail_share:
            delay_us *= int(rng.random() * 200) + 1
        return delay_us
