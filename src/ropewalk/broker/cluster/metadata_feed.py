"""The metadata log for nodes that do not open its home themselves: served by controllers, followed by all others.

What a reader could get wrong
    A feed serves what is committed, whoever decides at the moment; being behind is no harm. Who is ahead of the feed may have heard
    of it elsewhere, and who is ahead of the home has followed a history that is no more: the home is asked before that is said.
    A snapshot is this node's image, as the fewest records that state it. Who gets one is brought up to date at once,
    however long it was away.
"""

import asyncio

import msgspec
import structlog

from ropewalk.base.errors import CannotFollow, HistoryParted, NotController, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    METADATA_FETCH_WAIT_MS,
    METADATA_RETRY_MS,
    PEER_CALL_MS_MAX,
)
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.peers.calls.fetch_metadata import MetadataPage, fetch_metadata
from ropewalk.metadata.bounds import USUAL, MetadataBounds
from ropewalk.metadata.levels import unreadable
from ropewalk.metadata.lineage import Position, complaint
from ropewalk.metadata.log import MetadataLog, Snapshot
from ropewalk.metadata.records import MetadataRecord, decode_records, encode_records

_log = structlog.get_logger()


class MetadataFeed:
    def __init__(self, log: MetadataLog | None, facts: Facts, bounds: MetadataBounds = USUAL) -> None:
        """Without a log on a node that only hears of it through others."""
        self._bounds = bounds
        self._log = log
        self._facts = facts

    async def fetch(self, position: Position, wait_ms: int) -> MetadataPage:
        """From `position` on. Where there is nothing new, wait for it so long; the page may then be empty.

        Raises `HistoryParted` where what was applied up to there is not the beginning of this log.
        """
        if self._log is None:
            raise NotController("this node hears of the metadata through others")
        if self._facts.parted is not None:
            raise NotController(self._facts.parted)
        image, start_offset = self._facts.image, position.end_offset
        if start_offset > image.end_offset:
            await self._log.tail(image.end_offset)
            if start_offset > self._log.end_offset:
                raise HistoryParted(complaint(position, "the node"))
        if image.end_offset <= start_offset and not await self._facts.known_within(
            start_offset + 1, timeout_ms=wait_ms
        ):
            return MetadataPage(image.controller_epoch, start_offset, None, b"")
        if not image.holds(position):
            raise HistoryParted(complaint(position, "the node"))
        records = self._log.heard(start_offset)
        if records is None:
            facts = tuple(image.facts())
            snapshot = Snapshot(image.controller_epoch, image.end_offset, facts)
            return MetadataPage(
                image.controller_epoch, image.end_offset, msgspec.msgpack.encode(snapshot), None
            )
        page = records[: self._bounds.page_records_max]
        return MetadataPage(
            image.controller_epoch, start_offset + len(page), None, encode_records(page) if page else b""
        )


class MetadataTail:
    """Follows the feed of the active controller, on a node that is no controller."""

    def __init__(self, node_id: NodeId, facts: Facts, link: ControllerLink, clock: Clock) -> None:
        self._node_id = node_id
        self._facts = facts
        self._link = link
        self._clock = clock
        self.trouble: str | None = None
        """Why nothing is heard at present."""

    async def run(self) -> None:
        while True:
            try:
                await self.step()
            except CannotFollow as error:
                self._facts.part(str(error))
                await asyncio.get_running_loop().create_future()  # there is nothing to hear any more
            except RopewalkError as error:
                if self.trouble is None:
                    _log.warning("the metadata cannot be followed at present", reason=str(error))
                self.trouble = str(error)
                await asyncio.sleep(METADATA_RETRY_MS / 1000)
            else:
                if self.trouble is not None:
                    _log.info("the metadata is followed again", offset=self._facts.image.end_offset)
                self.trouble = None

    async def step(self, *, wait_ms: int = METADATA_FETCH_WAIT_MS) -> bool:
        """Ask once, and apply what comes; False if there was nothing new. Raises `CannotFollow` if nothing can come any more."""
        position = self._facts.image.position
        start_offset = position.end_offset
        deadline_ms = self._clock.monotonic_ms() + wait_ms + PEER_CALL_MS_MAX
        page = await self._link.call(
            fetch_metadata(self._node_id, position, wait_ms), deadline_ms=deadline_ms
        )
        if page.snapshot is not None:
            self._facts.restart(_decode_snapshot(page.snapshot))
        elif page.records:
            self._facts.apply(_decode_records(page.records), start_offset=start_offset)
        return self._facts.image.end_offset > start_offset


def _decode_snapshot(data: bytes) -> Snapshot:
    try:
        return msgspec.msgpack.decode(data, type=Snapshot)
    except ValueError as error:
        raise unreadable(data, error) from None


def _decode_records(data: bytes) -> tuple[MetadataRecord, ...]:
    try:
        return decode_records(data)
    except ValueError as error:
        raise unreadable(data, error) from None
