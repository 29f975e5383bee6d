"""A change that is too large for one append takes effect as a whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.limits import METADATA_APPEND_BYTES_MAX
from ropewalk.metadata.changes import appends_of
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    ChangeAbandoned,
    ChangeBegun,
    ChangeEnded,
    ControllerChanged,
    MetadataRecord,
    TopicCreated,
    encode_records,
)


def topics(count: int, *, owner_bytes: int = 1000) -> list[MetadataRecord]:
    return [
        TopicCreated(TopicId(number.to_bytes(16, "big")), f"topic-{number}", "o" * owner_bytes)
        for number in range(count)
    ]


def test_a_small_change_is_one_append_as_it_is() -> None:
    records = topics(3)
    assert appends_of(records) == [records]


@given(st.integers(1, 40), st.integers(50_000, 500_000))
def test_a_large_change_is_cut_and_every_part_fits(count: int, owner_bytes: int) -> None:
    records = topics(count, owner_bytes=owner_bytes)
    parts = appends_of(records)
    assert all(len(encode_records(part)) <= METADATA_APPEND_BYTES_MAX for part in parts)
    joined = [record for part in parts for record in part]
    assert joined == (records if len(parts) == 1 else [ChangeBegun(), *records, ChangeEnded()])


def test_a_fact_that_fits_no_append_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="at most 1048576 are kept"):
        appends_of(topics(1, owner_bytes=METADATA_APPEND_BYTES_MAX))


def test_no_part_of_a_change_is_seen_before_its_end() -> None:
    image, records = Image(), topics(5)
    for record in [ChangeBegun(), *records]:
        assert image.apply(record) == ()
        assert not image.topics
        assert image.is_amid_change
    assert image.apply(ChangeEnded()) == records
    assert len(image.topics) == 5
    assert image.end_offset == 7
    assert not image.is_amid_change


@pytest.mark.parametrize("ending", [ChangeAbandoned(), ControllerChanged(NodeId(1), 1)])
def test_a_change_that_was_given_up_never_takes_effect(ending: MetadataRecord) -> None:
    image, records = Image(), topics(5)
    for record in [ChangeBegun(), *records, ending, records[4]]:
        image.apply(record)
    assert list(image.topics) == ["topic-4"]


@given(st.integers(0, 6))
def test_a_snapshot_taken_amid_a_change_knows_of_it(cut: int) -> None:
    records = [ChangeBegun(), *topics(5), ChangeEnded()]
    image, later = Image(), Image()
    for record in records[:cut]:
        image.apply(record)
    later.replace(tuple(image.facts()), image.end_offset)
    for record in records[cut:]:
        later.apply(record)
    assert len(later.topics) == 5
    assert later.end_offset == 7
