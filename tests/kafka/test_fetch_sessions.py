"""Fetch sessions through the door: what is refused, what ends a wait, and what happens when somebody goes away."""

import asyncio

import pytest

from ropewalk.base.ids import LeaderEpoch
from ropewalk.client.errors import ConnectionLost
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import delete_records, fetch
from tests.kafka.door import Door, at_the_door, batch_of
from tests.kafka.session_client import BY_ID, BY_NAME, SessionClient

LONG_MS = 30_000


async def in_session(
    door: Door, partitions: int = 2, *, version: int = BY_NAME, **settings: str
) -> SessionClient:
    """A client that follows all partitions of `t` and has heard that there is nothing in them."""
    topic_id = await door.create("t", partitions, **settings)
    client = SessionClient(version)
    for index in range(partitions):
        client.follow(topic_id if version == BY_ID else "t", index)
    await client.poll(door)
    assert client.session_id > 0
    return client


async def waiting(door: Door, client: SessionClient, **options: int) -> "asyncio.Future[fetch.FetchResponse]":
    """The client's next fetch, which has reached the node and waits there."""
    answer = door.send(fetch.API, client.version, client.request(wait_ms=LONG_MS, **options))
    assert not (await asyncio.wait([answer], timeout=1))[0]
    return answer


async def hang_up(door: Door, unheard: "asyncio.Future[fetch.FetchResponse]") -> None:
    door.connection.close()
    with pytest.raises(ConnectionLost):
        await unheard
    await asyncio.sleep(1)


async def reset_all(door: Door, unheard: "asyncio.Future[fetch.FetchResponse]") -> None:
    """Break every connection to the node."""
    for end in door.world.network.connections():
        door.world.network.reset(end)
    with pytest.raises(ConnectionLost):
        await unheard
    await asyncio.sleep(1)


def error_of(
    door: Door, *, session_id: int, epoch: int, version: int = BY_NAME
) -> "asyncio.Future[fetch.FetchResponse]":
    return door.send(
        fetch.API, version, fetch.FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=0)
    )


async def trim(door: Door, offset: int) -> None:
    partition = delete_records.DeleteRecordsPartition(0, offset)
    request = delete_records.DeleteRecordsRequest(
        (delete_records.DeleteRecordsTopic("t", (partition,)),), 1000
    )
    answer = await door.call(delete_records.API, 2, request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(7, 19))
def test_only_what_changed_is_answered_in_any_version(version: int) -> None:
    async def story(door: Door) -> None:
        client = await in_session(door, 3, version=version) if version < 13 else await by_id(door, version)
        assert await client.poll(door) == {}
        await door.produce("t", batch_of("a"), partition=1)
        (((_, index), view),) = (await client.poll(door)).items()
        assert (index, view.high_watermark, bool(view.records)) == (1, 1, True)

    async def by_id(door: Door, version: int) -> SessionClient:
        topic_id = await door.create("t", 3)
        client = SessionClient(version)
        for index in range(3):
            client.follow(topic_id, index)
        await client.poll(door)
        return client

    at_the_door(story)


