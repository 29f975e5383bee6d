"""Those who wait: for the same thing, for several things, for room to write."""

import asyncio

import pytest

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import CLIENT_REQUESTS_MAX
from ropewalk.client.calls.together import together
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.single_flight import SingleFlight
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import RemoteError
from ropewalk.records.record import Record, build
from ropewalk.wire.messages import fetch, metadata
from tests.client.fake_broker import FakeBroker, Fault
from tests.client.fake_cluster import PORT, Stage, on_stage


class Refused(RopewalkError):
    pass


def test_work_wanted_by_many_is_done_once() -> None:
    async def story(_: Stage) -> None:
        flights: SingleFlight[str, int] = SingleFlight()
        started: list[int] = []

        async def work() -> int:
            started.append(1)
            await asyncio.sleep(1)
            return 7

        assert await asyncio.gather(*(flights.run("a", work) for _ in range(5))) == [7] * 5
        assert len(started) == 1
        assert await flights.run("a", work) == 7
        assert len(started) == 2, "what is done is not remembered"

    on_stage(story)


def test_a_failure_is_shared_by_those_who_waited() -> None:
    async def story(_: Stage) -> None:
        flights: SingleFlight[str, int] = SingleFlight()

        async def work() -> int:
            await asyncio.sleep(1)
            raise Refused("no")

        outcomes = await asyncio.gather(*(flights.run("a", work) for _ in range(3)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Refused] * 3

    on_stage(story)


def test_the_first_ones_cancellation_is_not_the_others() -> None:
    async def story(_: Stage) -> None:
        flights: SingleFlight[str, int] = SingleFlight()

        async def work() -> int:
            await asyncio.sleep(1)
            return 7

        tasks = [asyncio.ensure_future(flights.run("a", work)) for _ in range(3)]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [7 if outcome == 7 else type(outcome) for outcome in outcomes].count(7) == 2

    on_stage(story)


def test_together_keeps_the_order_and_raises_the_first_failure_as_it_is() -> None:
    async def story(stage: Stage) -> None:
        ended: list[str] = []

        async def answer(value: int, delay_s: float) -> int:
            try:
                await asyncio.sleep(delay_s)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            if value < 0:
                raise Refused(str(value))
            return value

        assert await together([answer(1, 3), answer(2, 1), answer(3, 2)]) == [1, 2, 3]
        started_ms = stage.now_ms
        with pytest.raises(Refused, match="-2"):
            await together([answer(1, 9), answer(-2, 1)])
        assert stage.now_ms - started_ms == pytest.approx(1_000, abs=1)
        assert ended == ["cancelled"]

    on_stage(story)


def test_a_full_connection_makes_callers_wait_and_not_fail() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker()
        connection = await open_connection(stage)
        request = metadata.MetadataRequest(topics=())
        calls = [
            connection.call(metadata.API, request, deadline_ms=stage.now_ms + 60_000)
            for _ in range(CLIENT_REQUESTS_MAX + 200)
        ]
        answers = await asyncio.gather(*calls)
        assert len(answers) == CLIENT_REQUESTS_MAX + 200

    on_stage(story)


def test_waiting_for_room_ends_at_the_deadline() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        broker.fail(metadata.API, Fault(CLIENT_REQUESTS_MAX, is_silent=True))
        connection = await open_connection(stage)
        request = metadata.MetadataRequest(topics=())
        version = connection.versions.choose(metadata.API)
        unanswered = [
            connection.send(metadata.API, version, request, deadline_ms=stage.now_ms + 60_000)
            for _ in range(CLIENT_REQUESTS_MAX)
        ]
        with pytest.raises(TimedOut, match="did not answer Metadata within 300 ms"):
            await connection.call(metadata.API, request, deadline_ms=stage.now_ms + 300)
        await asyncio.gather(*unanswered, return_exceptions=True)

    on_stage(story)


async def open_connection(stage: Stage) -> Connection:
    network = stage.world.network.host("client")
    return await Connection.open(
        network, stage.clock, Address("b0", PORT), client_id="test", deadline_ms=stage.now_ms + 1_000
    )


@pytest.mark.parametrize(
    "leader", [pytest.param(-1, id="without a leader"), pytest.param(7, id="led by a stranger")]
)
def test_one_sick_partition_does_not_keep_the_others_from_being_read(leader: int) -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 0)
        topic.partitions[1].append(bytes(build([Record(value=b"v")])))
        topic.partitions[0].leader = leader
        positions = {TopicPartition("orders", 0): 0, TopicPartition("orders", 1): 0}
        async with stage.client() as client:
            consumer = Consumer(client, positions)
            (consumed,) = await consumer.poll()
            assert [record.value for record in consumed.records] == [b"v"]
            topic.partitions[0].leader = 0
            topic.partitions[0].append(bytes(build([Record(value=b"w")])))
            values = [record.value for consumed in await consumer.poll() for record in consumed.records]
        assert values == [b"w"], "it is found again"
        assert asked_for_fetch(broker) == 2

    on_stage(story)


def test_a_partition_in_error_is_not_asked_for_in_a_circle() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        topic = stage.cluster.add_topic("orders", 0, 0)
        # The metadata says that the broker leads it; the broker itself does not think so.
        broker.disowned.append(topic.partitions[0])
        async with stage.client() as client:
            with pytest.raises(RemoteError, match="NOT_LEADER_OR_FOLLOWER"):
                await Consumer(
                    client, dict.fromkeys((TopicPartition("orders", 0), TopicPartition("orders", 1)), 0)
                ).poll()
        assert asked_for_fetch(broker) < 50, "thirty seconds of pauses, not of questions"

    on_stage(story)


def asked_for_fetch(broker: FakeBroker) -> int:
    return broker.asked(fetch.FetchRequest)
