"""How a queue stands, over its partitions: numbers that its cores and hosts keep anyway.

What a reader could get wrong
    Messages that nobody has asked for since they were sent are counted by their offsets: ends of transactions, and what a transaction took
    back, count as messages until they are read. SQS calls its numbers approximate, too.
"""

from collections.abc import Iterable

from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.opened import delay_ms_of
from ropewalk.queues.figures import QueueFigures
from ropewalk.queues.messages import Totals


def totals_of(partitions: Iterable[HostedQueue]) -> Totals:
    """Raises `QueueNotReady` where one of them is being loaded."""
    visible_count = in_flight_count = delayed_count = 0
    oldest: list[int] = []
    figures: list[QueueFigures] = []
    for hosted in partitions:
        core = hosted.serving()
        each = core.figures()
        untold_delayed = _untold_delayed_count(hosted)
        hidden_count = (
            each.in_flight_count
            + each.delayed_count
            + each.resting_count
            + each.dying_count
            + each.moving_count
        )
        visible_count += max(
            core.known_count - hidden_count + hosted.unread_message_count() - untold_delayed, 0
        )
        in_flight_count += each.in_flight_count
        delayed_count += each.delayed_count + each.resting_count + untold_delayed
        oldest_ms = core.oldest_sent_at_ms
        if oldest_ms is None and not core.known_count:
            oldest_ms = next((record.timestamp for record in hosted.untold_records()), None)
        if oldest_ms is not None:
            oldest.append(oldest_ms)
        figures.append(each)
    return Totals(visible_count, in_flight_count, delayed_count, min(oldest, default=None), tuple(figures))


def _untold_delayed_count(hosted: HostedQueue) -> int:
    """Of those that were just sent."""
    now_ms = hosted.now_ms()
    queue_delay_ms = hosted.settings.delay_ms
    count = 0
    for record in hosted.untold_records():
        delay_ms = queue_delay_ms if hosted.settings.is_fifo else delay_ms_of(record)
        count += delay_ms > 0 and record.timestamp + delay_ms > now_ms
    return count
