"""Messages for leaders on other nodes: those of a turn go together, and everyone hears of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from ropewalk.base.errors import NodeStopping, QueueNotReady, RopewalkError, Throttled
from ropewalk.base.ids import NodeId, OwnerId
from ropewalk.base.limits import QUEUE_BATCH_BYTES
from ropewalk.broker.dispatch.far_sends import FarSends, Outcomes
from ropewalk.broker.peers.calls.call import Call
from ropewalk.broker.peers.calls.queue_refusals import NOTHING
from ropewalk.queues.messages import Outgoing, Sent
from ropewalk.runtime.errands import Errands
from ropewalk.sim.machines.world import World
from ropewalk.wire.peer.queue_send import QueueSendRequest, QueueSendResponse, QueueSent

HERE = (NodeId(1), OwnerId(b"q" * 16), 3)
ELSEWHERE = (NodeId(2), OwnerId(b"q" * 16), 0)


class FakeLink:
    """Remembers what it is asked, and takes all of it."""

    def __init__(self) -> None:
        self.requests: list[QueueSendRequest] = []

    async def call(self, _api: object, request: QueueSendRequest, **_how: object) -> QueueSendResponse:
        self.requests.append(request)
        taken = [QueueSent(NOTHING, 100 + number) for number in range(len(request.messages))]
        return QueueSendResponse(NOTHING, tuple(taken))


class Place:
    """What `FarSends` is made of, with a link that remembers and may fail."""

    def __init__(self) -> None:
        self.errands = Errands(count_max=2)
        self.links: dict[NodeId, FakeLink] = {}
        self.failure: RopewalkError | None = None
        self.sends = FarSends(self._ask, self.errands.begin)

    async def _ask(self, node_id: NodeId, call: Call[Outcomes]) -> Outcomes:
        link: Any = self.links.setdefault(node_id, FakeLink())
        answer = await call.send(link, 0)
        if self.failure is not None:
            raise self.failure
        return answer

    def sent(self) -> list[list[str]]:
        """By request, in whichever order to different nodes."""
        return [
            [bytes(message.body).decode() for message in request.messages]
            for link in self.links.values()
            for request in link.requests
        ]


def outgoing(*texts: str) -> list[Outgoing]:
    return [Outgoing(body=text.encode(), sent_at_ms=1) for text in texts]


def play(story: Callable[[Place], Awaitable[None]], *, carries_out: bool = True) -> None:
    async def main() -> None:
        place = Place()
        running = asyncio.ensure_future(place.errands.run()) if carries_out else None
        await story(place)
        if running is not None:
            running.cancel()

    with World(0) as world:
        world.run(_of(main()), limit_s=60)


async def _of(work: Coroutine[Any, Any, None]) -> None:
    await work


def test_what_is_sent_in_one_turn_is_one_request_and_everyone_hears_of_their_own() -> None:
    async def story(place: Place) -> None:
        first = place.sends.send(HERE, outgoing("a", "b"))
        second = place.sends.send(HERE, outgoing("c"))
        other = place.sends.send(ELSEWHERE, outgoing("d"))
        assert place.sends.pending_bytes(HERE) > place.sends.pending_bytes(ELSEWHERE) > 0
        assert await first == [Sent(3, 100), Sent(3, 101)]
        assert await second == [Sent(3, 102)]
        assert await other == [Sent(0, 100)]
        assert place.sends.pending_bytes(HERE) == 0
        assert await place.sends.send(HERE, outgoing("e")) == [Sent(3, 100)]
        assert place.sent() == [["a", "b", "c"], ["e"], ["d"]]

    play(story)


def test_a_request_is_no_larger_than_a_batch() -> None:
    async def story(place: Place) -> None:
        large = "x" * (QUEUE_BATCH_BYTES // 2)
        said = (("an attribute", large.encode()),)
        messages = [
            Outgoing(body=large.encode(), sent_at_ms=1),
            Outgoing(body=b"a", headers=said, sent_at_ms=1),
            Outgoing(body=b"b", headers=said, sent_at_ms=1),
        ]
        await asyncio.gather(*[place.sends.send(HERE, [each]) for each in messages[:2]])
        await asyncio.gather(*[place.sends.send(HERE, [each]) for each in messages[1:]])
        assert place.sent() == [[large], ["a"], ["a"], ["b"]]

    play(story)


def test_what_fails_fails_for_all_and_a_sender_that_has_gone_changes_nothing() -> None:
    async def story(place: Place) -> None:
        gone = place.sends.send(HERE, outgoing("a"))
        stays = place.sends.send(HERE, outgoing("b"))
        gone.cancel()
        assert await stays == [Sent(3, 101)]
        place.failure = QueueNotReady("somebody else leads")
        answers = [place.sends.send(HERE, outgoing(text)) for text in "cd"]
        for answer in answers:
            with pytest.raises(QueueNotReady):
                await answer

    play(story)


def test_what_cannot_be_begun_is_refused_and_nothing_waits() -> None:
    async def story(place: Place) -> None:
        place.sends.send(HERE, outgoing("a"))
        place.sends.send(ELSEWHERE, outgoing("b"))
        third = (NodeId(3), HERE[1], 0)
        with pytest.raises(Throttled):
            place.sends.send(third, outgoing("c"))
        assert place.sends.pending_bytes(third) == 0

    play(story, carries_out=False)


def test_what_waits_when_the_node_stops_is_refused() -> None:
    async def story(place: Place) -> None:
        running = asyncio.ensure_future(place.errands.run())
        await asyncio.sleep(0)
        answer = place.sends.send(HERE, outgoing("a"))
        running.cancel()
        with pytest.raises(NodeStopping):
            await answer
        assert place.sends.pending_bytes(HERE) == 0

    play(story, carries_out=False)
