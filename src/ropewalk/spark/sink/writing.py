"""One task: place, encode and send its rows. Runs on executors.

The producer is the client's own, in a thread beside: while rows are encoded, batches are on their way. It is idempotent, keeps
the order of a partition and holds `kafka.buffer.memory` at most.

What a reader could get wrong
    A task that is tried again writes its rows again. `transaction.py` is for who wants them once.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import SystemRandom
from typing import Final

import pyarrow as pa
from msgspec.structs import asdict

from ropewalk.base.errors import ProducerFenced, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.blocking.producer import Producer
from ropewalk.client.errors import DeliveryFailed, RemoteError, TransactionFailed, Unreachable
from ropewalk.client.producing.producer import FinishedBatch
from ropewalk.runtime.clock import SystemClock
from ropewalk.spark.columns import Column
from ropewalk.spark.encoding.encoder import encode
from ropewalk.spark.encoding.rows import rows_of
from ropewalk.spark.fail_points import reach
from ropewalk.spark.refusals import NotWritten, WrongUse
from ropewalk.spark.sink.incoming import by_topic, gathered
from ropewalk.spark.sink.options import SinkOptions
from ropewalk.spark.sink.placing import Placing
from ropewalk.wire.error_code import ErrorCode

_HANDED_OVER: Final = 4
"""Finished batches are given to the producer's thread so many at a time: the first are on their way while others are encoded."""

_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
_TAKEN_OVER: Final = ". A later attempt of this task writes in its place, or another query uses the same name: one query per name may run"


def write(options: SinkOptions, columns: tuple[Column, ...], batches: Iterator[pa.RecordBatch]) -> int:
    """How many rows were written: all, or it raises."""
    row_count = 0
    with connected(options) as producer:
        rows = RowSender(producer, options, columns)
        for batch in gathered(batches):
            rows.send(batch)
            row_count += batch.num_rows
        with telling_why(options):
            producer.flush()
    reach("sink written")
    return row_count


@contextmanager
def connected(options: SinkOptions, transactional_id: str | None = None) -> Iterator[Producer]:
    """A producer; one with a transactional id has taken that over from whoever had it.

    Where nobody answers it is tried for as long as calls may take (`kafka.max.block.ms`): a broker that starts anew is no reason for
    a task to fail.
    """
    settings = options.settings
    until_s = time.monotonic() + settings.max_block_ms / 1000
    with ExitStack() as stack:
        while True:
            made = Producer(options.bootstrap, **{**asdict(settings), "transactional_id": transactional_id})
            try:
                producer = stack.enter_context(made)
                break
            except Unreachable as error:
                if time.monotonic() >= until_s:
                    raise WrongUse(f"no broker answers at {options.bootstrap}: {error}") from None
                time.sleep(settings.retry_backoff_max_ms / 1000)
            except RemoteError as error:
                if error.code is not ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                    raise
                raise WrongUse(
                    f"kafka.transaction.timeout.ms is {settings.transaction_timeout_ms}, and brokers allow less"
                    " (transaction.max.timeout.ms); lower it to what a task needs"
                ) from None
        yield producer


class RowSender:
    """Sends rows as they come. Topics are looked up when their first row comes."""

    def __init__(self, producer: Producer, options: SinkOptions, columns: tuple[Column, ...]) -> None:
        self._producer = producer
        self._options = options
        self._columns = columns
        self._placings: dict[str, Placing] = {}
        self._rng = SystemRandom()

    def send(self, batch: pa.RecordBatch) -> None:
        now_ms = SystemClock().now_ms()
        for topic, columns in by_topic(batch, self._columns, self._options.topic):
            rows = rows_of(columns, now_ms)
            placed = self._placing(topic).place(rows, columns.get(Column.PARTITION))
            settings = self._options.settings
            finished: Iterator[FinishedBatch] = (
                (TopicPartition(topic, each.partition), each.encoded, each.record_count)
                for each in encode(
                    rows,
                    placed,
                    codec=settings.codec,
                    batch_bytes=settings.batch_size,
                    record_bytes_max=settings.max_request_size,
                )
            )
            for some in _some_at_a_time(finished):
                self._hand_over(some)

    def _hand_over(self, batches: list[FinishedBatch]) -> None:
        with telling_why(self._options):
            self._producer.send_batches(batches)

    def _placing(self, topic: str) -> Placing:
        placing = self._placings.get(topic)
        if placing is None:
            count = self._producer.partition_counts([topic]).get(topic)
            if count is None:
                raise WrongUse(f"there is no topic {topic}; create it first")
            placing = self._placings[topic] = Placing(
                topic,
                count,
                first=self._rng.randrange(count),
                bytes_each=self._options.settings.batch_size,
            )
        return placing


@contextmanager
def telling_why(options: SinkOptions) -> Iterator[None]:
    """What brokers refuse is told with what to do about it."""
    try:
        yield
    except ProducerFenced as error:
        raise NotWritten(f"{error}{_TAKEN_OVER}") from error
    except (DeliveryFailed, TransactionFailed) as error:
        cause: RopewalkError = error.cause
        code = cause.code if isinstance(cause, RemoteError) else None
        advice = ""
        if isinstance(cause, ProducerFenced) or code in _FENCED:
            advice = _TAKEN_OVER
        elif code is ErrorCode.MESSAGE_TOO_LARGE:
            advice = (
                f". Batches hold up to {options.settings.batch_size} bytes (kafka.batch.size) or one row: lower that, or raise"
                " the topic's max.message.bytes"
            )
        raise NotWritten(f"{error}{advice}") from error


def _some_at_a_time(batches: Iterator[FinishedBatch]) -> Iterator[list[FinishedBatch]]:
    """They are handed to another thread: rather a few at once than one by one, and not all when the last is encoded."""
    held: list[FinishedBatch] = []
    for batch in batches:
        held.append(batch)
        if len(held) == _HANDED_OVER:
            yield held
            held = []
    if held:
        yield held
