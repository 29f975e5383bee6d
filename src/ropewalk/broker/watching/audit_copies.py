"""Copies who asked for changes from the metadata to `__audit`, each once and in their order.

The node that leads the topic's only partition does it, from its own image to its own log. Where the last event has which number is read from
the log, so nothing has to be remembered, told or forgotten: whoever leads next goes on behind what it holds.

What a reader could get wrong
    An event may be in the log and not committed. If its leader goes, it is gone from the log, too, and the next leader copies it anew.
    Nobody waits for a copy, and one that cannot be written stops nothing: the event is part of the change, in the metadata. These keep so
    many (`metadata/audit.py`); where they could not wait longer the topic itself tells what is missing.
    The topic is made some seconds after the first change, so that a node that does not live as long leaves none; or as soon as there are many.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import structlog
from msgspec import Struct

from ropewalk.base import metrics
from ropewalk.base.errors import InvalidRecord, NodeStopping, NotLeader, RopewalkError, TopicExists
from ropewalk.base.ids import NodeId, Offset
from ropewalk.base.limits import (
    AUDIT_AGAIN_MS,
    AUDIT_APPEND_MS_MAX,
    AUDIT_BATCH_BYTES,
    AUDIT_ROUND_MS,
    AUDIT_TOPIC_WAIT_MS,
)
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.watching.audit_events import change_event, gap_event
from ropewalk.controller.topics import CreateTopic
from ropewalk.log.log import Span
from ropewalk.metadata.audit import AuditTrail
from ropewalk.metadata.internal_topics import AUDIT_TOPIC
from ropewalk.records.batch import decode_header, iterate
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build, decode_records
from ropewalk.security.audit_chain import hash_of, number_of

_log = structlog.get_logger()


class _Place(Struct):
    """How far the log of a leader has come."""

    partition: Partition
    leader_epoch: int
    number: int
    """Of the last event; 0 where there is none."""
    hash: str


class AuditCopies:
    def __init__(
        self,
        node_id: NodeId,
        cluster: Cluster,
        topics: Topics,
        partitions: Partitions,
        clock: Clock,
        pool: Pool,
    ) -> None:
        self._node_id = node_id
        self._cluster = cluster
        self._topics = topics
        self._partitions = partitions
        self._clock = clock
        self._pool = pool
        self._place: _Place | None = None
        self._wanted_since_ms: float | None = None
        """Since when the topic is wanted, where there is none."""
        self._is_failing = False
        self._copied_count = 0
        self._missing_count = 0
        self._failure_count = 0
        self._waiting_count = 0

    async def run(self) -> None:
        """Until it is cancelled, or the node stops."""
        while True:
            await asyncio.sleep((AUDIT_AGAIN_MS if self._is_failing else AUDIT_ROUND_MS) / 1000)
            try:
                await self._round()
            except NodeStopping:
                return
            except RopewalkError as error:
                self._on_failure(error)
            else:
                if self._is_failing:
                    self._is_failing = False
                    _log.info("changes are copied to the audit topic again")

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.AUDIT_COPIED, self._copied_count)
        sheet.add(metrics.AUDIT_WAITING, self._waiting_count)
        sheet.add(metrics.AUDIT_MISSING, self._missing_count)
        sheet.add(metrics.AUDIT_FAILURES, self._failure_count)
        yield

    async def _round(self) -> None:
        trail = self._cluster.image.audit
        self._waiting_count = 0
        if not len(trail):
            return
        topic = self._cluster.image.topics.get(AUDIT_TOPIC)
        leader = None if topic is None else topic.partitions[0].leader
        if leader is None and self._cluster.decides:  # somebody has to tell
            self._waiting_count = len(trail)
        if topic is None:
            await self._make_topic_in_time(trail)
            return
        self._wanted_since_ms = None
        if leader is None and self._cluster.decides:
            raise NotLeader(f"nobody leads {AUDIT_TOPIC}-0")
        if leader != self._node_id:
            self._place = None
            return
        partition = self._partitions.find(AUDIT_TOPIC, 0)
        place = self._place
        if place is None or place.partition is not partition or place.leader_epoch != partition.leader_epoch:
            self._place = None
            place = await self._read_place(partition)
        self._waiting_count = trail.newest_number - place.number
        try:
            await self._copy(place)
        except RopewalkError:
            self._place = None  # some of it may be in the log, or may not
            raise
        self._place = place
        self._waiting_count = trail.newest_number - place.number

    async def _make_topic_in_time(self, trail: AuditTrail) -> None:
        if not self._cluster.decides:
            self._wanted_since_ms = None
            return
        now_ms = self._clock.monotonic_ms()
        if self._wanted_since_ms is None:
            self._wanted_since_ms = now_ms
        if trail.is_filling or now_ms - self._wanted_since_ms >= AUDIT_TOPIC_WAIT_MS:
            with suppress(TopicExists):  # somebody was quicker, which is as good
                await self._topics.create(CreateTopic(name=AUDIT_TOPIC))

    async def _read_place(self, partition: Partition) -> _Place:
        log = partition.log
        place = _Place(partition, partition.leader_epoch, 0, "")
        if log.end_offset > log.start_offset:
            partition.check_readable()
            span = log.locate(Offset(log.end_offset - 1), limit_offset=log.end_offset, bytes_max=1)
            if span is not None:
                event = await self._pool.run(_last_event, span)
                log.on_read(span)
                try:
                    place.number, place.hash = number_of(event), hash_of(event)
                except ValueError:
                    raise InvalidRecord(
                        f"what {AUDIT_TOPIC} ends with is no event: was a topic of that name there before?"
                    ) from None
        return place

    async def _copy(self, place: _Place) -> None:
        """All that there is, a batch at a time. Each is committed before the next is written."""
        while True:
            batch: list[Record] = []
            size_bytes, number, last_hash, copied_count, missing_count = 0, place.number, place.hash, 0, 0
            now_ms = self._clock.now_ms()
            for change in self._cluster.image.audit.after(number):
                if change.number > number + 1:
                    missing_count += change.number - number - 1
                    gap = gap_event(number + 1, change.number - 1, at_ms=now_ms, previous=last_hash)
                    batch.append(Record(timestamp=now_ms, key=None, value=gap))
                    last_hash = hash_of(gap)
                event = change_event(change, last_hash)
                batch.append(Record(timestamp=change.at_ms, key=None, value=event))
                last_hash, number = hash_of(event), change.number
                copied_count += 1
                size_bytes += len(event)
                if size_bytes >= AUDIT_BATCH_BYTES:
                    break
            if not batch:
                return
            data = build(batch, codec=Codec.LZ4)
            prepared = Prepared(memoryview(data), decode_header(data))
            await place.partition.append(prepared, Acks.ALL, AUDIT_APPEND_MS_MAX).wait()
            place.number, place.hash = number, last_hash
            self._copied_count += copied_count
            self._missing_count += missing_count
            if missing_count:
                _log.error(
                    "changes are missing in the audit topic: too many were made while it could not be written",
                    count=missing_count,
                )

    def _on_failure(self, error: RopewalkError) -> None:
        self._failure_count += 1
        if not self._is_failing:
            self._is_failing = True
            _log.warning(
                "changes cannot be copied to the audit topic; it is tried again, and the metadata keep them so long",
                reason=str(error),
                waiting=self._waiting_count,
            )


def _last_event(span: Span) -> bytes:
    """Runs in the disk pool."""
    data = bytes(span.read())
    last = b""
    for position, header in iterate(data):
        last = decode_records(data[position : position + header.size_bytes])[-1].value or b""
    return last
