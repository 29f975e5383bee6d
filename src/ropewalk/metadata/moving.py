"""The cluster's metadata move from one home to another: from a file to etcd, and back, as one history.

    seal     the mover takes the seat in the former home and writes that the metadata have left: nobody decides there any more
    carry    everything is read, and the other home adopts it in one step, with the same cluster id, offsets and epochs
    start    the next controller takes the seat in the other home, and the history goes on

What a reader could get wrong
    Each step may be the last one before a crash. A home that was sealed says for which other, so to move again to the same one
    finishes what was begun; one that has arrived is recognised by its reigns, not by a mark of its own.
    A former home that the metadata come back to holds a beginning of the same history, which is replaced. A home with
    anything else is refused.
    Before the other home has adopted them the metadata can be taken back. A request to it that is still on its way must not be
    carried out afterwards: the mover takes the seat there first, and what was asked for under the former one is refused.
    Who follows the metadata hears of nothing: the next record after the seal is that of a controller.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from ropewalk.base.errors import InvalidRequest, MetadataUnavailable
from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image
from ropewalk.metadata.levels import check_written
from ropewalk.metadata.log import MetadataLog, Snapshot
from ropewalk.metadata.offline import decide, read_all
from ropewalk.metadata.records import HomeLeft


class Home(MetadataLog, Protocol):
    async def adopt(self, snapshot: Snapshot, *, node_id: NodeId, reign: str) -> None:
        """Be the home of what `snapshot` stands for, in place of the beginning of the same history, or of nothing, that is here.

        All at once: after a crash it is the home, or is not. `node_id` was the last who decided elsewhere, in the epoch of the
        snapshot and under the name `reign`. The caller has made sure that nobody appends in the former home.
        Raises `MetadataUnavailable` if nobody knows whether it was done: look, and do it again.
        """


class Standing(Enum):
    """What a home is to a history that is at home elsewhere."""

    EMPTY = auto()
    FORMER = auto()
    """It has a beginning of the history."""
    ARRIVED = auto()
    """It has all of the history, and may have gone on."""


async def move(
    source: Home, target: Home, *, to: str, node_id: NodeId, name_reign: Callable[[], str]
) -> None:
    """Returns when `target`, which people call `to`, is the home. `node_id` is for whom the seat is taken.

    Raises `InvalidRequest` where that cannot be, and nothing was changed; `MetadataUnavailable` where a home cannot be
    reached: do it again, or `take_back`.
    """
    image = await read_all(source)
    if image.cluster_id is None:
        raise InvalidRequest("there are no metadata to be moved: no cluster was ever made at their home")
    if image.left_for not in (None, to):
        raise InvalidRequest(
            f"the metadata are on their way to {image.left_for}: finish that, or take it back with --back"
        )
    standing = await _standing(target, image)
    if standing is Standing.ARRIVED:
        return
    if image.left_for is None:
        check_written([HomeLeft(to)], image.level)
        image = await decide(source, node_id, name_reign, lambda _: (HomeLeft(to),))
    snapshot = _snapshot_of(image)
    await target.adopt(snapshot, node_id=node_id, reign=image.reigns[-1].name)


async def take_back(
    source: Home, target: Home, *, to: str, node_id: NodeId, name_reign: Callable[[], str]
) -> None:
    """The metadata are at home at `source` again. Raises `InvalidRequest` where they have arrived, or never left."""
    image = await read_all(source)
    if image.left_for is None:
        raise InvalidRequest("the metadata are at home where they were; there is nothing to take back")
    if image.left_for != to:
        raise InvalidRequest(f"the metadata are on their way to {image.left_for}, not to {to}")
    holder = target.holder
    if await target.take_over(node_id, expected_epoch=0 if holder is None else holder.epoch) is None:
        raise MetadataUnavailable(f"somebody else is at work in {to}; look again")
    if await _standing(target, image) is Standing.ARRIVED:
        raise InvalidRequest(f"the metadata have arrived in {to}; move them from there")
    await decide(source, node_id, name_reign, lambda _: ())


async def _standing(target: Home, image: Image) -> Standing:
    there = await read_all(target)
    if there.cluster_id is None:
        return Standing.EMPTY
    if there.cluster_id != image.cluster_id:
        raise InvalidRequest(
            f"the other home holds the metadata of cluster {there.cluster_id}, this is cluster {image.cluster_id}"
        )
    if there.end_offset >= image.end_offset and there.holds(image.position):
        return Standing.ARRIVED
    if there.end_offset < image.end_offset and image.holds(there.position):
        return Standing.FORMER
    raise InvalidRequest(
        "the other home holds another history of this cluster's metadata: was one of the two put back from a backup?"
    )


def _snapshot_of(image: Image) -> Snapshot:
    """Without the word that they have left: where this is read they are at home."""
    facts = tuple(fact for fact in image.facts() if not isinstance(fact, HomeLeft))
    return Snapshot(image.controller_epoch, image.end_offset, facts)
