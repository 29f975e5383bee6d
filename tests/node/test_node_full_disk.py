"""A disk that is full: what was written is read, what deletes goes on, and when there is room everything does."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_configs,
    create_topics,
    delete_records,
    find_coordinator,
    offset_commit,
    offset_fetch,
)
from tests.kafka.door import Door, at_the_door, batch_of
from tests.kafka.transactional import Transactional

VALUE = "v" * 50_000
RECORDS = 12
SOON = "log.retention.check.interval.ms=1000"


def fill(platters: Platters) -> None:
    """Somebody else takes all that is left."""
    platters.capacity_bytes = platters.used_bytes


async def write(door: Door, topic: str = "t") -> ErrorCode:
    answer = await door.produce(topic, batch_of(VALUE, timestamp=EPOCH_MS + int(door.world.now_s * 1000)))
    return ErrorCode(answer.error_code)


async def a_full_disk(door: Door, *, retention_ms: str = "-1") -> None:
    """A topic with records, and not a byte left."""
    await door.create("t", retention_ms=retention_ms)
    for _ in range(RECORDS):
        assert await write(door) == ErrorCode.NONE
    await asyncio.sleep(3)  # checkpoints and snapshots are written
    fill(door.machine.platters)
    assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR


async def delete_all(door: Door, topic: str = "t") -> ErrorCode:
    asked = delete_records.DeleteRecordsTopic(topic, (delete_records.DeleteRecordsPartition(0, -1),))
    answer = await door.call(delete_records.API, 2, delete_records.DeleteRecordsRequest((asked,), 5000))
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def create(door: Door, name: str) -> tuple[ErrorCode, str]:
    asked = create_topics.CreatableTopic(name, 1, 1)
    (made,) = (await door.call(create_topics.API, 7, create_topics.CreateTopicsRequest((asked,)))).topics
    return ErrorCode(made.error_code), made.error_message or ""


async def until_created(door: Door, name: str) -> None:
    began_s = door.world.now_s
    while (await create(door, name))[0] != ErrorCode.NONE:
        assert door.world.now_s - began_s < 3, "nothing could be made in time"
        await asyncio.sleep(0.1)


async def until_written(door: Door, *, topic: str = "t", within_s: float) -> None:
    began_s = door.world.now_s
    while await write(door, topic) != ErrorCode.NONE:
        assert door.world.now_s - began_s < within_s, "the disk was not emptied in time"
        await asyncio.sleep(0.1)


def test_a_full_disk_is_emptied_by_retention() -> None:
    async def story(door: Door) -> int:
        await a_full_disk(door, retention_ms="10000")
        await asyncio.sleep(5)
        assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR
        await until_written(door, within_s=15)
        return door.node.partitions.find("t", 0).log.start_offset

    assert at_the_door(story, SOON) == RECORDS


def test_retention_does_not_wait_for_its_turn_while_the_disk_is_full() -> None:
    async def story(door: Door) -> None:
        await a_full_disk(door, retention_ms="10000")
        await until_written(door, within_s=20)

    at_the_door(story, "log.retention.check.interval.ms=3600000")


def test_a_full_disk_is_emptied_by_deleting_records() -> None:
    """Although all of them are in the one segment that is written to."""

    async def story(door: Door) -> None:
        await a_full_disk(door)
        assert await delete_all(door) == ErrorCode.NONE
        await until_written(door, within_s=8)

    at_the_door(story)


def test_a_full_disk_is_emptied_by_deleting_a_topic() -> None:
    async def story(door: Door) -> None:
        await door.create("other")
        await a_full_disk(door)
        await door.delete("t")
        await until_written(door, topic="other", within_s=3)
        assert await create(door, "third") == (ErrorCode.NONE, "")

    at_the_door(story)


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped in order", "killed"])
def test_a_node_whose_disk_is_full_starts_again_and_is_read_and_emptied(is_clean: bool) -> None:
    async def story(door: Door) -> None:
        await a_full_disk(door)
        for _ in range(3):
            if is_clean:
                await door.node.stop()
                assert door.machine.platters.find("/data/clean-shutdown") is not None
            await door.restart()
            assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR
            assert (await door.fetch("t", RECORDS - 1)).records
        assert await delete_all(door) == ErrorCode.NONE
        await until_written(door, within_s=8)

    at_the_door(story)


def test_a_directory_without_a_reserve_starts_on_a_full_disk_as_far_as_it_can() -> None:
    """As one that was written before there were reserves, with some room left in the last block of the metadata."""

    async def story(door: Door) -> None:
        await a_full_disk(door)
        platters = door.machine.platters
        door.machine.kill()
        platters.remove("/data/reserve")
        platters.capacity_bytes = platters.used_bytes + 2000
        await door.open()
        assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await door.fetch("t", 0)).records
        await door.delete("t")
        await until_created(door, "next")
        await until_written(door, topic="next", within_s=3)
        assert platters.find("/data/reserve") is not None

    at_the_door(story)


def test_a_partition_for_which_there_is_no_room_keeps_no_other_from_being_opened() -> None:
    """Of the one only the metadata tell: the disk was full, or the power failed, before it was made. Simulator seed 478."""

    async def story(door: Door) -> None:
        await door.create("unmade")
        await a_full_disk(door)
        platters = door.machine.platters
        door.machine.kill()
        platters.remove("/data/unmade-0")
        fill(platters)
        await door.open()
        assert (await door.fetch("t", RECORDS - 1)).records
        assert (await door.fetch("unmade", 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        platters.make_room()
        await until_written(door, topic="unmade", within_s=3)

    at_the_door(story)


def test_nothing_is_made_on_a_full_disk_and_settings_can_be_changed() -> None:
    async def story(door: Door) -> None:
        await a_full_disk(door)
        code, text = await create(door, "next")
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "the disk is full; topics can be deleted" in text
        resource = alter_configs.AlterConfigsResource(
            2, "t", (alter_configs.AlterableConfig("retention.ms", "1"),)
        )
        (altered,) = (
            await door.call(
                alter_configs.API, 1, alter_configs.AlterConfigsRequest((resource,), validate_only=False)
            )
        ).responses
        assert altered.error_code == ErrorCode.NONE
        await until_written(door, within_s=8)
        assert (await create(door, "next"))[0] == ErrorCode.NONE

    at_the_door(story, SOON)


def test_what_only_changes_leaves_half_of_the_reserve_to_what_deletes() -> None:
    async def story(door: Door) -> None:
        await a_full_disk(door)
        code = ErrorCode.NONE
        for number in range(2000):
            resource = alter_configs.AlterConfigsResource(
                2, "t", (alter_configs.AlterableConfig("retention.ms", str(10**9 + number)),)
            )
            request = alter_configs.AlterConfigsRequest((resource,), validate_only=False)
            (altered,) = (await door.call(alter_configs.API, 1, request)).responses
            code = ErrorCode(altered.error_code)
            if code:
                break
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        await door.restart()  # for this, too, something is left
        await door.delete("t")
        await until_created(door, "next")

    at_the_door(story)


def test_a_reserve_that_others_have_taken_is_taken_back_when_there_is_room() -> None:
    async def story(door: Door) -> None:
        await a_full_disk(door)
        platters = door.machine.platters
        reserve = door.node.partitions.find("t", 0).log._storage.reserve
        whole_bytes = reserve.whole_bytes
        for _ in range(60):
            await delete_all(door)
            fill(platters)
        assert reserve.size_bytes < whole_bytes
        platters.make_room()
        await until_written(door, within_s=3)
        assert reserve.size_bytes >= whole_bytes

    at_the_door(story, "log.retention.check.interval.ms=3600000")


def test_a_full_disk_is_said_when_it_begins_and_when_it_ends() -> None:
    async def story(door: Door) -> list[str]:
        with capture_logs() as lines:
            await a_full_disk(door)
            await asyncio.sleep(20)
            door.machine.platters.make_room()
            await until_written(door, within_s=3)
        return [line["event"] for line in lines if "disk" in line["event"]]

    begins, ends = at_the_door(story)
    assert begins == "the disk is full: writes are refused until there is room, reads go on"
    assert ends == "there is room on the disk again: writes are taken"


def test_a_node_stops_in_order_although_the_disk_has_not_a_byte_left() -> None:
    async def story(door: Door) -> list[str]:
        await a_full_disk(door)
        door.machine.platters.capacity_bytes = 0  # whatever is freed, others have taken it
        with capture_logs() as lines:
            await door.node.stop()
        return [line["event"] for line in lines]

    assert "the disk is full; the next start reads the ends of all logs" in at_the_door(story)


def test_committed_offsets_are_told_while_none_can_be_committed() -> None:
    def commit(offset: int) -> offset_commit.OffsetCommitRequest:
        at = offset_commit.OffsetCommitRequestPartition(0, offset, -1, None)
        topic = offset_commit.OffsetCommitRequestTopic("t", bytes(16), (at,))
        return offset_commit.OffsetCommitRequest("g", -1, "", None, topics=(topic,))

    async def story(door: Door) -> tuple[set[int], set[tuple[int, int]], int]:
        await door.create("t")
        await door.call(
            find_coordinator.API,
            4,
            find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)),
        )
        for _ in range(RECORDS):
            await write(door)
        while (await door.call(offset_commit.API, 8, commit(5))).topics[0].partitions[0].error_code:
            await asyncio.sleep(0.1)
        fill(door.machine.platters)
        assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR
        codes: set[int] = set()
        told: set[tuple[int, int]] = set()
        asked = offset_fetch.OffsetFetchRequestTopic("t", (0,))
        for _ in range(20):
            answer = await door.call(offset_commit.API, 8, commit(6))
            codes.add(answer.topics[0].partitions[0].error_code)
            offsets = await door.call(
                offset_fetch.API, 5, offset_fetch.OffsetFetchRequest(group_id="g", topics=(asked,))
            )
            (found,) = offsets.topics[0].partitions
            told.add((offsets.error_code or found.error_code, found.committed_offset))
            await asyncio.sleep(0.3)
        await delete_all(door)
        await until_written(door, within_s=8)
        return (
            codes,
            told,
            (await door.call(offset_commit.API, 8, commit(7))).topics[0].partitions[0].error_code,
        )

    codes, told, last = at_the_door(story)
    assert codes == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert told == {(0, 5)}
    assert last == ErrorCode.NONE


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped in order", "killed"])
@pytest.mark.parametrize("is_full", [True, False], ids=["full", "with room"])
def test_a_batch_is_written_once_although_all_that_tells_of_it_was_deleted(
    is_clean: bool, is_full: bool
) -> None:
    async def story(door: Door) -> int:
        await door.create("t")
        for sequence in range(RECORDS):
            answer = await door.produce("t", batch_of(VALUE, producer=(7, 0, sequence)))
            assert answer.error_code == ErrorCode.NONE
        await asyncio.sleep(3)
        if is_full:
            fill(door.machine.platters)
            assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await delete_all(door) == ErrorCode.NONE
        before_bytes = door.machine.platters.used_bytes
        await asyncio.sleep(6)
        assert door.machine.platters.used_bytes < before_bytes - RECORDS * len(VALUE) // 2
        if is_clean:
            await door.node.stop()
        await door.restart()
        await asyncio.sleep(2)
        again = await door.produce("t", batch_of(VALUE, producer=(7, 0, RECORDS - 1)))
        assert again.error_code == ErrorCode.NONE
        return again.base_offset

    assert at_the_door(story, SOON) == RECORDS - 1


def test_a_transaction_ends_whose_last_marker_was_written_while_its_end_could_not_be() -> None:
    """The disk has filled up between the decision and its end, and the coordinator serves all the while."""

    async def until_taken(door: Door, heir: Transactional) -> None:
        began_s = door.world.now_s
        while await heir.try_init() != ErrorCode.NONE:
            assert door.world.now_s - began_s < 5, "the transaction does not end"

    async def story(door: Door) -> set[str]:
        await door.create("t")
        producer = await Transactional(door).init()
        assert (await producer.send("t", "v")).error_code == ErrorCode.NONE
        log = door.node.partitions.find("t", 0).log
        ending = asyncio.create_task(producer.end(committed=True))
        while log.end_offset < 2:  # until the marker is in the log, and before it is on the platter
            await asyncio.sleep(0.0001)
        door.machine.platters.stall(door.world.now_s + 2)
        fill(door.machine.platters)
        assert await write(door) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await ending == ErrorCode.NONE
        await asyncio.sleep(5)
        found = {state.value for state in door.node._parts.transactions.states()}
        door.machine.platters.make_room()
        await until_written(door, within_s=3)
        await until_taken(door, producer)
        return found

    assert at_the_door(story) == {"PrepareCommit"}
