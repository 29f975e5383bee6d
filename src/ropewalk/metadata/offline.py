"""A decision about the cluster by somebody at a command line, while the node whose home it is stands still.

What a reader could get wrong
    The seat is taken as a controller takes it, in an epoch of its own: whoever decided before can append nothing more under the former
    one, and the next controller goes on from here.
    Where it is not known whether something was written, doing it again is safe: the decision is made anew, on what is there then.
"""

from collections.abc import Callable, Sequence

from ropewalk.base.errors import MetadataUnavailable
from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image
from ropewalk.metadata.levels import check_written
from ropewalk.metadata.log import Committed, MetadataLog
from ropewalk.metadata.records import ChangeAbandoned, ControllerChanged, MetadataRecord


async def decide(
    home: MetadataLog,
    node_id: NodeId,
    name_reign: Callable[[], str],
    decision: Callable[[Image], Sequence[MetadataRecord]],
) -> Image:
    """Take the seat and write what is decided on the image as it is then; answers what all adds up to.

    Raises what `decision` raises; by then the seat is taken, and nothing else was written.
    """
    holder = home.holder
    epoch = await home.take_over(node_id, expected_epoch=0 if holder is None else holder.epoch)
    if epoch is None:
        raise MetadataUnavailable("another node has just taken the seat; try again")
    image = await read_all(home)
    begun = (ChangeAbandoned(),) if image.is_amid_change else ()
    decided = decision(image)
    check_written(decided, image.level)
    written = (*begun, ControllerChanged(node_id, epoch, {}, name_reign()), *decided)
    outcome = await home.append(written, expected_epoch=epoch, expected_end_offset=image.end_offset)
    if not isinstance(outcome, Committed):
        raise MetadataUnavailable(f"whether it was written is not known: {outcome}; try again")
    image.apply_all(written)
    return image


async def read_all(home: MetadataLog) -> Image:
    """Everything that is there."""
    while True:
        snapshot = await home.snapshot()
        image = Image()
        image.replace(snapshot.facts, snapshot.end_offset)
        records = await home.tail(image.end_offset)
        if records is not None:  # otherwise it was trimmed meanwhile
            image.apply_all(records)
            return image
