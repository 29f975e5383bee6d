"""Whether a replica has missed deletions that its leader cannot tell it of any more.

A leader of a compacted topic removes a deletion some time after all that it deletes. A replica that was away meanwhile still has
what was deleted, and would keep it for good. It has to begin its copy anew where the leader's log begins.

Invariants
    Who is counted on has everything that is committed, and nothing else is compacted: nobody who is counted on has missed anything, and
    nobody who is has to give up its copy.
    What a replica asks for is everything it has. So it has missed nothing if the leader lacks nothing from there on; or if it has
    copied all it has from this leader, who has removed nothing since.
    What was copied from an earlier leader proves nothing here: the two may have removed different deletions.
"""

from collections.abc import Mapping
from typing import Protocol

from ropewalk.base.ids import NodeId, Offset
from ropewalk.replication.progress import Progress


class Erased(Protocol):
    """`log.erasures.Erasures` is one."""

    @property
    def end_offset(self) -> int: ...
    @property
    def count(self) -> int: ...


class Missed:
    """Lives as long as a leadership."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: dict[NodeId, tuple[int, int]] = {}
        """The process that has begun its copy at the start of the log, and how often something had been removed by then."""

    def has_missed(
        self,
        node_id: NodeId,
        *,
        broker_epoch: int,
        fetch_offset: Offset,
        start_offset: Offset,
        erased: Erased,
    ) -> bool:
        """Whether that replica, on which nobody counts, cannot go on at `fetch_offset`."""
        if fetch_offset <= start_offset:
            self._begun[node_id] = broker_epoch, erased.count
            return False
        return fetch_offset < erased.end_offset and self._begun.get(node_id) != (broker_epoch, erased.count)

    def would_be_missed(
        self, followers: Mapping[NodeId, Progress], *, erased: Erased, now_ms: int, silent_ms_max: int
    ) -> bool:
        """Whether somebody is copying everything who would have to begin anew if something were removed now.

        One that has been silent for `silent_ms_max` does not count: it may be gone for good.
        """
        for node_id, (broker_epoch, count) in self._begun.items():
            progress = followers.get(node_id)
            if (
                progress is not None
                and progress.broker_epoch == broker_epoch
                and count == erased.count
                and progress.durable_offset < erased.end_offset
                and now_ms - progress.fetched_at_ms <= silent_ms_max
            ):
                return True
        return False
