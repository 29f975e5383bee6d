"""The cluster's facts as this node has them: the image, and the node following it.

Every node has one, whether it decides or only hears what was decided. Records come in the order of the metadata log
(`apply`), or as a snapshot where the log no longer reaches back (`restart`). The node follows behind: partitions are
opened and closed, and all that came while it was busy it follows at once, so a burst of new topics is opened with
few trips to the disk.

What a reader could get wrong
    The image may be ahead of the node: a topic that it names may have partitions that are not open yet, or no more.
    The image may be behind the cluster. What it says was true once; epochs say whether it still is.
    The metadata may be put back to an earlier state while this node runs, or say what this version does not know. What was followed
    cannot be taken back and what comes cannot be left out, so the node parts: nothing more is applied, and the node is out of service until it is started again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import structlog

from ropewalk.base.errors import HistoryParted, NodeStopping, RopewalkError
from ropewalk.base.levels import OURS, Software
from ropewalk.metadata.image import Image
from ropewalk.metadata.levels import check_read
from ropewalk.metadata.lineage import complaint, holds, reigns_in
from ropewalk.metadata.log import Snapshot
from ropewalk.metadata.records import Fact, MetadataRecord, TopicDeleted
from ropewalk.runtime.bell import Bell

_log = structlog.get_logger()

Follow: TypeAlias = Callable[[Sequence[Fact]], Awaitable[None]]


class Facts:
    def __init__(self, software: Software = OURS) -> None:
        """`software` is what this node is of: facts of a level that it does not know are not applied."""
        self.software = software
        self.image = Image()
        self.followed_offset = 0
        """How much of the metadata log the node has followed, as far as it can."""
        self._follow: Follow = _follow_nothing
        self._unfollowed: list[Fact] = []
        self._followers: list[asyncio.Future[None]] = []
        """Those who wait until the node has followed what was applied before they asked."""
        self._following: list[asyncio.Future[None]] = []
        """Those among them whose turn it is."""
        self._wake_to_follow = Bell()
        self._awaited: list[tuple[int, asyncio.Future[None]]] = []
        """Those who wait until everything before an offset has taken effect."""
        self._reading: list[tuple[int, asyncio.Future[None]]] = []
        """Those who wait until the image ends at an offset, or beyond: they pass on what is read, in effect or not."""
        self._is_stopped = False
        self.parted: str | None = None
        """Why this node can never follow the metadata again, for people; None while it can."""

    def part(self, reason: str) -> None:
        """What this node has followed is no more, or it cannot read what comes next. It leaves service for as long as the process lives."""
        if self.parted is None:
            self.parted = reason
            _log.error("this node leaves service: it can never follow the metadata again", reason=reason)
            self.follow_soon()

    def apply(self, records: Sequence[MetadataRecord], *, start_offset: int) -> None:
        """Records of the log from `start_offset` on, which the image has reached. What it has already is left out.

        Raises `UnreadableMetadata`, and applies none of them, where one is of a level that this node does not know.
        """
        known_count = self.image.end_offset - start_offset
        assert known_count >= 0, f"the image ends at {self.image.end_offset}, before {start_offset}"
        news = records[known_count:]
        check_read(news, self.software)
        self._unfollowed += self.image.apply_all(news)
        self._on_moved()

    def restart(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot. One that the image is ahead of changes nothing; what it no longer names is followed as deleted.

        Raises `HistoryParted` for one of another history than the image's, `UnreadableMetadata` for one of a level that is not known.
        """
        if snapshot.end_offset < self.image.end_offset:
            return
        check_read(snapshot.facts, self.software)
        position = self.image.position
        if not holds(reigns_in(snapshot.facts, snapshot.end_offset), position):
            raise HistoryParted(complaint(position, "this node"))
        before = dict(self.image.topics_by_id)
        facts = self.image.replace(snapshot.facts, snapshot.end_offset)
        gone = [topic_id for topic_id in before if topic_id not in self.image.topics_by_id]
        self._unfollowed += [*(TopicDeleted(topic_id) for topic_id in gone), *facts]
        self._on_moved()

    def begin(self) -> None:
        """What was applied so far is where the node starts; it has nothing to follow of it."""
        self._unfollowed.clear()
        self.followed_offset = self.image.settled_offset

    def follow_with(self, follow: Follow) -> None:
        """`follow` is called with the records of later changes, in order; also without any, where somebody waits all the same."""
        self._follow = follow

    async def followed(self) -> None:
        """Return when the node has followed every change that is in the image now. Raises what it failed with."""
        self._check_running()
        done = self._future()
        self.follow_soon(done)
        await done

    async def reached(self, offset: int) -> None:
        """Return when everything before `offset` has taken effect, and the node has followed so far."""
        await self.known(offset)
        if self.followed_offset < offset:
            await self.followed()

    async def known(self, offset: int) -> None:
        """As `reached`, but the node may not have followed."""
        self._check_running()
        if self.image.settled_offset >= offset:
            return
        done = self._future()
        self._awaited.append((offset, done))
        try:
            await done
        finally:
            self._awaited = [waiting for waiting in self._awaited if waiting[1] is not done]

    async def known_within(self, offset: int, *, timeout_ms: float) -> bool:
        """Whether the image ends at `offset` or beyond before time is up. For handlers too, which run in no task."""
        done = self._future()
        self._reading.append((offset, done))
        if self.image.end_offset >= offset:
            tell([done], None)
        timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, tell, [done], None)
        try:
            await done
        finally:
            timer.cancel()
            self._reading = [waiting for waiting in self._reading if waiting[1] is not done]
        return self.image.end_offset >= offset

    def follow_soon(self, done: "asyncio.Future[None] | None" = None) -> None:
        """Follow what is in the image now; `done` hears of it."""
        if done is not None:
            self._followers.append(done)
        self._wake_to_follow.ring()

    async def run_following(self) -> None:
        """The node's way to keep up with the image."""
        while True:
            if not self._unfollowed and not self._followers:
                await self._wake_to_follow.wait()
            records, self._unfollowed = self._unfollowed, []
            self._following, self._followers = self._followers, []
            end_offset = self.image.settled_offset
            try:
                await self._follow(records)
            except RopewalkError as error:
                _log.error("the node cannot follow a change of the cluster", reason=str(error))
                tell(self._following, error)
            else:
                tell(self._following, None)
            self.followed_offset = end_offset

    def stop(self) -> None:
        """Send away whoever still waits; call after `run_following` has been cancelled."""
        self._is_stopped = True
        awaiting = [done for _, done in (*self._awaited, *self._reading)]
        tell([*self._following, *self._followers, *awaiting], _stopping())
        self._followers.clear()

    def _on_moved(self) -> None:
        tell([done for offset, done in self._awaited if offset <= self.image.settled_offset], None)
        tell([done for offset, done in self._reading if offset <= self.image.end_offset], None)
        self.follow_soon()

    def _check_running(self) -> None:
        if self._is_stopped:
            raise _stopping()

    def _future(self) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().create_future()


def tell(waiting: "Sequence[asyncio.Future[None]]", error: RopewalkError | None) -> None:
    """Answer all who wait; some may have gone."""
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def _stopping() -> NodeStopping:
    return NodeStopping("the node is shutting down")


async def _follow_nothing(_records: Sequence[Fact]) -> None:
    pass
