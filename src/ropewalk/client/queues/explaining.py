"""Where a message is, in a sentence: visible, hidden until when, behind which other, delayed, dying, moving or gone."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

_WORDS: Final = {
    "visible": "visible: the next receive may have it",
    "unread": "visible, unless something before it in its group is hidden: no receive has come so far in the queue",
    "in flight": "in flight",
    "delayed": "delayed",
    "resting": "resting, since it was received in vain",
    "dying": "about to move to the dead-letter queue: it was received as often as allowed",
    "moving": "on its way to the dead-letter queue",
    "settled": "settled: deleted, purged, expired, or moved to the dead-letter queue",
}


class Explained(Struct, frozen=True, kw_only=True):
    message_id: str
    state: str
    """In the server's words: visible, unread, in flight, delayed, resting, dying, moving or settled."""
    receive_count: int
    attempt: int
    visible_at_ms: int | None
    group: str | None
    partition: int
    offset: int
    sent_at_ms: int | None
    dead_letter_source: str | None
    """The queue that gave it up, if it came so."""
    behind: str | None = None
    """FIFO: the message of its group that is hidden, and comes first."""
    dead_in: str | None = None
    """The dead-letter queue in which it was found."""

    @property
    def text(self) -> str:
        said = _WORDS.get(self.state, self.state)
        if self.behind is not None and self.state == "visible":
            said = f"waits behind message {self.behind} of its group {self.group}"
        if self.dead_in is not None:
            said = f"dead: in {self.dead_in}"
        if self.visible_at_ms is not None:
            said += f" until {_moment(self.visible_at_ms)}"
        if self.state == "in flight" and self.attempt:
            said += f", in attempt {self.attempt}"
        if self.receive_count:
            said += f"; received {'once' if self.receive_count == 1 else f'{self.receive_count} times'}"
        if self.dead_letter_source is not None:
            said += f"; a dead letter of {self.dead_letter_source}"
        return said


def read_explanation(message_id: str, answer: dict[str, Any], *, dead_in: str | None = None) -> Explained:
    """Of what ExplainMessage answers."""
    return Explained(
        message_id=message_id,
        state=str(answer.get("State", "unknown")),
        receive_count=int(answer.get("ReceiveCount") or 0),
        attempt=int(answer.get("Attempt") or 0),
        visible_at_ms=answer.get("VisibleTimestamp"),
        group=answer.get("MessageGroupId"),
        partition=int(answer.get("Partition") or 0),
        offset=int(answer.get("Offset") or 0),
        sent_at_ms=answer.get("SentTimestamp"),
        dead_letter_source=answer.get("DeadLetterSource"),
        behind=answer.get("BehindMessageId"),
        dead_in=dead_in,
    )


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
