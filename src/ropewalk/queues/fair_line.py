"""Standard queues with groups: one that has much in flight does not keep the others waiting.

A group is noisy while it has at least 30 messages in flight and more than a tenth of all. Quiet groups come first, in order of offsets; of the
noisy ones that with the fewest in flight. Nothing is held back: where only noisy groups have something, they get it. A message without a group,
or whose group is not known since it was read before a change of leader, is a group of its own.
"""

from collections.abc import Iterator, Sequence

from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_NOISY_IN_FLIGHT_MIN


class FairLine:
    def __init__(self) -> None:
        self._group_of: dict[int, str] = {}
        """Only where there is one."""
        self._known: dict[str, list[int] | BitMap64] = {}
        """The messages of each group, visible or not; a list while they are few, since most groups are small."""
        self._in_flight: dict[str, set[int]] = {}
        self._in_flight_all: set[int] = set()
        self._quiet = BitMap64()
        self._noisy: dict[str, BitMap64] = {}
        """Visible messages of the groups that are noisy."""

    def know(self, offset: int, group: str) -> None:
        if group and offset not in self._group_of:
            self._group_of[offset] = group
            known = self._known.setdefault(group, [])
            if isinstance(known, BitMap64):
                known.add(offset)
            else:
                known.append(offset)
                if len(known) >= QUEUE_NOISY_IN_FLIGHT_MIN:  # fewer are never noisy
                    self._known[group] = BitMap64(known)
            noisy = self._noisy.get(group)
            if noisy is not None and offset in self._quiet:  # it was visible before its group was known
                self._quiet.discard(offset)
                noisy.add(offset)

    def show(self, offsets: Sequence[int]) -> None:
        if not self._noisy:
            self._quiet.update(offsets)
            return
        for offset in offsets:
            self._visible_with(offset).add(offset)

    def give(self, offsets: Sequence[int]) -> None:
        self._in_flight_all.update(offsets)
        group_of, quiet = self._group_of, self._quiet
        for offset in offsets:
            group = group_of.get(offset)
            if group is None:
                quiet.discard(offset)
            else:
                self._noisy.get(group, quiet).discard(offset)
                self._in_flight.setdefault(group, set()).add(offset)
                self._listen(group)

    def hide(self, offset: int) -> None:
        self._visible_with(offset).discard(offset)

    def land(self, offset: int) -> None:
        self._in_flight_all.discard(offset)
        group = self._group_of.get(offset, "")
        given = self._in_flight.get(group)
        if given is not None:
            given.discard(offset)
            if not given:
                del self._in_flight[group]
            self._listen(group)

    def drop(self, offsets: Sequence[int]) -> None:
        self._in_flight_all.difference_update(offsets)
        group_of, quiet = self._group_of, self._quiet
        for offset in offsets:
            if offset not in group_of:
                quiet.discard(offset)
            else:
                self._drop_grouped(offset)

    def take(self) -> Iterator[int]:
        for group in list(self._noisy):  # what others have in flight counts, too, and may have changed
            self._listen(group)
        yield from self._quiet
        for group in sorted(self._noisy, key=lambda group: len(self._in_flight[group])):
            yield from self._noisy[group]

    def among(self, offsets: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([offset for offset in offsets if offset in self._visible_with(offset)])

    def can_give(self, count: int) -> bool:
        return len(self._quiet) + sum(map(len, self._noisy.values())) >= count

    def looks_further(self) -> bool:
        return bool(self._noisy) and not self._quiet

    def known_count(self) -> int:
        return len(self._group_of)

    def held_up_by(self, offset: int) -> int | None:  # noqa: ARG002
        return None

    def hidden_group_count(self) -> int:
        return 0

    def _visible_with(self, offset: int) -> BitMap64:
        """The visible messages among which it is, or would be."""
        return self._noisy.get(self._group_of.get(offset, ""), self._quiet)

    def _drop_grouped(self, offset: int) -> None:
        self.land(offset)
        self.hide(offset)
        group = self._group_of.pop(offset)
        known = self._known[group]
        known.remove(offset)
        if not known:
            del self._known[group]

    def _listen(self, group: str) -> None:
        """Whether it is noisy, and its visible messages belong elsewhere then."""
        count = len(self._in_flight.get(group, ()))
        is_noisy = count >= QUEUE_NOISY_IN_FLIGHT_MIN and count * 10 > len(self._in_flight_all)
        if is_noisy and group not in self._noisy:
            visible = BitMap64(self._known[group]) & self._quiet
            self._quiet -= visible
            self._noisy[group] = visible
        elif not is_noisy and group in self._noisy:
            self._quiet |= self._noisy.pop(group)
