"""Figures of queues: their messages by state, what keeps their logs from becoming shorter, and what receivers were given.

What a reader could get wrong
    A node tells of the partitions it leads, and of the receives that came through it: sums over all nodes count each once.
    The bytes behind a floor are estimated from offsets, since finding a place in a log takes a look at its index.
"""

from collections.abc import Iterator

from ropewalk.base import metrics
from ropewalk.base.limits import SCRAPE_SLICE_COUNT
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.dispatch.to_queues import ToQueues
from ropewalk.broker.queues.figures import totals_of
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.queues import Queues
from ropewalk.broker.queues.settings import lacks_target
from ropewalk.metadata.queues import REDRIVE_POLICY, Queue


class QueueFigures:
    def __init__(self, queues: Queues, to_queues: ToQueues, clock: Clock) -> None:
        self._queues = queues
        self._to_queues = to_queues
        self._clock = clock

    def collect(self, sheet: Sheet) -> Iterator[None]:
        there = list(self._queues.image.queues)
        self._to_queues.counts.keep_only({queue.queue_id for queue in there})
        for_dead = {redrive.target for queue in there if (redrive := queue.redrive) is not None}
        for position, queue in enumerate(there, 1):
            self._add(sheet, queue, is_for_dead=queue.name in for_dead)
            if position % SCRAPE_SLICE_COUNT == 0:
                yield
        if there:
            sheet.add(metrics.QUEUE_LOADS, self._queues.load_count)
            sheet.add(metrics.QUEUE_LOAD_SECONDS, self._queues.load_ms / 1000)
            sheet.add(metrics.QUEUE_DEAD_MOVED, self._queues.moves.moved_count)
            sheet.add(metrics.QUEUE_REDRIVEN, self._queues.moves.redriven_count)
            sheet.add(metrics.QUEUE_DEAD_REFUSED, self._queues.moves.refused_count)
        yield

    def _add(self, sheet: Sheet, queue: Queue, *, is_for_dead: bool) -> None:
        serving = [each for each in self._queues.of_queue(queue) if each.is_serving]
        if serving:
            self._add_state(sheet, queue.name, serving, is_for_dead=is_for_dead)
            if REDRIVE_POLICY in queue.attributes:
                is_missing = lacks_target(queue, self._queues.image)
                sheet.add(metrics.QUEUE_DEAD_TARGET_MISSING, int(is_missing), queue.name)
        counted = self._to_queues.counts.of(queue.queue_id)
        if counted is not None:
            sheet.add(metrics.QUEUE_RECEIVED, counted.received_count, queue.name)
            sheet.add(metrics.QUEUE_REDELIVERED, counted.redelivered_count, queue.name)
            sheet.add(metrics.QUEUE_EMPTY_RECEIVES, counted.empty_count, queue.name)

    def _add_state(self, sheet: Sheet, name: str, serving: list[HostedQueue], *, is_for_dead: bool) -> None:
        totals = totals_of(serving)
        sheet.add(metrics.QUEUE_MESSAGES, totals.visible_count, name, "visible")
        sheet.add(metrics.QUEUE_MESSAGES, totals.in_flight_count, name, "inflight")
        sheet.add(metrics.QUEUE_MESSAGES, totals.delayed_count, name, "delayed")
        if is_for_dead:
            there_count = totals.visible_count + totals.in_flight_count + totals.delayed_count
            sheet.add(metrics.QUEUE_DEAD, there_count, name)
        oldest_ms = totals.oldest_sent_at_ms
        age_ms = 0 if oldest_ms is None else max(self._clock.now_ms() - oldest_ms, 0)
        sheet.add(metrics.QUEUE_OLDEST_AGE, age_ms / 1000, name)
        figures = totals.partitions
        sheet.add(metrics.QUEUE_HOLES, sum(each.hole_count for each in figures), name)
        sheet.add(metrics.QUEUE_FLOOR_LAG, sum(map(_floor_lag_bytes, serving)), name)
        sheet.add(metrics.QUEUE_HIDDEN_GROUPS, sum(each.hidden_group_count for each in figures), name)
        sheet.add(metrics.QUEUE_WINDOWS_FULL, sum(each.is_window_full for each in figures), name)
        sheet.add(
            metrics.QUEUE_MOVES_WAITING, sum(each.dying_count + each.moving_count for each in figures), name
        )
        moves = self._queues.moves
        sheet.add(metrics.QUEUE_MOVES_FORGOTTEN, sum(not moves.knows_end(each) for each in serving), name)
        sheet.add(metrics.QUEUE_POLLS_WAITING, sum(each.waiting_count for each in figures), name)


def _floor_lag_bytes(hosted: HostedQueue) -> int:
    log = hosted.partition.log
    offsets = log.end_offset - log.start_offset
    behind = log.end_offset - max(hosted.serving().state.floor, log.start_offset)
    return 0 if offsets <= 0 or behind <= 0 else log.size_bytes * behind // offsets
