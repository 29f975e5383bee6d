"""The time of day for whatever is kept by its age: a clock that jumps by days costs nothing.

A wall clock may be set wrong by days: by an operator, by a time server, by a machine that slept. Retention would delete everything
that is younger than that, and producers would be forgotten who are about to send again. None of this can be undone when the clock
is set right. Beside the wall clock there is one that a node carries on from its start, by the monotonic clock.

Behaviour worth knowing
    What is stamped is stamped by the later of the two, what expires goes by the earlier: while they disagree, things are kept longer.
    Small steps are followed, so that the clock may be slewed and corrected. A large one, either way, is followed when it has stayed for so
    long that somebody who was warned could have set it right (`CLOCK_DOUBTED_MS`).
    What the clock says when a process starts is taken as it is. In a cluster the controller compares it with its own.
    Stamps are asked for with every request, so the two are not compared each time: a second that was found right is believed to its end. A
    clock that is set back into that very second is doubted when it ends, or when something is about to expire.
"""

from collections.abc import Callable
from typing import Final

import structlog

from ropewalk.base.limits import CLOCK_DOUBTED_MS, CLOCK_STEP_MS_MAX
from ropewalk.base.ports import Clock

_log = structlog.get_logger()


class BelievedClock:
    """A `Clock` over another: `now_ms` is for stamps."""

    __slots__ = (
        "_believed_from_ms",
        "_believed_until_ms",
        "_doubted_drift_ms",
        "_doubted_since_ms",
        "_start_ms",
        "_wall_ms",
        "monotonic_ms",
    )

    monotonic_ms: Callable[[], float]

    def __init__(self, clock: Clock) -> None:
        self._wall_ms = clock.now_ms
        self.monotonic_ms = clock.monotonic_ms
        self._believed_from_ms = self._believed_until_ms = 0
        """Between these the wall clock is believed without a look at the other."""
        self._start_ms = clock.now_ms() - clock.monotonic_ms()
        """What the wall clock said when the monotonic one was at 0, as far as that is believed."""
        self._doubted_since_ms: float | None = None
        self._doubted_drift_ms = 0.0
        """By how much the wall clock was off when it jumped."""

    @property
    def doubted_by_ms(self) -> int | None:
        """How far the wall clock has jumped, while it is not believed."""
        return None if self._doubted_since_ms is None else int(self._doubted_drift_ms)

    def now_ms(self) -> int:
        wall_ms = self._wall_ms()
        if self._believed_from_ms <= wall_ms < self._believed_until_ms:
            return wall_ms
        elapsed_ms = self.monotonic_ms()
        drift_ms = wall_ms - self._start_ms - elapsed_ms
        if self._doubted_since_ms is None and -_FOLLOWED_MS < drift_ms < _FOLLOWED_MS:
            self._believed_from_ms, self._believed_until_ms = wall_ms, wall_ms + _BELIEVED_MS
            return wall_ms
        return max(wall_ms, self._carried_on(drift_ms, elapsed_ms))

    def expiry_ms(self) -> int:
        """The time by which things expire."""
        wall_ms, elapsed_ms = self._wall_ms(), self.monotonic_ms()
        return min(wall_ms, self._carried_on(wall_ms - self._start_ms - elapsed_ms, elapsed_ms))

    def _carried_on(self, drift_ms: float, elapsed_ms: float) -> int:
        if abs(drift_ms) <= CLOCK_STEP_MS_MAX:
            if self._doubted_since_ms is not None:
                _log.info("the clock is right again", off_ms=int(drift_ms))
            self._follow(drift_ms)
        elif self._doubted_since_ms is None or abs(drift_ms - self._doubted_drift_ms) > CLOCK_STEP_MS_MAX:
            _log.warning(
                "the clock has jumped; nothing expires by it until it is set right, or has stayed so",
                jumped_s=int(drift_ms) // 1000,
                believed_in_s=CLOCK_DOUBTED_MS // 1000,
            )
            self._doubted_since_ms, self._doubted_drift_ms = elapsed_ms, drift_ms
            self._believed_until_ms = 0
        elif elapsed_ms - self._doubted_since_ms >= CLOCK_DOUBTED_MS:
            _log.warning(
                "the clock has stayed where it jumped to, and is believed", jumped_s=int(drift_ms) // 1000
            )
            self._follow(drift_ms)
        return int(self._start_ms + elapsed_ms)

    def _follow(self, drift_ms: float) -> None:
        self._start_ms += drift_ms
        self._doubted_since_ms = None


_FOLLOWED_MS: Final = 1000
"""Drift that needs no look: clocks are slewed all the time."""

_BELIEVED_MS: Final = 1000
"""For how long one comparison of the two counts for stamps."""
