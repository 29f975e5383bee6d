"""Quotas at the door, in virtual time: a client that takes no notice of `throttle_ms` is slowed all the same.

The client here never waits of its own accord: whatever holds it to its quota is the node.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_client_quotas,
    create_partitions,
    create_topics,
    delete_topics,
    describe_client_quotas,
    fetch,
    metadata,
    produce,
)
from tests.kafka.door import NODE, Door, at_the_door, batch_of, fetch_request, produce_request

RATE = 1_000_000
SECONDS = 10
Parts = tuple[tuple[str, str | None], ...]

GREEDY: Parts = (("client-id", "greedy"),)


async def alter(door: Door, entity: Parts, version: int = 1, **quotas: float | None) -> int:
    operations = tuple(
        alter_client_quotas.OpData(name, value or 0.0, value is None) for name, value in quotas.items()
    )
    parts = tuple(alter_client_quotas.EntityData(*part) for part in entity)
    request = alter_client_quotas.AlterClientQuotasRequest(
        (alter_client_quotas.EntryData(parts, operations),), False
    )
    return (await door.call(alter_client_quotas.API, version, request)).entries[0].error_code


class WorldClock:
    def __init__(self, door: Door) -> None:
        self._world = door.world

    def now_ms(self) -> int:
        return EPOCH_MS + int(self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return self._world.now_s * 1000


async def connect(door: Door, client_id: str) -> Connection:
    return await Connection.open(
        door.world.network.host("client"),
        WorldClock(door),
        NODE,
        client_id=client_id,
        deadline_ms=door.deadline_ms,
    )


async def bytes_in(door: Door, seconds: float, once: Callable[[], Awaitable[int]]) -> int:
    """How many bytes `once`, again and again, moves in so much virtual time."""
    until_s = door.world.now_s + seconds
    moved = 0
    while True:
        moved_now = await once()
        if door.world.now_s > until_s:
            return moved
        moved += moved_now


def producing(door: Door, connection: Connection, size_bytes: int) -> Callable[[], Awaitable[int]]:
    batch = batch_of("x" * size_bytes)

    async def once() -> int:
        response = await connection.send(
            produce.API, 9, produce_request("t", batch), deadline_ms=door.deadline_ms
        )
        assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
        return len(batch)

    return once


@pytest.mark.parametrize("size_bytes", [20_000, 60_000, 400_000])
def test_a_producer_is_held_to_its_quota(size_bytes: int) -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        assert await alter(door, GREEDY, producer_byte_rate=RATE) == ErrorCode.NONE
        greedy = await connect(door, "greedy")
        return await bytes_in(door, SECONDS, producing(door, greedy, size_bytes))

    assert at_the_door(story) == pytest.approx(RATE * SECONDS, rel=0.1)


def test_connections_of_one_client_share_its_quota() -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        await alter(door, GREEDY, producer_byte_rate=RATE)
        connections = [await connect(door, "greedy") for _ in range(3)]
        return sum(
            await asyncio.gather(
                *(bytes_in(door, SECONDS, producing(door, each, 20_000)) for each in connections)
            )
        )

    assert at_the_door(story) == pytest.approx(RATE * SECONDS, rel=0.1)


def test_pipelining_gets_nobody_past_a_quota() -> None:
    async def story(door: Door) -> float:
        await door.create("t")
        await alter(door, GREEDY, producer_byte_rate=RATE)
        greedy = await connect(door, "greedy")
        batch = batch_of("x" * 100_000)
        started_s = door.world.now_s
        writes = [
            greedy.send(produce.API, 9, produce_request("t", batch), deadline_ms=door.deadline_ms)
            for _ in range(100)
        ]
        await asyncio.gather(*writes)
        return door.world.now_s - started_s

    assert at_the_door(story) == pytest.approx(SECONDS, rel=0.1)


def test_a_consumer_is_held_to_its_quota() -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        for _ in range(5):
            await door.produce("t", batch_of("x" * 100_000))
        await alter(door, GREEDY, consumer_byte_rate=RATE)
        greedy = await connect(door, "greedy")

        async def once() -> int:
            response = await greedy.send(
                fetch.API, 12, fetch_request("t", 0, max_bytes=50_000_000), deadline_ms=door.deadline_ms
            )
            return len(response.topics[0].partitions[0].records or b"")

        return await bytes_in(door, SECONDS, once)

    assert at_the_door(story) == pytest.approx(RATE * SECONDS, rel=0.1)


def test_a_fetch_is_no_larger_than_a_second_is_worth() -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        for _ in range(30):
            await door.produce("t", batch_of("x" * 100_000))
        await alter(door, GREEDY, consumer_byte_rate=RATE)
        greedy = await connect(door, "greedy")
        request = fetch_request("t", 0, max_bytes=50_000_000)
        response = await greedy.send(fetch.API, 12, request, deadline_ms=door.deadline_ms)
        return len(response.topics[0].partitions[0].records or b"")

    assert RATE * 0.8 < at_the_door(story) <= RATE


def test_neighbours_do_not_notice() -> None:
    """Beside a client that is held, another's writes take as long as they did before there was any quota."""

    async def story(door: Door) -> tuple[float, float]:
        await door.create("t")
        other = await connect(door, "other")
        write = producing(door, other, 100)

        async def slowest_s() -> float:
            slowest = 0.0
            for _ in range(100):
                started_s = door.world.now_s
                await write()
                slowest = max(slowest, door.world.now_s - started_s)
            return slowest

        before_s = await slowest_s()
        await alter(door, GREEDY, producer_byte_rate=RATE)
        greedy = await connect(door, "greedy")
        using = asyncio.ensure_future(bytes_in(door, SECONDS, producing(door, greedy, 100_000)))
        await asyncio.sleep(1)
        beside_s = await slowest_s()
        assert not using.done()
        await using
        return before_s, beside_s

    before_s, beside_s = at_the_door(story)
    assert beside_s < 2 * before_s + 0.01


