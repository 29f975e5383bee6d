"""ExplainMessage: where a message is and why it is not given out; an action of Ropewalk's own."""

from typing import ClassVar

from ropewalk.queues.attempts import count_of
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import RESOURCE_NOT_FOUND, SqsRefusal
from ropewalk.sqs.message_ids import message_id, place_of
from ropewalk.sqs.packing import group_of, said_by
from ropewalk.sqs.shapes import Input, Output


class ExplainMessageRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue_url", "message_id")

    queue_url: str = ""
    message_id: str = ""


class ExplainMessageResult(Output, frozen=True, kw_only=True):
    state: str
    partition: int
    offset: int
    sent_timestamp: int
    message_group_id: str | None = None
    receive_count: int
    first_receive_timestamp: int | None = None
    attempt: int
    visible_timestamp: int | None = None
    """When it becomes visible, where it is not."""
    dead_letter_source: str | None = None
    behind_message_id: str | None = None
    """FIFO: the message of its group that has to be done with first."""


async def handle(request: ExplainMessageRequest, desk: Desk, caller: Caller) -> ExplainMessageResult:
    desk.require_admin(caller, "ExplainMessage")
    queue = desk.queue(request.queue_url)
    place = place_of(request.message_id, queue.topic_id)
    seen = None
    if place is not None:
        seen = await desk.engine.messages.look_at(queue, place.partition, place.offset)
    if seen is None:
        raise SqsRefusal(RESOURCE_NOT_FOUND, "The queue's log has no message of that id.")
    said = said_by(seen.record.headers)
    return ExplainMessageResult(
        state=seen.state,
        partition=seen.partition,
        offset=seen.record.offset,
        sent_timestamp=seen.record.timestamp,
        message_group_id=group_of(seen.record) or None,
        receive_count=seen.receive_count + said.received_before,
        first_receive_timestamp=seen.first_received_at_ms or None,
        attempt=count_of(seen.attempt),
        visible_timestamp=seen.until_ms or None,
        dead_letter_source=said.source or None,
        behind_message_id=None
        if seen.behind_offset < 0
        else message_id(queue.topic_id, seen.partition, seen.behind_offset),
    )
