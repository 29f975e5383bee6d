"""When to tell somebody outside whether the cluster wants another node: if it is news, and not too often.

Behaviour worth knowing
    News is that there is a reason of another kind, or one less. The figures in the words change all the time and are none.
    What was told by whoever decided before is not known, so whoever takes over tells once how it is, after it has watched
    for as long as a reason takes to count. Whoever listens may hear the same twice, and should take it for a state.
    At most one telling a minute. What cannot be told is tried again, later each time; after a number of attempts it is given up
    until there is other news.
"""

from collections.abc import Collection

from ropewalk.base.limits import SCALE_NEWS_ATTEMPTS_MAX, SCALE_NEWS_MS_MIN, SCALE_NEWS_RETRY_MS


class ScaleNews:
    """Ask `is_due`; if it is, tell, and say with `on_told` or `on_failed` what came of it. Times are measured."""

    __slots__ = ("_attempt_count", "_attempted", "_due_at_ms", "_told")

    def __init__(self, now_ms: float, *, sustained_ms: int) -> None:
        self._told: frozenset[str] | None = None
        self._attempted: frozenset[str] | None = None
        self._attempt_count = 0
        self._due_at_ms = now_ms + sustained_ms

    def is_due(self, kinds: Collection[str], now_ms: float) -> bool:
        news = frozenset(kinds)
        if news == self._told:
            self._attempt_count = 0
            self._attempted = None
            return False
        if news != self._attempted:
            self._attempt_count = 0
            self._attempted = news
        return self._attempt_count < SCALE_NEWS_ATTEMPTS_MAX and now_ms >= self._due_at_ms

    def on_told(self, kinds: Collection[str], now_ms: float) -> None:
        self._told = frozenset(kinds)
        self._due_at_ms = now_ms + SCALE_NEWS_MS_MIN

    def on_failed(self, now_ms: float) -> None:
        self._due_at_ms = now_ms + min(SCALE_NEWS_MS_MIN, SCALE_NEWS_RETRY_MS << self._attempt_count)
        self._attempt_count += 1