def test_refusals_are_kafkas() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door)
        unknown, wrong = client.session_id ^ 1, client.session_id
        for session_id, epoch, version, expected in (
            (unknown, 1, BY_NAME, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (0, 3, BY_NAME, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (wrong, 2, BY_NAME, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            (wrong, -2, BY_NAME, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            (wrong, 1, BY_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        ):
            answer = await error_of(door, session_id=session_id, epoch=epoch, version=version)
            assert (answer.error_code, answer.topics) == (expected, ())
        await door.produce("t", batch_of("a"))
        assert len(await client.poll(door)) == 1, "the session is as it was"

    at_the_door(story)


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_whole_fetch_closes_the_session_that_it_names(epoch: int) -> None:
    async def story(door: Door) -> int:
        client = await in_session(door)
        await error_of(door, session_id=client.session_id, epoch=epoch)
        return (await error_of(door, session_id=client.session_id, epoch=1)).error_code

    assert at_the_door(story) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_slots_there_are_no_sessions() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        client = SessionClient(BY_NAME)
        client.follow("t")
        for _ in range(3):
            assert len(await client.poll(door)) == 1
            assert client.session_id == 0

    at_the_door(story, "max.incremental.fetch.session.cache.slots=0")


def test_a_fetch_of_nothing_is_answered_at_once() -> None:
    async def story(door: Door) -> float:
        began_s = door.world.now_s
        await door.call(fetch.API, BY_NAME, fetch.FetchRequest(max_wait_ms=LONG_MS, min_bytes=1))
        return door.world.now_s - began_s

    assert at_the_door(story) < 1


def test_a_waiting_fetch_hears_of_records_in_a_quiet_session() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door, 50)
        other = await door.another()
        answer = await waiting(door, client)
        await other.produce("t", batch_of("a"), partition=49)
        assert list(client.apply(await answer)) == [("t", 49)]

    at_the_door(story)


def test_a_waiting_fetch_counts_the_bytes_of_all_its_partitions() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door, 3)
        other = await door.another()
        answer = await waiting(door, client, min_bytes=2 * len(batch_of("a")))
        await other.produce("t", batch_of("a"), partition=0)
        assert not (await asyncio.wait([answer], timeout=1))[0]
        await other.produce("t", batch_of("a"), partition=2)
        assert sorted(client.apply(await answer)) == [("t", 0), ("t", 2)]

    at_the_door(story)


def test_what_came_during_a_wait_is_told_when_the_time_is_over() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door)
        other = await door.another()
        answer = await waiting(door, client, min_bytes=1 << 20)
        await other.produce("t", batch_of("a"))
        assert list(client.apply(await answer)) == [("t", 0)]

    at_the_door(story)


def test_a_reader_under_which_the_records_are_deleted_hears_of_it_at_once() -> None:
    async def story(door: Door) -> float:
        client = await in_session(door)
        other = await door.another()
        answer = await waiting(door, client, min_bytes=1 << 20)
        await other.produce("t", batch_of("a", "b"))
        began_s = door.world.now_s
        await trim(other, 1)
        view = client.apply(await answer)["t", 0]
        assert (view.error_code, view.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 1)
        return door.world.now_s - began_s

    assert at_the_door(story) < LONG_MS / 2000


def test_retention_reaches_a_session_that_slept_meanwhile() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door, retention_ms="1000")
        await door.produce("t", batch_of("a", "b"))
        await asyncio.sleep(10)
        await door.node.housekeeping.apply_retention()
        view = (await client.poll(door))["t", 0]
        assert (view.error_code, view.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 2)
        client.follow("t", 0, 2)
        view = (await client.poll(door))["t", 0]
        assert (view.error_code, view.high_watermark, view.records) == (ErrorCode.NONE, 2, b"")

    at_the_door(story)


def test_a_log_that_lost_its_beginning_ends_no_wait_but_is_told() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door)
        await door.produce("t", batch_of("a", "b"))
        await client.poll(door)
        client.follow("t", 0, 2)
        assert await client.poll(door) == {}
        other = await door.another()
        answer = await waiting(door, client)
        await trim(other, 1)
        assert not (await asyncio.wait([answer], timeout=1))[0]
        view = client.apply(await answer)["t", 0]
        assert (view.error_code, view.log_start_offset, view.records) == (ErrorCode.NONE, 1, b"")

    at_the_door(story)


