"""A connection has turns: however much a client sends at once, its neighbours are handled in between."""

import asyncio

import pytest

from ropewalk.base.limits import CONNECTION_FRAMES_PER_TURN, CONNECTION_TURN_MS
from ropewalk.kafka.connection import Connection
from ropewalk.wire.messages import api_versions, produce
from tests.kafka.door import Door, at_the_door, batch_of, produce_request
from tests.kafka.test_hostile_requests import Bare, framed

ASKED = api_versions.ApiVersionsRequest()


class Turns:
    """How many frames were handled in each turn of the loop, by a node that takes so long for each."""

    def __init__(self, door: Door, monkeypatch: pytest.MonkeyPatch, *, frame_ms: float = 0.0) -> None:
        self.frame_counts: list[int] = []
        step = -1
        late_ms = 0.0
        handle = Connection._handle
        clock = door.machine.clock
        monotonic_ms = clock.monotonic_ms

        def counted(connection: Connection, position: int, end: int) -> None:
            nonlocal step, late_ms
            if step != door.world.loop.step_count:
                step = door.world.loop.step_count
                self.frame_counts.append(0)
            self.frame_counts[-1] += 1
            late_ms += frame_ms
            handle(connection, position, end)

        monkeypatch.setattr(Connection, "_handle", counted)
        monkeypatch.setattr(clock, "monotonic_ms", lambda: monotonic_ms() + late_ms)


@pytest.mark.parametrize(
    ("frame_ms", "frames_max"),
    [(0.0, CONNECTION_FRAMES_PER_TURN), (CONNECTION_TURN_MS / 3.5, 4), (10 * CONNECTION_TURN_MS, 1)],
)
def test_a_turn_is_bounded_in_frames_and_in_time(
    monkeypatch: pytest.MonkeyPatch, frame_ms: float, frames_max: int
) -> None:
    async def story(door: Door) -> list[int]:
        turns = Turns(door, monkeypatch, frame_ms=frame_ms)
        answers = [door.send(api_versions.API, 3, ASKED) for _ in range(1000)]
        await asyncio.gather(*answers)
        return turns.frame_counts

    frame_counts = at_the_door(story)
    assert sum(frame_counts) == 1000
    assert max(frame_counts) == frames_max


def test_what_was_sent_at_once_takes_effect_in_order_over_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(door: Door) -> list[int]:
        await door.create("orders")
        turns = Turns(door, monkeypatch, frame_ms=CONNECTION_TURN_MS / 3)
        asked = [door.send(produce.API, 9, produce_request("orders", batch_of(str(n)))) for n in range(300)]
        answers = await asyncio.gather(*asked)
        assert len(turns.frame_counts) > 50
        return [answer.topics[0].partitions[0].base_offset for answer in answers]

    assert at_the_door(story) == list(range(300))


def test_a_client_that_ends_its_input_gets_the_answers_of_turns_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(door: Door) -> int:
        turns = Turns(door, monkeypatch, frame_ms=CONNECTION_TURN_MS)
        transport, bare = await Bare.open(door)
        transport.write(100 * framed(api_versions.API, 3, ASKED))
        transport.write_eof()
        async with asyncio.timeout(60):
            await bare.closed
        assert len(turns.frame_counts) == 100
        return len(bare.answers)

    assert at_the_door(story) == 100
