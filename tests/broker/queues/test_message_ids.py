"""Ids of messages lead back to where these lie, and only in their own topic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import TopicId
from ropewalk.broker.queues.message_ids import (
    MESSAGE_ID_BYTES,
    MessagePlace,
    make_message_id,
    read_message_id,
    topic_digest,
)

TOPIC = TopicId(b"t" * 16)
OTHER = TopicId(b"u" * 16)


@given(partition=st.integers(0, 2**16 - 1), offset=st.integers(0, 2**63 - 1))
def test_an_id_can_be_read_back(partition: int, offset: int) -> None:
    message_id = make_message_id(topic_digest(TOPIC), partition, offset)
    assert len(message_id) == MESSAGE_ID_BYTES
    assert read_message_id(message_id, topic_digest(TOPIC)) == MessagePlace(partition, offset)
    assert read_message_id(message_id, topic_digest(OTHER)) is None


@pytest.mark.parametrize(
    "message_id", [b"", bytes(15), bytes(17), bytes(16), make_message_id(topic_digest(TOPIC), 0, 2**63)]
)
def test_what_is_no_id_is_refused(message_id: bytes) -> None:
    assert read_message_id(message_id, topic_digest(TOPIC)) is None