@pytest.mark.parametrize(
    ("version", "expected"),
    [(BY_ID, ErrorCode.UNKNOWN_TOPIC_ID), (BY_NAME, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
    ids=["by id", "by name"],
)
def test_a_topic_that_is_deleted_and_made_again(version: int, expected: ErrorCode) -> None:
    async def story(door: Door) -> None:
        client = await in_session(door, 1, version=version)
        other = await door.another()
        answer = await waiting(door, client)
        await other.delete("t")
        assert [view.error_code for view in client.apply(await answer).values()] == [expected]
        assert [view.error_code for view in (await client.poll(door)).values()] == [expected], "still"
        await door.create("t")
        await door.produce("t", batch_of("a"))
        (view,) = (await client.poll(door)).values()
        if version == BY_ID:
            assert view.error_code == expected, "a topic made again has another id"
        else:
            assert (view.error_code, view.high_watermark) == (ErrorCode.NONE, 1)

    at_the_door(story)


def test_a_new_leader_epoch_reaches_a_quiet_reader() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        client = SessionClient(BY_NAME)
        client.follow("t")
        request = client.request()
        (topic,) = request.topics
        (asked,) = topic.partitions
        known = fetch.FetchPartition(asked.index, 0, asked.fetch_offset, partition_max_bytes=1 << 20)
        named = fetch.FetchRequest(session_epoch=0, topics=(fetch.FetchTopic("t", partitions=(known,)),))
        client.apply(await door.call(fetch.API, BY_NAME, named))
        answer = await waiting(door, client)
        (partition,) = door.node.partitions.all_led()
        partition.set_leader_epoch(LeaderEpoch(1))
        assert client.apply(await answer)["t", 0].error_code == ErrorCode.FENCED_LEADER_EPOCH

    at_the_door(story)


def test_a_later_fetch_takes_the_session_from_one_that_waits() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door)
        other = await door.another()
        answer = await waiting(door, client)
        client.epoch += 1
        await other.produce("t", batch_of("a"))
        assert (await answer).error_code == ErrorCode.NONE
        client.follow("t", 0, 1)
        answer = await waiting(door, client)
        client.epoch += 1
        later = other.send(fetch.API, BY_NAME, client.request(wait_ms=LONG_MS))
        assert (await answer).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        await door.produce("t", batch_of("b"), partition=1)
        assert list(client.apply(await later)) == [("t", 1)]

    at_the_door(story)


def test_a_session_that_is_closed_while_it_waits_answers_and_is_gone() -> None:
    async def story(door: Door) -> None:
        client = await in_session(door)
        other = await door.another()
        answer = await waiting(door, client)
        await error_of(other, session_id=client.session_id, epoch=-1)
        assert (await answer).error_code == ErrorCode.NONE
        assert (
            await error_of(door, session_id=client.session_id, epoch=2)
        ).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    at_the_door(story)


def test_marks_outlive_a_reader_whose_connection_breaks() -> None:
    """It comes back with all its partitions; but whoever goes on with the session is told what nobody heard."""

    async def story(door: Door) -> None:
        client = await in_session(door)
        other = await door.another()
        answer = await waiting(door, client, min_bytes=1 << 20)
        client.epoch += 1
        await other.produce("t", batch_of("a"))
        await reset_all(door, answer)
        assert list(await client.poll(await door.another())) == [("t", 0)]

    at_the_door(story)


def test_nothing_waits_for_a_reader_that_has_gone() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t")
        leaver = await door.another()
        client = SessionClient()
        client.epoch = -1
        client.follow(topic_id)
        answer = await waiting(leaver, client)
        (partition,) = door.node.partitions.all_led()
        assert partition.watcher_count == 1
        await hang_up(leaver, answer)
        assert partition.watcher_count == 0

    at_the_door(story)


def test_a_session_that_its_reader_never_heard_of_is_not_kept() -> None:
    async def story(door: Door) -> None:
        topic_id = await door.create("t")
        client = SessionClient()
        client.follow(topic_id)
        await reset_all(door, await waiting(door, client))
        (partition,) = door.node.partitions.all_led()
        assert partition.watcher_count == 0

    at_the_door(story)


def test_a_node_that_stops_keeps_nobody_waiting() -> None:
    async def story(door: Door) -> float:
        client = await in_session(door)
        answer = await waiting(door, client)
        began_s = door.world.now_s
        await door.node.stop()
        await asyncio.wait([answer])
        assert answer.exception() is None or isinstance(answer.exception(), ConnectionLost)
        assert [partition.watcher_count for partition in door.node.partitions] == [0, 0]
        return door.world.now_s - began_s

    assert at_the_door(story) < LONG_MS / 2000
