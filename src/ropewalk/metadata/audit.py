"""Who asked for the newest changes: what an image keeps of them until the audit topic has them, and a little longer.

What a reader could get wrong
    Whether a change has been copied is not a fact, so what is kept is bounded by number and size alone. Numbers tell whoever copies
    whether something is gone that it has not had.
    The newest is always kept: its number is where the next goes on.
"""

from collections import deque
from collections.abc import Iterator

from msgspec import structs

from ropewalk.base.limits import AUDIT_CHANGES_BYTES_MAX, AUDIT_CHANGES_KEPT_MAX
from ropewalk.metadata.records import ChangeMade


class AuditTrail:
    """The changes of an image, by their numbers. It lives as long as the image does, whatever that becomes."""

    __slots__ = ("_kept", "_size_bytes")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._kept: deque[ChangeMade] = deque()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def newest_number(self) -> int:
        """0 where nobody ever asked for anything."""
        return self._kept[-1].number if self._kept else 0

    @property
    def is_filling(self) -> bool:
        """Whether a quarter of what can be kept is: what nobody copies may be gone soon."""
        return (
            4 * len(self._kept) >= AUDIT_CHANGES_KEPT_MAX or 4 * self._size_bytes >= AUDIT_CHANGES_BYTES_MAX
        )

    def after(self, number: int) -> Iterator[ChangeMade]:
        """Those that are kept and came after it, the oldest first."""
        return (change for change in self._kept if change.number > number)

    def add(self, change: ChangeMade, *, offset: int) -> None:
        assert change.number > self.newest_number, "changes are numbered in their order"
        kept = change if change.offset is not None else structs.replace(change, offset=offset)
        self._kept.append(kept)
        self._size_bytes += _size_bytes(kept)
        while len(self._kept) > 1 and (
            len(self._kept) > AUDIT_CHANGES_KEPT_MAX or self._size_bytes > AUDIT_CHANGES_BYTES_MAX
        ):
            self._size_bytes -= _size_bytes(self._kept.popleft())

    def facts(self) -> Iterator[ChangeMade]:
        """The fewest records that rebuild this trail."""
        yield from self._kept


def _size_bytes(change: ChangeMade) -> int:
    """About: what is the same in all of them, and the texts."""
    texts = sum(
        len(detail.kind) + len(detail.resource) + len(detail.before or "") + len(detail.after or "")
        for detail in change.details
    )
    return 300 + 40 * len(change.details) + texts + sum(map(len, change.groups))
