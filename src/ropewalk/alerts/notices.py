"""What the webhook is to be told, and when: that an alert fires, and that it is over.

`Telling` finds what is news; `Notices` keeps what is to be delivered, and for how long that is tried.

Invariants
    Each alert is told once when it fires and, if it was, once when it is over.
    A silence keeps an alert from being told, not from being told later; and never keeps its end back, if its beginning was told.
    A notice keeps its id however often it is sent, so that whoever gets it twice can see that.
    Notices leave in the order in which they came, as far as the webhook takes them; the oldest are dropped when there are too many.

What a reader could get wrong
    A node that stops to decide for the cluster forgets what it has told of it, and says nothing of an end. The next one tells what
    still fires again.
"""

from collections import deque
from collections.abc import Callable, Iterable

from msgspec import Struct

from ropewalk.alerts.history import Labels
from ropewalk.alerts.standing import Alert, State
from ropewalk.base.limits import (
    ALERT_NOTICE_ATTEMPTS_MAX,
    ALERT_NOTICE_RETRY_MS,
    ALERT_NOTICE_RETRY_MS_MAX,
    ALERT_NOTICES_MAX,
)

_Key = tuple[str, Labels, int]


class News(Struct, frozen=True):
    alert: Alert
    is_over: bool


class Telling:
    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: dict[_Key, Alert] = {}

    def on_round(self, alerts: Iterable[Alert], is_silenced: Callable[[Alert], bool]) -> list[News]:
        """`alerts`: all that hold."""
        firing = {alert.key: alert for alert in alerts if alert.state is State.FIRING}
        over = [key for key in self._told if key not in firing]
        news = [News(self._told.pop(key), is_over=True) for key in over]
        for key, alert in firing.items():
            if key not in self._told and not is_silenced(alert):
                self._told[key] = alert
                news.append(News(alert, is_over=False))
        return news

    def forget(self, rule_name: str) -> None:
        for key in [key for key in self._told if key[0] == rule_name]:
            del self._told[key]


class Notice(Struct):
    """One thing to be delivered."""

    id: str
    body: bytes
    attempt_count: int = 0
    due_at_ms: float = 0.0


class Notices:
    """Ask `due`, send it, and say with `on_delivered` or `on_failed` what came of it."""

    __slots__ = ("_waiting", "delivered_count", "dropped_count", "failed_count")

    def __init__(self) -> None:
        self._waiting: deque[Notice] = deque()
        self.delivered_count = 0
        self.failed_count = 0
        self.dropped_count = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, notice: Notice) -> None:
        if len(self._waiting) >= ALERT_NOTICES_MAX:
            self._waiting.popleft()
            self.dropped_count += 1
        self._waiting.append(notice)

    def due(self, now_ms: float) -> Notice | None:
        """The first. While it waits for another attempt nothing is sent: the webhook is the same for all."""
        if self._waiting and self._waiting[0].due_at_ms <= now_ms:
            return self._waiting[0]
        return None

    def on_delivered(self, notice: Notice) -> None:
        self._remove(notice)
        self.delivered_count += 1

    def on_failed(self, notice: Notice, now_ms: float) -> bool:
        """Whether it is tried again."""
        self.failed_count += 1
        notice.attempt_count += 1
        if notice.attempt_count >= ALERT_NOTICE_ATTEMPTS_MAX:
            self._remove(notice)
            self.dropped_count += 1
            return False
        wait_ms = min(ALERT_NOTICE_RETRY_MS << (notice.attempt_count - 1), ALERT_NOTICE_RETRY_MS_MAX)
        notice.due_at_ms = now_ms + wait_ms
        return True

    def clear(self) -> None:
        """Nobody is to be told any more."""
        self.dropped_count += len(self._waiting)
        self._waiting.clear()

    def _remove(self, notice: Notice) -> None:
        if notice in self._waiting:  # it may have made way for others meanwhile
            self._waiting.remove(notice)