def test_the_answer_comes_at_once_and_says_how_long_to_wait() -> None:
    async def story(door: Door) -> list[tuple[float, int]]:
        await door.create("t")
        await alter(door, GREEDY, producer_byte_rate=1000)
        greedy = await connect(door, "greedy")
        seen = []
        for _ in range(2):
            started_s = door.world.now_s
            request = produce_request("t", batch_of("x" * 2_000))
            response = await greedy.send(produce.API, 9, request, deadline_ms=door.deadline_ms)
            seen.append((door.world.now_s - started_s, response.throttle_ms))
        return seen

    (first_s, first_throttle_ms), (second_s, second_throttle_ms) = at_the_door(story)
    assert first_s < 0.5
    assert 1_750 < first_throttle_ms < 2_250
    assert second_s == pytest.approx(first_throttle_ms / 1000, abs=0.1), "the next is kept waiting that long"
    assert second_throttle_ms > first_throttle_ms


def test_a_producer_that_wants_no_answer_is_held_too() -> None:
    async def story(door: Door) -> float:
        await door.create("t")
        await alter(door, GREEDY, producer_byte_rate=1000)
        greedy = await connect(door, "greedy")
        request = produce_request("t", batch_of("x" * 2_500), acks=0)
        greedy.send_unanswered(produce.API, 9, request)
        started_s = door.world.now_s
        await greedy.send(metadata.API, 9, metadata.MetadataRequest(()), deadline_ms=door.deadline_ms)
        return door.world.now_s - started_s

    assert at_the_door(story) == pytest.approx(2.35, abs=0.2)


def test_a_quota_that_is_taken_away_holds_nobody() -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        await alter(door, GREEDY, producer_byte_rate=RATE)
        assert await alter(door, GREEDY, producer_byte_rate=None) == ErrorCode.NONE
        greedy = await connect(door, "greedy")
        return await bytes_in(door, 1, producing(door, greedy, 100_000))

    assert at_the_door(story) > 5 * RATE


def test_quotas_are_described_as_they_were_set() -> None:
    async def story(door: Door) -> list[tuple[Parts, dict[str, float]]]:
        await alter(door, (("user", None), ("client-id", "c")), request_percentage=12.5)
        await alter(door, (("ip", "192.0.2.1"),), connection_creation_rate=7)
        request = describe_client_quotas.DescribeClientQuotasRequest((), False)
        response = await door.call(describe_client_quotas.API, 1, request)
        assert response.error_code == ErrorCode.NONE
        return [
            (
                tuple((part.entity_type, part.entity_name) for part in entry.entity),
                {value.key: value.value for value in entry.values},
            )
            for entry in response.entries or ()
        ]

    assert at_the_door(story) == [
        ((("client-id", "c"), ("user", None)), {"request_percentage": 12.5}),
        ((("ip", "192.0.2.1"),), {"connection_creation_rate": 7.0}),
    ]


@pytest.mark.parametrize("version", alter_client_quotas.API.versions)
def test_quotas_are_altered_one_entity_at_a_time(version: int) -> None:
    async def story(door: Door) -> list[int]:
        def entry(name: str, *operations: tuple[str, float, bool]) -> alter_client_quotas.EntryData:
            entity = (alter_client_quotas.EntityData("user", name),)
            return alter_client_quotas.EntryData(
                entity, tuple(alter_client_quotas.OpData(*operation) for operation in operations)
            )

        rate = ("producer_byte_rate", 5.0, False)
        entries = (
            entry("a", rate),
            entry("b", ("no_such", 5.0, False)),
            entry("a", rate),
            entry("c", rate, rate),
            entry("d", ("no_such", 5.0, True)),
        )
        request = alter_client_quotas.AlterClientQuotasRequest(entries, False)
        response = await door.call(alter_client_quotas.API, version, request)
        return [answer.error_code for answer in response.entries]

    refused = ErrorCode.INVALID_REQUEST
    assert at_the_door(story) == [ErrorCode.NONE, refused, refused, refused, ErrorCode.NONE]


