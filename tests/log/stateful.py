"""State batches in the tests of the log room: what owners write, and what a log makes of it."""

from ropewalk.base.ids import Offset, OwnerId
from ropewalk.log.log import Log
from ropewalk.log.places import Place
from ropewalk.records.control import BEGINS_HERE, NOT_WHOLE, build_state
from tests.log.given import append

OWNERS = tuple(OwnerId(bytes([number]) * 16) for number in range(3))
OWNER, OTHER, _ = OWNERS


def write(log: Log, owner: OwnerId = OWNER, *, start: int = NOT_WHOLE, value: bytes = b"state") -> int:
    """Where a state batch went."""
    return append(
        log, memoryview(build_state(owner, value, timestamp_ms=1000, snapshot_start=start))
    ).base_offset


def write_whole(log: Log, owner: OwnerId = OWNER, *, piece_count: int = 1) -> Place:
    """A snapshot in pieces, with a delta between them."""
    if piece_count == 1:
        offset = write(log, owner, start=BEGINS_HERE)
        return Place(offset, offset)
    start = write(log, owner)
    for _ in range(piece_count - 2):
        write(log, owner)
    return Place(start, write(log, owner, start=start))


def wish_start(log: Log, offset: int, *, high_watermark: int | None = None) -> int:
    """Where the log begins when records below `offset` were wanted to go."""
    limit_offset = log.end_offset if high_watermark is None else Offset(high_watermark)
    log.trimming.plan_start(Offset(offset), limit_offset=limit_offset)
    removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
    if removal is not None:
        removal.run()
    return log.start_offset


def last_places(log: Log) -> list[Place | None]:
    return [log.places.last_of(owner) for owner in OWNERS]
