"""Time that counts from 1970 and never jumps.

State that outlives a restart remembers when things happened, so it needs wall time; its timeouts need a clock that
nobody sets. This is the wall clock at the start of the node, carried on by the monotonic one.
"""

from ropewalk.base.ports import Clock


class SteadyTime:
    __slots__ = ("_clock", "_start_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ms = clock.now_ms() - clock.monotonic_ms()

    def now_ms(self) -> int:
        return int(self._start_ms + self._clock.monotonic_ms())