EXACT, DEFAULT, ANY = 0, 1, 2


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        pytest.param(("user", EXACT, "u"), (ErrorCode.NONE, 1), id="one"),
        pytest.param(("user", DEFAULT, None), (ErrorCode.NONE, 0), id="the default"),
        pytest.param(("user", ANY, None), (ErrorCode.NONE, 1), id="any"),
        pytest.param(("host", ANY, None), (ErrorCode.UNSUPPORTED_VERSION, None), id="unknown"),
        pytest.param(("", ANY, None), (ErrorCode.INVALID_REQUEST, None), id="nothing"),
        pytest.param(("user", 9, None), (ErrorCode.INVALID_REQUEST, None), id="no such match"),
        pytest.param(("user", EXACT, None), (ErrorCode.INVALID_REQUEST, None), id="one without a name"),
        pytest.param(("user", ANY, "u"), (ErrorCode.INVALID_REQUEST, None), id="any with a name"),
    ],
)
def test_filters(component: tuple[str, int, str | None], expected: tuple[int, int | None]) -> None:
    async def story(door: Door) -> tuple[int, int | None]:
        await alter(door, (("user", "u"),), producer_byte_rate=5)
        request = describe_client_quotas.DescribeClientQuotasRequest(
            (describe_client_quotas.ComponentData(*component),), False
        )
        response = await door.call(describe_client_quotas.API, 0, request)
        return response.error_code, None if response.entries is None else len(response.entries)

    assert at_the_door(story) == expected


def topics_of(*names: str, partitions: int = 5) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(
        tuple(create_topics.CreatableTopic(name, partitions, 1) for name in names)
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param(
            7, [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED], id="a new client"
        ),
        pytest.param(5, [ErrorCode.NONE] * 3, id="an old client would not understand"),
    ],
)
def test_changes_of_the_cluster_have_a_quota(version: int, expected: list[ErrorCode]) -> None:
    """One partition a second, with ten saved up: the second topic uses more than there is, the third must wait."""

    async def story(door: Door) -> tuple[list[int], int]:
        await alter(door, (("user", None),), controller_mutation_rate=1)
        first = await door.call(create_topics.API, version, topics_of("a", "b", "c", partitions=6))
        return [topic.error_code for topic in first.topics], first.throttle_ms

    codes, throttle_ms = at_the_door(story)
    assert codes == expected
    assert throttle_ms > 1_000


def test_growing_and_deleting_topics_are_changes_too() -> None:
    async def story(door: Door) -> tuple[list[int], float]:
        await door.create("t", 5)
        await alter(door, (("user", None),), controller_mutation_rate=1)
        started_s = door.world.now_s
        grown = create_partitions.CreatePartitionsTopic("t", 16, None)
        again = create_partitions.CreatePartitionsTopic("t", 17, None)
        codes = []
        for topic in (grown, again):
            growth = create_partitions.CreatePartitionsRequest((topic,), 1000, False)
            codes.append((await door.call(create_partitions.API, 3, growth)).results[0].error_code)
        deletion = delete_topics.DeleteTopicsRequest(topics=(delete_topics.DeleteTopicState("t"),))
        codes += [
            (await door.call(delete_topics.API, 6, deletion)).topics[0].error_code,
            (await door.call(create_topics.API, 7, topics_of("u"))).topics[0].error_code,
        ]
        return codes, door.world.now_s - started_s

    # Whoever exceeded the quota is kept waiting until it may come again, so the changes are late rather than refused.
    codes, elapsed_s = at_the_door(story)
    assert codes == [ErrorCode.NONE] * 4
    assert elapsed_s == pytest.approx(11 + 1 + 17 - 10, abs=1), "all partitions, but for those saved up"


def test_an_address_has_a_quota_of_connections() -> None:
    async def story(door: Door) -> tuple[int, float]:
        await alter(door, (("ip", None),), connection_creation_rate=5)
        started_s = door.world.now_s

        async def outcome() -> bool:
            try:
                await (await connect(door, "greedy")).send(
                    metadata.API, 9, metadata.MetadataRequest(()), deadline_ms=door.deadline_ms
                )
            except (Unreachable, ConnectionLost):
                return False
            return True

        served = [await outcome() for _ in range(20)]
        return sum(served), door.world.now_s - started_s

    served, elapsed_s = at_the_door(story)
    assert 5 * elapsed_s < served < 5 * (elapsed_s + 1), "the rate, and a second's worth saved up"
    assert elapsed_s > 1, "the others were kept waiting before they were refused"
