"""Whether etcd still has the log that was heard of before, or another: its data may be put back from a backup while nodes run.

What a reader could get wrong
    An answer is compared with what was known before the question was sent. What was heard meanwhile may be newer than the answer.
    Revisions go back by a restore only, and catch up again in time. So do ends and epochs; what was appended last is what
    cannot come again, except that a snapshot may stand for it. A reader that starts from that finds out by its reigns.
"""

from msgspec import Struct

from ropewalk.metadata.etcd.keys import Batch, Held, Pointer, decode_batch
from ropewalk.metadata.etcd.messages import KeyValue


class Known(Struct, frozen=True):
    """What a process has heard of etcd."""

    revision: int
    end_offset: int
    held: Held | None
    reign: str
    """The name of the controller who appended last, as far as it has one and was heard of."""
    last: tuple[Batch, int] | None
    """The newest append and the revision it was written at; None while nothing but a snapshot was heard of."""


class Found(Struct, frozen=True):
    """What etcd says afterwards."""

    revision: int
    end_offset: int
    held: Held | None
    pointer: Pointer | None
    last: KeyValue | None
    """What is kept under the key of `Known.last`."""


def parting(known: Known, found: Found) -> str | None:
    """Why what was found does not go on from what was known; None if it does."""
    if found.end_offset < known.end_offset:
        return f"it holds {found.end_offset} records and {known.end_offset} were there before"
    if found.revision < known.revision:
        return f"it is at revision {found.revision} and was at {known.revision} before"
    return _other_controller(known, found) or _other_records(known, found)


def _other_controller(known: Known, found: Found) -> str | None:
    if known.held is None:
        return None
    epoch = 0 if found.held is None else found.held.epoch
    if epoch > known.held.epoch or found.held == known.held:
        return None
    return f"its controller is of epoch {epoch}, and not the one of epoch {known.held.epoch} that was there before"


def _other_records(known: Known, found: Found) -> str | None:
    pointer = found.pointer
    if known.last is not None and found.last is None:
        if pointer is None or pointer.end_offset < known.end_offset:
            return f"the records up to {known.end_offset - 1} are not there any more"
    elif known.last is not None and found.last is not None:
        batch, revision = known.last
        if found.last.mod_revision != revision or decode_batch(found.last.key, found.last.value) != batch:
            return f"the records from {batch.base_offset} to {batch.end_offset - 1} are others than before"
    if pointer is None or pointer.end_offset != known.end_offset or "" in (pointer.reign, known.reign):
        return None
    if pointer.reign == known.reign:
        return None
    return f"its snapshot up to record {known.end_offset - 1} is of another history"
