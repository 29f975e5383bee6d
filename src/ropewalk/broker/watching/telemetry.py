"""Writes samples of partitions, groups and the node to `__telemetry`, for whoever looks back.

Behaviour worth knowing
    The topic is made with the first round, which comes one interval after the start; a node that does not live as long
    leaves none. Samples are kept for a week and not synced: a power cut may take the last ones.
    Nobody waits for a sample, and one that cannot be written stops nothing: the failure is logged once, until it is over,
    and counted. The next round then writes everything.
    A round is worked through in slices, with turns of the loop between them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import structlog

from ropewalk.base import metrics
from ropewalk.base.errors import NodeStopping, NotLeader, RopewalkError, TopicExists
from ropewalk.base.limits import TELEMETRY_BATCH_COUNT, TELEMETRY_SLICE_COUNT
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Prepared
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.watching.telemetry_samples import Sampled, Sampler
from ropewalk.controller.topics import CreateTopic
from ropewalk.metadata.internal_topics import TELEMETRY_TOPIC
from ropewalk.records.batch import decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()

_DAY_MS: Final = 24 * 60 * 60 * 1000
TOPIC_SETTINGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * _DAY_MS),
    "segment.ms": str(_DAY_MS),  # retention takes whole segments
    "flush": "os",
}


class Telemetry:
    def __init__(
        self,
        sampler: Sampler,
        topics: Topics,
        partitions: Partitions,
        vitals: Vitals,
        clock: Clock,
        *,
        interval_ms: int,
    ) -> None:
        assert interval_ms > 0, "without an interval there is no telemetry"
        self._sampler = sampler
        self._topics = topics
        self._partitions = partitions
        self._vitals = vitals
        self._clock = clock
        self._interval_ms = interval_ms
        self._record_count = 0
        self._failure_count = 0
        self._is_failing = False

    async def run(self) -> None:
        """Until it is cancelled, or the node stops."""
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            try:
                await self._write_round()
            except NodeStopping:
                return
            except NotLeader:  # what is seen here is written by nobody for the time being
                self._sampler.forget()
            except RopewalkError as error:
                self._on_failure(error)
            else:
                self._is_failing = False

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.TELEMETRY_RECORDS, self._record_count)
        sheet.add(metrics.TELEMETRY_FAILURES, self._failure_count)
        yield

    async def _write_round(self) -> None:
        if TELEMETRY_TOPIC not in self._topics.image.topics:
            await self._make_topic()
        await self._vitals.refresh()
        waiting: list[Sampled] = []
        found = self._sampler.round(self._clock.now_ms(), self._clock.monotonic_ms())
        pace = Pace(1)
        for seen_count, sampled in enumerate(found, 1):
            if sampled is not None:
                waiting.append(sampled)
            if len(waiting) >= TELEMETRY_BATCH_COUNT or seen_count % TELEMETRY_SLICE_COUNT == 0:
                self._write(waiting)
                waiting = []
                await pace.next()
        self._write(waiting)

    def _write(self, samples: list[Sampled]) -> None:
        if not samples:
            return
        now_ms = self._clock.now_ms()
        records = [
            Record(timestamp=now_ms, key=key, value=value) for key, value in map(Sampled.encoded, samples)
        ]
        batch = build(records, codec=Codec.LZ4)
        partition = self._partitions.find(TELEMETRY_TOPIC, 0)
        partition.append(Prepared(memoryview(batch), decode_header(batch)), Acks.NOBODY, 0)
        self._record_count += len(samples)

    async def _make_topic(self) -> None:
        with suppress(TopicExists):  # somebody was quicker, which is as good
            await self._topics.create(
                CreateTopic(name=TELEMETRY_TOPIC, partition_count=1, settings=TOPIC_SETTINGS)
            )

    def _on_failure(self, error: RopewalkError) -> None:
        self._failure_count += 1
        self._sampler.forget()
        if not self._is_failing:
            self._is_failing = True
            _log.warning("samples could not be written; it is tried again", reason=str(error))
