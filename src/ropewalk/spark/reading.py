"""One task: fetch a range of one partition, decode it, hand it on. Runs on executors.

While one answer is decoded the next is on its way. Leaders are looked up here, in the task, when it runs: a replay of the
same range may find them elsewhere.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Final

import pyarrow as pa
import structlog
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, TopicId, format_id, parse_id
from ropewalk.client.calls.fetch import Fetched
from ropewalk.client.errors import TopicReplaced
from ropewalk.records.batch import iterate
from ropewalk.spark.brokers import Brokers, is_out_of_range
from ropewalk.spark.columns import Column, all_columns
from ropewalk.spark.decoding.bodies import Aborted
from ropewalk.spark.decoding.decoder import Decoder
from ropewalk.spark.decoding.records_found import Wanted
from ropewalk.spark.options import EARLIEST, AtOffsets, SourceOptions
from ropewalk.spark.ranges import EVER, FROM_THE_START, Range, TopicIds, split
from ropewalk.spark.refusals import DataLost, said_of_made_anew
from ropewalk.spark.weights import Weights, cut

ROWS_PER_BATCH_MAX: Final = 100_000
"""Handed to Spark at once: enough to lose the cost of handing over."""

BYTES_PER_BATCH_MAX: Final = 16 << 20
"""The same in bytes, since what was compressed well is many times as large here as it was on its way: little enough for an executor
whose memory is small and that has several tasks."""

SILENT_ROUNDS_MAX: Final = 240
"""Fetches that bring nothing, each as long as the client waits, before a range that must be there is given up."""

_log = structlog.get_logger()


class TopicRecords(Struct, frozen=True):
    """What a job reads, with all columns, for tasks that fetch records themselves."""

    options: SourceOptions
    tasks_min: int = 0
    """So many share a batch that is large enough for them, unless the user says how it is cut."""

    def split(self, ranges: list[Range]) -> list[Range]:
        """Where a range begins wherever the log does, that is looked up: a piece of what retention has removed would be taken for a loss.
        The first piece goes on beginning there, since retention may be quicker than its task."""
        least, most = self.options.partitions_min, self.options.records_per_partition_max
        by_weight = bool(self.tasks_min) and least is None and most is None
        from_the_start = [each.partition for each in ranges if each.start == FROM_THE_START]
        if not by_weight and (not from_the_start or (least is None and most is None)):
            return split(ranges, least, records_max=most)
        with Brokers(self.options) as brokers:
            found = brokers.resolve(AtOffsets(EARLIEST), from_the_start, is_start=True)
            weights = brokers.weights([each.partition for each in ranges]) if by_weight else Weights()
        known = [
            replace(each, start=min(found[each.partition], each.end)) if each.partition in found else each
            for each in ranges
        ]
        pieces = cut(known, weights, self.tasks_min) if by_weight else split(known, least, records_max=most)
        return [
            replace(each, start=FROM_THE_START) if found.get(each.partition) == each.start else each
            for each in pieces
        ]

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        wanted = tuple(topics)
        with Brokers(self.options) as brokers:
            view = brokers.wait(brokers.client.metadata(wanted))
        return {each.name: format_id(each.topic_id) for each in view.topics if each.topic_id != TOPIC_ID_NONE}

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        return read(self.options, all_columns(with_headers=True), wanted)


def read(
    options: SourceOptions, columns: tuple[Column, ...], wanted: Range, times: tuple[int, int] = EVER
) -> Iterator[pa.RecordBatch]:
    """`times`: first and end in milliseconds, the end not included; what lies outside is left out."""
    decoder = Decoder(columns, topic=wanted.partition.topic, partition=wanted.partition.partition)
    with Brokers(options) as brokers:
        position = wanted.start
        if position == FROM_THE_START:
            position = min(brokers.earliest(wanted.partition), wanted.end)
        for asked, fetched in _fetches(brokers, options, wanted, position):
            sought = Wanted(asked, wanted.end, *times)
            aborted = [Aborted(producer_id, first_offset) for producer_id, first_offset in fetched.aborted]
            decoded, _ = decoder.decode(memoryview(fetched.records), sought, aborted)
            yield from in_slices(decoded)


def in_slices(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """None has more than the bounds above, as long as rows are about alike; at least one row is in each."""
    fitting = rows.num_rows * BYTES_PER_BATCH_MAX // max(1, rows.nbytes)
    count = max(1, min(ROWS_PER_BATCH_MAX, fitting))
    for start in range(0, rows.num_rows, count):
        yield rows.slice(start, count)


def _fetches(
    brokers: Brokers, options: SourceOptions, wanted: Range, position: int
) -> Iterator[tuple[int, Fetched]]:
    """Answers that hold something, each with the offset that was asked for, until the range is over.

    A batch may begin before that offset, with records that were read already or that are gone for everybody.
    """

    topic_ids = (
        {} if wanted.topic_id is None else {wanted.partition.topic: TopicId(parse_id(wanted.topic_id))}
    )

    def ask() -> Future[list[Fetched]]:
        return brokers.start(
            brokers.client.fetch(
                {wanted.partition: position}, isolation=options.isolation, topic_ids=topic_ids
            )
        )

    silent_count = 0
    pending = ask()
    while position < wanted.end:
        try:
            answers = pending.result()
        except RopewalkError as error:
            position = _after(error, brokers, options, wanted, position)
            pending = ask()
            continue
        asked = position
        fetched = answers[0] if answers else None
        position = asked if fetched is None else _end_of(fetched, asked)
        silent_count = silent_count + 1 if position == asked else 0
        if silent_count > SILENT_ROUNDS_MAX:
            ended = f"{wanted.partition} ends at {position}, before offset {wanted.end} that was to be read"
            if options.fails_on_data_loss:
                raise DataLost(f"{ended}. To read what is there, say failOnDataLoss=false")
            _log.warning("records are gone before they were read", lost=ended)
            return
        if position < wanted.end:
            pending = ask()
        if fetched is not None and fetched.records:
            yield asked, fetched


def _end_of(fetched: Fetched, position: int) -> int:
    end_offset = position
    for _, header in iterate(fetched.records):
        end_offset = max(end_offset, header.end_offset)
    return end_offset


def _after(
    error: RopewalkError, brokers: Brokers, options: SourceOptions, wanted: Range, position: int
) -> int:
    """Where to go on after an error, if anywhere."""
    if isinstance(error, TopicReplaced):
        if not options.takes_new_topics:
            raise DataLost(said_of_made_anew(error.topic, error.expected_id, error.found_id))
        lost = f"offsets {position} to {wanted.end} of {wanted.partition} are gone with topic {error.expected_id}"
        _log.warning("a topic was made anew before it was read", partition=str(wanted.partition), lost=lost)
        return wanted.end
    if not is_out_of_range(error):
        raise error
    earliest = brokers.earliest(wanted.partition)
    # Behind the end of the log there is nothing to go on at.
    end = min(earliest, wanted.end) if earliest > position else wanted.end
    lost = f"offsets {position} to {end} of {wanted.partition} are gone"
    if options.fails_on_data_loss:
        raise DataLost(
            f"{lost}: retention or an administrator has removed them, or the topic was made anew."
            " To read what is there, say failOnDataLoss=false"
        )
    _log.warning("records are gone before they were read", partition=str(wanted.partition), lost=lost)
    return end
