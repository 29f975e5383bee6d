"""Events of an audit trail that hold each other: each has the hash of the one before it, so that none can be altered or taken out unseen.

What a reader could get wrong
    It is no signature. Whoever can write all of the trail can write another one; whoever has kept one hash can tell.
    The newest event is held by nobody yet, and what was before the oldest that is kept is not known.
    Numbers go up by one. A gap that the trail itself tells of is not a fault of it.
"""

import hashlib
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field


class Metadata(Struct, frozen=True):
    sequence: int = 0


class Unmapped(Struct, frozen=True):
    missing_from: int | None = None


class Link(Struct, frozen=True):
    """What of an event holds it to its neighbours."""

    metadata: Metadata = Metadata()
    unmapped: Unmapped = Unmapped()
    previous: str = field(default="")

    @property
    def first_number(self) -> int:
        """Of what it tells: itself, or the first of those that it tells are missing."""
        missing = self.unmapped.missing_from
        return self.metadata.sequence if missing is None else missing


_DECODER = msgspec.json.Decoder(Link)


class Fault(Struct, frozen=True):
    """What is wrong with an event, by its place in the trail."""

    offset: int
    text: str


def hash_of(event: bytes) -> str:
    return hashlib.sha256(event).hexdigest()


def number_of(event: bytes) -> int:
    """Raises `ValueError` for what is no event."""
    return _DECODER.decode(event).metadata.sequence


def verify(events: Iterable[tuple[int, bytes]]) -> Iterator[Fault]:
    """Faults of a trail, from events with their places, in their order."""
    before: tuple[bytes, Link] | None = None
    for offset, event in events:
        try:
            link = _DECODER.decode(event)
        except ValueError as error:
            yield Fault(offset, f"is no event: {error}")
            continue
        if before is not None:
            expected = before[1].metadata.sequence + 1
            if link.previous != hash_of(before[0]):
                yield Fault(
                    offset, "does not hold the one before it: that was altered, or one between them is gone"
                )
            if link.first_number != expected:
                yield Fault(offset, f"has the number {link.first_number}, {expected} is next")
        before = event, link
