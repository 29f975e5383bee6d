"""Idempotent producers: what is accepted, what is a duplicate, what is refused."""

import pytest
from msgspec.structs import replace

from ropewalk.base.errors import OutOfOrderSequence, ProducerFenced
from ropewalk.base.limits import PRODUCERS_PER_PARTITION_MAX
from ropewalk.log.producers import Producers
from ropewalk.records.batch import SEQUENCE_MAX, BatchHeader, decode_header
from tests.log.given import Producer, batch


def header(sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 7) -> BatchHeader:
    producer = Producer(id=producer_id, epoch=epoch, sequence=sequence)
    return decode_header(batch([b"v"] * count, producer=producer))


def remembered(*batches: tuple[int, int], epoch: int = 0) -> Producers:
    """A producer that wrote batches of (sequence, count) from offset 100 on."""
    producers = Producers()
    offset = 100
    for sequence, count in batches:
        producers.apply(header(sequence, count=count, epoch=epoch), offset, 0)
        offset += count
    return producers


SIX = ((0, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1))
ACCEPTED = None


@pytest.mark.parametrize(
    ("before", "sent", "expected"),
    [
        pytest.param((), header(0), ACCEPTED, id="a producer nobody knows"),
        pytest.param((), header(42), ACCEPTED, id="nobody knows it, whatever the sequence"),
        pytest.param(((0, 2),), header(2), ACCEPTED, id="the next"),
        pytest.param(((0, 2),), header(0, count=2), (100, 102), id="the last again"),
        pytest.param(SIX, header(2), (102, 103), id="the fifth last again"),
        pytest.param(SIX, header(0, count=2), OutOfOrderSequence, id="the sixth last again"),
        pytest.param(((0, 2),), header(0, count=1), OutOfOrderSequence, id="a part of the last again"),
        pytest.param(((0, 2),), header(1), OutOfOrderSequence, id="inside the last"),
        pytest.param(((0, 2),), header(3), OutOfOrderSequence, id="a gap"),
        pytest.param(((0, 2),), header(0, epoch=1), ACCEPTED, id="a new epoch"),
        pytest.param(
            ((0, 2),), header(2, epoch=1), OutOfOrderSequence, id="a new epoch that does not begin at 0"
        ),
        pytest.param(((SEQUENCE_MAX, 1),), header(0), ACCEPTED, id="the count begins anew"),
        pytest.param(((SEQUENCE_MAX, 3),), header(2), ACCEPTED, id="a batch across the turn"),
        pytest.param(((SEQUENCE_MAX, 3),), header(SEQUENCE_MAX, count=3), (100, 103), id="that batch again"),
        pytest.param(((SEQUENCE_MAX, 3),), header(3), OutOfOrderSequence, id="a gap after the turn"),
        pytest.param(((0, 2),), header(5, producer_id=8), ACCEPTED, id="another producer"),
    ],
)
def test_answers(
    before: tuple[tuple[int, int], ...], sent: BatchHeader, expected: type[Exception] | tuple[int, int] | None
) -> None:
    for producers in (remembered(*before), Producers(remembered(*before).save())):
        if isinstance(expected, type):
            with pytest.raises(expected):
                producers.check(sent)
        else:
            assert producers.check(sent) == expected


def test_an_older_epoch_is_fenced_even_if_the_batch_was_written_once() -> None:
    producers = remembered((0, 1))
    producers.apply(header(0, epoch=1), 200, 0)
    for sequence in (0, 1):
        with pytest.raises(ProducerFenced, match="epoch 1"):
            producers.check(header(sequence, epoch=0))


def test_after_damage_a_producer_may_leave_out_sequences_once_and_a_retry_is_still_known() -> None:
    producers = remembered((0, 2), (2, 1))
    producers.note_damage()
    producers = Producers(producers.save())
    assert producers.check(header(2)) == (102, 103)
    assert producers.check(header(9)) is ACCEPTED
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(1))
    producers.apply(header(9), 200, 0)
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(12))


def test_silence_expires_by_the_clock_at_the_append() -> None:
    producers = remembered((0, 1))
    producers.apply(header(0, producer_id=8), 101, 500)
    producers.expire(now_ms=1000, expiry_ms=1000)
    assert len(producers) == 1
    assert producers.check(header(77)) is ACCEPTED
    assert producers.check(header(0, producer_id=8)) == (101, 102)


def test_there_is_a_limit_and_the_longest_silent_are_forgotten() -> None:
    producers, template = Producers(), header(0)
    for number in range(PRODUCERS_PER_PARTITION_MAX + 1):
        producers.apply(replace(template, producer_id=0), number, number)
        producers.apply(replace(template, producer_id=1000 + number), number, number)
    assert len(producers) <= PRODUCERS_PER_PARTITION_MAX
    assert producers.check(header(0, producer_id=0)) is not ACCEPTED
    assert producers.check(header(5, producer_id=1000)) is ACCEPTED
