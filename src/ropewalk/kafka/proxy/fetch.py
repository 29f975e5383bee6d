"""Fetch, passed on to the leaders of its partitions.

Behaviour worth knowing
    A fetch is answered as soon as enough has come from any leader. What the others were asked stays asked, and the client's next fetch finds
    it again as long as it asks the same, so nobody is asked twice and nothing that was read is thrown away. Their partitions
    are answered as empty, with no high watermark.
    There are no fetch sessions: a client that asks for one gets none, and names all partitions every time.
"""

import asyncio
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.proxy.handler import Passing, Sent
from ropewalk.kafka.proxy.routed import Parts, merge_topics
from ropewalk.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ropewalk.wire.types import Message

_WHOLE: Final = (-1, 0)
_CONSUMER: Final = -1


class _Poll(Struct):
    part: FetchRequest
    version: int
    """In which it was asked, and will be answered."""
    sent: Sent


class PassedFetch:
    """The handler, and for each client what its leaders were asked and have not been heard of."""

    def __init__(self, passing: Passing) -> None:
        self._passing = passing
        self._polls: dict[object, dict[NodeId | None, _Poll]] = {}

    async def handle(self, request: FetchRequest, caller: Caller) -> Message | None:
        is_replica = request.replica_id != _CONSUMER or request.replica_state.replica_id != _CONSUMER
        parts = self._passing.split(request)
        if is_replica or request.session_epoch not in _WHOLE or not parts:
            return await self._passing.answer_here(request, caller)
        polls = await self._ask(parts, caller, request.max_wait_ms)
        answers: dict[NodeId | None, FetchResponse] = {}
        waiting = _Waiting()
        with caller.hold_while(waiting):
            while True:
                await self._collect(polls, answers, caller)
                if (
                    len(answers) == len(polls)
                    or waiting.is_over
                    or _size(answers) >= max(1, request.min_bytes)
                ):
                    break
                await waiting.any_of([poll.sent for key, poll in polls.items() if key not in answers])
        if waiting.is_abandoned:
            return None
        known = self._polls.get(caller.connection, {})
        for node_id in answers:
            known.pop(node_id, None)
        response: FetchResponse = merge_topics(
            [
                answers[node_id] if node_id in answers else _nothing(poll.part)
                for node_id, poll in polls.items()
            ]
        )
        return response

    async def _ask(self, parts: Parts, caller: Caller, wait_ms: int) -> dict[NodeId | None, _Poll]:
        known = self._polls.get(caller.connection)
        if known is None:
            client = caller.connection
            known = self._polls[client] = {}
            caller.watch_end(lambda: self._forget(client))
        polls = {
            node_id: poll
            for node_id, part in parts.items()
            if (poll := known.get(node_id)) is not None
            and (poll.part, poll.version) == (part, caller.version)
        }
        fresh = {node_id: part for node_id, part in parts.items() if node_id not in polls}
        for (node_id, part), sent in zip(
            fresh.items(), await self._passing.send(fresh, caller, wait_ms), strict=True
        ):
            assert isinstance(part, FetchRequest)
            polls[node_id] = _Poll(part, caller.version, sent)
        known.clear()
        known.update(polls)
        return polls

    async def _collect(
        self, polls: dict[NodeId | None, _Poll], answers: dict[NodeId | None, FetchResponse], caller: Caller
    ) -> None:
        for node_id, poll in polls.items():
            if node_id not in answers and (poll.sent is None or poll.sent.done()):
                answer = await self._passing.answer(poll.sent, poll.part, caller)
                assert isinstance(answer, FetchResponse)
                answers[node_id] = answer

    def _forget(self, client: object) -> None:
        self._polls.pop(client, None)


class _Waiting:
    """For the first of several answers, or for the client to go away."""

    def __init__(self) -> None:
        self.is_over = False
        self.is_abandoned = False
        self._wake: asyncio.Future[None] | None = None

    async def any_of(self, sent: "list[Sent]") -> None:
        self._wake = asyncio.get_running_loop().create_future()
        for each in sent:
            assert each is not None, "what was not sent is answered at once"
            each.add_done_callback(self._on_change)
        try:
            await self._wake
        finally:
            for each in sent:
                if each is not None:
                    each.remove_done_callback(self._on_change)

    def hurry(self) -> None:
        self.is_over = True
        self._on_change(None)

    def abandon(self) -> None:
        self.is_abandoned = True
        self.hurry()

    def _on_change(self, _: object) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _size(answers: dict[NodeId | None, FetchResponse]) -> int:
    """Of the records; an error is worth an answer at once."""
    size = 0
    for answer in answers.values():
        size += 0x7FFFFFFF if answer.error_code else 0
        for topic in answer.topics:
            for partition in topic.partitions:
                size += 0x7FFFFFFF if partition.error_code else len(partition.records or b"")
    return size


def _nothing(part: FetchRequest) -> FetchResponse:
    topics = [
        FetchableTopicResponse(
            topic.name,
            topic.topic_id,
            tuple(PartitionData(asked.index, 0, -1, records=b"") for asked in topic.partitions),
        )
        for topic in part.topics
    ]
    return FetchResponse(throttle_ms=0, topics=tuple(topics))
