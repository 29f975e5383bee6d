"""Where the state of each owner begins in a log: at the first piece of its last whole snapshot.

Whoever loads an owner's state reads from its place on, so the log is not deleted beyond it. Places are derived from the keys of state
batches (`records/control.py`) by whoever appends, copies or recovers the log, and go into every snapshot of the log.

Invariants
    The places of an owner are in the order in which they became whole. The first one that is kept is the last that was below the high
    watermark when that was looked at, or an earlier one. So a cut, which comes to what the log was at its new end, finds a place in it.
    No place begins below the start of the log. The first one that is kept of an owner is a snapshot, and no farewell.

What a reader could get wrong
    An owner holds nothing up before its first snapshot is whole: it begins with one.
    A place that may yet be cut does not take the place of the one before: both are kept until the high watermark has passed it.
    Where very many became whole above the high watermark, those in the middle are forgotten: the log is held up a little too long,
    never too short.
"""

from msgspec import Struct

from ropewalk.base.ids import Offset, OwnerId
from ropewalk.base.limits import PLACES_PER_OWNER_MAX
from ropewalk.records.control import BEGINS_HERE, NOT_WHOLE, OWNER_GONE, StateKey


class Place(Struct, frozen=True, gc=False, array_like=True):
    """A whole snapshot."""

    start_offset: int
    """Of its first piece; `OWNER_GONE` where the owner says that it needs nothing any more."""

    whole_offset: int
    """Of the batch that made it whole."""


class SavedOwner(Struct, frozen=True, array_like=True):
    """As a snapshot of the log keeps it."""

    owner: OwnerId
    places: list[Place]


class Places:
    __slots__ = ("_by_owner", "_floor_offset")

    def __init__(self, saved: list[SavedOwner] | None = None) -> None:
        self._by_owner = {each.owner: list(each.places) for each in saved or ()}
        self._floor_offset = 0
        """Below it nothing is left."""

    def __len__(self) -> int:
        """How many owners there are."""
        return len(self._by_owner)

    def save(self) -> list[SavedOwner]:
        return [SavedOwner(owner, list(places)) for owner, places in self._by_owner.items()]

    def last_of(self, owner: OwnerId) -> Place | None:
        """The latest whole snapshot, wherever the high watermark is; None if there is none, or the owner has gone."""
        places = self._by_owner.get(owner)
        return places[-1] if places and places[-1].start_offset != OWNER_GONE else None

    def note(self, key: StateKey, base_offset: int) -> None:
        """A state batch stands in the log at `base_offset`. One that makes no sense there is passed over."""
        start_offset = key.snapshot_start
        if start_offset == NOT_WHOLE or start_offset > base_offset:
            return
        if start_offset == BEGINS_HERE:
            start_offset = base_offset
        if (
            0 <= start_offset < self._floor_offset
        ):  # its first pieces were deleted: none of the owner's had been whole before
            return
        places = self._by_owner.get(key.owner)
        if places is None:
            if start_offset == OWNER_GONE:
                return
            places = self._by_owner[key.owner] = []
        places.append(Place(start_offset, base_offset))
        if len(places) > PLACES_PER_OWNER_MAX:
            del places[1]

    def settle(self, high_watermark: int) -> None:
        """The high watermark is where it is for good: what is below it is not cut any more."""
        for owner, places in list(self._by_owner.items()):
            settled_count = sum(place.whole_offset < high_watermark for place in places)
            self._keep(owner, places[max(0, settled_count - 1) :])

    def forget_below(self, start_offset: int) -> None:
        """The log begins there."""
        self._floor_offset = max(self._floor_offset, start_offset)
        for owner, places in list(self._by_owner.items()):
            self._keep(owner, [place for place in places if not 0 <= place.start_offset < start_offset])

    def held_from(self) -> Offset | None:
        """From here on the log is needed by somebody; None if nobody needs anything."""
        return min([_held_from(places) for places in self._by_owner.values()], default=None)

    def holding_below(self, offset: int) -> tuple[OwnerId, ...]:
        """Those who need something that lies below `offset`."""
        return tuple([owner for owner, places in self._by_owner.items() if _held_from(places) < offset])

    def _keep(self, owner: OwnerId, places: list[Place]) -> None:
        """Of an owner that has gone nothing is kept, unless a cut could bring it back."""
        while places and places[0].start_offset == OWNER_GONE:
            del places[0]
        if places:
            self._by_owner[owner] = places
        else:
            del self._by_owner[owner]


def _held_from(places: list[Place]) -> Offset:
    return Offset(min([place.start_offset for place in places if place.start_offset != OWNER_GONE]))
