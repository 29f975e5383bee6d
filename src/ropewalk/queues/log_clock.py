"""The log's own time: it stands still while nobody leads, and compares no clocks.

A leader begins where the last thing that its predecessor wrote ends, and counts on by its own clock. So a deadline that was given as a
duration comes late by the time nobody led and by what its writer left unwritten, and never early, however far clocks are apart.
"""


class LogClock:
    def __init__(self, *, log_ms: int, now_ms: int) -> None:
        """From the last delta of the predecessor; with zero there was none, and the time begins now."""
        self._ahead_ms = now_ms - (log_ms or now_ms)

    def log_ms(self, now_ms: int) -> int:
        return now_ms - self._ahead_ms

    def now_ms(self, log_ms: int) -> int:
        """This leader's time for one of the log's."""
        return log_ms + self._ahead_ms
