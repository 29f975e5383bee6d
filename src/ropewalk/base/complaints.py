"""What has been said in the log already: a fault that is met every second is worth a line every minute."""

from ropewalk.base.limits import PEER_COMPLAINT_MS, PEER_COMPLAINTS_MAX


class Complaints:
    __slots__ = ("_said_at_ms",)

    def __init__(self) -> None:
        self._said_at_ms: dict[str, float] = {}

    def is_due(self, text: str, now_ms: float) -> bool:
        """Whether `text` was not said within the last minute. Saying so counts as having said it."""
        said_at_ms = self._said_at_ms.get(text)
        if said_at_ms is not None and now_ms - said_at_ms < PEER_COMPLAINT_MS:
            return False
        self._said_at_ms.pop(text, None)
        if len(self._said_at_ms) >= PEER_COMPLAINTS_MAX:
            del self._said_at_ms[next(iter(self._said_at_ms))]
        self._said_at_ms[text] = now_ms
        return True
