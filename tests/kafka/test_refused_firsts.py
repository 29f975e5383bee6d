"""The first batch of an idempotent producer, refused for a reason that passes: what it sent after it does not take its place."""

import asyncio

import pytest

from ropewalk.base.errors import NotLeader
from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.base.limits import REFUSED_FIRST_MS_MAX
from ropewalk.broker.partitions.partition import Partition
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from tests.kafka.door import Door, at_the_door


def numbered(sequence: int, *, epoch: int = 0) -> bytes:
    records = [Record(timestamp=EPOCH_MS, value=f"{sequence}".encode())]
    return bytes(
        build(
            records,
            producer_id=ProducerId(7),
            producer_epoch=ProducerEpoch(epoch),
            base_sequence=sequence,
        )
    )


async def send(door: Door, sequence: int, *, epoch: int = 0) -> tuple[int, int]:
    answer = await door.produce("t", numbered(sequence, epoch=epoch))
    return answer.error_code, answer.base_offset


def test_a_batch_that_was_refused_first_is_first_when_its_reason_has_passed() -> None:
    async def story(door: Door) -> None:
        other = await door.another()
        assert (await send(door, 0))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await other.create("t")
        assert (await send(door, 1))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await send(door, 2))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await send(door, 0) == (0, 0)
        assert await send(door, 1) == (0, 1)
        assert await send(door, 2) == (0, 2)

    at_the_door(story, "auto.create.topics.enable=false")


def test_what_was_given_up_with_its_epoch_or_its_connection_stands_in_nobodys_way() -> None:
    async def story(door: Door) -> None:
        assert (await send(door, 0))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await door.create("t")
        another = await door.another()
        assert await send(another, 5) == (0, 0), "its state may have expired: any first sequence is taken"
        assert await send(door, 0, epoch=1) == (0, 1)

    at_the_door(story, "auto.create.topics.enable=false")


def test_what_never_comes_again_is_not_waited_for_for_ever() -> None:
    async def story(door: Door) -> None:
        assert (await send(door, 0))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await door.create("t")
        await asyncio.sleep(REFUSED_FIRST_MS_MAX / 2000)
        assert (await send(door, 9))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await asyncio.sleep(REFUSED_FIRST_MS_MAX / 2000 + 1)
        assert await send(door, 9) == (0, 0)

    at_the_door(story, "auto.create.topics.enable=false")


def test_behind_a_batch_that_was_refused_for_a_while_its_reason_is_told_and_no_gap() -> None:
    """librdkafka takes another epoch upon a gap, and sends again what may be in the log already."""

    def refuse(*_: object) -> None:
        raise NotLeader("the partition is about to be led here")

    async def story(door: Door) -> None:
        await door.create("t")
        assert await send(door, 0) == (0, 0)
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(Partition, "append", refuse)
            assert (await send(door, 1))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await send(door, 2))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER, "not OUT_OF_ORDER"
        assert await send(door, 1) == (0, 1)
        assert await send(door, 2) == (0, 2)
        assert (await send(door, 9))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    at_the_door(story)
