"""FIFO: a group gives its longest run of visible messages from its head, and then waits.

Whatever is hidden, in flight or delayed, holds up what lies behind it in its group, and nothing before it. So of three messages that were received
together, of which the second was extended, the first comes back when its time is over, and the third does not.

Groups take turns: one that has given something goes behind the others that can give.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice


class GroupLine:
    def __init__(self) -> None:
        self._groups: dict[str, deque[int]] = {}
        """Offsets in order. Settled ones leave when they come to the head."""
        self._group_of: dict[int, str] = {}
        self._visible: set[int] = set()
        self._ready: dict[str, None] = {}
        """Groups whose head is visible, the one that waited longest first."""

    def know(self, offset: int, group: str) -> None:
        if offset not in self._group_of:
            self._group_of[offset] = group
            self._groups.setdefault(group, deque()).append(offset)

    def show(self, offsets: Sequence[int]) -> None:
        for offset in offsets:
            group = self._group_of.get(offset)
            if group is not None:
                self._visible.add(offset)
                self._look(group)

    def give(self, offsets: Sequence[int]) -> None:
        for offset in offsets:
            self.hide(offset)

    def hide(self, offset: int) -> None:
        self._visible.discard(offset)
        group = self._group_of.get(offset)
        if group is not None:
            self._look(group)

    def land(self, offset: int) -> None:
        pass

    def drop(self, offsets: Sequence[int]) -> None:
        self._visible.difference_update(offsets)
        for offset in offsets:
            group = self._group_of.pop(offset, None)
            if group is not None:
                self._look(group)

    def take(self) -> Iterator[int]:
        for group in self._ready:
            for offset in self._groups[group]:
                if offset not in self._group_of:
                    continue
                if offset not in self._visible:
                    break
                yield offset

    def among(self, offsets: tuple[int, ...]) -> tuple[int, ...]:
        wanted = set(offsets)
        found: list[int] = []
        for group in dict.fromkeys(
            [self._group_of[offset] for offset in offsets if offset in self._group_of]
        ):
            for offset in self._groups[group]:
                if offset not in self._group_of:
                    continue
                if offset not in self._visible or offset not in wanted:
                    break
                found.append(offset)
        return tuple(sorted(found))

    def can_give(self, count: int) -> bool:
        return len(self._ready) >= count or len(list(islice(self.take(), count))) >= count

    def looks_further(self) -> bool:
        return False

    def known_count(self) -> int:
        return len(self._group_of)

    def held_up_by(self, offset: int) -> int | None:
        for before in self._groups.get(self._group_of.get(offset, ""), ()):
            if before >= offset:
                break
            if before in self._group_of and before not in self._visible:
                return before
        return None

    def hidden_group_count(self) -> int:
        return len(self._groups) - len(self._ready)

    def _look(self, group: str) -> None:
        offsets = self._groups[group]
        while offsets and offsets[0] not in self._group_of:
            offsets.popleft()
        if not offsets:
            del self._groups[group]
            self._ready.pop(group, None)
        elif offsets[0] not in self._visible:
            self._ready.pop(group, None)
        else:
            self._ready.setdefault(group)
