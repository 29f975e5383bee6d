"""Standard queues with groups: one that has much in flight does not keep the others waiting.

A group is noisy while it has at least 30 messages in flight and more than a tenth of all. Quiet groups come first, in order of offsets; of the
noisy ones that with the fewest in flight. Nothing is held back: where only noisy groups have something, they get it. A message without a group,
or whose group is not known since it was read before a change of leader, is a group of its own.
"""

from collections.abc import Iterator

from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_NOISY_IN_FLIGHT_MIN


class FairLine:
    def __init__(self) -> None:
        self._group_of: dict[int, str] = {}
        """Only where there is one."""
        self._in_flight: dict[str, set[int]] = {}
        self._in_flight_all: set[int] = set()
        self._quiet = BitMap64()
        self._noisy: dict[str, BitMap64] = {}
        """Visible messages of the groups that are noisy."""

    def know(self, offset: int, group: str) -> None:
        if group:
            self._group_of[offset] = group

    def show(self, offset: int) -> None:
        self._noisy.get(self._group_of.get(offset, ""), self._quiet).add(offset)

    def hide(self, offset: int, *, is_given: bool) -> None:
        group = self._group_of.get(offset, "")
        self._noisy.get(group, self._quiet).discard(offset)
        if is_given:
            self._in_flight_all.add(offset)
            if group:
                self._in_flight.setdefault(group, set()).add(offset)
                self._listen(group)

    def land(self, offset: int) -> None:
        self._in_flight_all.discard(offset)
        group = self._group_of.get(offset, "")
        given = self._in_flight.get(group)
        if given is not None:
            given.discard(offset)
            if not given:
                del self._in_flight[group]
            self._listen(group)

    def drop(self, offset: int) -> None:
        self.land(offset)
        group = self._group_of.pop(offset, "")
        self._noisy.get(group, self._quiet).discard(offset)

    def take(self) -> Iterator[int]:
        for group in list(self._noisy):  # what others have in flight counts, too, and may have changed
            self._listen(group)
        yield from self._quiet
        for group in sorted(self._noisy, key=lambda group: len(self._in_flight[group])):
            yield from self._noisy[group]

    def has_more(self) -> bool:
        return bool(self._quiet) or any(self._noisy.values())

    def looks_further(self) -> bool:
        return bool(self._noisy) and not self._quiet

    def known_count(self) -> int:
        return len(self._group_of)

    def _listen(self, group: str) -> None:
        """Whether it is noisy, and its visible messages belong elsewhere then."""
        count = len(self._in_flight.get(group, ()))
        is_noisy = count >= QUEUE_NOISY_IN_FLIGHT_MIN and count * 10 > len(self._in_flight_all)
        if is_noisy and group not in self._noisy:
            visible = BitMap64(offset for offset in self._quiet if self._group_of.get(offset) == group)
            self._quiet -= visible
            self._noisy[group] = visible
        elif not is_noisy and group in self._noisy:
            self._quiet |= self._noisy.pop(group)
